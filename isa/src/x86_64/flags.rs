//! How results set RFLAGS and how conditions read it. SDM vol. 1, 3.4.3 and appendix B.

use super::Flag;
use super::operand::X86;
use crate::machine::{BinOp, CmpOp, OperandRule, UnOp, Width};
use iced_x86::ConditionCode;

/// SF, ZF, PF from a result.
pub(super) fn set_result_flags<M: X86>(m: &mut M, result: M::Int) {
    let negative = m.is_negative(result);
    m.put(Flag::Sf, negative);
    let zero = m.is_zero(result);
    m.put(Flag::Zf, zero);
    set_parity(m, result);
}

/// PF: the low byte has an even number of ones.
pub(super) fn parity<M: X86>(m: &mut M, result: M::Int) -> M::Bool {
    let low = m.trunc(result, Width::W8);
    let ones = m.un(UnOp::CountOnes, low);
    let odd = m.low_bit(ones);
    m.not(odd)
}

fn set_parity<M: X86>(m: &mut M, result: M::Int) {
    let even = parity(m, result);
    m.put(Flag::Pf, even);
}

/// AF: the carry or borrow between bits 3 and 4 of a sum or difference of `a` and `b`.
fn set_half_carry<M: X86>(m: &mut M, a: M::Int, b: M::Int, result: M::Int) {
    let carries = m.bin(BinOp::Xor, a, b);
    let carries = m.bin(BinOp::Xor, carries, result);
    let half = m.bit(carries, 4);
    m.put(Flag::Af, half);
}

/// All flags of `sum = a + b`.
pub(super) fn set_sum_flags<M: X86>(m: &mut M, a: M::Int, b: M::Int, sum: M::Int) {
    let carry = m.cmp(CmpOp::Ult, sum, a);
    m.put(Flag::Cf, carry);
    set_add_flags(m, a, b, sum);
    m.flags_follow(OperandRule::Sum, a, b);
}

/// All flags but CF of `sum = a + b` (+ carry).
pub(super) fn set_add_flags<M: X86>(m: &mut M, a: M::Int, b: M::Int, sum: M::Int) {
    set_result_flags(m, sum);
    set_half_carry(m, a, b, sum);
    let (from_a, from_b) = (m.bin(BinOp::Xor, a, sum), m.bin(BinOp::Xor, b, sum));
    let overflow = m.bin(BinOp::And, from_a, from_b);
    let overflow = m.is_negative(overflow);
    m.put(Flag::Of, overflow);
}

/// All flags but CF of `difference = a - b`.
///
/// OF is said as `(a < b) ^ SF`, ZF as `a == b`: then the signed conditions, which are `SF ^ OF` and so
/// on, simplify to comparisons of `a` and `b`.
pub(super) fn set_sub_flags<M: X86>(m: &mut M, a: M::Int, b: M::Int, difference: M::Int) {
    let negative = m.is_negative(difference);
    m.put(Flag::Sf, negative);
    let equal = m.cmp(CmpOp::Eq, a, b);
    m.put(Flag::Zf, equal);
    set_parity(m, difference);
    set_half_carry(m, a, b, difference);
    let less = m.cmp(CmpOp::Slt, a, b);
    let overflow = m.xor(less, negative);
    m.put(Flag::Of, overflow);
}

/// All flags of `difference = a - b`.
pub(super) fn set_difference_flags<M: X86>(m: &mut M, a: M::Int, b: M::Int, difference: M::Int) {
    let borrow = m.cmp(CmpOp::Ult, a, b);
    m.put(Flag::Cf, borrow);
    set_sub_flags(m, a, b, difference);
    m.flags_follow(OperandRule::Difference, a, b);
}

/// All flags of `a - b`.
pub(super) fn set_compare_flags<M: X86>(m: &mut M, a: M::Int, b: M::Int) {
    let difference = m.bin(BinOp::Sub, a, b);
    set_difference_flags(m, a, b, difference);
}

/// All flags but CF of `difference = a - b - borrow`.
pub(super) fn set_borrow_flags<M: X86>(m: &mut M, a: M::Int, b: M::Int, difference: M::Int) {
    set_result_flags(m, difference);
    set_half_carry(m, a, b, difference);
    let (operands, result) = (m.bin(BinOp::Xor, a, b), m.bin(BinOp::Xor, a, difference));
    let overflow = m.bin(BinOp::And, operands, result);
    let overflow = m.is_negative(overflow);
    m.put(Flag::Of, overflow);
}

/// All flags of a bitwise operation: CF and OF clear, AF undefined (clear on current CPUs).
pub(super) fn set_logic_flags<M: X86>(m: &mut M, result: M::Int) {
    m.put_known(&[Flag::Cf, Flag::Of, Flag::Af], false);
    set_result_flags(m, result);
    m.flags_follow_result(result);
}

/// The condition of Jcc, SETcc and CMOVcc.
pub(super) fn condition<M: X86>(m: &mut M, code: ConditionCode) -> M::Bool {
    use ConditionCode as C;
    match code {
        C::o => m.get(Flag::Of),
        C::no => negated(m, C::o),
        C::b => m.get(Flag::Cf),
        C::ae => negated(m, C::b),
        C::e => m.get(Flag::Zf),
        C::ne => negated(m, C::e),
        C::be => {
            let (below, equal) = (m.get(Flag::Cf), m.get(Flag::Zf));
            m.or(below, equal)
        }
        C::a => negated(m, C::be),
        C::s => m.get(Flag::Sf),
        C::ns => negated(m, C::s),
        C::p => m.get(Flag::Pf),
        C::np => negated(m, C::p),
        C::l => {
            let (sign, overflow) = (m.get(Flag::Sf), m.get(Flag::Of));
            m.xor(sign, overflow)
        }
        C::ge => negated(m, C::l),
        C::le => {
            let (less, equal) = (condition(m, C::l), m.get(Flag::Zf));
            m.or(less, equal)
        }
        C::g => negated(m, C::le),
        C::None => m.bool(true),
    }
}

fn negated<M: X86>(m: &mut M, code: ConditionCode) -> M::Bool {
    let holds = condition(m, code);
    m.not(holds)
}

/// The flags that live one by one, each at its place in RFLAGS, as a 64-bit integer; `other` has the rest.
pub(super) fn rflags<M: X86>(m: &mut M, other: M::Int) -> M::Int {
    placed(m, other, &Flag::ALL, M::get)
}

/// `bits`, 64 of them, and the values of `flags`, each at its place in RFLAGS.
pub(super) fn placed<M: X86>(
    m: &mut M,
    bits: M::Int,
    flags: &[Flag],
    mut value: impl FnMut(&mut M, Flag) -> M::Bool,
) -> M::Int {
    flags.iter().fold(bits, |bits, &flag| {
        let value = value(m, flag);
        let value = m.bool_to_int(value, Width::W64);
        let placed = m.bin_const(BinOp::Shl, value, flag.bit().into());
        m.bin(BinOp::Or, bits, placed)
    })
}

/// Set `flags` from their places in RFLAGS.
pub(super) fn set_from_rflags<M: X86>(m: &mut M, rflags: M::Int, flags: &[Flag]) {
    for &flag in flags {
        let value = m.bit(rflags, flag.bit());
        m.put(flag, value);
    }
}
