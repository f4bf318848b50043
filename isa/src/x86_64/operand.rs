//! Operands: effective addresses, partial registers, and reads and writes that fit any operand kind.

use super::{Insn, Reg};
use crate::machine::{BinOp, Machine, Width};
use iced_x86::{OpKind, Register};

/// A machine whose registers are x86-64's.
pub(super) trait X86: Machine<Reg = Reg> {}
impl<M: Machine<Reg = Reg>> X86 for M {}

/// The width of an integer of `bytes` bytes.
///
/// 1, 2, 4, 8 and 16 are the only sizes that x86 integer operands have.
pub(super) fn width_of(bytes: usize) -> Width {
    match bytes {
        1 => Width::W8,
        2 => Width::W16,
        4 => Width::W32,
        8 => Width::W64,
        _ => Width::W128,
    }
}

/// The width of operand `op`: of the register, the memory access or the (already extended) immediate.
pub(super) fn operand_width(i: &Insn, op: u32) -> Width {
    match i.op_kind(op) {
        OpKind::Register => width_of(i.op_register(op).size()),
        OpKind::Immediate8 => Width::W8,
        OpKind::Immediate16 | OpKind::Immediate8to16 => Width::W16,
        OpKind::Immediate32 | OpKind::Immediate8to32 => Width::W32,
        OpKind::Immediate64 | OpKind::Immediate8to64 | OpKind::Immediate32to64 => Width::W64,
        _ => width_of(i.memory_size().size()),
    }
}

/// Encoding number of a general register and whether it is one of ah, ch, dh, bh.
fn gpr_of(register: Register) -> (u8, bool) {
    let high = matches!(register, Register::AH | Register::CH | Register::DH | Register::BH);
    (register.full_register().number() as u8, high)
}

/// Read a general register at its own width.
pub(super) fn read_gpr<M: X86>(m: &mut M, register: Register) -> M::Int {
    let (number, high) = gpr_of(register);
    let full = m.reg(Reg::Gpr(number));
    let value = if high { shift_right(m, full, 8) } else { full };
    m.trunc(value, width_of(register.size()))
}

/// Write a general register: 32-bit writes clear the upper half, narrower ones keep the rest (SDM vol. 1,
/// 3.4.1.1).
pub(super) fn write_gpr<M: X86>(m: &mut M, register: Register, value: M::Int) {
    let (number, high) = gpr_of(register);
    let full = match width_of(register.size()) {
        Width::W64 => value,
        Width::W32 => m.zext(value, Width::W64),
        narrow => {
            let shift = if high { 8 } else { 0 };
            let old = m.reg(Reg::Gpr(number));
            let keep = m.int(Width::W64, !((narrow.mask() as u64) << shift));
            let kept = m.bin(BinOp::And, old, keep);
            let wide = m.zext(value, Width::W64);
            let by = m.int(Width::W64, shift);
            let placed = m.bin(BinOp::Shl, wide, by);
            m.bin(BinOp::Or, kept, placed)
        }
    };
    m.set_reg(Reg::Gpr(number), full);
}

fn shift_right<M: X86>(m: &mut M, value: M::Int, by: u64) -> M::Int {
    let width = m.width(value);
    let count = m.int(width, by);
    m.bin(BinOp::LShr, value, count)
}

/// The base of the segment that a memory operand goes through, where it has one (fs, gs).
fn segment_base<M: X86>(m: &mut M, segment: Register) -> Option<M::Int> {
    match segment {
        Register::FS => Some(m.reg(Reg::FsBase)),
        Register::GS => Some(m.reg(Reg::GsBase)),
        _ => None,
    }
}

/// The offset part of a memory operand, as LEA computes it: 64 bits, 32-bit addressing wrapped.
pub(super) fn effective_address<M: X86>(m: &mut M, i: &Insn) -> M::Int {
    let base = i.memory_base();
    if matches!(base, Register::RIP | Register::EIP) {
        return m.address(i.memory_displacement64());
    }
    let mut sum = m.int(Width::W64, i.memory_displacement64());
    let mut wrap = i.memory_displ_size() == 4;
    if base != Register::None {
        wrap = base.is_gpr32();
        let value = m.reg(Reg::Gpr(gpr_of(base).0));
        sum = m.bin(BinOp::Add, value, sum);
    }
    if i.memory_index() != Register::None {
        wrap = i.memory_index().is_gpr32();
        let value = m.reg(Reg::Gpr(gpr_of(i.memory_index()).0));
        let scale = m.int(Width::W64, u64::from(i.memory_index_scale().trailing_zeros()));
        let scaled = m.bin(BinOp::Shl, value, scale);
        sum = m.bin(BinOp::Add, sum, scaled);
    }
    if wrap { low32(m, sum) } else { sum }
}

fn low32<M: X86>(m: &mut M, value: M::Int) -> M::Int {
    let low = m.trunc(value, Width::W32);
    m.zext(low, Width::W64)
}

/// The linear address of the instruction's memory operand.
pub(super) fn memory_address<M: X86>(m: &mut M, i: &Insn) -> M::Int {
    let offset = effective_address(m, i);
    match segment_base(m, i.memory_segment()) {
        Some(base) => m.bin(BinOp::Add, base, offset),
        None => offset,
    }
}

/// Read operand `op`: register, memory or immediate.
pub(super) fn read<M: X86>(m: &mut M, i: &Insn, op: u32) -> M::Int {
    match i.op_kind(op) {
        OpKind::Register => read_gpr(m, i.op_register(op)),
        OpKind::Memory => {
            let address = memory_address(m, i);
            m.load(address, operand_width(i, op))
        }
        _ => m.int(operand_width(i, op), i.immediate(op)),
    }
}

/// Write operand `op`: register or memory.
pub(super) fn write<M: X86>(m: &mut M, i: &Insn, op: u32, value: M::Int) {
    if i.op_kind(op) == OpKind::Register {
        write_gpr(m, i.op_register(op), value);
    } else {
        let address = memory_address(m, i);
        m.store(address, value);
    }
}

/// Read a vector operand of `bits` bits: register or memory.
pub(super) fn read_vec<M: X86>(m: &mut M, i: &Insn, op: u32, bits: u32) -> M::Vec {
    if i.op_kind(op) == OpKind::Register {
        m.vec_reg(i.op_register(op).number() as u32, bits)
    } else {
        let address = memory_address(m, i);
        m.load_vec(address, bits)
    }
}
