//! Floating-point arithmetic and comparison of SSE, SSE2, SSE3 and SSE4.1. SDM vol. 2.

use crate::machine::{BinOp, CmpOp, FloatCmp, FloatFormat, FloatOp, LaneOp, NanRule, Rounding, Width};
use crate::x86_64::operand::X86;
use crate::x86_64::vector::{bitwise, complement, constant, scalar, set, set_scalar, source, splat};
use crate::x86_64::{Flag, Insn, Reg};
use FloatFormat::{F32, F64};

/// SSE's choice between NaNs.
pub(super) const NAN: NanRule = NanRule::X86;

extension! { "sse_float";
    /// Sum of singles.
    [Addps], exact (m, i) { packed(m, i, FloatOp::Add, F32) }
    "addps xmm1,xmm2" = "0f58ca", "addps xmm1,[rdi]" = "0f580f";
    /// Sum of doubles.
    [Addpd], exact (m, i) { packed(m, i, FloatOp::Add, F64) }
    "addpd xmm1,xmm2" = "660f58ca", "addpd xmm1,[rdi]" = "660f580f";
    /// Sum of the lowest singles.
    [Addss], exact (m, i) { single(m, i, FloatOp::Add, F32) }
    "addss xmm1,xmm2" = "f30f58ca", "addss xmm1,[rdi]" = "f30f580f";
    /// Sum of the lowest doubles.
    [Addsd], exact (m, i) { single(m, i, FloatOp::Add, F64) }
    "addsd xmm1,xmm2" = "f20f58ca", "addsd xmm1,[rdi]" = "f20f580f";

    /// Difference of singles.
    [Subps], exact (m, i) { packed(m, i, FloatOp::Sub, F32) }
    "subps xmm1,xmm2" = "0f5cca";
    /// Difference of doubles.
    [Subpd], exact (m, i) { packed(m, i, FloatOp::Sub, F64) }
    "subpd xmm1,xmm2" = "660f5cca";
    /// Difference of the lowest singles.
    [Subss], exact (m, i) { single(m, i, FloatOp::Sub, F32) }
    "subss xmm1,xmm2" = "f30f5cca";
    /// Difference of the lowest doubles.
    [Subsd], exact (m, i) { single(m, i, FloatOp::Sub, F64) }
    "subsd xmm1,xmm2" = "f20f5cca", "subsd xmm1,[rdi]" = "f20f5c0f";

    /// Product of singles.
    [Mulps], exact (m, i) { packed(m, i, FloatOp::Mul, F32) }
    "mulps xmm1,xmm2" = "0f59ca";
    /// Product of doubles.
    [Mulpd], exact (m, i) { packed(m, i, FloatOp::Mul, F64) }
    "mulpd xmm1,xmm2" = "660f59ca";
    /// Product of the lowest singles.
    [Mulss], exact (m, i) { single(m, i, FloatOp::Mul, F32) }
    "mulss xmm1,xmm2" = "f30f59ca";
    /// Product of the lowest doubles.
    [Mulsd], exact (m, i) { single(m, i, FloatOp::Mul, F64) }
    "mulsd xmm1,xmm2" = "f20f59ca";

    /// Quotient of singles.
    [Divps], exact (m, i) { packed(m, i, FloatOp::Div, F32) }
    "divps xmm1,xmm2" = "0f5eca";
    /// Quotient of doubles.
    [Divpd], exact (m, i) { packed(m, i, FloatOp::Div, F64) }
    "divpd xmm1,xmm2" = "660f5eca";
    /// Quotient of the lowest singles.
    [Divss], exact (m, i) { single(m, i, FloatOp::Div, F32) }
    "divss xmm1,xmm2" = "f30f5eca";
    /// Quotient of the lowest doubles.
    [Divsd], exact (m, i) { single(m, i, FloatOp::Div, F64) }
    "divsd xmm1,xmm2" = "f20f5eca";

    /// Minimum of singles.
    [Minps], exact (m, i) { packed(m, i, FloatOp::MinX86, F32) }
    "minps xmm1,xmm2" = "0f5dca";
    /// Minimum of doubles.
    [Minpd], exact (m, i) { packed(m, i, FloatOp::MinX86, F64) }
    "minpd xmm1,xmm2" = "660f5dca";
    /// Minimum of the lowest singles.
    [Minss], exact (m, i) { single(m, i, FloatOp::MinX86, F32) }
    "minss xmm1,xmm2" = "f30f5dca";
    /// Minimum of the lowest doubles.
    [Minsd], exact (m, i) { single(m, i, FloatOp::MinX86, F64) }
    "minsd xmm1,xmm2" = "f20f5dca";

    /// Maximum of singles.
    [Maxps], exact (m, i) { packed(m, i, FloatOp::MaxX86, F32) }
    "maxps xmm1,xmm2" = "0f5fca";
    /// Maximum of doubles.
    [Maxpd], exact (m, i) { packed(m, i, FloatOp::MaxX86, F64) }
    "maxpd xmm1,xmm2" = "660f5fca";
    /// Maximum of the lowest singles.
    [Maxss], exact (m, i) { single(m, i, FloatOp::MaxX86, F32) }
    "maxss xmm1,xmm2" = "f30f5fca";
    /// Maximum of the lowest doubles.
    [Maxsd], exact (m, i) { single(m, i, FloatOp::MaxX86, F64) }
    "maxsd xmm1,xmm2" = "f20f5fca";

    /// Square roots of singles.
    [Sqrtps], exact (m, i) { packed_sqrt(m, i, F32) }
    "sqrtps xmm1,xmm2" = "0f51ca", "sqrtps xmm1,[rdi]" = "0f510f";
    /// Square roots of doubles.
    [Sqrtpd], exact (m, i) { packed_sqrt(m, i, F64) }
    "sqrtpd xmm1,xmm2" = "660f51ca";
    /// Square root of the lowest single.
    [Sqrtss], exact (m, i) { single_sqrt(m, i, F32) }
    "sqrtss xmm1,xmm2" = "f30f51ca";
    /// Square root of the lowest double.
    [Sqrtsd], exact (m, i) { single_sqrt(m, i, F64) }
    "sqrtsd xmm1,xmm2" = "f20f51ca", "sqrtsd xmm1,[rdi]" = "f20f510f";

    /// Differences of even, sums of odd singles.
    [Addsubps], exact (m, i) { sub_and_add(m, i, F32) }
    "addsubps xmm1,xmm2" = "f20fd0ca", "addsubps xmm1,[rdi]" = "f20fd00f";
    /// Difference of low, sum of high doubles.
    [Addsubpd], exact (m, i) { sub_and_add(m, i, F64) }
    "addsubpd xmm1,xmm2" = "660fd0ca";

    /// Sums of neighbouring singles.
    [Haddps], exact (m, i) { horizontal(m, i, FloatOp::Add, F32) }
    "haddps xmm1,xmm2" = "f20f7cca", "haddps xmm1,[rdi]" = "f20f7c0f";
    /// Sums of neighbouring doubles.
    [Haddpd], exact (m, i) { horizontal(m, i, FloatOp::Add, F64) }
    "haddpd xmm1,xmm2" = "660f7cca";
    /// Differences of neighbouring singles.
    [Hsubps], exact (m, i) { horizontal(m, i, FloatOp::Sub, F32) }
    "hsubps xmm1,xmm2" = "f20f7dca";
    /// Differences of neighbouring doubles.
    [Hsubpd], exact (m, i) { horizontal(m, i, FloatOp::Sub, F64) }
    "hsubpd xmm1,xmm2" = "660f7dca";

    /// Masks of a comparison of singles.
    [Cmpps], exact (m, i) { packed_compare(m, i, F32) }
    "cmpeqps xmm1,xmm2" = "0fc2ca00", "cmpltps xmm1,xmm2" = "0fc2ca01", "cmpleps xmm1,xmm2" = "0fc2ca02", "cmpunordps xmm1,[rdi]" = "0fc20f03",
    "cmpneqps xmm1,xmm2" = "0fc2ca04", "cmpnltps xmm1,xmm2" = "0fc2ca05", "cmpnleps xmm1,xmm2" = "0fc2ca06", "cmpordps xmm1,xmm2" = "0fc2ca07";
    /// Masks of a comparison of doubles.
    [Cmppd], exact (m, i) { packed_compare(m, i, F64) }
    "cmpeqpd xmm1,xmm2" = "660fc2ca00", "cmpltpd xmm1,xmm2" = "660fc2ca01", "cmplepd xmm1,xmm2" = "660fc2ca02", "cmpunordpd xmm1,[rdi]" = "660fc20f03",
    "cmpneqpd xmm1,xmm2" = "660fc2ca04", "cmpnltpd xmm1,xmm2" = "660fc2ca05", "cmpnlepd xmm1,xmm2" = "660fc2ca06", "cmpordpd xmm1,xmm2" = "660fc2ca07";
    /// Mask of a comparison of the lowest singles.
    [Cmpss], exact (m, i) { single_compare(m, i, F32) }
    "cmpeqss xmm1,xmm2" = "f30fc2ca00", "cmpltss xmm1,xmm2" = "f30fc2ca01", "cmpnltss xmm1,[rdi]" = "f30fc20f05", "cmpordss xmm1,xmm2" = "f30fc2ca07";
    /// Mask of a comparison of the lowest doubles.
    [Cmpsd] if !i.is_string_instruction(), exact (m, i) { single_compare(m, i, F64) }
    "cmplesd xmm1,xmm2" = "f20fc2ca02", "cmpunordsd xmm1,xmm2" = "f20fc2ca03", "cmpneqsd xmm1,xmm2" = "f20fc2ca04", "cmpnlesd xmm1,xmm2" = "f20fc2ca06";

    /// Compare the lowest singles into flags; quiet NaNs are invalid.
    [Comiss], exact (m, i) { compare_flags(m, i, F32, true) }
    "comiss xmm1,xmm2" = "0f2fca", "comiss xmm1,[rdi]" = "0f2f0f";
    /// Compare the lowest doubles into flags; quiet NaNs are invalid.
    [Comisd], exact (m, i) { compare_flags(m, i, F64, true) }
    "comisd xmm1,xmm2" = "660f2fca", "comisd xmm1,[rdi]" = "660f2f0f";
    /// Compare the lowest singles into flags.
    [Ucomiss], exact (m, i) { compare_flags(m, i, F32, false) }
    "ucomiss xmm1,xmm2" = "0f2eca";
    /// Compare the lowest doubles into flags.
    [Ucomisd], exact (m, i) { compare_flags(m, i, F64, false) }
    "ucomisd xmm1,xmm2" = "660f2eca";

    /// Round singles to integral values.
    [Roundps], exact (m, i) { packed_round(m, i, F32) }
    "roundps xmm1,xmm2,0" = "660f3a08ca00", "roundps xmm1,xmm2,4" = "660f3a08ca04", "roundps xmm1,[rdi],9" = "660f3a080f09", "roundps xmm1,xmm2,0xb" = "660f3a08ca0b";
    /// Round doubles to integral values.
    [Roundpd], exact (m, i) { packed_round(m, i, F64) }
    "roundpd xmm1,xmm2,1" = "660f3a09ca01", "roundpd xmm1,xmm2,0xc" = "660f3a09ca0c";
    /// Round the lowest single to an integral value.
    [Roundss], exact (m, i) { single_round(m, i, F32) }
    "roundss xmm1,xmm2,2" = "660f3a0aca02", "roundss xmm1,[rdi],4" = "660f3a0a0f04";
    /// Round the lowest double to an integral value.
    [Roundsd], exact (m, i) { single_round(m, i, F64) }
    "roundsd xmm1,xmm2,3" = "660f3a0bca03", "roundsd xmm1,xmm2,0xa" = "660f3a0bca0a";

    /// Dot product of chosen singles, to chosen lanes.
    [Dpps], exact (m, i) { dot_product(m, i, F32) }
    "dpps xmm1,xmm2,-1" = "660f3a40caff", "dpps xmm1,xmm2,0x71" = "660f3a40ca71", "dpps xmm1,[rdi],-0x46" = "660f3a400fba";
    /// Dot product of chosen doubles, to chosen lanes.
    [Dppd], exact (m, i) { dot_product(m, i, F64) }
    "dppd xmm1,xmm2,0x31" = "660f3a41ca31", "dppd xmm1,xmm2,0x23" = "660f3a41ca23";
}

fn packed<M: X86>(m: &mut M, i: &Insn, op: FloatOp, format: FloatFormat) {
    let (a, b) = (source(m, i, 0), source(m, i, 1));
    let result = m.float_lanes(op, format, NAN, a, b);
    set(m, i, result);
}

fn single<M: X86>(m: &mut M, i: &Insn, op: FloatOp, format: FloatFormat) {
    let (a, b) = (scalar(m, i, 0, format.width()), scalar(m, i, 1, format.width()));
    let result = m.float(op, format, NAN, a, b);
    set_scalar(m, i, result);
}

fn packed_sqrt<M: X86>(m: &mut M, i: &Insn, format: FloatFormat) {
    let a = source(m, i, 1);
    let root = m.float_sqrt_lanes(format, NAN, a);
    set(m, i, root);
}

fn single_sqrt<M: X86>(m: &mut M, i: &Insn, format: FloatFormat) {
    let a = scalar(m, i, 1, format.width());
    let root = m.float_sqrt(format, NAN, a);
    set_scalar(m, i, root);
}

/// Lanes by number, from the concatenation of two vectors of `format`.
fn pick<M: X86>(m: &mut M, format: FloatFormat, a: M::Vec, b: M::Vec, singles: &[u8; 4], doubles: &[u8; 2]) -> M::Vec {
    match format {
        F32 => m.shuffle(Width::W32, a, b, singles),
        F64 => m.shuffle(Width::W64, a, b, doubles),
    }
}

/// ADDSUB: one addition, with the sign of what is to be subtracted inverted, unless that is a NaN.
fn sub_and_add<M: X86>(m: &mut M, i: &Insn, format: FloatFormat) {
    let (a, b) = (source(m, i, 0), source(m, i, 1));
    let lane = format.width();
    let (infinity, even_signs) = match format {
        F32 => (0x7f80_0000, 1 << 95 | 1 << 31),
        F64 => (0x7ff0 << 48, 1 << 63),
    };
    let magnitude = splat(m, lane, lane.mask() as u64 >> 1);
    let magnitude = bitwise(m, BinOp::And, b, magnitude);
    let infinity = splat(m, lane, infinity);
    let number = m.lanes(LaneOp::Cmp(CmpOp::Sle), lane, magnitude, infinity);
    let even_signs = constant(m, even_signs);
    let inverted = bitwise(m, BinOp::And, even_signs, number);
    let b = bitwise(m, BinOp::Xor, b, inverted);
    let result = m.float_lanes(FloatOp::Add, format, NAN, a, b);
    set(m, i, result);
}

/// HADD, HSUB.
fn horizontal<M: X86>(m: &mut M, i: &Insn, op: FloatOp, format: FloatFormat) {
    let (a, b) = (source(m, i, 0), source(m, i, 1));
    let even = pick(m, format, a, b, &[0, 2, 4, 6], &[0, 2]);
    let odd = pick(m, format, a, b, &[1, 3, 5, 7], &[1, 3]);
    let result = m.float_lanes(op, format, NAN, even, odd);
    set(m, i, result);
}

/// A comparison predicate: what to compare, whether quiet NaNs are invalid, whether to invert the answer.
/// SDM vol. 2A, CMPPD, table 3-1; legacy encodings have the first eight.
fn predicate(immediate: u8) -> (FloatCmp, bool, bool) {
    let invert = immediate & 4 != 0;
    match immediate & 3 {
        0 => (FloatCmp::Eq, false, invert),
        1 => (FloatCmp::Lt, true, invert),
        2 => (FloatCmp::Le, true, invert),
        _ => (FloatCmp::Unordered, false, invert),
    }
}

fn packed_compare<M: X86>(m: &mut M, i: &Insn, format: FloatFormat) {
    let (a, b) = (source(m, i, 0), source(m, i, 1));
    let (op, signalling, invert) = predicate(i.immediate8());
    let mut mask = m.float_cmp_lanes(op, format, signalling, a, b);
    if invert {
        mask = complement(m, mask);
    }
    set(m, i, mask);
}

fn single_compare<M: X86>(m: &mut M, i: &Insn, format: FloatFormat) {
    let (a, b) = (scalar(m, i, 0, format.width()), scalar(m, i, 1, format.width()));
    let (op, signalling, invert) = predicate(i.immediate8());
    let mut holds = m.float_cmp(op, format, signalling, a, b);
    if invert {
        holds = m.not(holds);
    }
    let (ones, zero) = (m.int(format.width(), u64::MAX), m.int(format.width(), 0));
    let mask = m.select(holds, ones, zero);
    set_scalar(m, i, mask);
}

/// COMIS, UCOMIS: ZF, PF, CF as x87's FCOMI has them; OF, SF, AF cleared.
fn compare_flags<M: X86>(m: &mut M, i: &Insn, format: FloatFormat, signalling: bool) {
    let (a, b) = (scalar(m, i, 0, format.width()), scalar(m, i, 1, format.width()));
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
    let a = source(m, i, 1);
    let (mode, inexact) = rounding(i.immediate8());
    let result = m.float_round_lanes(format, mode, NAN, inexact, a);
    set(m, i, result);
}

fn single_round<M: X86>(m: &mut M, i: &Insn, format: FloatFormat) {
    let a = scalar(m, i, 1, format.width());
    let (mode, inexact) = rounding(i.immediate8());
    let result = m.float_round(format, mode, NAN, inexact, a);
    set_scalar(m, i, result);
}

/// DPPS, DPPD. Lanes that are not chosen multiply as zeros, which raises nothing.
fn dot_product<M: X86>(m: &mut M, i: &Insn, format: FloatFormat) {
    let (a, b) = (source(m, i, 0), source(m, i, 1));
    let factors = lane_mask(format, i.immediate8() >> 4);
    let factors = constant(m, factors);
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
    let results = constant(m, results);
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
