//! Conversions between floating-point formats and integers (SSE, SSE2, those with MMX, AVX). SDM vol. 2A. A
//! value that no integer has becomes the integer indefinite, the most negative one.

use super::sse_float::NAN;
use crate::machine::{BinOp, FloatFormat, Rounding, Width};
use crate::x86_64::Insn;
use crate::x86_64::operand::{X86, read, write};
use crate::x86_64::mmx;
use crate::x86_64::vector::{
    bitwise, chosen, from_low, lanes_at, last, numbers, right, scalar, scalar_number, set, set_few, set_lane, set_lanes,
    set_scalar,
};
use FloatFormat::{F32, F64};
use Rounding::{Current, Zero};
use Width::{W32, W64};

extension! { "sse_convert";
    /// Double words to singles.
    [Cvtdq2ps, Vcvtdq2ps], exact (m, i) { packed_from_int(m, i, F32) }
    "cvtdq2ps xmm1,xmm2" = "0f5bca", "cvtdq2ps xmm1,[rdi]" = "0f5b0f",
    "vcvtdq2ps ymm1,ymm2" = "c5fc5bca",
    "vcvtdq2ps zmm1,zmm2" = "62f17c485bca", "vcvtdq2ps zmm1{k1},zmm2" = "62f17c495bca";
    /// Low double words to doubles.
    [Cvtdq2pd, Vcvtdq2pd], exact (m, i) { packed_from_int(m, i, F64) }
    "cvtdq2pd xmm1,xmm2" = "f30fe6ca", "cvtdq2pd xmm1,[rdi]" = "f30fe60f",
    "vcvtdq2pd ymm1,xmm2" = "c5fee6ca",
    "vcvtdq2pd ymm1,xmm22" = "62b17e28e6ce", "vcvtdq2pd zmm1{k1},ymm2" = "62f17e49e6ca";
    /// Singles to double words.
    [Cvtps2dq, Vcvtps2dq], exact (m, i) { packed_to_int(m, i, F32, Current) }
    "cvtps2dq xmm1,xmm2" = "660f5bca", "cvtps2dq xmm1,[rdi]" = "660f5b0f",
    "vcvtps2dq ymm1,ymm2" = "c5fd5bca",
    "vcvtps2dq zmm1,zmm2" = "62f17d485bca",
    "vcvtps2dq zmm1{k1}{ru-sae},zmm2" = "62f17d595bca";
    /// Singles to double words, truncating.
    [Cvttps2dq, Vcvttps2dq], exact (m, i) { packed_to_int(m, i, F32, Zero) }
    "cvttps2dq xmm1,xmm2" = "f30f5bca",
    "vcvttps2dq ymm1,ymm2" = "c5fe5bca",
    "vcvttps2dq zmm1,zmm2" = "62f17e485bca",
    "vcvttps2dq zmm1{sae},zmm2" = "62f17e185bca";
    /// Doubles to low double words.
    [Cvtpd2dq, Vcvtpd2dq], exact (m, i) { packed_to_int(m, i, F64, Current) }
    "cvtpd2dq xmm1,xmm2" = "f20fe6ca", "cvtpd2dq xmm1,[rdi]" = "f20fe60f",
    "vcvtpd2dq xmm1,ymm2" = "c5ffe6ca",
    "vcvtpd2dq xmm21,ymm2" = "62e1ff28e6ea",
    "vcvtpd2dq ymm1{k1}{rd-sae},zmm2" = "62f1ff39e6ca";
    /// Doubles to low double words, truncating.
    [Cvttpd2dq, Vcvttpd2dq], exact (m, i) { packed_to_int(m, i, F64, Zero) }
    "cvttpd2dq xmm1,xmm2" = "660fe6ca",
    "vcvttpd2dq xmm1,ymm2" = "c5fde6ca",
    "vcvttpd2dq xmm21,ymm2" = "62e1fd28e6ea", "vcvttpd2dq xmm1{k1},xmm2" = "62f1fd09e6ca",
    "vcvttpd2dq ymm1{sae},zmm2" = "62f1fd18e6ca";
    /// Low singles to doubles.
    [Cvtps2pd, Vcvtps2pd], exact (m, i) { packed_convert(m, i, F32, F64) }
    "cvtps2pd xmm1,xmm2" = "0f5aca", "cvtps2pd xmm1,[rdi]" = "0f5a0f",
    "vcvtps2pd ymm1,xmm2" = "c5fc5aca",
    "vcvtps2pd ymm1,xmm22" = "62b17c285ace", "vcvtps2pd zmm1{k1},ymm2" = "62f17c495aca";
    /// Doubles to low singles.
    [Cvtpd2ps, Vcvtpd2ps], exact (m, i) { packed_convert(m, i, F64, F32) }
    "cvtpd2ps xmm1,xmm2" = "660f5aca", "cvtpd2ps xmm1,[rdi]" = "660f5a0f",
    "vcvtpd2ps xmm1,ymm2" = "c5fd5aca",
    "vcvtpd2ps xmm21,ymm2" = "62e1fd285aea", "vcvtpd2ps ymm1{k1}{ru-sae},zmm2" = "62f1fd595aca", "vcvtpd2ps xmm1{k1},xmm2" = "62f1fd095aca";
    /// Lowest single to double.
    [Cvtss2sd, Vcvtss2sd], exact (m, i) { single_convert(m, i, F32, F64) }
    "cvtss2sd xmm1,xmm2" = "f30f5aca", "cvtss2sd xmm1,[rdi]" = "f30f5a0f",
    "vcvtss2sd xmm1,xmm2,xmm3" = "c5ea5acb",
    "vcvtss2sd xmm21,xmm22,xmm23" = "62a14e005aef";
    /// Lowest double to single.
    [Cvtsd2ss, Vcvtsd2ss], exact (m, i) { single_convert(m, i, F64, F32) }
    "cvtsd2ss xmm1,xmm2" = "f20f5aca", "cvtsd2ss xmm1,[rdi]" = "f20f5a0f",
    "vcvtsd2ss xmm1,xmm2,xmm3" = "c5eb5acb",
    "vcvtsd2ss xmm21,xmm22,xmm23" = "62a1cf005aef", "vcvtsd2ss xmm1{k1}{rd-sae},xmm2,xmm3" = "62f1ef395acb";

    /// Integer to lowest single.
    [Cvtsi2ss, Vcvtsi2ss], exact (m, i) { single_from_int(m, i, F32) }
    "cvtsi2ss xmm1,eax" = "f30f2ac8", "cvtsi2ss xmm1,rax" = "f3480f2ac8", "cvtsi2ss xmm1,dword ptr [rdi]" = "f30f2a0f",
    "vcvtsi2ss xmm1,xmm2,eax" = "c5ea2ac8",
    "vcvtsi2ss xmm21,xmm22,eax" = "62e14e002ae8";
    /// Integer to lowest double.
    [Cvtsi2sd, Vcvtsi2sd], exact (m, i) { single_from_int(m, i, F64) }
    "cvtsi2sd xmm1,eax" = "f20f2ac8", "cvtsi2sd xmm1,rax" = "f2480f2ac8", "cvtsi2sd xmm1,qword ptr [rdi]" = "f2480f2a0f",
    "vcvtsi2sd xmm1,xmm2,eax" = "c5eb2ac8",
    "vcvtsi2sd xmm21,xmm22,eax" = "62e14f002ae8";
    /// Lowest single to integer.
    [Cvtss2si, Vcvtss2si], exact (m, i) { single_to_int(m, i, F32, Current) }
    "cvtss2si eax,xmm2" = "f30f2dc2", "cvtss2si rax,xmm2" = "f3480f2dc2", "cvtss2si rax,[rdi]" = "f3480f2d07",
    "vcvtss2si eax,xmm2" = "c5fa2dc2",
    "vcvtss2si eax,xmm22" = "62b17e082dc6",
    "vcvtss2si rax{ru-sae},xmm2" = "62f1fe582dc2";
    /// Lowest double to integer.
    [Cvtsd2si, Vcvtsd2si], exact (m, i) { single_to_int(m, i, F64, Current) }
    "cvtsd2si eax,xmm2" = "f20f2dc2", "cvtsd2si rax,xmm2" = "f2480f2dc2", "cvtsd2si eax,[rdi]" = "f20f2d07",
    "vcvtsd2si eax,xmm2" = "c5fb2dc2",
    "vcvtsd2si eax,xmm22" = "62b17f082dc6",
    "vcvtsd2si rax{rd-sae},xmm2" = "62f1ff382dc2";
    /// Lowest single to integer, truncating.
    [Cvttss2si, Vcvttss2si], exact (m, i) { single_to_int(m, i, F32, Zero) }
    "cvttss2si eax,xmm2" = "f30f2cc2", "cvttss2si rax,xmm2" = "f3480f2cc2",
    "vcvttss2si eax,xmm2" = "c5fa2cc2",
    "vcvttss2si eax,xmm22" = "62b17e082cc6",
    "vcvttss2si rax{sae},xmm2" = "62f1fe182cc2";
    /// Lowest double to integer, truncating.
    [Cvttsd2si, Vcvttsd2si], exact (m, i) { single_to_int(m, i, F64, Zero) }
    "cvttsd2si eax,xmm2" = "f20f2cc2", "cvttsd2si rax,xmm2" = "f2480f2cc2",
    "vcvttsd2si eax,xmm2" = "c5fb2cc2",
    "vcvttsd2si eax,xmm22" = "62b17f082cc6",
    "vcvttsd2si eax{sae},xmm2" = "62f17f182cc2";

    /// MMX double words to low singles.
    [Cvtpi2ps], exact (m, i) {
        let a = mmx_source(m, i);
        let converted = m.int_to_float_lanes(a, W32, F32);
        set_low(m, i, converted);
    }
    "cvtpi2ps xmm1,mm2" = "0f2aca", "cvtpi2ps xmm1,[rdi]" = "0f2a0f";
    /// MMX double words to doubles.
    [Cvtpi2pd], exact (m, i) {
        let a = mmx_source(m, i);
        let result = m.int_to_float_lanes(a, W32, F64);
        set(m, i, result);
    }
    "cvtpi2pd xmm1,mm2" = "660f2aca", "cvtpi2pd xmm1,[rdi]" = "660f2a0f";
    /// Low singles to MMX double words.
    [Cvtps2pi], exact (m, i) { low_to_mmx(m, i, Current) }
    "cvtps2pi mm1,xmm2" = "0f2dca", "cvtps2pi mm1,[rdi]" = "0f2d0f";
    /// Low singles to MMX double words, truncating.
    [Cvttps2pi], exact (m, i) { low_to_mmx(m, i, Zero) }
    "cvttps2pi mm1,xmm2" = "0f2cca";
    /// Doubles to MMX double words.
    [Cvtpd2pi], exact (m, i) { packed_to_mmx(m, i, Current) }
    "cvtpd2pi mm1,xmm2" = "660f2dca", "cvtpd2pi mm1,[rdi]" = "660f2d0f";
    /// Doubles to MMX double words, truncating.
    [Cvttpd2pi], exact (m, i) { packed_to_mmx(m, i, Zero) }
    "cvttpd2pi mm1,xmm2" = "660f2cca";
}

/// The integer indefinite of a width.
const fn indefinite(width: Width) -> u64 {
    1 << (width.bits() - 1)
}

fn packed_to_int<M: X86>(m: &mut M, i: &Insn, format: FloatFormat, rounding: Rounding) {
    let a = numbers(m, i, 1, format);
    let result = m.float_to_int_lanes(format, rounding, a, W32, indefinite(W32));
    set_few(m, i, W32, m.vec_bits(a) / format.width().bits(), result);
}

fn packed_convert<M: X86>(m: &mut M, i: &Insn, from: FloatFormat, to: FloatFormat) {
    let a = numbers(m, i, 1, from);
    let result = m.float_convert_lanes(from, to, NAN, a);
    set_few(m, i, to.width(), m.vec_bits(a) / 64, result);
}

/// Double words to floats; zeros, which raise nothing, where the mask leaves them out.
fn packed_from_int<M: X86>(m: &mut M, i: &Insn, format: FloatFormat) {
    let a = lanes_at(m, i, 1);
    let a = match chosen(m, i, W32, m.vec_bits(a)) {
        None => a,
        Some(mask) => bitwise(m, BinOp::And, mask, a),
    };
    let result = m.int_to_float_lanes(a, W32, format);
    set_lanes(m, i, format.width(), result);
}

fn single_convert<M: X86>(m: &mut M, i: &Insn, from: FloatFormat, to: FloatFormat) {
    let a = scalar_number(m, i, last(i), from);
    let result = m.float_convert(from, to, NAN, a);
    set_scalar(m, i, result);
}

fn single_from_int<M: X86>(m: &mut M, i: &Insn, format: FloatFormat) {
    let a = read(m, i, last(i));
    let result = m.int_to_float(a, format);
    set_scalar(m, i, result);
}

fn single_to_int<M: X86>(m: &mut M, i: &Insn, format: FloatFormat, rounding: Rounding) {
    let width = if i.op0_register().is_gpr64() { W64 } else { W32 };
    let a = scalar(m, i, last(i), format.width());
    let result = m.float_to_int(format, rounding, a, width, indefinite(width));
    write(m, i, 0, result);
}

/// Operand 1, which puts the x87 unit into MMX state if it is a register.
fn mmx_source<M: X86>(m: &mut M, i: &Insn) -> M::Vec {
    let value = right(m, i);
    if i.op1_register().is_mm() {
        mmx::enter(m);
    }
    value
}

/// Doubles to an MMX register. The x87 unit is in MMX state before an exception is raised.
fn packed_to_mmx<M: X86>(m: &mut M, i: &Insn, rounding: Rounding) {
    let a = right(m, i);
    mmx::enter(m);
    let result = m.float_to_int_lanes(F64, rounding, a, W32, indefinite(W32));
    set(m, i, result);
}

/// The low two singles of operand 1 to an MMX register; the upper two must not raise anything.
fn low_to_mmx<M: X86>(m: &mut M, i: &Insn, rounding: Rounding) {
    let low = scalar(m, i, last(i), W64);
    mmx::enter(m);
    let low = from_low(m, low);
    let result = m.float_to_int_lanes(F32, rounding, low, W32, indefinite(W32));
    set(m, i, result);
}

/// Replace the low half of operand 0.
fn set_low<M: X86>(m: &mut M, i: &Insn, value: M::Vec) {
    let low = m.lane(value, W64, 0);
    set_lane(m, i, 0, low);
}
