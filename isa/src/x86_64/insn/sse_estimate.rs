//! RCPPS and RSQRTPS with their scalars: estimates in integer lanes, so that they raise nothing, ignore MXCSR
//! and come out alike on every host. SDM vol. 2B.

use crate::machine::{BinOp, CmpOp, LaneOp, Width};
use crate::x86_64::Insn;
use crate::x86_64::operand::X86;
use crate::x86_64::vector::{bitwise, blend, from_low, last, right, scalar, set, set_scalar, shift, splat, zero};
use Width::W32;

extension! { "sse_estimate";
    /// Approximate reciprocals of singles.
    [Rcpps, Vrcpps], approximate("relative error below 2^-13, within the 1.5 * 2^-12 that the manual allows; CPU models differ") (m, i) {
        let a = right(m, i);
        let result = reciprocal(m, a);
        set(m, i, result);
    }
    "rcpps xmm1,xmm2" = "0f53ca", "rcpps xmm1,[rdi]" = "0f530f",
    "vrcpps ymm1,ymm2" = "c5fc53ca";
    /// Approximate reciprocal of the lowest single.
    [Rcpss, Vrcpss], approximate("relative error below 2^-13, within the 1.5 * 2^-12 that the manual allows; CPU models differ") (m, i) {
        lowest(m, i, reciprocal)
    }
    "rcpss xmm1,xmm2" = "f30f53ca",
    "vrcpss xmm1,xmm2,xmm3" = "c5ea53cb";
    /// Approximate reciprocal square roots of singles.
    [Rsqrtps, Vrsqrtps], approximate("relative error below 2^-13, within the 1.5 * 2^-12 that the manual allows; CPU models differ") (m, i) {
        let a = right(m, i);
        let result = reciprocal_root(m, a);
        set(m, i, result);
    }
    "rsqrtps xmm1,xmm2" = "0f52ca", "rsqrtps xmm1,[rdi]" = "0f520f",
    "vrsqrtps ymm1,ymm2" = "c5fc52ca";
    /// Approximate reciprocal square root of the lowest single.
    [Rsqrtss, Vrsqrtss], approximate("relative error below 2^-13, within the 1.5 * 2^-12 that the manual allows; CPU models differ") (m, i) {
        lowest(m, i, reciprocal_root)
    }
    "rsqrtss xmm1,xmm2" = "f30f52ca",
    "vrsqrtss xmm1,xmm2,xmm3" = "c5ea52cb";
}

/// `f` of the last operand's lowest single.
fn lowest<M: X86>(m: &mut M, i: &Insn, f: fn(&mut M, M::Vec) -> M::Vec) {
    let a = scalar(m, i, last(i), Width::W32);
    let a = from_low(m, a);
    let result = f(m, a);
    let result = m.lane(result, Width::W32, 0);
    set_scalar(m, i, result);
}

/// Bits of the smallest normal single.
const MIN_NORMAL: u64 = 1 << 23;
/// Bits of the single infinity.
const INFINITY: u64 = 0x7f80_0000;

/// Lane arithmetic with constants on 32-bit lanes.
trait Lanes32: X86 + Sized {
    fn with(&mut self, op: BinOp, a: Self::Vec, b: u64) -> Self::Vec {
        let b = splat(self, a, W32, b);
        self.lanes(LaneOp::Int(op), W32, a, b)
    }
    fn from(&mut self, a: u64, b: Self::Vec) -> Self::Vec {
        let a = splat(self, b, W32, a);
        self.lanes(LaneOp::Int(BinOp::Sub), W32, a, b)
    }
    fn both(&mut self, op: BinOp, a: Self::Vec, b: Self::Vec) -> Self::Vec {
        self.lanes(LaneOp::Int(op), W32, a, b)
    }
    /// Replace by `value` the lanes of `result` where `a < b`, signed.
    fn unless_less(&mut self, a: Self::Vec, b: Self::Vec, value: Self::Vec, result: Self::Vec) -> Self::Vec {
        let less = self.lanes(LaneOp::Cmp(CmpOp::Slt), W32, a, b);
        blend(self, less, result, value)
    }
}
impl<M: X86> Lanes32 for M {}

/// The significand with 15 bits after the point, rounded: 2^15 to 2^16.
fn significand<M: X86>(m: &mut M, x: M::Vec) -> M::Vec {
    let fraction = m.with(BinOp::And, x, MIN_NORMAL - 1);
    let rounded = m.with(BinOp::Add, fraction, MIN_NORMAL + 0x80);
    shift(m, BinOp::LShr, W32, rounded, 8)
}

/// Sign bits apart from magnitudes.
fn take_apart<M: X86>(m: &mut M, x: M::Vec) -> (M::Vec, M::Vec) {
    (m.with(BinOp::And, x, 1 << 31), m.with(BinOp::And, x, (1 << 31) - 1))
}

/// `result` with infinity for zeros and denormals, `x`'s sign, and `x` itself, quieted, for NaNs.
fn special_cases<M: X86>(m: &mut M, x: M::Vec, result: M::Vec) -> M::Vec {
    let (sign, magnitude) = take_apart(m, x);
    let (min_normal, infinity) = (splat(m, x, W32, MIN_NORMAL), splat(m, x, W32, INFINITY));
    let result = m.unless_less(magnitude, min_normal, infinity, result);
    let signed = bitwise(m, BinOp::Or, sign, result);
    let quiet = m.with(BinOp::Or, x, 1 << 22);
    m.unless_less(infinity, magnitude, quiet, signed)
}

/// `2^31 ÷ significand` gives 16 bits of the reciprocal.
fn reciprocal<M: X86>(m: &mut M, x: M::Vec) -> M::Vec {
    let (_, magnitude) = take_apart(m, x);
    let divisor = significand(m, x);
    let dividend = splat(m, x, W32, 1 << 31);
    let quotient = m.both(BinOp::UDiv, dividend, divisor);
    let fraction = m.with(BinOp::Sub, quotient, 1 << 15);
    let fraction = shift(m, BinOp::Shl, W32, fraction, 8);
    let exponent = m.with(BinOp::And, magnitude, INFINITY);
    let exponent = m.from(253 << 23, exponent);
    let result = m.both(BinOp::Add, exponent, fraction);
    let (min_normal, zero) = (splat(m, x, W32, MIN_NORMAL), zero(m, x));
    let result = m.unless_less(result, min_normal, zero, result);
    special_cases(m, x, result)
}

/// Three Newton steps from a linear guess, in fixed point.
fn reciprocal_root<M: X86>(m: &mut M, x: M::Vec) -> M::Vec {
    let exponent = shift(m, BinOp::LShr, W32, x, 23);
    let odd = m.with(BinOp::Add, exponent, 1);
    let odd = m.with(BinOp::And, odd, 1);
    let value = significand(m, x);
    let value = m.both(BinOp::Shl, value, odd);
    let root = fixed_point_root(m, value);

    let magnitude = m.with(BinOp::And, exponent, 0xff);
    let halved = m.from(379, magnitude);
    let halved = m.both(BinOp::Add, halved, odd);
    let halved = shift(m, BinOp::Shl, W32, halved, 22);
    let fraction = m.with(BinOp::Sub, root, 1 << 22);
    let fraction = shift(m, BinOp::Shl, W32, fraction, 1);
    let result = m.both(BinOp::Add, halved, fraction);

    let (infinity, below, zero) = (splat(m, x, W32, INFINITY), splat(m, x, W32, INFINITY - 1), zero(m, x));
    let result = m.unless_less(below, x, zero, result);
    let min_normal = splat(m, x, W32, MIN_NORMAL);
    let special = special_cases(m, x, result);
    // Negative normal values and minus infinity are invalid.
    let (_, magnitude) = take_apart(m, x);
    let indefinite = splat(m, x, W32, 0xffc0_0000);
    let number = m.lanes(LaneOp::Cmp(CmpOp::Sle), W32, magnitude, infinity);
    let normal = m.lanes(LaneOp::Cmp(CmpOp::Sle), W32, min_normal, magnitude);
    let negative = m.lanes(LaneOp::Cmp(CmpOp::Slt), W32, x, zero);
    let invalid = bitwise(m, BinOp::And, number, normal);
    let invalid = bitwise(m, BinOp::And, invalid, negative);
    blend(m, invalid, special, indefinite)
}

/// 1/√value: `value` is 1 to 4 with 15 bits after the point, the result 1/2 to 1 with 23.
fn fixed_point_root<M: X86>(m: &mut M, value: M::Vec) -> M::Vec {
    let slope = m.with(BinOp::Mul, value, 10923);
    let slope = shift(m, BinOp::LShr, W32, slope, 16);
    let mut y = m.from(36156, slope);
    for step in 0..3 {
        // y' = y (3 - value y²) / 2
        let square = m.both(BinOp::Mul, y, y);
        let square = shift(m, BinOp::LShr, W32, square, 14);
        let product = m.both(BinOp::Mul, value, square);
        let half = shift(m, BinOp::LShr, W32, product, 1);
        let factor = m.from(3 << 30, half);
        let factor = shift(m, BinOp::LShr, W32, factor, 15);
        let next = m.both(BinOp::Mul, y, factor);
        y = shift(m, BinOp::LShr, W32, next, if step < 2 { 16 } else { 8 });
    }
    y
}
