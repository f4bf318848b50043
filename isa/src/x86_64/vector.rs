//! Vector operands: MMX, XMM, YMM and ZMM registers, and the memory operands that stand in for them.
//!
//! The encodings of one operation differ in where its operands are, how wide they are, which lanes count and what
//! becomes of the rest of the destination. A block does not see that: it works on what [`left`] and [`right`] read, in as many bits as that
//! has, and hands its result to [`set`].

use super::mmx;
use super::operand::{X86, memory_address, width_of};
use super::{Insn, Reg};
use crate::machine::{BinOp, FloatFormat, LaneOp, Trap, Width};
use iced_x86::{EncodingKind, Mnemonic, OpKind};

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

/// The encoding is AVX-512's.
pub(super) fn is_evex(i: &Insn) -> bool {
    i.encoding() == EncodingKind::EVEX
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
        OpKind::Memory => whole(i).memory_size().size(),
        _ => 0,
    };
    let bytes = (0..i.op_count()).map(of_operand).max().unwrap_or(0);
    (8 * bytes as u32).clamp(BLOCK, 512)
}

/// The instruction with a memory operand that is not broadcast.
fn whole(i: &Insn) -> Insn {
    let mut whole = *i;
    whole.set_is_broadcast(false);
    whole
}

/// The width of the lanes that EVEX's masks choose: of the operand that can be in memory.
pub(super) fn lane_of(i: &Insn) -> Width {
    match i.mnemonic() {
        // They take every other lane of their operands.
        Mnemonic::Vpmuldq | Mnemonic::Vpmuludq => Width::W64,
        // It chooses bits by bytes.
        Mnemonic::Vpshufbitqmb => Width::W8,
        // They add up to four of them.
        Mnemonic::Vpdpbusd | Mnemonic::Vpdpbusds | Mnemonic::Vpdpwssd | Mnemonic::Vpdpwssds => Width::W32,
        _ => width_of(whole(i).memory_size().element_size()),
    }
}

/// The lanes that the instruction's mask register chooses, if it names one: all ones or zero.
pub(super) fn chosen<M: X86>(m: &mut M, i: &Insn, lane: Width, bits: u32) -> Option<M::Vec> {
    i.has_op_mask().then(|| {
        let mask = m.reg(Reg::Opmask(i.op_mask().number() as u8));
        m.mask_lanes(mask, lane, bits)
    })
}

/// Both operands of an operation that works lane by lane: what the mask leaves out is not read from memory.
pub(super) fn lane_pair<M: X86>(m: &mut M, i: &Insn) -> (M::Vec, M::Vec) {
    let right = lanes_at(m, i, last(i));
    (left(m, i), right)
}

/// Operand `op` of an operation that works lane by lane, from lanes that may be narrower.
pub(super) fn lanes_at<M: X86>(m: &mut M, i: &Insn, op: u32) -> M::Vec {
    let (bits, lane, whole) = (bits(i), lane_of(i), 8 * whole(i).memory_size().size() as u32);
    if in_memory(i, op) && i.is_broadcast() {
        let part = load_part(m, i, whole / lane.bits());
        let value = m.lane(part, lane, 0);
        let value = m.vec_splat(value, whole);
        return m.vec_resize(value, bits);
    }
    if !in_memory(i, op) || !i.has_op_mask() {
        return operand(m, i, op);
    }
    let mask = m.reg(Reg::Opmask(i.op_mask().number() as u8));
    let mask = m.bin_const(BinOp::And, mask, u64::MAX >> (64 - whole / lane.bits()));
    let mask = m.mask_lanes(mask, lane, whole.max(BLOCK));
    let address = memory_address(m, i);
    let value = m.load_masked(address, lane, mask);
    m.vec_resize(value, bits)
}

/// A memory operand that goes to several of `lanes` lanes, in its own size or a block; what the mask
/// leaves out is not read.
pub(super) fn load_part<M: X86>(m: &mut M, i: &Insn, lanes: u32) -> M::Vec {
    let address = memory_address(m, i);
    let size = i.memory_size().size() as u32;
    if !i.has_op_mask() {
        return match size {
            16.. => m.load_vec(address, 8 * size),
            _ => {
                let value = m.load(address, width_of(size as usize));
                from_low(m, value)
            }
        };
    }
    // Each of its lanes is wanted where any of those is that it goes to.
    let mask = m.reg(Reg::Opmask(i.op_mask().number() as u8));
    let mask = m.bin_const(BinOp::And, mask, u64::MAX >> (64 - lanes));
    let own = size / lane_of(i).bytes();
    let mut wanted = mask;
    for times in 1..lanes / own {
        let further = m.bin_const(BinOp::LShr, mask, u64::from(times * own));
        wanted = m.bin(BinOp::Or, wanted, further);
    }
    let wanted = m.bin_const(BinOp::And, wanted, u64::MAX >> (64 - own));
    let mask = m.mask_lanes(wanted, lane_of(i), (8 * size).max(BLOCK));
    m.load_masked(address, lane_of(i), mask)
}

/// Whether the mask chooses any of `lanes` lanes.
fn any_chosen<M: X86>(m: &mut M, i: &Insn, lanes: u32) -> M::Bool {
    let mask = m.reg(Reg::Opmask(i.op_mask().number() as u8));
    let used = m.bin_const(BinOp::And, mask, u64::MAX >> (64 - lanes));
    m.is_nonzero(used)
}

/// #GP unless the memory operand is at a multiple of its size, if the mask chooses any of it.
pub(super) fn require_aligned<M: X86>(m: &mut M, i: &Insn) {
    let (address, bytes) = (memory_address(m, i), i.memory_size().size() as u32);
    if !i.has_op_mask() {
        return m.require_aligned(address, bytes);
    }
    let any = any_chosen(m, i, bytes / lane_of(i).bytes());
    let low = m.bin_const(BinOp::And, address, u64::from(bytes) - 1);
    let misaligned = m.is_nonzero(low);
    let wrong = m.and(any, misaligned);
    m.trap_if(wrong, Trap::GeneralProtection);
}

/// Operand `op` of a floating-point operation: lanes that the mask leaves out are 1, which raises nothing.
pub(super) fn numbers<M: X86>(m: &mut M, i: &Insn, op: u32, format: FloatFormat) -> M::Vec {
    let value = lanes_at(m, i, op);
    match chosen(m, i, format.width(), m.vec_bits(value)) {
        None => value,
        Some(mask) => {
            let ones = splat(m, value, format.width(), one(format));
            blend(m, mask, ones, value)
        }
    }
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
        bytes if i.is_broadcast() => {
            let value = m.load(address, width_of(bytes));
            m.vec_splat(value, 8 * whole(i).memory_size().size() as u32)
        }
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

/// Write vector operand 0, whose lanes are as wide as [`lane_of`] says.
pub(super) fn set<M: X86>(m: &mut M, i: &Insn, value: M::Vec) {
    set_lanes(m, i, lane_of(i), value);
}

/// Write vector operand 0 where the mask chooses its lanes, of width `lane`; of a comparison the mask register.
pub(super) fn set_lanes<M: X86>(m: &mut M, i: &Insn, lane: Width, value: M::Vec) {
    if in_memory(i, 0) {
        store(m, i, lane, value);
    } else if is_mmx(i) {
        let low = m.lane(value, Width::W64, 0);
        mmx::write(m, number(i, 0), low);
    } else if i.op0_register().is_k() {
        let holds = m.sign_mask(value, lane, Width::W64);
        set_mask(m, i, holds);
    } else {
        let own = 8 * i.op0_register().size() as u32;
        let value = if own < m.vec_bits(value) { m.vec_resize(value, own) } else { value };
        let value = match chosen(m, i, lane, m.vec_bits(value)) {
            None => value,
            Some(mask) if i.zeroing_masking() => bitwise(m, BinOp::And, mask, value),
            Some(mask) => {
                let old = m.vec_reg(number(i, 0), m.vec_bits(value));
                blend(m, mask, old, value)
            }
        };
        set_register(m, i, number(i, 0), value);
    }
}

/// Write the lowest `count` lanes of vector operand 0, with zeros above whatever the mask chooses.
pub(super) fn set_few<M: X86>(m: &mut M, i: &Insn, lane: Width, count: u32, value: M::Vec) {
    if count * lane.bits() >= BLOCK || !i.has_op_mask() || in_memory(i, 0) {
        return set_lanes(m, i, lane, value);
    }
    let value = m.vec_resize(value, BLOCK);
    let all = m.int(Width::W64, (1 << count) - 1);
    let there = m.mask_lanes(all, lane, BLOCK);
    let old = m.vec_reg(number(i, 0), BLOCK);
    let old = if i.zeroing_masking() { zero(m, old) } else { bitwise(m, BinOp::And, there, old) };
    let mask = chosen(m, i, lane, BLOCK).unwrap_or(there);
    let mask = bitwise(m, BinOp::And, mask, there);
    let merged = blend(m, mask, old, value);
    set_register(m, i, number(i, 0), merged);
}

/// Write a mask register, of a comparison's outcome what its own mask chooses.
pub(super) fn set_mask<M: X86>(m: &mut M, i: &Insn, holds: M::Int) {
    let holds = if i.has_op_mask() {
        let mask = m.reg(Reg::Opmask(i.op_mask().number() as u8));
        m.bin(BinOp::And, holds, mask)
    } else {
        holds
    };
    m.set_reg(Reg::Opmask(number(i, 0) as u8), holds);
}

fn store<M: X86>(m: &mut M, i: &Insn, lane: Width, value: M::Vec) {
    let address = memory_address(m, i);
    match (chosen(m, i, lane, m.vec_bits(value)), i.memory_size().size()) {
        (Some(mask), _) => m.store_masked(address, lane, mask, value),
        (None, bytes @ (16 | 32 | 64)) => {
            let value = m.vec_resize(value, 8 * bytes as u32);
            m.store_vec(address, value);
        }
        (None, bytes) => {
            let value = m.lane(value, width_of(bytes), 0);
            m.store(address, value);
        }
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
    if !in_memory(i, op) {
        let whole = m.vec_reg(number(i, op), BLOCK);
        return m.lane(whole, width, 0);
    }
    let address = memory_address(m, i);
    if !i.has_op_mask() {
        return m.load(address, width);
    }
    let mask = m.reg(Reg::Opmask(i.op_mask().number() as u8));
    let mask = m.bin_const(BinOp::And, mask, 1);
    let mask = m.mask_lanes(mask, width, BLOCK);
    let value = m.load_masked(address, width, mask);
    m.lane(value, width, 0)
}

/// A scalar of a floating-point operation: 1, which raises nothing, if the mask leaves it out.
pub(super) fn scalar_number<M: X86>(m: &mut M, i: &Insn, op: u32, format: FloatFormat) -> M::Int {
    let value = scalar(m, i, op, format.width());
    if !i.has_op_mask() {
        return value;
    }
    let (wanted, one) = (scalar_chosen(m, i), m.int(format.width(), one(format)));
    m.select(wanted, value, one)
}

/// Whether the mask chooses the lowest lane.
fn scalar_chosen<M: X86>(m: &mut M, i: &Insn) -> M::Bool {
    let mask = m.reg(Reg::Opmask(i.op_mask().number() as u8));
    m.low_bit(mask)
}

/// The bits of 1.
const fn one(format: FloatFormat) -> u64 {
    match format {
        FloatFormat::F32 => 0x3f80_0000,
        FloatFormat::F64 => 0x3ff0 << 48,
    }
}

/// The scalars of floats in [`left`] and [`right`].
pub(super) fn scalars<M: X86>(m: &mut M, i: &Insn, format: FloatFormat) -> (M::Int, M::Int) {
    let right = scalar_number(m, i, last(i), format);
    (scalar_number(m, i, last(i) - 1, format), right)
}

/// Write a scalar to operand 0; what is above it is [`left`]'s.
pub(super) fn set_scalar<M: X86>(m: &mut M, i: &Insn, value: M::Int) {
    set_scalar_over(m, i, last(i) - 1, value);
}

/// Write a scalar to operand 0; what is above it is operand `rest`'s.
pub(super) fn set_scalar_over<M: X86>(m: &mut M, i: &Insn, rest: u32, value: M::Int) {
    let rest = operand(m, i, rest);
    let value = chosen_scalar(m, i, value);
    let result = m.set_lane(rest, 0, value);
    set_register(m, i, number(i, 0), result);
}

/// `value` if the mask chooses the lowest lane, else what that was, or zero.
pub(super) fn chosen_scalar<M: X86>(m: &mut M, i: &Insn, value: M::Int) -> M::Int {
    if !i.has_op_mask() {
        return value;
    }
    let old = m.vec_reg(number(i, 0), BLOCK);
    let width = m.width(value);
    let old = if i.zeroing_masking() { m.int(width, 0) } else { m.lane(old, width, 0) };
    let wanted = scalar_chosen(m, i);
    m.select(wanted, value, old)
}

/// Write [`left`], with lane `index` replaced, to operand 0.
pub(super) fn set_lane<M: X86>(m: &mut M, i: &Insn, index: u32, value: M::Int) {
    let rest = left(m, i);
    let result = m.set_lane(rest, index, value);
    set(m, i, result);
}

/// Every lane the constant `value`, in as many bits as `like`.
pub(super) fn splat<M: X86>(m: &mut M, like: M::Vec, lane: Width, value: u64) -> M::Vec {
    let value = m.int(lane, value);
    m.vec_splat(value, m.vec_bits(like))
}

/// Each lane the constant that `value` has for its number, in as many bits as `like`.
pub(super) fn lane_constants<M: X86>(
    m: &mut M,
    like: M::Vec,
    lane: Width,
    value: impl Fn(u32) -> u64,
) -> M::Vec {
    let zero = zero(m, like);
    (0..m.vec_bits(like) / lane.bits()).fold(zero, |v, n| {
        let value = m.int(lane, value(n));
        m.set_lane(v, n, value)
    })
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
