//! Operands: effective addresses, partial registers, and reads and writes that fit any operand kind.

use super::{Flag, Insn, Reg};
use crate::machine::{AtomicOp, BinOp, CmpOp, Machine, Width};
use iced_x86::{OpKind, Register};

/// A machine whose registers are x86-64's, with short forms of what the blocks say often.
pub(super) trait X86: Machine<Reg = Reg> {
    /// The constant `k` in the width of `v`.
    fn like(&mut self, v: Self::Int, k: u64) -> Self::Int {
        let width = self.width(v);
        self.int(width, k)
    }
    /// `v op k`.
    fn bin_const(&mut self, op: BinOp, v: Self::Int, k: u64) -> Self::Int {
        let k = self.like(v, k);
        self.bin(op, v, k)
    }
    /// `v == 0`.
    fn is_zero(&mut self, v: Self::Int) -> Self::Bool {
        let zero = self.like(v, 0);
        self.cmp(CmpOp::Eq, v, zero)
    }
    /// `v != 0`.
    fn is_nonzero(&mut self, v: Self::Int) -> Self::Bool {
        let zero = self.like(v, 0);
        self.cmp(CmpOp::Ne, v, zero)
    }
    /// The top bit of `v`.
    fn is_negative(&mut self, v: Self::Int) -> Self::Bool {
        let zero = self.like(v, 0);
        self.cmp(CmpOp::Slt, v, zero)
    }
    /// Bit `n` of `v`.
    fn bit(&mut self, v: Self::Int, n: u32) -> Self::Bool {
        let shifted = self.bin_const(BinOp::LShr, v, n.into());
        self.low_bit(shifted)
    }
    /// Bit 0 of `v`.
    fn low_bit(&mut self, v: Self::Int) -> Self::Bool {
        let bit = self.bin_const(BinOp::And, v, 1);
        self.is_nonzero(bit)
    }
    /// `v` zero-extended or truncated to `width`.
    fn resize(&mut self, v: Self::Int, width: Width) -> Self::Int {
        if self.width(v) < width { self.zext(v, width) } else { self.trunc(v, width) }
    }
    /// `cond ? a : b`.
    fn select_bool(&mut self, cond: Self::Bool, a: Self::Bool, b: Self::Bool) -> Self::Bool {
        let a = self.and(cond, a);
        let otherwise = self.not(cond);
        let b = self.and(otherwise, b);
        self.or(a, b)
    }
    /// Read a general register, 64 bits, by its encoding number.
    fn gpr(&mut self, number: u8) -> Self::Int {
        self.reg(Reg::Gpr(number))
    }
    /// Write a general register, 64 bits.
    fn set_gpr(&mut self, number: u8, value: Self::Int) {
        self.set_reg(Reg::Gpr(number), value);
    }
    /// Read a flag.
    fn get(&mut self, flag: Flag) -> Self::Bool {
        self.flag(Reg::Flag(flag))
    }
    /// Write a flag.
    fn put(&mut self, flag: Flag, value: Self::Bool) {
        self.set_flag(Reg::Flag(flag), value);
    }
    /// Write flags whose value is known, or that the manual leaves undefined: a constant is cheaper than
    /// keeping the old value alive.
    fn put_known(&mut self, flags: &[Flag], value: bool) {
        let value = self.bool(value);
        for &flag in flags {
            self.put(flag, value);
        }
    }
}
impl<M: Machine<Reg = Reg>> X86 for M {}

/// Encoding numbers of the general registers that instructions use implicitly.
pub(super) mod gpr {
    pub(in crate::x86_64) const RAX: u8 = 0;
    pub(in crate::x86_64) const RCX: u8 = 1;
    pub(in crate::x86_64) const RDX: u8 = 2;
    pub(in crate::x86_64) const RBX: u8 = 3;
    pub(in crate::x86_64) const RSP: u8 = 4;
    pub(in crate::x86_64) const RBP: u8 = 5;
    pub(in crate::x86_64) const RSI: u8 = 6;
    pub(in crate::x86_64) const RDI: u8 = 7;
    pub(in crate::x86_64) const R11: u8 = 11;
}

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
    let value = if high { m.bin_const(BinOp::LShr, full, 8) } else { full };
    m.trunc(value, width_of(register.size()))
}

/// Write a general register: 32-bit writes clear the upper half, narrower ones keep the rest (SDM vol. 1,
/// 3.4.1.1).
pub(super) fn write_gpr<M: X86>(m: &mut M, register: Register, value: M::Int) {
    let (number, high) = gpr_of(register);
    merge_gpr(m, number, if high { 8 } else { 0 }, value);
}

/// Put `value` into general register `number` from bit `shift` up.
fn merge_gpr<M: X86>(m: &mut M, number: u8, shift: u64, value: M::Int) {
    let full = match m.width(value) {
        Width::W64 => value,
        Width::W32 => m.zext(value, Width::W64),
        narrow => {
            let old = m.gpr(number);
            let kept = m.bin_const(BinOp::And, old, !((narrow.mask() as u64) << shift));
            let wide = m.zext(value, Width::W64);
            let placed = m.bin_const(BinOp::Shl, wide, shift);
            m.bin(BinOp::Or, kept, placed)
        }
    };
    m.set_gpr(number, full);
}

/// Read the low `width` of general register `number`.
pub(super) fn read_part<M: X86>(m: &mut M, number: u8, width: Width) -> M::Int {
    let full = m.gpr(number);
    m.trunc(full, width)
}

/// Write the low part of general register `number`, as wide as `value`, by the rules of [`write_gpr`].
pub(super) fn write_part<M: X86>(m: &mut M, number: u8, value: M::Int) {
    merge_gpr(m, number, 0, value);
}

/// The base of the segment that a memory operand goes through, where it has one (fs, gs).
pub(super) fn segment_base<M: X86>(m: &mut M, segment: Register) -> Option<M::Int> {
    match segment {
        Register::FS => Some(m.reg(Reg::FsBase)),
        Register::GS => Some(m.reg(Reg::GsBase)),
        _ => None,
    }
}

/// The offset part of a memory operand, as LEA computes it: 64 bits, 32-bit addressing wrapped.
pub(super) fn effective_address<M: X86>(m: &mut M, i: &Insn) -> M::Int {
    offset_plus(m, i, None)
}

/// [`effective_address`] of something `more` bytes further on.
fn offset_plus<M: X86>(m: &mut M, i: &Insn, more: Option<M::Int>) -> M::Int {
    let index = i.memory_index();
    let index = index.is_gpr().then(|| m.gpr(gpr_of(index).0));
    offset_from(m, i, index, more)
}

/// The memory operand's offset with `index` in the place of its index register.
fn offset_from<M: X86>(m: &mut M, i: &Insn, index: Option<M::Int>, more: Option<M::Int>) -> M::Int {
    let base = i.memory_base();
    let mut sum = if matches!(base, Register::RIP | Register::EIP) {
        m.address(i.memory_displacement64())
    } else {
        m.int(Width::W64, i.memory_displacement64())
    };
    if base.is_gpr() {
        let value = m.gpr(gpr_of(base).0);
        sum = m.bin(BinOp::Add, value, sum);
    }
    if let Some(value) = index {
        let scaled = m.bin_const(BinOp::Shl, value, i.memory_index_scale().trailing_zeros().into());
        sum = m.bin(BinOp::Add, sum, scaled);
    }
    if let Some(more) = more {
        sum = m.bin(BinOp::Add, sum, more);
    }
    if addresses_32_bits(i) { low32(m, sum) } else { sum }
}

/// The memory operand's address is computed in 32 bits (address-size prefix).
fn addresses_32_bits(i: &Insn) -> bool {
    let (base, index) = (i.memory_base(), i.memory_index());
    base.is_gpr32()
        || index.is_gpr32()
        || base == Register::EIP
        || base == Register::None && index == Register::None && i.memory_displ_size() == 4
}

/// The low half of a 64-bit integer.
pub(super) fn low32<M: X86>(m: &mut M, value: M::Int) -> M::Int {
    let low = m.trunc(value, Width::W32);
    m.zext(low, Width::W64)
}

/// `offset` within the segment of the instruction's memory operand, as a linear address.
pub(super) fn linear<M: X86>(m: &mut M, i: &Insn, offset: M::Int) -> M::Int {
    match segment_base(m, i.memory_segment()) {
        Some(base) => m.bin(BinOp::Add, base, offset),
        None => offset,
    }
}

/// The linear address of the instruction's memory operand.
pub(super) fn memory_address<M: X86>(m: &mut M, i: &Insn) -> M::Int {
    let offset = effective_address(m, i);
    linear(m, i, offset)
}

/// The linear address `more` bytes beyond the instruction's memory operand.
pub(super) fn memory_address_plus<M: X86>(m: &mut M, i: &Insn, more: M::Int) -> M::Int {
    let offset = offset_plus(m, i, Some(more));
    linear(m, i, offset)
}

/// The linear address of the lane of a memory operand, whose index register is a vector, that has `index`, which is
/// signed.
pub(super) fn memory_address_of_index<M: X86>(m: &mut M, i: &Insn, index: M::Int) -> M::Int {
    let index = m.sext(index, Width::W64);
    let offset = offset_from(m, i, Some(index), None);
    linear(m, i, offset)
}

/// Fault now if `bytes` (at most a page) from `address` on are not all there, before a sequence of stores
/// that must not stop halfway.
pub(super) fn probe<M: X86>(m: &mut M, address: M::Int, bytes: u64) {
    let last = m.bin_const(BinOp::Add, address, bytes - 1);
    m.load(address, Width::W8);
    m.load(last, Width::W8);
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

/// Replace operand 0 by `operand 0 op b`, atomically if the instruction is locked; yields the old value and
/// the new one. `op` is one that [`AtomicOp`] has.
pub(super) fn update<M: X86>(m: &mut M, i: &Insn, op: BinOp, b: M::Int) -> (M::Int, M::Int) {
    if i.op0_kind() == OpKind::Register {
        let old = read_gpr(m, i.op0_register());
        let new = m.bin(op, old, b);
        write_gpr(m, i.op0_register(), new);
        return (old, new);
    }
    let address = memory_address(m, i);
    if i.has_lock_prefix() {
        let old = m.atomic(atomic_op(op), address, b);
        (old, m.bin(op, old, b))
    } else {
        let old = m.load(address, operand_width(i, 0));
        let new = m.bin(op, old, b);
        m.store(address, new);
        (old, new)
    }
}

/// The atomic form of `op`, which must have one.
pub(super) fn atomic_op(op: BinOp) -> AtomicOp {
    match op {
        BinOp::Add => AtomicOp::Add,
        BinOp::Sub => AtomicOp::Sub,
        BinOp::And => AtomicOp::And,
        BinOp::Or => AtomicOp::Or,
        BinOp::Xor => AtomicOp::Xor,
        _ => unreachable!("{op:?} has no atomic form"),
    }
}
