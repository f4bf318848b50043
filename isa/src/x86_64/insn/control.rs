//! Jumps, calls and returns. SDM vol. 2. Far forms have no block.

use crate::machine::{BinOp, Target, Width};
use crate::x86_64::{Flag, Insn};
use crate::x86_64::flags::condition;
use crate::x86_64::insn::stack::push;
use crate::x86_64::operand::{X86, gpr, operand_width, read, read_part, write_part};
use iced_x86::{Code, Mnemonic, OpKind};

extension! { "control";
    /// Jump if the condition holds.
    [Ja, Jae, Jb, Jbe, Je, Jg, Jge, Jl, Jle, Jne, Jno, Jnp, Jns, Jo, Jp, Js], exact (m, i) {
        let holds = condition(m, i.condition_code());
        m.jump_if(holds, i.near_branch_target());
    }
    "ja 0x10" = "770e", "jae 0x10" = "730e", "jb 0x10" = "720e", "jbe 0x10" = "760e", "je 0x10" = "740e",
    "jg 0x10" = "7f0e", "jge 0x10" = "7d0e", "jl 0x10" = "7c0e", "jle 0x10" = "7e0e", "jne 0x10" = "750e",
    "jno 0x10" = "710e", "jnp 0x10" = "7b0e", "jns 0x10" = "790e", "jo 0x10" = "700e", "jp 0x10" = "7a0e",
    "js 0x10" = "780e", "je 0x12345678" = "0f8472563412";

    /// Jump if rcx is zero.
    [Jecxz, Jrcxz], exact (m, i) {
        let width = if i.mnemonic() == Mnemonic::Jecxz { Width::W32 } else { Width::W64 };
        let count = read_part(m, gpr::RCX, width);
        let zero = m.is_zero(count);
        m.jump_if(zero, i.near_branch_target());
    }
    "jrcxz 0x10" = "e30e", "jecxz 0x10" = "67e30d";

    /// Count rcx down and jump unless it is zero (and ZF is as asked).
    [Loop, Loope, Loopne], exact (m, i) {
        let count = read_part(m, gpr::RCX, loop_width(i));
        let count = m.bin_const(BinOp::Sub, count, 1);
        write_part(m, gpr::RCX, count);
        let more = m.is_nonzero(count);
        let equal = m.get(Flag::Zf);
        let again = match i.mnemonic() {
            Mnemonic::Loope => m.and(more, equal),
            Mnemonic::Loopne => {
                let differs = m.not(equal);
                m.and(more, differs)
            }
            _ => more,
        };
        m.jump_if(again, i.near_branch_target());
    }
    "loop 0x10" = "e20e", "loope 0x10" = "e10e", "loopne 0x10" = "e00e";

    /// Jump.
    [Jmp] if is_near(i), exact (m, i) {
        let target = target(m, i);
        m.jump(target);
    }
    "jmp 0x10" = "eb0e", "jmp 0x12345678" = "e973563412", "jmp rax" = "ffe0", "jmp qword ptr [rdi]" = "ff27";

    /// Call: push the address of the next instruction, then jump.
    [Call] if is_near(i), exact (m, i) {
        let target = target(m, i);
        let return_address = m.address(i.next_ip());
        push(m, return_address);
        m.call(target, i.next_ip());
    }
    "call 0x12345678" = "e873563412", "call rax" = "ffd0", "call qword ptr [rdi]" = "ff17",
    "call rsp" = "ffd4", "call qword ptr [rsp+8]" = "ff542408";

    /// Return, and release arguments.
    [Ret] if i.code() == Code::Retnq || i.code() == Code::Retnq_imm16, exact (m, i) {
        let rsp = m.gpr(gpr::RSP);
        let target = m.load(rsp, Width::W64);
        let arguments = if i.op_count() == 1 { u64::from(i.immediate16()) } else { 0 };
        let after = m.bin_const(BinOp::Add, rsp, 8 + arguments);
        m.set_gpr(gpr::RSP, after);
        m.ret(target);
    }
    "ret" = "c3", "ret 0x10" = "c21000";
}

/// A branch within the code segment, with a 64-bit target.
fn is_near(i: &Insn) -> bool {
    match i.op0_kind() {
        OpKind::NearBranch64 => true,
        OpKind::Register | OpKind::Memory => {
            operand_width(i, 0) == Width::W64 && !i.is_jmp_far_indirect() && !i.is_call_far_indirect()
        }
        _ => false,
    }
}

fn target<M: X86>(m: &mut M, i: &Insn) -> Target<M::Int> {
    match i.op0_kind() {
        OpKind::NearBranch64 => Target::Direct(i.near_branch64()),
        _ => Target::Indirect(read(m, i, 0)),
    }
}

/// The width in which LOOP counts.
fn loop_width(i: &Insn) -> Width {
    match i.code() {
        Code::Loop_rel8_64_ECX | Code::Loope_rel8_64_ECX | Code::Loopne_rel8_64_ECX => Width::W32,
        _ => Width::W64,
    }
}
