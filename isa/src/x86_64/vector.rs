//! Vector operands: XMM and MMX registers, and the memory operands that stand in for them.

use super::Insn;
use super::mmx;
use super::operand::{X86, memory_address, width_of};
use crate::machine::{BinOp, LaneOp, Width};
use iced_x86::{OpKind, Register};

/// Bits of an XMM register. An MMX value is held as such a vector with a zero upper half.
pub(super) const BITS: u32 = 128;

/// The instruction works on MMX registers.
pub(super) fn is_mmx(i: &Insn) -> bool {
    i.op0_register().is_mm()
}

/// Whether operand `op` is in memory.
pub(super) fn in_memory(i: &Insn, op: u32) -> bool {
    i.op_kind(op) == OpKind::Memory
}

/// Number of the XMM register that operand `op` is.
pub(super) fn xmm_number(i: &Insn, op: u32) -> u32 {
    i.op_register(op).number() as u32
}

/// A vector operand; one narrower than 128 bits has zeros above. In memory, 128 bits must be aligned (SDM
/// vol. 1, 10.4.1.1 and 11.4.1.2).
pub(super) fn source<M: X86>(m: &mut M, i: &Insn, op: u32) -> M::Vec {
    if !in_memory(i, op) {
        return register(m, i.op_register(op));
    }
    let address = memory_address(m, i);
    if i.memory_size().size() == 16 {
        m.require_aligned(address, 16);
    }
    load(m, i, address)
}

/// A vector operand at any alignment.
pub(super) fn unaligned<M: X86>(m: &mut M, i: &Insn, op: u32) -> M::Vec {
    if !in_memory(i, op) {
        return register(m, i.op_register(op));
    }
    let address = memory_address(m, i);
    load(m, i, address)
}

fn register<M: X86>(m: &mut M, register: Register) -> M::Vec {
    let number = register.number() as u32;
    if register.is_mm() {
        let value = mmx::read(m, number);
        from_low(m, value)
    } else {
        m.vec_reg(number, BITS)
    }
}

fn load<M: X86>(m: &mut M, i: &Insn, address: M::Int) -> M::Vec {
    match i.memory_size().size() {
        16 => m.load_vec(address, BITS),
        bytes => {
            let value = m.load(address, width_of(bytes));
            from_low(m, value)
        }
    }
}

/// `value` in the lowest lane, zeros above.
pub(super) fn from_low<M: X86>(m: &mut M, value: M::Int) -> M::Vec {
    let zero = m.vec_zero(BITS);
    m.set_lane(zero, 0, value)
}

/// Write vector operand 0, which in memory must be aligned.
pub(super) fn set<M: X86>(m: &mut M, i: &Insn, value: M::Vec) {
    if in_memory(i, 0) {
        let address = memory_address(m, i);
        m.require_aligned(address, 16);
        m.store_vec(address, value);
    } else if is_mmx(i) {
        let low = m.lane(value, Width::W64, 0);
        mmx::write(m, xmm_number(i, 0), low);
    } else {
        m.set_vec_reg(xmm_number(i, 0), value);
    }
}

/// A scalar of `width`: the lowest lane of an XMM register, or memory.
pub(super) fn scalar<M: X86>(m: &mut M, i: &Insn, op: u32, width: Width) -> M::Int {
    if in_memory(i, op) {
        let address = memory_address(m, i);
        return m.load(address, width);
    }
    let whole = m.vec_reg(xmm_number(i, op), BITS);
    m.lane(whole, width, 0)
}

/// Replace the lowest lane of the XMM register that operand 0 is.
pub(super) fn set_scalar<M: X86>(m: &mut M, i: &Insn, value: M::Int) {
    let number = xmm_number(i, 0);
    let old = m.vec_reg(number, BITS);
    let new = m.set_lane(old, 0, value);
    m.set_vec_reg(number, new);
}

/// Every lane the constant `value`.
pub(super) fn splat<M: X86>(m: &mut M, lane: Width, value: u64) -> M::Vec {
    let value = m.int(lane, value);
    m.vec_splat(value, BITS)
}

/// The vector whose bits are `value`.
pub(super) fn constant<M: X86>(m: &mut M, value: u128) -> M::Vec {
    let (low, high) = (m.int(Width::W64, value as u64), m.int(Width::W64, (value >> 64) as u64));
    let vector = from_low(m, low);
    m.set_lane(vector, 1, high)
}

/// `a op b` on all bits.
pub(super) fn bitwise<M: X86>(m: &mut M, op: BinOp, a: M::Vec, b: M::Vec) -> M::Vec {
    m.lanes(LaneOp::Int(op), Width::W64, a, b)
}

/// All bits inverted.
pub(super) fn complement<M: X86>(m: &mut M, a: M::Vec) -> M::Vec {
    let ones = splat(m, Width::W64, u64::MAX);
    bitwise(m, BinOp::Xor, a, ones)
}

/// Every lane shifted by the constant `by`, which is less than its width.
pub(super) fn shift<M: X86>(m: &mut M, op: BinOp, lane: Width, a: M::Vec, by: u32) -> M::Vec {
    let by = splat(m, lane, by.into());
    m.lanes(LaneOp::Int(op), lane, a, by)
}

/// `b` where `mask` is set, else `a`, bit by bit.
pub(super) fn blend<M: X86>(m: &mut M, mask: M::Vec, a: M::Vec, b: M::Vec) -> M::Vec {
    let from_b = bitwise(m, BinOp::And, mask, b);
    let others = complement(m, mask);
    let from_a = bitwise(m, BinOp::And, others, a);
    bitwise(m, BinOp::Or, from_a, from_b)
}
