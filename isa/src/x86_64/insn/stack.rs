//! The stack. SDM vol. 2. Memory is accessed before rsp changes, so that a fault leaves it alone.

use crate::machine::{AtomicOp, BinOp, Width};
use crate::x86_64::flags::{rflags, set_from_rflags};
use crate::x86_64::operand::{
    X86, gpr, memory_address_plus, operand_width, read, read_part, write_gpr, write_part,
};
use crate::x86_64::{Flag, Insn, Reg};
use iced_x86::{Mnemonic, OpKind, Register};

extension! { "stack";
    /// Push; immediates are sign-extended.
    [Push] if !i.op0_register().is_segment_register(), exact (m, i) {
        let value = read(m, i, 0);
        push(m, value);
    }
    "push rax" = "50", "push rsp" = "54", "push -1" = "6aff", "push 0x12345678" = "6878563412",
    "push qword ptr [rdi]" = "ff37", "push cx" = "6651", "push qword ptr [rsp+8]" = "ff742408",
    "push word ptr [rsi]" = "66ff36";

    /// Pop; an address with base rsp is that after the pop.
    [Pop] if !i.op0_register().is_segment_register(), exact (m, i) {
        let width = operand_width(i, 0);
        let rsp = m.gpr(gpr::RSP);
        let value = m.load(rsp, width);
        let size = m.int(Width::W64, width.bytes().into());
        let after = m.bin(BinOp::Add, rsp, size);
        if i.op0_kind() == OpKind::Register {
            m.set_gpr(gpr::RSP, after);
            write_gpr(m, i.op0_register(), value);
        } else {
            let from_rsp = i.memory_base().full_register() == Register::RSP;
            let more = if from_rsp { size } else { m.int(Width::W64, 0) };
            let address = memory_address_plus(m, i, more);
            m.store(address, value);
            m.set_gpr(gpr::RSP, after);
        }
    }
    "pop rax" = "58", "pop rsp" = "5c", "pop qword ptr [rdi]" = "8f07", "pop cx" = "6659",
    "pop qword ptr [rsp]" = "8f0424", "pop word ptr [rsi]" = "668f06", "pop sp" = "665c";

    /// Push RFLAGS; RF and VM read as zero.
    [Pushf, Pushfq], exact (m, i) {
        let other = m.reg(Reg::OtherFlags);
        let other = m.bin_const(BinOp::And, other, !(RF | VM));
        let value = rflags(m, other);
        let value = m.trunc(value, flags_width(i));
        push(m, value);
    }
    "pushf" = "669c", "pushfq" = "9c";

    /// Pop RFLAGS: what user code may change.
    [Popf, Popfq], approximate("TF is kept but does not trap") (m, i) {
        let width = flags_width(i);
        let rsp = m.gpr(gpr::RSP);
        let value = m.load(rsp, width);
        let after = m.bin_const(BinOp::Add, rsp, width.bytes().into());
        m.set_gpr(gpr::RSP, after);
        let value = m.zext(value, Width::W64);
        let writable = if width == Width::W16 { TF | NT } else { TF | NT | AC | ID };
        let old = m.reg(Reg::OtherFlags);
        let kept = m.bin_const(BinOp::And, old, !(writable | RF));
        let new = m.bin_const(BinOp::And, value, writable);
        let new = m.bin(BinOp::Or, kept, new);
        m.set_reg(Reg::OtherFlags, new);
        set_from_rflags(m, value, &Flag::ALL);
    }
    "popf" = "669d", "popfq" = "9d";

    /// Make a stack frame.
    [Enter], exact (m, i) {
        let width = frame_width(i);
        let size = u64::from(width.bytes());
        let level = u64::from(i.immediate8_2nd() & 31);
        let rsp = m.gpr(gpr::RSP);
        let rbp = m.gpr(gpr::RBP);
        let saved = m.trunc(rbp, width);
        let frame = m.bin_const(BinOp::Sub, rsp, size);
        m.store(frame, saved);
        for outer in 1..level {
            let from = m.bin_const(BinOp::Sub, rbp, size * outer);
            let pointer = m.load(from, width);
            let to = m.bin_const(BinOp::Sub, frame, size * outer);
            m.store(to, pointer);
        }
        let frame_pointer = m.trunc(frame, width);
        if level > 0 {
            let to = m.bin_const(BinOp::Sub, frame, size * level);
            m.store(to, frame_pointer);
        }
        let below = size * level + u64::from(i.immediate16());
        let rsp = m.bin_const(BinOp::Sub, frame, below);
        // The new top of stack must be writable, though nothing is written.
        let nothing = m.int(width, 0);
        m.atomic(AtomicOp::Or, rsp, nothing);
        write_part(m, gpr::RBP, frame_pointer);
        m.set_gpr(gpr::RSP, rsp);
    }
    "enter 0x20,0" = "c8200000", "enter 8,1" = "c8080001", "enter 0x10,3" = "c8100003";

    /// Leave a stack frame.
    [Leave], exact (m, i) {
        let width = frame_width(i);
        let frame = m.gpr(gpr::RBP);
        let value = m.load(frame, width);
        let rsp = m.bin_const(BinOp::Add, frame, width.bytes().into());
        m.set_gpr(gpr::RSP, rsp);
        write_part(m, gpr::RBP, value);
    }
    "leave" = "c9";

    /// Flags into ah.
    [Lahf], exact (m, i) {
        let _ = i;
        let fixed = m.int(Width::W64, 2);
        let flags = rflags(m, fixed);
        let flags = m.trunc(flags, Width::W8);
        write_gpr(m, Register::AH, flags);
    }
    "lahf" = "9f";

    /// Flags from ah.
    [Sahf], exact (m, i) {
        let _ = i;
        let rax = read_part(m, gpr::RAX, Width::W64);
        let flags = m.bin_const(BinOp::LShr, rax, 8);
        set_from_rflags(m, flags, &[Flag::Cf, Flag::Pf, Flag::Af, Flag::Zf, Flag::Sf]);
    }
    "sahf" = "9e";
}

/// Trap flag.
const TF: u64 = 1 << 8;
/// Nested task.
const NT: u64 = 1 << 14;
/// Resume flag.
const RF: u64 = 1 << 16;
/// Virtual-8086 mode.
const VM: u64 = 1 << 17;
/// Alignment check.
const AC: u64 = 1 << 18;
/// CPUID is available.
const ID: u64 = 1 << 21;

/// Push `value` at its width.
pub(super) fn push<M: X86>(m: &mut M, value: M::Int) {
    let rsp = m.gpr(gpr::RSP);
    let below = m.bin_const(BinOp::Sub, rsp, m.width(value).bytes().into());
    m.store(below, value);
    m.set_gpr(gpr::RSP, below);
}

fn flags_width(i: &Insn) -> Width {
    if matches!(i.mnemonic(), Mnemonic::Pushf | Mnemonic::Popf) { Width::W16 } else { Width::W64 }
}

fn frame_width(i: &Insn) -> Width {
    use iced_x86::Code;
    if matches!(i.code(), Code::Enterw_imm16_imm8 | Code::Leavew) { Width::W16 } else { Width::W64 }
}
