//! Floating-point arithmetic and comparison of SSE to SSE4.1 and AVX. SDM vol. 2.

use crate::machine::{BinOp, CmpOp, FloatCmp, FloatFormat, FloatOp, LaneOp, NanRule, Rounding, Width};
use crate::x86_64::operand::X86;
use crate::x86_64::vector::{
    bitwise, complement, constant, is_evex, is_legacy, last, numbers, pair, scalar_number, scalars, set_mask, set, set_scalar, shuffle, splat, zero,
};
use crate::x86_64::{Flag, Insn, Reg};
use FloatFormat::{F32, F64};

/// SSE's choice between NaNs.
pub(super) const NAN: NanRule = NanRule::X86;

extension! { "sse_float";
    /// Sum of singles.
    [Addps, Vaddps], exact (m, i) { packed(m, i, FloatOp::Add, F32) }
    "addps xmm1,xmm2" = "0f58ca", "addps xmm1,[rdi]" = "0f580f",
    "vaddps ymm1,ymm2,ymm3" = "c5ec58cb",
    "vaddps zmm1{k1},zmm2,zmm3" = "62f16c4958cb", "vaddps zmm1{k1}{rz-sae},zmm2,zmm3" = "62f16c7958cb";
    /// Sum of doubles.
    [Addpd, Vaddpd], exact (m, i) { packed(m, i, FloatOp::Add, F64) }
    "addpd xmm1,xmm2" = "660f58ca", "addpd xmm1,[rdi]" = "660f580f",
    "vaddpd ymm1,ymm2,ymm3" = "c5ed58cb",
    "vaddpd zmm1{k1},zmm2,zmm3" = "62f1ed4958cb";
    /// Sum of the lowest singles.
    [Addss, Vaddss], exact (m, i) { single(m, i, FloatOp::Add, F32) }
    "addss xmm1,xmm2" = "f30f58ca", "addss xmm1,[rdi]" = "f30f580f",
    "vaddss xmm1,xmm2,xmm3" = "c5ea58cb",
    "vaddss xmm21,xmm22,xmm23" = "62a14e0058ef";
    /// Sum of the lowest doubles.
    [Addsd, Vaddsd], exact (m, i) { single(m, i, FloatOp::Add, F64) }
    "addsd xmm1,xmm2" = "f20f58ca", "addsd xmm1,[rdi]" = "f20f580f",
    "vaddsd xmm1,xmm2,xmm3" = "c5eb58cb",
    "vaddsd xmm21,xmm22,xmm23" = "62a1cf0058ef", "vaddsd xmm1{k1}{z}{ru-sae},xmm2,xmm3" = "62f1efd958cb";

    /// Difference of singles.
    [Subps, Vsubps], exact (m, i) { packed(m, i, FloatOp::Sub, F32) }
    "subps xmm1,xmm2" = "0f5cca",
    "vsubps ymm1,ymm2,ymm3" = "c5ec5ccb",
    "vsubps zmm1{k1},zmm2,zmm3" = "62f16c495ccb";
    /// Difference of doubles.
    [Subpd, Vsubpd], exact (m, i) { packed(m, i, FloatOp::Sub, F64) }
    "subpd xmm1,xmm2" = "660f5cca",
    "vsubpd ymm1,ymm2,ymm3" = "c5ed5ccb",
    "vsubpd zmm1{k1},zmm2,zmm3" = "62f1ed495ccb";
    /// Difference of the lowest singles.
    [Subss, Vsubss], exact (m, i) { single(m, i, FloatOp::Sub, F32) }
    "subss xmm1,xmm2" = "f30f5cca",
    "vsubss xmm1,xmm2,xmm3" = "c5ea5ccb",
    "vsubss xmm21,xmm22,xmm23" = "62a14e005cef";
    /// Difference of the lowest doubles.
    [Subsd, Vsubsd], exact (m, i) { single(m, i, FloatOp::Sub, F64) }
    "subsd xmm1,xmm2" = "f20f5cca", "subsd xmm1,[rdi]" = "f20f5c0f",
    "vsubsd xmm1,xmm2,xmm3" = "c5eb5ccb",
    "vsubsd xmm21,xmm22,xmm23" = "62a1cf005cef";

    /// Product of singles.
    [Mulps, Vmulps], exact (m, i) { packed(m, i, FloatOp::Mul, F32) }
    "mulps xmm1,xmm2" = "0f59ca",
    "vmulps ymm1,ymm2,ymm3" = "c5ec59cb",
    "vmulps zmm1{k1},zmm2,zmm3" = "62f16c4959cb";
    /// Product of doubles.
    [Mulpd, Vmulpd], exact (m, i) { packed(m, i, FloatOp::Mul, F64) }
    "mulpd xmm1,xmm2" = "660f59ca",
    "vmulpd ymm1,ymm2,ymm3" = "c5ed59cb",
    "vmulpd zmm1{k1},zmm2,zmm3" = "62f1ed4959cb", "vmulpd zmm1{rne-sae},zmm2,zmm3" = "62f1ed1859cb";
    /// Product of the lowest singles.
    [Mulss, Vmulss], exact (m, i) { single(m, i, FloatOp::Mul, F32) }
    "mulss xmm1,xmm2" = "f30f59ca",
    "vmulss xmm1,xmm2,xmm3" = "c5ea59cb",
    "vmulss xmm21,xmm22,xmm23" = "62a14e0059ef";
    /// Product of the lowest doubles.
    [Mulsd, Vmulsd], exact (m, i) { single(m, i, FloatOp::Mul, F64) }
    "mulsd xmm1,xmm2" = "f20f59ca",
    "vmulsd xmm1,xmm2,xmm3" = "c5eb59cb",
    "vmulsd xmm21,xmm22,xmm23" = "62a1cf0059ef";

    /// Quotient of singles.
    [Divps, Vdivps], exact (m, i) { packed(m, i, FloatOp::Div, F32) }
    "divps xmm1,xmm2" = "0f5eca",
    "vdivps ymm1,ymm2,ymm3" = "c5ec5ecb",
    "vdivps zmm1{k1},zmm2,zmm3" = "62f16c495ecb", "vdivps zmm1{rd-sae},zmm2,zmm3" = "62f16c385ecb";
    /// Quotient of doubles.
    [Divpd, Vdivpd], exact (m, i) { packed(m, i, FloatOp::Div, F64) }
    "divpd xmm1,xmm2" = "660f5eca",
    "vdivpd ymm1,ymm2,ymm3" = "c5ed5ecb",
    "vdivpd zmm1{k1},zmm2,zmm3" = "62f1ed495ecb";
    /// Quotient of the lowest singles.
    [Divss, Vdivss], exact (m, i) { single(m, i, FloatOp::Div, F32) }
    "divss xmm1,xmm2" = "f30f5eca",
    "vdivss xmm1,xmm2,xmm3" = "c5ea5ecb",
    "vdivss xmm21,xmm22,xmm23" = "62a14e005eef";
    /// Quotient of the lowest doubles.
    [Divsd, Vdivsd], exact (m, i) { single(m, i, FloatOp::Div, F64) }
    "divsd xmm1,xmm2" = "f20f5eca",
    "vdivsd xmm1,xmm2,xmm3" = "c5eb5ecb",
    "vdivsd xmm21,xmm22,xmm23" = "62a1cf005eef";

    /// Minimum of singles.
    [Minps, Vminps], exact (m, i) { packed(m, i, FloatOp::MinX86, F32) }
    "minps xmm1,xmm2" = "0f5dca",
    "vminps ymm1,ymm2,ymm3" = "c5ec5dcb",
    "vminps zmm1{k1},zmm2,zmm3" = "62f16c495dcb",
    "vminps zmm1{k1}{sae},zmm2,zmm3" = "62f16c195dcb";
    /// Minimum of doubles.
    [Minpd, Vminpd], exact (m, i) { packed(m, i, FloatOp::MinX86, F64) }
    "minpd xmm1,xmm2" = "660f5dca",
    "vminpd ymm1,ymm2,ymm3" = "c5ed5dcb",
    "vminpd zmm1{k1},zmm2,zmm3" = "62f1ed495dcb",
    "vminpd zmm1{k1}{sae},zmm2,zmm3" = "62f1ed195dcb";
    /// Minimum of the lowest singles.
    [Minss, Vminss], exact (m, i) { single(m, i, FloatOp::MinX86, F32) }
    "minss xmm1,xmm2" = "f30f5dca",
    "vminss xmm1,xmm2,xmm3" = "c5ea5dcb",
    "vminss xmm21,xmm22,xmm23" = "62a14e005def",
    "vminss xmm1{k1}{sae},xmm2,xmm3" = "62f16e195dcb";
    /// Minimum of the lowest doubles.
    [Minsd, Vminsd], exact (m, i) { single(m, i, FloatOp::MinX86, F64) }
    "minsd xmm1,xmm2" = "f20f5dca",
    "vminsd xmm1,xmm2,xmm3" = "c5eb5dcb",
    "vminsd xmm21,xmm22,xmm23" = "62a1cf005def",
    "vminsd xmm1{k1}{sae},xmm2,xmm3" = "62f1ef195dcb";

    /// Maximum of singles.
    [Maxps, Vmaxps], exact (m, i) { packed(m, i, FloatOp::MaxX86, F32) }
    "maxps xmm1,xmm2" = "0f5fca",
    "vmaxps ymm1,ymm2,ymm3" = "c5ec5fcb",
    "vmaxps zmm1{k1},zmm2,zmm3" = "62f16c495fcb",
    "vmaxps zmm1{k1}{sae},zmm2,zmm3" = "62f16c195fcb";
    /// Maximum of doubles.
    [Maxpd, Vmaxpd], exact (m, i) { packed(m, i, FloatOp::MaxX86, F64) }
    "maxpd xmm1,xmm2" = "660f5fca",
    "vmaxpd ymm1,ymm2,ymm3" = "c5ed5fcb",
    "vmaxpd zmm1{k1},zmm2,zmm3" = "62f1ed495fcb",
    "vmaxpd zmm1{k1}{sae},zmm2,zmm3" = "62f1ed195fcb";
    /// Maximum of the lowest singles.
    [Maxss, Vmaxss], exact (m, i) { single(m, i, FloatOp::MaxX86, F32) }
    "maxss xmm1,xmm2" = "f30f5fca",
    "vmaxss xmm1,xmm2,xmm3" = "c5ea5fcb",
    "vmaxss xmm21,xmm22,xmm23" = "62a14e005fef",
    "vmaxss xmm1{k1}{sae},xmm2,xmm3" = "62f16e195fcb";
    /// Maximum of the lowest doubles.
    [Maxsd, Vmaxsd], exact (m, i) { single(m, i, FloatOp::MaxX86, F64) }
    "maxsd xmm1,xmm2" = "f20f5fca",
    "vmaxsd xmm1,xmm2,xmm3" = "c5eb5fcb",
    "vmaxsd xmm21,xmm22,xmm23" = "62a1cf005fef",
    "vmaxsd xmm1{k1}{sae},xmm2,xmm3" = "62f1ef195fcb";

    /// Square roots of singles.
    [Sqrtps, Vsqrtps], exact (m, i) { packed_sqrt(m, i, F32) }
    "sqrtps xmm1,xmm2" = "0f51ca", "sqrtps xmm1,[rdi]" = "0f510f",
    "vsqrtps ymm1,ymm2" = "c5fc51ca",
    "vsqrtps zmm1{k1},zmm2" = "62f17c4951ca";
    /// Square roots of doubles.
    [Sqrtpd, Vsqrtpd], exact (m, i) { packed_sqrt(m, i, F64) }
    "sqrtpd xmm1,xmm2" = "660f51ca",
    "vsqrtpd ymm1,ymm2" = "c5fd51ca",
    "vsqrtpd zmm1{k1},zmm2" = "62f1fd4951ca", "vsqrtpd zmm1{k1}{ru-sae},zmm2" = "62f1fd5951ca";
    /// Square root of the lowest single.
    [Sqrtss, Vsqrtss], exact (m, i) { single_sqrt(m, i, F32) }
    "sqrtss xmm1,xmm2" = "f30f51ca",
    "vsqrtss xmm1,xmm2,xmm3" = "c5ea51cb",
    "vsqrtss xmm21,xmm22,xmm23" = "62a14e0051ef";
    /// Square root of the lowest double.
    [Sqrtsd, Vsqrtsd], exact (m, i) { single_sqrt(m, i, F64) }
    "sqrtsd xmm1,xmm2" = "f20f51ca", "sqrtsd xmm1,[rdi]" = "f20f510f",
    "vsqrtsd xmm1,xmm2,xmm3" = "c5eb51cb",
    "vsqrtsd xmm21,xmm22,xmm23" = "62a1cf0051ef";

    /// Differences of even, sums of odd singles.
    [Addsubps, Vaddsubps], exact (m, i) { sub_and_add(m, i, F32) }
    "addsubps xmm1,xmm2" = "f20fd0ca", "addsubps xmm1,[rdi]" = "f20fd00f",
    "vaddsubps ymm1,ymm2,ymm3" = "c5efd0cb";
    /// Difference of low, sum of high doubles.
    [Addsubpd, Vaddsubpd], exact (m, i) { sub_and_add(m, i, F64) }
    "addsubpd xmm1,xmm2" = "660fd0ca",
    "vaddsubpd ymm1,ymm2,ymm3" = "c5edd0cb";

    /// Sums of neighbouring singles.
    [Haddps, Vhaddps], exact (m, i) { horizontal(m, i, FloatOp::Add, F32) }
    "haddps xmm1,xmm2" = "f20f7cca", "haddps xmm1,[rdi]" = "f20f7c0f",
    "vhaddps ymm1,ymm2,ymm3" = "c5ef7ccb";
    /// Sums of neighbouring doubles.
    [Haddpd, Vhaddpd], exact (m, i) { horizontal(m, i, FloatOp::Add, F64) }
    "haddpd xmm1,xmm2" = "660f7cca",
    "vhaddpd ymm1,ymm2,ymm3" = "c5ed7ccb";
    /// Differences of neighbouring singles.
    [Hsubps, Vhsubps], exact (m, i) { horizontal(m, i, FloatOp::Sub, F32) }
    "hsubps xmm1,xmm2" = "f20f7dca",
    "vhsubps ymm1,ymm2,ymm3" = "c5ef7dcb";
    /// Differences of neighbouring doubles.
    [Hsubpd, Vhsubpd], exact (m, i) { horizontal(m, i, FloatOp::Sub, F64) }
    "hsubpd xmm1,xmm2" = "660f7dca",
    "vhsubpd ymm1,ymm2,ymm3" = "c5ed7dcb";

    /// Masks of a comparison of singles.
    [Cmpps, Vcmpps], exact (m, i) { packed_compare(m, i, F32) }
    "cmpeqps xmm1,xmm2" = "0fc2ca00", "cmpltps xmm1,xmm2" = "0fc2ca01", "cmpleps xmm1,xmm2" = "0fc2ca02", "cmpunordps xmm1,[rdi]" = "0fc20f03",
    "cmpneqps xmm1,xmm2" = "0fc2ca04", "cmpnltps xmm1,xmm2" = "0fc2ca05", "cmpnleps xmm1,xmm2" = "0fc2ca06", "cmpordps xmm1,xmm2" = "0fc2ca07",
    "vcmpeqps ymm1,ymm2,ymm3" = "c5ecc2cb00";
    /// Masks of a comparison of doubles.
    [Cmppd, Vcmppd], exact (m, i) { packed_compare(m, i, F64) }
    "cmpeqpd xmm1,xmm2" = "660fc2ca00", "cmpltpd xmm1,xmm2" = "660fc2ca01", "cmplepd xmm1,xmm2" = "660fc2ca02", "cmpunordpd xmm1,[rdi]" = "660fc20f03",
    "cmpneqpd xmm1,xmm2" = "660fc2ca04", "cmpnltpd xmm1,xmm2" = "660fc2ca05", "cmpnlepd xmm1,xmm2" = "660fc2ca06", "cmpordpd xmm1,xmm2" = "660fc2ca07",
    "vcmpeqpd ymm1,ymm2,ymm3" = "c5edc2cb00";
    /// Mask of a comparison of the lowest singles.
    [Cmpss, Vcmpss], exact (m, i) { single_compare(m, i, F32) }
    "cmpeqss xmm1,xmm2" = "f30fc2ca00", "cmpltss xmm1,xmm2" = "f30fc2ca01", "cmpnltss xmm1,[rdi]" = "f30fc20f05", "cmpordss xmm1,xmm2" = "f30fc2ca07",
    "vcmpeqss xmm1,xmm2,xmm3" = "c5eac2cb00", "vcmpltss k2{k1},xmm2,xmm3" = "62f16e09c2d301";
    /// Mask of a comparison of the lowest doubles.
    [Cmpsd, Vcmpsd] if !i.is_string_instruction(), exact (m, i) { single_compare(m, i, F64) }
    "cmplesd xmm1,xmm2" = "f20fc2ca02", "cmpunordsd xmm1,xmm2" = "f20fc2ca03", "cmpneqsd xmm1,xmm2" = "f20fc2ca04", "cmpnlesd xmm1,xmm2" = "f20fc2ca06",
    "vcmplesd xmm1,xmm2,xmm3" = "c5ebc2cb02", "vcmpnltsd k2{k1},xmm2,xmm3" = "62f1ef09c2d305";

    /// Compare the lowest singles into flags; quiet NaNs are invalid.
    [Comiss, Vcomiss], exact (m, i) { compare_flags(m, i, F32, true) }
    "comiss xmm1,xmm2" = "0f2fca", "comiss xmm1,[rdi]" = "0f2f0f",
    "vcomiss xmm1,xmm2" = "c5f82fca",
    "vcomiss xmm21,xmm22" = "62a17c082fee";
    /// Compare the lowest doubles into flags; quiet NaNs are invalid.
    [Comisd, Vcomisd], exact (m, i) { compare_flags(m, i, F64, true) }
    "comisd xmm1,xmm2" = "660f2fca", "comisd xmm1,[rdi]" = "660f2f0f",
    "vcomisd xmm1,xmm2" = "c5f92fca",
    "vcomisd xmm21,xmm22" = "62a1fd082fee";
    /// Compare the lowest singles into flags.
    [Ucomiss, Vucomiss], exact (m, i) { compare_flags(m, i, F32, false) }
    "ucomiss xmm1,xmm2" = "0f2eca",
    "vucomiss xmm1,xmm2" = "c5f82eca",
    "vucomiss xmm21,xmm22" = "62a17c082eee";
    /// Compare the lowest doubles into flags.
    [Ucomisd, Vucomisd], exact (m, i) { compare_flags(m, i, F64, false) }
    "ucomisd xmm1,xmm2" = "660f2eca",
    "vucomisd xmm1,xmm2" = "c5f92eca",
    "vucomisd xmm21,xmm22" = "62a1fd082eee";

    /// Round singles to integral values.
    [Roundps, Vroundps, Vrndscaleps] if !scales(i), exact (m, i) { packed_round(m, i, F32) }
    "roundps xmm1,xmm2,0" = "660f3a08ca00", "roundps xmm1,xmm2,4" = "660f3a08ca04", "roundps xmm1,[rdi],9" = "660f3a080f09", "roundps xmm1,xmm2,0xb" = "660f3a08ca0b",
    "vroundps ymm1,ymm2,0" = "c4e37d08ca00", "vrndscaleps xmm1,xmm2,4" = "62f37d0808ca04",
    "vrndscaleps zmm1{sae},zmm2,4" = "62f37d1808ca04";
    /// Round doubles to integral values.
    [Roundpd, Vroundpd, Vrndscalepd] if !scales(i), exact (m, i) { packed_round(m, i, F64) }
    "roundpd xmm1,xmm2,1" = "660f3a09ca01", "roundpd xmm1,xmm2,0xc" = "660f3a09ca0c",
    "vroundpd ymm1,ymm2,1" = "c4e37d09ca01", "vrndscalepd zmm1{k1},zmm2,1" = "62f3fd4909ca01",
    "vrndscalepd zmm1{sae},zmm2,4" = "62f3fd1809ca04";
    /// Round the lowest single to an integral value.
    [Roundss, Vroundss, Vrndscaless] if !scales(i), exact (m, i) { single_round(m, i, F32) }
    "roundss xmm1,xmm2,2" = "660f3a0aca02", "roundss xmm1,[rdi],4" = "660f3a0a0f04",
    "vroundss xmm1,xmm2,xmm3,2" = "c4e3690acb02", "vrndscaless xmm1{k1},xmm2,xmm3,2" = "62f36d090acb02",
    "vrndscaless xmm1{k1}{sae},xmm2,xmm3,4" = "62f36d190acb04";
    /// Round the lowest double to an integral value.
    [Roundsd, Vroundsd, Vrndscalesd] if !scales(i), exact (m, i) { single_round(m, i, F64) }
    "roundsd xmm1,xmm2,3" = "660f3a0bca03", "roundsd xmm1,xmm2,0xa" = "660f3a0bca0a",
    "vroundsd xmm1,xmm2,xmm3,3" = "c4e3690bcb03", "vrndscalesd xmm1{k1},xmm2,xmm3,8" = "62f3ed090bcb08",
    "vrndscalesd xmm1{k1}{sae},xmm2,xmm3,4" = "62f3ed190bcb04";

    /// Dot product of chosen singles, to chosen lanes.
    [Dpps, Vdpps], exact (m, i) { dot_product(m, i, F32) }
    "dpps xmm1,xmm2,-1" = "660f3a40caff", "dpps xmm1,xmm2,0x71" = "660f3a40ca71", "dpps xmm1,[rdi],-0x46" = "660f3a400fba",
    "vdpps ymm1,ymm2,ymm3,-1" = "c4e36d40cbff";
    /// Dot product of chosen doubles, to chosen lanes.
    [Dppd, Vdppd], exact (m, i) { dot_product(m, i, F64) }
    "dppd xmm1,xmm2,0x31" = "660f3a41ca31", "dppd xmm1,xmm2,0x23" = "660f3a41ca23",
    "vdppd xmm1,xmm2,xmm3,0x31" = "c4e36941cb31";
}

fn packed<M: X86>(m: &mut M, i: &Insn, op: FloatOp, format: FloatFormat) {
    let (b, a) = (numbers(m, i, last(i), format), numbers(m, i, last(i) - 1, format));
    let result = m.float_lanes(op, format, NAN, a, b);
    set(m, i, result);
}

fn single<M: X86>(m: &mut M, i: &Insn, op: FloatOp, format: FloatFormat) {
    let (a, b) = scalars(m, i, format);
    let result = m.float(op, format, NAN, a, b);
    set_scalar(m, i, result);
}

fn packed_sqrt<M: X86>(m: &mut M, i: &Insn, format: FloatFormat) {
    let a = numbers(m, i, last(i), format);
    let root = m.float_sqrt_lanes(format, NAN, a);
    set(m, i, root);
}

fn single_sqrt<M: X86>(m: &mut M, i: &Insn, format: FloatFormat) {
    let a = scalar_number(m, i, last(i), format);
    let root = m.float_sqrt(format, NAN, a);
    set_scalar(m, i, root);
}

/// Lanes by number, from the concatenation of two vectors of `format`.
fn pick<M: X86>(m: &mut M, format: FloatFormat, a: M::Vec, b: M::Vec, singles: &[u8; 4], doubles: &[u8; 2]) -> M::Vec {
    match format {
        F32 => shuffle(m, Width::W32, a, b, singles),
        F64 => shuffle(m, Width::W64, a, b, doubles),
    }
}

/// ADDSUB: one addition, with the sign of what is to be subtracted inverted.
fn sub_and_add<M: X86>(m: &mut M, i: &Insn, format: FloatFormat) {
    let (a, b) = pair(m, i);
    let b = invert_signs(m, format, b, false);
    let result = m.float_lanes(FloatOp::Add, format, NAN, a, b);
    set(m, i, result);
}

/// The signs of even, or odd, lanes inverted, those of NaNs aside.
pub(super) fn invert_signs<M: X86>(m: &mut M, format: FloatFormat, a: M::Vec, odd: bool) -> M::Vec {
    let lane = format.width();
    let (infinity, even_signs) = match format {
        F32 => (0x7f80_0000, 1 << 95 | 1 << 31),
        F64 => (0x7ff0 << 48, 1 << 63),
    };
    let magnitude = splat(m, a, lane, lane.mask() as u64 >> 1);
    let magnitude = bitwise(m, BinOp::And, a, magnitude);
    let infinity = splat(m, a, lane, infinity);
    let number = m.lanes(LaneOp::Cmp(CmpOp::Sle), lane, magnitude, infinity);
    let signs = constant(m, a, if odd { even_signs << lane.bits() } else { even_signs });
    let inverted = bitwise(m, BinOp::And, signs, number);
    bitwise(m, BinOp::Xor, a, inverted)
}

/// HADD, HSUB.
fn horizontal<M: X86>(m: &mut M, i: &Insn, op: FloatOp, format: FloatFormat) {
    let (a, b) = pair(m, i);
    let even = pick(m, format, a, b, &[0, 2, 4, 6], &[0, 2]);
    let odd = pick(m, format, a, b, &[1, 3, 5, 7], &[1, 3]);
    let result = m.float_lanes(op, format, NAN, even, odd);
    set(m, i, result);
}

/// A comparison predicate. SDM vol. 2A, CMPPD, table 3-1; legacy encodings have the first eight.
struct Predicate {
    op: FloatCmp,
    /// Of the second operand with the first.
    swapped: bool,
    signalling: bool,
    /// True for NaNs too.
    or_unordered: bool,
    /// Never true.
    never: bool,
    /// What all this does not say.
    inverted: bool,
}

impl Predicate {
    fn new(i: &Insn) -> Predicate {
        let code = i.immediate8() & if is_legacy(i) { 7 } else { 31 };
        let second_half = code & 8 != 0;
        let (op, signalling) = match code & 3 {
            0 => (FloatCmp::Eq, false),
            1 if second_half => (FloatCmp::Le, true),
            1 => (FloatCmp::Lt, true),
            2 if second_half => (FloatCmp::Lt, true),
            2 => (FloatCmp::Le, true),
            _ => (FloatCmp::Unordered, false),
        };
        let ordering = matches!(op, FloatCmp::Lt | FloatCmp::Le);
        Predicate {
            op,
            swapped: second_half && ordering,
            signalling: signalling != (code & 16 != 0),
            or_unordered: second_half && op == FloatCmp::Eq,
            never: second_half && op == FloatCmp::Unordered,
            inverted: (code & 4 != 0) != (second_half && ordering),
        }
    }
}

fn packed_compare<M: X86>(m: &mut M, i: &Insn, format: FloatFormat) {
    let (mut a, mut b) = (numbers(m, i, last(i) - 1, format), numbers(m, i, last(i), format));
    let predicate = Predicate::new(i);
    if predicate.swapped {
        (a, b) = (b, a);
    }
    let mut mask = m.float_cmp_lanes(predicate.op, format, predicate.signalling, a, b);
    if predicate.or_unordered {
        let unordered = m.float_cmp_lanes(FloatCmp::Unordered, format, predicate.signalling, a, b);
        mask = bitwise(m, BinOp::Or, mask, unordered);
    }
    if predicate.never {
        mask = zero(m, mask);
    }
    if predicate.inverted {
        mask = complement(m, mask);
    }
    set(m, i, mask);
}

fn single_compare<M: X86>(m: &mut M, i: &Insn, format: FloatFormat) {
    let (mut a, mut b) = scalars(m, i, format);
    let predicate = Predicate::new(i);
    if predicate.swapped {
        (a, b) = (b, a);
    }
    let mut holds = m.float_cmp(predicate.op, format, predicate.signalling, a, b);
    if predicate.or_unordered {
        let unordered = m.float_cmp(FloatCmp::Unordered, format, predicate.signalling, a, b);
        holds = m.or(holds, unordered);
    }
    if predicate.never {
        holds = m.bool(false);
    }
    if predicate.inverted {
        holds = m.not(holds);
    }
    if i.op0_register().is_k() {
        let holds = m.bool_to_int(holds, Width::W64);
        return set_mask(m, i, holds);
    }
    let (ones, zero) = (m.int(format.width(), u64::MAX), m.int(format.width(), 0));
    let mask = m.select(holds, ones, zero);
    set_scalar(m, i, mask);
}

/// COMIS, UCOMIS: ZF, PF, CF as x87's FCOMI has them; OF, SF, AF cleared.
fn compare_flags<M: X86>(m: &mut M, i: &Insn, format: FloatFormat, signalling: bool) {
    let (a, b) = scalars(m, i, format);
    let unordered = m.float_cmp(FloatCmp::Unordered, format, signalling, a, b);
    let equal = m.float_cmp(FloatCmp::Eq, format, signalling, a, b);
    let less = m.float_cmp(FloatCmp::Lt, format, signalling, a, b);
    let zf = m.or(equal, unordered);
    let cf = m.or(less, unordered);
    let clear = m.bool(false);
    let flags = [(Flag::Zf, zf), (Flag::Pf, unordered), (Flag::Cf, cf)];
    for (flag, value) in flags.into_iter().chain([Flag::Of, Flag::Sf, Flag::Af].map(|f| (f, clear))) {
        m.set_flag(Reg::Flag(flag), value);
    }
}

/// Whether it is VRNDSCALE to something else than integers.
pub(super) fn scales(i: &Insn) -> bool {
    is_evex(i) && i.immediate8() >> 4 != 0
}

/// ROUND's immediate: the mode, and whether a change raises inexact.
fn rounding(immediate: u8) -> (Rounding, bool) {
    let mode = match immediate & 7 {
        0 => Rounding::NearestEven,
        1 => Rounding::Down,
        2 => Rounding::Up,
        3 => Rounding::Zero,
        _ => Rounding::Current,
    };
    (mode, immediate & 8 == 0)
}

fn packed_round<M: X86>(m: &mut M, i: &Insn, format: FloatFormat) {
    let a = numbers(m, i, last(i), format);
    let (mode, inexact) = rounding(i.immediate8());
    let result = m.float_round_lanes(format, mode, NAN, inexact, a);
    set(m, i, result);
}

fn single_round<M: X86>(m: &mut M, i: &Insn, format: FloatFormat) {
    let a = scalar_number(m, i, last(i), format);
    let (mode, inexact) = rounding(i.immediate8());
    let result = m.float_round(format, mode, NAN, inexact, a);
    set_scalar(m, i, result);
}

/// DPPS, DPPD. Lanes that are not chosen multiply as zeros, which raises nothing.
fn dot_product<M: X86>(m: &mut M, i: &Insn, format: FloatFormat) {
    let (a, b) = pair(m, i);
    let factors = lane_mask(format, i.immediate8() >> 4);
    let factors = constant(m, a, factors);
    let (a, b) = (bitwise(m, BinOp::And, a, factors), bitwise(m, BinOp::And, b, factors));
    let mut sum = m.float_lanes(FloatOp::Mul, format, NAN, a, b);
    let mut add = |singles: &[u8; 4], doubles: &[u8; 2]| {
        let other = pick(m, format, sum, sum, singles, doubles);
        sum = m.float_lanes(FloatOp::Add, format, NAN, sum, other);
    };
    add(&[1, 0, 3, 2], &[1, 0]);
    if format == F32 {
        add(&[2, 3, 0, 1], &[1, 0]);
    }
    let sum = pick(m, format, sum, sum, &[0, 0, 0, 0], &[0, 0]);
    let results = lane_mask(format, i.immediate8());
    let results = constant(m, a, results);
    let result = bitwise(m, BinOp::And, sum, results);
    set(m, i, result);
}

/// All ones in the lanes of `format` whose bit in `chosen` is set.
fn lane_mask(format: FloatFormat, chosen: u8) -> u128 {
    let bits = format.width().bits();
    (0..128 / bits)
        .filter(|n| chosen >> n & 1 != 0)
        .fold(0, |mask, n| mask | format.width().mask() << (n * bits))
}
