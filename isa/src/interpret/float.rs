//! SSE scalar arithmetic on the bits of binary32 and binary64 values (in the low bits of a `u64`),
//! computed exactly in software under MXCSR: rounding mode, flush-to-zero and denormals-are-zero are read
//! from it, exception flags are added to it. The host's floating point plays no part.

use crate::machine::{FloatCmp, FloatFormat, FloatOp, NanRule, Rounding, Width};

/// `a op b`.
pub(super) fn binary(
    _mxcsr: &mut u32,
    _op: FloatOp,
    _format: FloatFormat,
    _nan: NanRule,
    _a: u64,
    _b: u64,
) -> u64 {
    0
}

/// The square root.
pub(super) fn sqrt(_mxcsr: &mut u32, _format: FloatFormat, _nan: NanRule, _a: u64) -> u64 {
    0
}

/// Comparison; a signalling NaN, or any NaN if `signalling`, raises the invalid exception.
pub(super) fn compare(
    _mxcsr: &mut u32,
    _op: FloatCmp,
    _format: FloatFormat,
    _signalling: bool,
    _a: u64,
    _b: u64,
) -> bool {
    false
}

/// To a signed integer of `width`; `otherwise` for a NaN or out of range.
pub(super) fn to_int(
    _mxcsr: &mut u32,
    _format: FloatFormat,
    _rounding: Rounding,
    _a: u64,
    _width: Width,
    _otherwise: u64,
) -> u64 {
    0
}

/// From a signed integer.
pub(super) fn from_int(_mxcsr: &mut u32, _a: i64, _format: FloatFormat) -> u64 {
    0
}

/// Between formats.
pub(super) fn convert(_mxcsr: &mut u32, _from: FloatFormat, _to: FloatFormat, _nan: NanRule, _a: u64) -> u64 {
    0
}

/// To an integral value; if `inexact`, one that changes raises the inexact exception.
pub(super) fn round(
    _mxcsr: &mut u32,
    _format: FloatFormat,
    _rounding: Rounding,
    _nan: NanRule,
    _inexact: bool,
    _a: u64,
) -> u64 {
    0
}
