//! Moves of whole and partial vectors (SSE to SSE4.1, MMX). SDM vol. 2.

use crate::machine::{BinOp, CmpOp, Width};
use crate::x86_64::operand::{X86, memory_address, probe, read, segment_base, write};
use crate::x86_64::mmx;
use crate::x86_64::vector::{
    BITS, from_low, in_memory, is_mmx, scalar, set, set_scalar, source, unaligned, xmm_number,
};
use crate::x86_64::{Insn, Reg};
use iced_x86::OpKind;

extension! { "sse_move";
    /// Move an aligned vector.
    [Movaps, Movapd, Movdqa, Movntdqa], exact (m, i) {
        let value = source(m, i, 1);
        set(m, i, value);
    }
    "movaps xmm1,xmm2" = "0f28ca", "movaps xmm1,[rdi]" = "0f280f", "movaps [rdi],xmm1" = "0f290f",
    "movapd xmm1,[rdi]" = "660f280f", "movdqa [rdi],xmm9" = "66440f7f0f", "movntdqa xmm1,[rsi]" = "660f382a0e";

    /// Store an aligned vector past the caches.
    [Movntps, Movntpd, Movntdq], exact (m, i) {
        let value = source(m, i, 1);
        set(m, i, value);
    }
    "movntps [rdi],xmm1" = "0f2b0f", "movntpd [rdi],xmm2" = "660f2b17", "movntdq [rdi],xmm3" = "660fe71f";

    /// Store an MMX register past the caches.
    [Movntq], exact (m, i) { move_q(m, i) }
    "movntq [rdi],mm1" = "0fe70f";

    /// Move a vector at any alignment.
    [Movups, Movupd, Movdqu, Lddqu], exact (m, i) {
        let value = unaligned(m, i, 1);
        if in_memory(i, 0) {
            let address = memory_address(m, i);
            m.store_vec(address, value);
        } else {
            set(m, i, value);
        }
    }
    "movups xmm1,[rdi+3]" = "0f104f03", "movupd [rdi+5],xmm1" = "660f114f05", "movdqu xmm1,[rsi+1]" = "f30f6f4e01",
    "lddqu xmm1,[rsi+7]" = "f20ff04e07";

    /// Move the lowest single; a load clears the rest.
    [Movss], exact (m, i) { move_scalar(m, i, Width::W32) }
    "movss xmm1,xmm2" = "f30f10ca", "movss xmm1,[rdi]" = "f30f100f", "movss [rdi],xmm1" = "f30f110f";

    /// Move the lowest double; a load clears the rest.
    [Movsd] if !i.is_string_instruction(), exact (m, i) { move_scalar(m, i, Width::W64) }
    "movsd xmm1,xmm2" = "f20f10ca", "movsd xmm1,[rdi]" = "f20f100f", "movsd [rdi],xmm1" = "f20f110f";

    /// Move the low half.
    [Movlps, Movlpd], exact (m, i) { move_half(m, i, 0) }
    "movlps xmm1,[rdi]" = "0f120f", "movlpd [rdi],xmm1" = "660f130f";

    /// Move the high half.
    [Movhps, Movhpd], exact (m, i) { move_half(m, i, 1) }
    "movhps xmm1,[rdi]" = "0f160f", "movhpd [rdi],xmm1" = "660f170f";

    /// High half into low half.
    [Movhlps], exact (m, i) { between_halves(m, i, 1, 0) }
    "movhlps xmm1,xmm2" = "0f12ca";

    /// Low half into high half.
    [Movlhps], exact (m, i) { between_halves(m, i, 0, 1) }
    "movlhps xmm1,xmm2" = "0f16ca";

    /// Even singles duplicated.
    [Movsldup], exact (m, i) { duplicate(m, i, &[0, 0, 2, 2]) }
    "movsldup xmm1,xmm2" = "f30f12ca", "movsldup xmm1,[rdi]" = "f30f120f";

    /// Odd singles duplicated.
    [Movshdup], exact (m, i) { duplicate(m, i, &[1, 1, 3, 3]) }
    "movshdup xmm1,xmm2" = "f30f16ca";

    /// Lowest double duplicated.
    [Movddup], exact (m, i) {
        let low = scalar(m, i, 1, Width::W64);
        let both = m.vec_splat(low, BITS);
        set(m, i, both);
    }
    "movddup xmm1,xmm2" = "f20f12ca", "movddup xmm1,[rdi+1]" = "f20f124f01";

    /// Between a general register or memory and a vector register.
    [Movd], exact (m, i) { move_int(m, i) }
    "movd xmm1,eax" = "660f6ec8", "movd xmm1,[rdi]" = "660f6e0f", "movd ecx,xmm1" = "660f7ec9",
    "movd [rdi],xmm1" = "660f7e0f", "movd mm1,eax" = "0f6ec8", "movd ecx,mm1" = "0f7ec9", "movd [rdi],mm1" = "0f7e0f";

    /// Between general registers, vector registers and memory, 64 bits.
    [Movq], exact (m, i) { if i.op0_register().is_gpr() || i.op1_register().is_gpr() { move_int(m, i) } else { move_q(m, i) } }
    "movq xmm1,rax" = "66480f6ec8", "movq xmm1,xmm2" = "f30f7eca", "movq xmm1,[rdi]" = "f30f7e0f", "movq rcx,xmm1" = "66480f7ec9",
    "movq [rdi],xmm1" = "660fd60f", "movq mm1,rax" = "480f6ec8", "movq mm1,mm2" = "0f6fca", "movq mm1,[rdi]" = "0f6f0f",
    "movq [rdi],mm1" = "0f7f0f", "movq rcx,mm1" = "480f7ec9";

    /// From XMM to MMX register.
    [Movdq2q], exact (m, i) {
        let value = source(m, i, 1);
        set(m, i, value);
    }
    "movdq2q mm1,xmm2" = "f20fd6ca";

    /// From MMX to XMM register.
    [Movq2dq], exact (m, i) {
        let value = source(m, i, 1);
        mmx::enter(m);
        set(m, i, value);
    }
    "movq2dq xmm1,mm2" = "f30fd6ca";

    /// Store a general register past the caches.
    [Movnti], exact (m, i) {
        let value = read(m, i, 1);
        write(m, i, 0, value);
    }
    "movnti [rdi],eax" = "0fc307", "movnti [rdi],rax" = "480fc307";

    /// Signs of the singles.
    [Movmskps], exact (m, i) { signs(m, i, Width::W32) }
    "movmskps eax,xmm2" = "0f50c2";

    /// Signs of the doubles.
    [Movmskpd], exact (m, i) { signs(m, i, Width::W64) }
    "movmskpd eax,xmm2" = "660f50c2";

    /// Top bits of the bytes.
    [Pmovmskb], exact (m, i) { signs(m, i, Width::W8) }
    "pmovmskb eax,xmm2" = "660fd7c2", "pmovmskb r9d,mm2" = "440fd7ca";

    /// Store the bytes whose mask byte has its top bit set to \[rdi\].
    [Maskmovdqu, Maskmovq], exact (m, i) { store_masked(m, i) }
    "maskmovdqu xmm1,xmm2" = "660ff7ca", "maskmovq mm1,mm2" = "0ff7ca";
}

/// MOVSS, MOVSD.
fn move_scalar<M: X86>(m: &mut M, i: &Insn, width: Width) {
    let value = scalar(m, i, 1, width);
    if in_memory(i, 0) {
        let address = memory_address(m, i);
        m.store(address, value);
    } else if in_memory(i, 1) {
        let whole = from_low(m, value);
        set(m, i, whole);
    } else {
        set_scalar(m, i, value);
    }
}

/// MOVLPS, MOVHPS and their doubles: half `half` of a register from or to memory.
fn move_half<M: X86>(m: &mut M, i: &Insn, half: u32) {
    let address = memory_address(m, i);
    if in_memory(i, 0) {
        let value = m.vec_reg(xmm_number(i, 1), BITS);
        let value = m.lane(value, Width::W64, half);
        m.store(address, value);
    } else {
        let value = m.load(address, Width::W64);
        set_half(m, i, half, value);
    }
}

fn set_half<M: X86>(m: &mut M, i: &Insn, half: u32, value: M::Int) {
    let old = m.vec_reg(xmm_number(i, 0), BITS);
    let new = m.set_lane(old, half, value);
    m.set_vec_reg(xmm_number(i, 0), new);
}

fn between_halves<M: X86>(m: &mut M, i: &Insn, from: u32, to: u32) {
    let value = m.vec_reg(xmm_number(i, 1), BITS);
    let value = m.lane(value, Width::W64, from);
    set_half(m, i, to, value);
}

fn duplicate<M: X86>(m: &mut M, i: &Insn, singles: &[u8]) {
    let value = source(m, i, 1);
    let value = m.shuffle(Width::W32, value, value, singles);
    set(m, i, value);
}

/// MOVD, MOVQ where one side is a general register or, for MOVD, memory.
fn move_int<M: X86>(m: &mut M, i: &Insn) {
    let to_vector = i.op0_register().is_xmm() || is_mmx(i);
    if to_vector {
        let value = read(m, i, 1);
        let whole = from_low(m, value);
        set(m, i, whole);
    } else {
        let whole = source(m, i, 1);
        let width = if i.op0_register().is_gpr64() || i.memory_size().size() == 8 { Width::W64 } else { Width::W32 };
        let value = m.lane(whole, width, 0);
        write(m, i, 0, value);
        enter_mmx(m, i);
    }
}

/// Operand 1 has been read; if it is an MMX register, the x87 unit is in MMX state now.
fn enter_mmx<M: X86>(m: &mut M, i: &Insn) {
    if i.op1_register().is_mm() {
        mmx::enter(m);
    }
}

/// MOVQ and MOVNTQ between vector registers and memory.
fn move_q<M: X86>(m: &mut M, i: &Insn) {
    let whole = source(m, i, 1);
    let low = m.lane(whole, Width::W64, 0);
    if in_memory(i, 0) {
        let address = memory_address(m, i);
        m.store(address, low);
        enter_mmx(m, i);
    } else {
        let whole = from_low(m, low);
        set(m, i, whole);
    }
}

fn signs<M: X86>(m: &mut M, i: &Insn, lane: Width) {
    let value = source(m, i, 1);
    let mask = m.sign_mask(value, lane, Width::W64);
    let number = i.op0_register().full_register().number() as u8;
    m.set_reg(Reg::Gpr(number), mask);
    enter_mmx(m, i);
}

fn store_masked<M: X86>(m: &mut M, i: &Insn) {
    let (value, mask) = (source(m, i, 1), source(m, i, 2));
    let address = implicit_rdi(m, i);
    let bytes = if i.op1_register().is_mm() { 8 } else { 16 };
    enter_mmx(m, i);
    probe(m, address, bytes.into());
    for n in 0..bytes {
        let chosen = m.lane(mask, Width::W8, n);
        let zero = m.int(Width::W8, 0);
        let chosen = m.cmp(CmpOp::Slt, chosen, zero);
        let byte = m.lane(value, Width::W8, n);
        let offset = m.int(Width::W64, n.into());
        let at = m.bin(BinOp::Add, address, offset);
        m.when(chosen, &mut |m| m.store(at, byte));
    }
}

/// The implicit address of operand 0: rdi (or edi), through the segment named.
fn implicit_rdi<M: X86>(m: &mut M, i: &Insn) -> M::Int {
    let mut offset = m.reg(Reg::Gpr(7));
    if i.op_kind(0) == OpKind::MemorySegEDI {
        let low = m.trunc(offset, Width::W32);
        offset = m.zext(low, Width::W64);
    }
    match segment_base(m, i.memory_segment()) {
        Some(base) => m.bin(BinOp::Add, base, offset),
        None => offset,
    }
}
