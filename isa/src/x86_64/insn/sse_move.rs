//! Moves of whole and partial vectors (MMX, SSE to SSE4.1, AVX). SDM vol. 2.

use crate::machine::{BinOp, CmpOp, Width};
use crate::x86_64::operand::{X86, memory_address, probe, read, segment_base, write};
use crate::x86_64::mmx;
use crate::x86_64::vector::{
    BLOCK, bits, chosen_scalar, from_low, in_memory, is_legacy, is_mmx, lanes_at, last, left, number, require_aligned,
    right, scalar, set, set_lane, set_register, set_scalar, shuffle, unaligned,
};
use crate::x86_64::{Insn, Reg};
use iced_x86::OpKind;

extension! { "sse_move";
    /// Move an aligned vector.
    [Movaps, Movapd, Movdqa, Movntdqa, Vmovaps, Vmovapd, Vmovdqa, Vmovntdqa], exact (m, i) { move_aligned(m, i) }
    "movaps xmm1,xmm2" = "0f28ca", "movaps xmm1,[rdi]" = "0f280f", "movaps [rdi],xmm1" = "0f290f",
    "movapd xmm1,[rdi]" = "660f280f", "movdqa [rdi],xmm9" = "66440f7f0f", "movntdqa xmm1,[rsi]" = "660f382a0e",
    "vmovaps ymm1,ymm2" = "c5fc28ca", "vmovapd ymm1,[rdi]" = "c5fd280f", "vmovdqa [rdi],ymm9" = "c57d7f0f", "vmovntdqa ymm1,[rsi]" = "c4e27d2a0e",
    "vmovaps zmm1,zmm2" = "62f17c4828ca", "vmovapd zmm1,[rdi]" = "62f1fd48280f", "vmovntdqa zmm1,[rsi]" = "62f27d482a0e", "vmovaps zmm1{k1}{z},[rdi]" = "62f17cc9280f";

    /// Store an aligned vector past the caches.
    [Movntps, Movntpd, Movntdq, Vmovntps, Vmovntpd, Vmovntdq], exact (m, i) { move_aligned(m, i) }
    "movntps [rdi],xmm1" = "0f2b0f", "movntpd [rdi],xmm2" = "660f2b17", "movntdq [rdi],xmm3" = "660fe71f",
    "vmovntps [rdi],ymm1" = "c5fc2b0f", "vmovntpd [rdi],ymm2" = "c5fd2b17", "vmovntdq [rdi],ymm3" = "c5fde71f",
    "vmovntps [rdi],zmm1" = "62f17c482b0f", "vmovntpd [rdi],zmm2" = "62f1fd482b17", "vmovntdq [rdi],zmm3" = "62f17d48e71f";

    /// Store an MMX register past the caches.
    [Movntq], exact (m, i) { move_q(m, i) }
    "movntq [rdi],mm1" = "0fe70f";

    /// Move a vector at any alignment.
    [Movups, Movupd, Movdqu, Lddqu, Vmovups, Vmovupd, Vmovdqu, Vlddqu], exact (m, i) {
        let value = if is_legacy(i) { unaligned(m, i, 1) } else { lanes_at(m, i, 1) };
        set(m, i, value);
    }
    "movups xmm1,[rdi+3]" = "0f104f03", "movupd [rdi+5],xmm1" = "660f114f05", "movdqu xmm1,[rsi+1]" = "f30f6f4e01",
    "lddqu xmm1,[rsi+7]" = "f20ff04e07",
    "vmovups ymm1,[rdi+3]" = "c5fc104f03", "vmovdqu [rdi+5],ymm1" = "c5fe7f4f05", "vmovupd [rdi+5],ymm1" = "c5fd114f05", "vmovdqu ymm1,[rsi+1]" = "c5fe6f4e01", "vlddqu ymm1,[rsi+7]" = "c5fff04e07",
    "vmovups zmm1,[rdi+3]" = "62f17c48108f03000000", "vmovupd [rdi+5],zmm1" = "62f1fd48118f05000000", "vmovups zmm1{k1},[rdi+3]" = "62f17c49108f03000000", "vmovupd [rdi+5]{k1},zmm2" = "62f1fd49119705000000";

    /// Move the lowest single; a load clears the rest.
    [Movss, Vmovss], exact (m, i) { move_scalar(m, i, Width::W32) }
    "movss xmm1,xmm2" = "f30f10ca", "movss xmm1,[rdi]" = "f30f100f", "movss [rdi],xmm1" = "f30f110f",
    "vmovss xmm1,xmm2,xmm3" = "c5ea10cb", "vmovss xmm1,[rdi]" = "c5fa100f", "vmovss [rdi],xmm1" = "c5fa110f",
    "vmovss xmm21,xmm22,xmm23" = "62a14e0010ef", "vmovss xmm1{k1},xmm2,xmm3" = "62f16e0910cb", "vmovss xmm1{k1}{z},[rdi]" = "62f17e89100f", "vmovss [rdi]{k1},xmm2" = "62f17e091117";

    /// Move the lowest double; a load clears the rest.
    [Movsd, Vmovsd] if !i.is_string_instruction(), exact (m, i) { move_scalar(m, i, Width::W64) }
    "movsd xmm1,xmm2" = "f20f10ca", "movsd xmm1,[rdi]" = "f20f100f", "movsd [rdi],xmm1" = "f20f110f",
    "vmovsd xmm1,xmm2,xmm3" = "c5eb10cb", "vmovsd xmm1,[rdi]" = "c5fb100f", "vmovsd [rdi],xmm1" = "c5fb110f",
    "vmovsd xmm21,xmm22,xmm23" = "62a1cf0010ef";

    /// Move the low half.
    [Movlps, Movlpd, Vmovlps, Vmovlpd], exact (m, i) { move_half(m, i, 0) }
    "movlps xmm1,[rdi]" = "0f120f", "movlpd [rdi],xmm1" = "660f130f",
    "vmovlps xmm1,xmm2,[rdi]" = "c5e8120f", "vmovlpd [rdi],xmm1" = "c5f9130f",
    "vmovlps xmm21,xmm22,[rdi]" = "62e14c00122f", "vmovlpd [rdi],xmm21" = "62e1fd08132f";

    /// Move the high half.
    [Movhps, Movhpd, Vmovhps, Vmovhpd], exact (m, i) { move_half(m, i, 1) }
    "movhps xmm1,[rdi]" = "0f160f", "movhpd [rdi],xmm1" = "660f170f",
    "vmovhps xmm1,xmm2,[rdi]" = "c5e8160f", "vmovhpd [rdi],xmm1" = "c5f9170f",
    "vmovhps xmm21,xmm22,[rdi]" = "62e14c00162f", "vmovhpd [rdi],xmm21" = "62e1fd08172f";

    /// High half into low half.
    [Movhlps, Vmovhlps], exact (m, i) { between_halves(m, i, 1, 0) }
    "movhlps xmm1,xmm2" = "0f12ca",
    "vmovhlps xmm1,xmm2,xmm3" = "c5e812cb",
    "vmovhlps xmm21,xmm22,xmm23" = "62a14c0012ef";

    /// Low half into high half.
    [Movlhps, Vmovlhps], exact (m, i) { between_halves(m, i, 0, 1) }
    "movlhps xmm1,xmm2" = "0f16ca",
    "vmovlhps xmm1,xmm2,xmm3" = "c5e816cb",
    "vmovlhps xmm21,xmm22,xmm23" = "62a14c0016ef";

    /// Even singles duplicated.
    [Movsldup, Vmovsldup], exact (m, i) { duplicate(m, i, &[0, 0, 2, 2]) }
    "movsldup xmm1,xmm2" = "f30f12ca", "movsldup xmm1,[rdi]" = "f30f120f",
    "vmovsldup ymm1,ymm2" = "c5fe12ca",
    "vmovsldup zmm1,zmm2" = "62f17e4812ca";

    /// Odd singles duplicated.
    [Movshdup, Vmovshdup], exact (m, i) { duplicate(m, i, &[1, 1, 3, 3]) }
    "movshdup xmm1,xmm2" = "f30f16ca",
    "vmovshdup ymm1,ymm2" = "c5fe16ca",
    "vmovshdup zmm1,zmm2" = "62f17e4816ca";

    /// Even doubles duplicated.
    [Movddup, Vmovddup], exact (m, i) {
        let value = if bits(i) == BLOCK {
            let low = scalar(m, i, 1, Width::W64);
            from_low(m, low)
        } else {
            right(m, i)
        };
        let both = shuffle(m, Width::W64, value, value, &[0, 0]);
        set(m, i, both);
    }
    "movddup xmm1,xmm2" = "f20f12ca", "movddup xmm1,[rdi+1]" = "f20f124f01",
    "vmovddup ymm1,ymm2" = "c5ff12ca", "vmovddup xmm1,[rdi+1]" = "c5fb124f01",
    "vmovddup zmm1,zmm2" = "62f1ff4812ca";

    /// Between a general register or memory and a vector register.
    [Movd, Vmovd], exact (m, i) { move_int(m, i) }
    "movd xmm1,eax" = "660f6ec8", "movd xmm1,[rdi]" = "660f6e0f", "movd ecx,xmm1" = "660f7ec9",
    "movd [rdi],xmm1" = "660f7e0f", "movd mm1,eax" = "0f6ec8", "movd ecx,mm1" = "0f7ec9", "movd [rdi],mm1" = "0f7e0f",
    "vmovd xmm1,eax" = "c5f96ec8", "vmovd xmm1,[rdi]" = "c5f96e0f", "vmovd ecx,xmm1" = "c5f97ec9", "vmovd [rdi],xmm1" = "c5f97e0f",
    "vmovd xmm21,eax" = "62e17d086ee8";

    /// Between general registers, vector registers and memory, 64 bits.
    [Movq, Vmovq], exact (m, i) { if i.op0_register().is_gpr() || i.op1_register().is_gpr() { move_int(m, i) } else { move_q(m, i) } }
    "movq xmm1,rax" = "66480f6ec8", "movq xmm1,xmm2" = "f30f7eca", "movq xmm1,[rdi]" = "f30f7e0f", "movq rcx,xmm1" = "66480f7ec9",
    "movq [rdi],xmm1" = "660fd60f", "movq mm1,rax" = "480f6ec8", "movq mm1,mm2" = "0f6fca", "movq mm1,[rdi]" = "0f6f0f",
    "movq [rdi],mm1" = "0f7f0f", "movq rcx,mm1" = "480f7ec9",
    "vmovq xmm1,rax" = "c4e1f96ec8", "vmovq xmm1,xmm2" = "c5fa7eca", "vmovq xmm1,[rdi]" = "c5fa7e0f", "vmovq rcx,xmm1" = "c4e1f97ec9", "vmovq [rdi],xmm1" = "c5f9d60f",
    "vmovq xmm21,rax" = "62e1fd086ee8";

    /// From XMM to MMX register.
    [Movdq2q], exact (m, i) {
        let value = right(m, i);
        set(m, i, value);
    }
    "movdq2q mm1,xmm2" = "f20fd6ca";

    /// From MMX to XMM register.
    [Movq2dq], exact (m, i) {
        let value = right(m, i);
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
    [Movmskps, Vmovmskps], exact (m, i) { signs(m, i, Width::W32) }
    "movmskps eax,xmm2" = "0f50c2",
    "vmovmskps eax,ymm2" = "c5fc50c2";

    /// Signs of the doubles.
    [Movmskpd, Vmovmskpd], exact (m, i) { signs(m, i, Width::W64) }
    "movmskpd eax,xmm2" = "660f50c2",
    "vmovmskpd eax,ymm2" = "c5fd50c2";

    /// Top bits of the bytes.
    [Pmovmskb, Vpmovmskb], exact (m, i) { signs(m, i, Width::W8) }
    "pmovmskb eax,xmm2" = "660fd7c2", "pmovmskb r9d,mm2" = "440fd7ca",
    "vpmovmskb eax,ymm2" = "c5fdd7c2";

    /// Store the bytes whose mask byte has its top bit set to \[rdi\].
    [Maskmovdqu, Maskmovq, Vmaskmovdqu], exact (m, i) { store_masked(m, i) }
    "maskmovdqu xmm1,xmm2" = "660ff7ca", "maskmovq mm1,mm2" = "0ff7ca",
    "vmaskmovdqu xmm1,xmm2" = "c5f9f7ca";
}

/// Move a vector that memory must have at a multiple of its size.
fn move_aligned<M: X86>(m: &mut M, i: &Insn) {
    if in_memory(i, 0) || in_memory(i, 1) {
        require_aligned(m, i);
    }
    let value = if is_legacy(i) { unaligned(m, i, 1) } else { lanes_at(m, i, 1) };
    set(m, i, value);
}

/// MOVSS, MOVSD.
fn move_scalar<M: X86>(m: &mut M, i: &Insn, width: Width) {
    let value = scalar(m, i, last(i), width);
    if in_memory(i, 0) {
        let whole = from_low(m, value);
        store_scalar(m, i, width, value, whole);
    } else if in_memory(i, 1) {
        let value = chosen_scalar(m, i, value);
        let whole = from_low(m, value);
        set_register(m, i, number(i, 0), whole);
    } else {
        set_scalar(m, i, value);
    }
}

/// `value`, the lowest lane of `whole`, to memory, if the mask chooses it.
fn store_scalar<M: X86>(m: &mut M, i: &Insn, width: Width, value: M::Int, whole: M::Vec) {
    let address = memory_address(m, i);
    if i.has_op_mask() {
        let mask = m.reg(Reg::Opmask(i.op_mask().number() as u8));
        let low = m.int(Width::W64, 1);
        let mask = m.bin(BinOp::And, mask, low);
        let mask = m.mask_lanes(mask, width, BLOCK);
        m.store_masked(address, width, mask, whole);
    } else {
        m.store(address, value);
    }
}

/// MOVLPS, MOVHPS and their doubles: half `half` of a register from or to memory.
fn move_half<M: X86>(m: &mut M, i: &Insn, half: u32) {
    let address = memory_address(m, i);
    if in_memory(i, 0) {
        let value = right(m, i);
        let value = m.lane(value, Width::W64, half);
        m.store(address, value);
    } else {
        let value = m.load(address, Width::W64);
        set_lane(m, i, half, value);
    }
}

fn between_halves<M: X86>(m: &mut M, i: &Insn, from: u32, to: u32) {
    let value = right(m, i);
    let value = m.lane(value, Width::W64, from);
    set_lane(m, i, to, value);
}

fn duplicate<M: X86>(m: &mut M, i: &Insn, singles: &[u8]) {
    let value = right(m, i);
    let value = shuffle(m, Width::W32, value, value, singles);
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
        let whole = right(m, i);
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
    let whole = right(m, i);
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
    let value = right(m, i);
    let mask = m.sign_mask(value, lane, Width::W64);
    let number = i.op0_register().full_register().number() as u8;
    m.set_reg(Reg::Gpr(number), mask);
    enter_mmx(m, i);
}

fn store_masked<M: X86>(m: &mut M, i: &Insn) {
    let (value, mask) = (left(m, i), right(m, i));
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
