//! Moves, extensions and conditional moves. SDM vol. 2.

use crate::machine::{BinOp, Width};
use crate::x86_64::Insn;
use crate::x86_64::flags::condition;
use crate::x86_64::operand::{
    effective_address, gpr, linear, low32, operand_width, read, read_gpr, read_part, write, write_part,
};
use iced_x86::{OpKind, Register};

extension! { "data_transfer";
    /// Move.
    [Mov] if has_only_general_registers(i), exact (m, i) {
        let value = read(m, i, 1);
        write(m, i, 0, value);
    }
    "mov eax,ebx" = "89d8", "mov rax,-1" = "48c7c0ffffffff",
    "mov rcx,0x1122334455667788" = "48b98877665544332211", "mov [rdi],al" = "8807", "mov ah,[rsi]" = "8a26",
    "mov r9,[rdi+rax*4+0x10]" = "4c8b4c8710", "mov word ptr [rdi],0x1234" = "66c7073412",
    "mov qword ptr [rsp+8],-2" = "48c7442408feffffff", "mov dl,bh" = "88fa",
    "mov rax,fs:[0x28]" = "64488b042528000000", "mov eax,[rip+0x20]" = "8b0520000000",
    "mov ecx,[r13d-4]" = "67418b4dfc", "mov r8b,sil" = "4188f0";

    /// Move with zero extension.
    [Movzx], exact (m, i) {
        let value = read(m, i, 1);
        let value = m.zext(value, operand_width(i, 0));
        write(m, i, 0, value);
    }
    "movzx eax,bl" = "0fb6c3", "movzx eax,ah" = "0fb6c4", "movzx rcx,word ptr [rdi]" = "480fb70f",
    "movzx dx,byte ptr [rsi]" = "660fb616";

    /// Move with sign extension.
    [Movsx, Movsxd], exact (m, i) {
        let value = read(m, i, 1);
        let value = m.sext(value, operand_width(i, 0));
        write(m, i, 0, value);
    }
    "movsx eax,bl" = "0fbec3", "movsx rax,cx" = "480fbfc1", "movsxd rdx,[rdi]" = "486317",
    "movsxd r8,r9d" = "4d63c1", "movsx dx,byte ptr [rsi]" = "660fbe16", "movsx ecx,ah" = "0fbecc";

    /// The address itself.
    [Lea], exact (m, i) {
        let address = effective_address(m, i);
        let address = m.resize(address, operand_width(i, 0));
        write(m, i, 0, address);
    }
    "lea rax,[rbx+rcx*4-8]" = "488d448bf8", "lea eax,[rdi+1]" = "8d4701",
    "lea r8,[rip+0x100]" = "4c8d0500010000", "lea rax,[ebx+ecx]" = "67488d040b",
    "lea cx,[rdx+rdx*2]" = "668d0c52", "lea rdx,[rcx*8+0x40]" = "488d14cd40000000";

    /// rax sign-extended from its lower half.
    [Cbw, Cwde, Cdqe], exact (m, i) {
        let width = match i.mnemonic() {
            iced_x86::Mnemonic::Cbw => Width::W16,
            iced_x86::Mnemonic::Cwde => Width::W32,
            _ => Width::W64,
        };
        let value = read_part(m, gpr::RAX, width.half());
        let value = m.sext(value, width);
        write_part(m, gpr::RAX, value);
    }
    "cbw" = "6698", "cwde" = "98", "cdqe" = "4898";

    /// rdx filled with the sign of rax.
    [Cwd, Cdq, Cqo], exact (m, i) {
        let width = match i.mnemonic() {
            iced_x86::Mnemonic::Cwd => Width::W16,
            iced_x86::Mnemonic::Cdq => Width::W32,
            _ => Width::W64,
        };
        let value = read_part(m, gpr::RAX, width);
        let sign = m.bin_const(BinOp::AShr, value, u64::from(width.bits()) - 1);
        write_part(m, gpr::RDX, sign);
    }
    "cwd" = "6699", "cdq" = "99", "cqo" = "4899";

    /// Move if the condition holds; the source is read, and a 32-bit destination's upper half cleared, anyway.
    [
        Cmova, Cmovae, Cmovb, Cmovbe, Cmove, Cmovg, Cmovge, Cmovl, Cmovle, Cmovne, Cmovno, Cmovnp, Cmovns, Cmovo,
        Cmovp, Cmovs,
    ], exact (m, i) {
        let (old, new) = (read(m, i, 0), read(m, i, 1));
        let holds = condition(m, i.condition_code());
        let value = m.select(holds, new, old);
        write(m, i, 0, value);
    }
    "cmova eax,ebx" = "0f47c3", "cmovae rax,rbx" = "480f43c3", "cmovb ax,bx" = "660f42c3",
    "cmovbe eax,[rdi]" = "0f4607", "cmove rcx,[rsi]" = "480f440e", "cmovg ecx,edx" = "0f4fca",
    "cmovge ecx,edx" = "0f4dca", "cmovl ecx,edx" = "0f4cca", "cmovle ecx,edx" = "0f4eca",
    "cmovne ecx,edx" = "0f45ca", "cmovno ecx,edx" = "0f41ca", "cmovnp ecx,edx" = "0f4bca",
    "cmovns ecx,edx" = "0f49ca", "cmovo ecx,edx" = "0f40ca", "cmovp ecx,edx" = "0f4aca",
    "cmovs r8,r9" = "4d0f48c1";

    /// The condition as a byte.
    [
        Seta, Setae, Setb, Setbe, Sete, Setg, Setge, Setl, Setle, Setne, Setno, Setnp, Setns, Seto, Setp, Sets,
    ], exact (m, i) {
        let holds = condition(m, i.condition_code());
        let value = m.bool_to_int(holds, Width::W8);
        write(m, i, 0, value);
    }
    "seta al" = "0f97c0", "setae ah" = "0f93c4", "setb [rdi]" = "0f9207", "setbe cl" = "0f96c1",
    "sete r8b" = "410f94c0", "setg al" = "0f9fc0", "setge al" = "0f9dc0", "setl al" = "0f9cc0",
    "setle al" = "0f9ec0", "setne al" = "0f95c0", "setno al" = "0f91c0", "setnp al" = "0f9bc0",
    "setns al" = "0f99c0", "seto al" = "0f90c0", "setp al" = "0f9ac0", "sets sil" = "400f98c6";

    /// Table lookup of al at rbx.
    [Xlatb], exact (m, i) {
        let (base, index) = (m.gpr(gpr::RBX), read_gpr(m, Register::AL));
        let index = m.zext(index, Width::W64);
        let offset = m.bin(BinOp::Add, base, index);
        let offset = if i.memory_base() == Register::EBX { low32(m, offset) } else { offset };
        let address = linear(m, i, offset);
        let value = m.load(address, Width::W8);
        write_part(m, gpr::RAX, value);
    }
    "xlat [rbx]" = "d7";
}

/// No segment, control or debug register.
fn has_only_general_registers(i: &Insn) -> bool {
    (0..2).all(|op| i.op_kind(op) != OpKind::Register || i.op_register(op).is_gpr())
}
