//! Vector operands: MMX, XMM and YMM registers, and the memory operands that stand in for them.
//!
//! The encodings of one operation differ in where its operands are, how wide they are and what becomes of the rest of
//! the destination. A block does not see that: it works on what [`left`] and [`right`] read, in as many bits as that
//! has, and hands its result to [`set`].

use super::Insn;
use super::mmx;
use super::operand::{X86, memory_address, width_of};
use crate::machine::{BinOp, LaneOp, Width};
use iced_x86::{EncodingKind, OpKind};

/// Bits of an XMM register, and of the blocks that wider vectors consist of. An MMX value is held as such a vector with
/// a zero upper half.
pub(super) const BLOCK: u32 = 128;

/// The instruction works on MMX registers.
pub(super) fn is_mmx(i: &Insn) -> bool {
    i.op0_register().is_mm()
}

/// The encoding is one that came before AVX: it has no destination of its own, keeps what is above the result and wants
/// 128 bits in memory aligned (SDM vol. 1, 10.4.1.1 and 11.4.1.2).
pub(super) fn is_legacy(i: &Insn) -> bool {
    i.encoding() == EncodingKind::Legacy
}

/// Whether operand `op` is in memory.
pub(super) fn in_memory(i: &Insn, op: u32) -> bool {
    i.op_kind(op) == OpKind::Memory
}

/// Number of the vector register that operand `op` is.
pub(super) fn number(i: &Insn, op: u32) -> u32 {
    i.op_register(op).number() as u32
}

/// Bits that the instruction works in: those of its largest operand.
pub(super) fn bits(i: &Insn) -> u32 {
    let of_operand = |op| match i.op_kind(op) {
        OpKind::Register if i.op_register(op).is_vector_register() => i.op_register(op).size(),
        OpKind::Memory => i.memory_size().size(),
        _ => 0,
    };
    let bytes = (0..i.op_count()).map(of_operand).max().unwrap_or(0);
    (8 * bytes as u32).clamp(BLOCK, 512)
}

/// The last operand that is no immediate.
pub(super) fn last(i: &Insn) -> u32 {
    let is_immediate = |op: &u32| matches!(i.op_kind(*op), OpKind::Immediate8 | OpKind::Immediate32to64);
    (0..i.op_count()).rev().find(|op| !is_immediate(op)).unwrap_or(0)
}

/// The operand before [`right`]: in a legacy encoding the destination.
pub(super) fn left<M: X86>(m: &mut M, i: &Insn) -> M::Vec {
    operand(m, i, last(i) - 1)
}

/// The last operand, immediates aside: of two the second, or the only one.
pub(super) fn right<M: X86>(m: &mut M, i: &Insn) -> M::Vec {
    operand(m, i, last(i))
}

/// Both operands. Memory is read first.
pub(super) fn pair<M: X86>(m: &mut M, i: &Insn) -> (M::Vec, M::Vec) {
    let right = right(m, i);
    (left(m, i), right)
}

/// A vector operand in [`bits`]; one that is narrower has zeros above.
pub(super) fn operand<M: X86>(m: &mut M, i: &Insn, op: u32) -> M::Vec {
    if in_memory(i, op) && is_legacy(i) && i.memory_size().size() == 16 {
        let address = memory_address(m, i);
        m.require_aligned(address, 16);
        return load(m, i, address);
    }
    unaligned(m, i, op)
}

/// A vector operand at any alignment.
pub(super) fn unaligned<M: X86>(m: &mut M, i: &Insn, op: u32) -> M::Vec {
    if in_memory(i, op) {
        let address = memory_address(m, i);
        return load(m, i, address);
    }
    let register = i.op_register(op);
    if register.is_mm() {
        let value = mmx::read(m, register.number() as u32);
        return from_low(m, value);
    }
    let value = m.vec_reg(register.number() as u32, 8 * register.size() as u32);
    m.vec_resize(value, bits(i))
}

fn load<M: X86>(m: &mut M, i: &Insn, address: M::Int) -> M::Vec {
    let value = match i.memory_size().size() {
        bytes @ (16 | 32 | 64) => m.load_vec(address, 8 * bytes as u32),
        bytes => {
            let value = m.load(address, width_of(bytes));
            from_low(m, value)
        }
    };
    m.vec_resize(value, bits(i))
}

/// `value` in the lowest lane, zeros above.
pub(super) fn from_low<M: X86>(m: &mut M, value: M::Int) -> M::Vec {
    let zero = m.vec_zero(BLOCK);
    m.set_lane(zero, 0, value)
}

/// Write vector operand 0.
pub(super) fn set<M: X86>(m: &mut M, i: &Insn, value: M::Vec) {
    if in_memory(i, 0) {
        let value = m.vec_resize(value, 8 * i.memory_size().size() as u32);
        let address = memory_address(m, i);
        m.store_vec(address, value);
    } else if is_mmx(i) {
        let low = m.lane(value, Width::W64, 0);
        mmx::write(m, number(i, 0), low);
    } else {
        set_register(m, i, number(i, 0), value);
    }
}

/// Write vector register `number`; encodings since AVX clear what is above.
pub(super) fn set_register<M: X86>(m: &mut M, i: &Insn, number: u32, value: M::Vec) {
    m.set_vec_reg(number, value);
    if !is_legacy(i) {
        m.clear_vec_reg(number, m.vec_bits(value));
    }
}

/// A scalar of `width`: the lowest lane of a vector register, or memory.
pub(super) fn scalar<M: X86>(m: &mut M, i: &Insn, op: u32, width: Width) -> M::Int {
    if in_memory(i, op) {
        let address = memory_address(m, i);
        return m.load(address, width);
    }
    let whole = m.vec_reg(number(i, op), BLOCK);
    m.lane(whole, width, 0)
}

/// The scalars of `width` in [`left`] and [`right`].
pub(super) fn scalars<M: X86>(m: &mut M, i: &Insn, width: Width) -> (M::Int, M::Int) {
    let right = scalar(m, i, last(i), width);
    (scalar(m, i, last(i) - 1, width), right)
}

/// Write a scalar to operand 0; what is above it is [`left`]'s.
pub(super) fn set_scalar<M: X86>(m: &mut M, i: &Insn, value: M::Int) {
    set_lane(m, i, 0, value);
}

/// Write [`left`], with lane `index` replaced, to operand 0.
pub(super) fn set_lane<M: X86>(m: &mut M, i: &Insn, index: u32, value: M::Int) {
    let rest = left(m, i);
    let result = m.set_lane(rest, index, value);
    set(m, i, result);
}

/// Write a scalar to operand 0; what is above it is operand `rest`'s.
pub(super) fn set_scalar_over<M: X86>(m: &mut M, i: &Insn, rest: u32, value: M::Int) {
    let rest = operand(m, i, rest);
    let result = m.set_lane(rest, 0, value);
    set(m, i, result);
}

/// Every lane the constant `value`, in as many bits as `like`.
pub(super) fn splat<M: X86>(m: &mut M, like: M::Vec, lane: Width, value: u64) -> M::Vec {
    let value = m.int(lane, value);
    m.vec_splat(value, m.vec_bits(like))
}

/// Zeros, in as many bits as `like`.
pub(super) fn zero<M: X86>(m: &mut M, like: M::Vec) -> M::Vec {
    m.vec_zero(m.vec_bits(like))
}

/// Every 128-bit block `value`, in as many bits as `like`.
pub(super) fn constant<M: X86>(m: &mut M, like: M::Vec, value: u128) -> M::Vec {
    let halves = [m.int(Width::W64, value as u64), m.int(Width::W64, (value >> 64) as u64)];
    let zero = zero(m, like);
    (0..m.vec_bits(like) / 64).fold(zero, |v, n| m.set_lane(v, n, halves[n as usize % 2]))
}

/// The shuffle that `indices` describe for 128 bits in every block: they count the lanes of `a`'s block, then of `b`'s.
pub(super) fn shuffle<M: X86>(m: &mut M, lane: Width, a: M::Vec, b: M::Vec, indices: &[u8]) -> M::Vec {
    let (count, total) = (BLOCK / lane.bits(), m.vec_bits(a) / lane.bits());
    let mut all = [0; 64];
    for (n, to) in all[..total as usize].iter_mut().enumerate() {
        let (block, index) = (n as u32 / count * count, u32::from(indices[n % count as usize]));
        *to = (if index < count { block + index } else { total + block + index - count }) as u8;
    }
    m.shuffle(lane, a, b, &all[..total as usize])
}

/// `a op b` on all bits.
pub(super) fn bitwise<M: X86>(m: &mut M, op: BinOp, a: M::Vec, b: M::Vec) -> M::Vec {
    m.lanes(LaneOp::Int(op), Width::W64, a, b)
}

/// All bits inverted.
pub(super) fn complement<M: X86>(m: &mut M, a: M::Vec) -> M::Vec {
    let ones = splat(m, a, Width::W64, u64::MAX);
    bitwise(m, BinOp::Xor, a, ones)
}

/// Every lane shifted by the constant `by`, which is less than its width.
pub(super) fn shift<M: X86>(m: &mut M, op: BinOp, lane: Width, a: M::Vec, by: u32) -> M::Vec {
    let by = splat(m, a, lane, by.into());
    m.lanes(LaneOp::Int(op), lane, a, by)
}

/// `b` where `mask` is set, else `a`, bit by bit.
pub(super) fn blend<M: X86>(m: &mut M, mask: M::Vec, a: M::Vec, b: M::Vec) -> M::Vec {
    let from_b = bitwise(m, BinOp::And, mask, b);
    let others = complement(m, mask);
    let from_a = bitwise(m, BinOp::And, others, a);
    bitwise(m, BinOp::Or, from_a, from_b)
}
