//! The status flags as what they follow from. Where compiled code leaves for a fault, storing the operands takes less code
//! than computing six flags, which is done if it ever happens.

use super::flags::{parity, placed};
use super::operand::X86;
use super::{Flag, Reg};
use crate::machine::{BinOp, CmpOp, Machine, OperandRule, Width};

/// CF, PF, AF, ZF, SF and OF, not computed yet.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LazyFlags {
    /// [`LazyFlags::SETTLED`], [`LazyFlags::BITS`], [`LazyFlags::operands`] or [`LazyFlags::result`].
    pub rule: u64,
    /// The left operand, zero-extended.
    pub left: u64,
    /// The right operand, zero-extended.
    pub right: u64,
}

/// In the rule, from the lowest bit: its number, and above it how far operands are from the top of 64 bits.
const NUMBER_BITS: u64 = 3;

impl LazyFlags {
    /// Nothing is left to do: [`super::Cpu::flags`] has them.
    pub const SETTLED: u64 = 0;
    /// `left` has them, each at its place in RFLAGS.
    pub const BITS: u64 = 1;

    /// They follow by `rule` from operands of `width`.
    pub const fn operands(rule: OperandRule, width: Width) -> u64 {
        LazyFlags::number(rule) | LazyFlags::shift(width)
    }

    /// The status flags that a result does not tell.
    pub const BESIDE_RESULT: [Flag; 3] = [Flag::Cf, Flag::Af, Flag::Of];

    /// SF, ZF and PF follow from a result of `width`, which is `left`; `right` has the others, each at
    /// its place in RFLAGS.
    pub const fn result(width: Width) -> u64 {
        4 | LazyFlags::shift(width)
    }

    const fn number(rule: OperandRule) -> u64 {
        match rule {
            OperandRule::Sum => 2,
            OperandRule::Difference => 3,
        }
    }

    const fn shift(width: Width) -> u64 {
        (64 - width.bits() as u64) << NUMBER_BITS
    }
}

/// `flags`, each at its place in RFLAGS, 64 bits.
pub fn bits<M: Machine<Reg = Reg>>(
    m: &mut M,
    flags: &[Flag],
    value: impl FnMut(&mut M, Flag) -> M::Bool,
) -> M::Int {
    let none = m.int(Width::W64, 0);
    placed(m, none, flags, value)
}

/// Set the status flags from the fields of [`LazyFlags`], 64 bits each, which are not settled.
pub fn settle<M: Machine<Reg = Reg>>(m: &mut M, rule: M::Int, left: M::Int, right: M::Int) {
    let shift = m.bin_const(BinOp::LShr, rule, NUMBER_BITS);
    let number = m.bin_const(BinOp::And, rule, (1 << NUMBER_BITS) - 1);
    let mut is = |k| {
        let k = m.like(number, k);
        m.cmp(CmpOp::Eq, number, k)
    };
    let is_bits = is(LazyFlags::BITS);
    let is_sum = is(LazyFlags::number(OperandRule::Sum));
    let is_difference = is(LazyFlags::number(OperandRule::Difference));

    // At the top of 64 bits, operands of any width carry and overflow alike.
    let (a, b) = (m.bin(BinOp::Shl, left, shift), m.bin(BinOp::Shl, right, shift));
    let (sum, difference) = (m.bin(BinOp::Add, a, b), m.bin(BinOp::Sub, a, b));
    let result = m.select(is_difference, difference, a);
    let result = m.select(is_sum, sum, result);
    let negative = m.is_negative(result);
    let low = m.bin(BinOp::LShr, result, shift);

    // What does not follow is said.
    let said = m.select(is_bits, left, right);
    let choose = |m: &mut M, flag: Flag, if_sum, if_difference| {
        let said = m.bit(said, flag.bit());
        let value = m.select_bool(is_difference, if_difference, said);
        let value = m.select_bool(is_sum, if_sum, value);
        m.put(flag, value);
    };
    let (carry, borrow) = (m.cmp(CmpOp::Ult, sum, a), m.cmp(CmpOp::Ult, a, b));
    choose(m, Flag::Cf, carry, borrow);
    let carries = m.bin(BinOp::Xor, left, right);
    let carries = m.bin(BinOp::Xor, carries, low);
    let half = m.bit(carries, 4);
    choose(m, Flag::Af, half, half);
    let (from_a, from_b) = (m.bin(BinOp::Xor, a, result), m.bin(BinOp::Xor, b, result));
    let overflow = m.bin(BinOp::And, from_a, from_b);
    let overflow = m.is_negative(overflow);
    let less = m.cmp(CmpOp::Slt, a, b);
    let underflow = m.xor(less, negative);
    choose(m, Flag::Of, overflow, underflow);

    let (even, zero) = (parity(m, low), m.is_zero(result));
    for (flag, value) in [(Flag::Pf, even), (Flag::Zf, zero), (Flag::Sf, negative)] {
        let said = m.bit(said, flag.bit());
        let value = m.select_bool(is_bits, said, value);
        m.put(flag, value);
    }
}
