//! SSE scalar arithmetic on the bits of binary32 and binary64 values (in the low bits of a `u64`),
//! computed exactly in software under MXCSR: rounding mode, flush-to-zero and denormals-are-zero are read
//! from it, exception flags are added to it. The host's floating point plays no part.

use crate::machine::{FloatCmp, FloatFormat, FloatOp, NanRule, Negated, Rounding, Width};
use crate::softfloat::exception::{ALL, INEXACT, INVALID};
use crate::softfloat::{Class, Context, Float, Format, NanChoice, RoundingMode};
use core::cmp::Ordering;

/// MXCSR: denormals are zero.
const DENORMALS_ARE_ZERO: u32 = 1 << 6;
/// MXCSR: position of the exception masks.
const MASKS: u32 = 7;
/// MXCSR: position of the rounding mode.
pub(crate) const ROUNDING: u32 = 13;
/// MXCSR: flush tiny results to zero.
const FLUSH_TO_ZERO: u32 = 1 << 15;

/// The format as softfloat has it.
pub(super) const fn format_of(format: FloatFormat) -> Format {
    match format {
        FloatFormat::F32 => Format::F32,
        FloatFormat::F64 => Format::F64,
    }
}

/// What MXCSR has at [`ROUNDING`] for a mode, unless it is the current one.
pub(crate) fn rounding_field(rounding: Rounding) -> Option<u32> {
    match rounding {
        Rounding::Current => None,
        Rounding::NearestEven => Some(0),
        Rounding::Down => Some(1),
        Rounding::Up => Some(2),
        Rounding::Zero => Some(3),
    }
}

/// MXCSR as the context of one operation.
pub(super) struct Unit<'a> {
    mxcsr: &'a mut u32,
    pub(super) context: Context,
}

impl Unit<'_> {
    /// As MXCSR says.
    pub(super) fn new(mxcsr: &mut u32) -> Unit<'_> {
        let context = Context {
            rounding: RoundingMode::from_x86(*mxcsr >> ROUNDING),
            flush_to_zero: *mxcsr & FLUSH_TO_ZERO != 0,
            masked: (*mxcsr >> MASKS) as u8 & ALL,
            ..Context::new(NanChoice::First)
        };
        Unit { mxcsr, context }
    }

    /// Operand `bits`; a denormal is zero where MXCSR says so.
    pub(super) fn operand(&self, format: FloatFormat, bits: u64) -> Float {
        let value = Float::from_bits(format_of(format), bits);
        if value.denormal && *self.mxcsr & DENORMALS_ARE_ZERO != 0 {
            Float::zero(value.negative)
        } else {
            value
        }
    }

    /// The mode that is meant.
    pub(super) fn mode(&self, rounding: Rounding) -> RoundingMode {
        match rounding {
            Rounding::Current => self.context.rounding,
            Rounding::NearestEven => RoundingMode::NearestEven,
            Rounding::Down => RoundingMode::Down,
            Rounding::Up => RoundingMode::Up,
            Rounding::Zero => RoundingMode::Zero,
        }
    }

    /// Note what was raised; pass the result on.
    pub(super) fn done<T>(self, result: T) -> T {
        *self.mxcsr |= u32::from(self.context.raised);
        result
    }
}

/// `a op b`.
pub(super) fn binary(
    mxcsr: &mut u32,
    op: FloatOp,
    format: FloatFormat,
    NanRule::X86: NanRule,
    a: u64,
    b: u64,
) -> u64 {
    let mut unit = Unit::new(mxcsr);
    let (x, y) = (unit.operand(format, a), unit.operand(format, b));
    let (context, f) = (&mut unit.context, format_of(format));
    let result = match op {
        FloatOp::Add => context.add(f, x, y),
        FloatOp::Sub => context.sub(f, x, y),
        FloatOp::Mul => context.mul(f, x, y),
        FloatOp::Div => context.div(f, x, y),
        FloatOp::MinX86 => return minimum(unit, format, Ordering::Less, x, y, b),
        FloatOp::MaxX86 => return minimum(unit, format, Ordering::Greater, x, y, b),
    };
    unit.done(result.to_bits(f))
}

/// `x` if it compares as `wanted` with `y`, else `y`, whose bits `y_bits` are passed on unchanged if it is a NaN.
fn minimum(mut unit: Unit, format: FloatFormat, wanted: Ordering, x: Float, y: Float, y_bits: u64) -> u64 {
    let order = unit.context.compare(true, x, y);
    let bits = match order {
        Some(order) if order == wanted => x.to_bits(format_of(format)),
        _ if y.is_nan() => y_bits,
        _ => y.to_bits(format_of(format)),
    };
    unit.done(bits)
}

/// `a × b + c`, rounded once.
pub(crate) fn multiply_add(
    mxcsr: &mut u32,
    format: FloatFormat,
    negated: Negated,
    NanRule::X86: NanRule,
    operands: [u64; 3],
) -> u64 {
    let mut unit = Unit::new(mxcsr);
    let operands = operands.map(|bits| unit.operand(format, bits));
    let signs = (negated.product, negated.addend);
    let result = unit.context.multiply_add(format_of(format), signs, operands);
    unit.done(result.to_bits(format_of(format)))
}

/// Half precision to single: neither flushed nor noted as denormal.
pub(crate) fn half_to_single(mxcsr: &mut u32, NanRule::X86: NanRule, a: u64) -> u64 {
    let mut unit = Unit::new(mxcsr);
    let value = Float { denormal: false, ..Float::from_bits(Format::F16, a) };
    let result = unit.context.convert(Format::F32, value);
    unit.done(result.to_bits(Format::F32))
}

/// Single to half precision: results are not flushed.
pub(crate) fn single_to_half(mxcsr: &mut u32, rounding: Rounding, NanRule::X86: NanRule, a: u64) -> u64 {
    let mut unit = Unit::new(mxcsr);
    unit.context.rounding = unit.mode(rounding);
    unit.context.flush_to_zero = false;
    let value = unit.operand(FloatFormat::F32, a);
    let result = unit.context.convert(Format::F16, value);
    unit.done(result.to_bits(Format::F16))
}

/// The square root.
pub(super) fn sqrt(mxcsr: &mut u32, format: FloatFormat, NanRule::X86: NanRule, a: u64) -> u64 {
    let mut unit = Unit::new(mxcsr);
    let x = unit.operand(format, a);
    let root = unit.context.sqrt(format_of(format), x);
    unit.done(root.to_bits(format_of(format)))
}

/// Comparison; a signalling NaN, or any NaN if `signalling`, raises the invalid exception.
pub(super) fn compare(
    mxcsr: &mut u32,
    op: FloatCmp,
    format: FloatFormat,
    signalling: bool,
    a: u64,
    b: u64,
) -> bool {
    let mut unit = Unit::new(mxcsr);
    let (x, y) = (unit.operand(format, a), unit.operand(format, b));
    let order = unit.context.compare(signalling, x, y);
    unit.done(match op {
        FloatCmp::Eq => order == Some(Ordering::Equal),
        FloatCmp::Lt => order == Some(Ordering::Less),
        FloatCmp::Le => matches!(order, Some(Ordering::Less | Ordering::Equal)),
        FloatCmp::Unordered => order.is_none(),
    })
}

/// To a signed integer of `width`; `otherwise` for a NaN or out of range.
pub(super) fn to_int(
    mxcsr: &mut u32,
    format: FloatFormat,
    rounding: Rounding,
    a: u64,
    width: Width,
    otherwise: u64,
) -> u64 {
    let mut unit = Unit::new(mxcsr);
    let (value, mode) = (unit.operand(format, a), unit.mode(rounding));
    let result = unit.context.to_int(mode, value, width.bits().min(64));
    unit.done(result.map_or(otherwise, |n| n as u64))
}

/// From a signed integer.
pub(super) fn from_int(mxcsr: &mut u32, a: i64, format: FloatFormat) -> u64 {
    let mut unit = Unit::new(mxcsr);
    let value = unit.context.from_int(format_of(format), a);
    unit.done(value.to_bits(format_of(format)))
}

/// Between formats.
pub(super) fn convert(
    mxcsr: &mut u32,
    from: FloatFormat,
    to: FloatFormat,
    NanRule::X86: NanRule,
    a: u64,
) -> u64 {
    let mut unit = Unit::new(mxcsr);
    let value = unit.operand(from, a);
    let result = unit.context.convert(format_of(to), value);
    unit.done(result.to_bits(format_of(to)))
}

/// To an integral value; if `inexact`, one that changes raises the inexact exception.
pub(super) fn round(
    mxcsr: &mut u32,
    format: FloatFormat,
    rounding: Rounding,
    NanRule::X86: NanRule,
    inexact: bool,
    a: u64,
) -> u64 {
    let mut unit = Unit::new(mxcsr);
    let (value, mode) = (unit.operand(format, a), unit.mode(rounding));
    let result = match value.class {
        Class::Nan => unit.context.nan_result(&[value]).unwrap_or(value),
        _ => unit.context.round_to_integral(mode, value),
    };
    unit.context.raised &= if inexact { INVALID | INEXACT } else { INVALID };
    unit.done(result.to_bits(format_of(format)))
}
