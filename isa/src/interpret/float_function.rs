//! AVX-512's functions of floats beside arithmetic, on the bits of binary32 and binary64 values (in the low bits of a
//! `u64`): exponents and significands, scaling, ranges, remainders, classes. SDM vol. 2C.

use super::float::{Unit, format_of};
use crate::machine::{FloatFormat, Rounding};
use crate::softfloat::exception::{ALL, DIVIDE_BY_ZERO, INEXACT, INVALID, UNDERFLOW};
use crate::softfloat::{Class, Float, RoundingMode};
use core::cmp::Ordering;

/// What to compute.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FloatFunction {
    /// VGETEXP: the exponent.
    Exponent,
    /// VGETMANT: the significand, in the interval and with the sign that an immediate says.
    Significand,
    /// VSCALEF: the first operand times two to the power of the second, rounded down.
    Scale,
    /// VRANGE: the lesser or the greater.
    Range,
    /// VREDUCE: what a number is beyond the multiple of a power of two.
    Reduce,
    /// VRNDSCALE: the multiple of a power of two.
    RoundScaled,
    /// VFIXUPIMM: the first operand, or what a table says for the second one's class.
    FixUp,
    /// VFPCLASS: all ones if it is of one of the classes that an immediate says.
    Classify,
    /// VRCP14: about the reciprocal.
    Reciprocal,
    /// VRSQRT14: about the reciprocal square root.
    ReciprocalRoot,
}

impl FloatFunction {
    /// All, each at the place that is its number (`as u32`).
    pub const ALL: [FloatFunction; 10] = [
        FloatFunction::Exponent,
        FloatFunction::Significand,
        FloatFunction::Scale,
        FloatFunction::Range,
        FloatFunction::Reduce,
        FloatFunction::RoundScaled,
        FloatFunction::FixUp,
        FloatFunction::Classify,
        FloatFunction::Reciprocal,
        FloatFunction::ReciprocalRoot,
    ];
}

const _: () = assert!(FloatFunction::ALL[9] as u32 == 9);

/// `function` of `operands`, under MXCSR.
pub(crate) fn run(
    mxcsr: &mut u32,
    function: FloatFunction,
    format: FloatFormat,
    operands: [u64; 3],
    immediate: u8,
) -> u64 {
    let mut unit = Unit::new(mxcsr);
    let [x, y, _] = operands.map(|bits| unit.operand(format, bits));
    let result = match function {
        FloatFunction::Exponent => exponent(&mut unit, format, x),
        FloatFunction::Significand => significand(&mut unit, x, immediate),
        FloatFunction::Scale => scale(&mut unit, format, x, y),
        FloatFunction::Range => range(&mut unit, x, y, immediate),
        FloatFunction::Reduce => reduce(&mut unit, format, x, immediate),
        FloatFunction::RoundScaled => round_scaled(&mut unit, x, immediate),
        FloatFunction::Reciprocal => unit.reciprocal(format, x),
        FloatFunction::ReciprocalRoot => unit.reciprocal_root(x),
        FloatFunction::FixUp => {
            let bits = fix_up(&mut unit, format, operands, y, immediate);
            return unit.done(bits);
        }
        FloatFunction::Classify => {
            let holds = classes(x) & immediate != 0;
            return unit.done(if holds { u64::MAX } else { 0 });
        }
    };
    unit.done(result.to_bits(format_of(format)))
}

const ONE: Float = Float::finite(false, 0, 1 << 63);

fn exponent(unit: &mut Unit, format: FloatFormat, x: Float) -> Float {
    match x.class {
        Class::Zero => Float::infinity(true),
        Class::Finite => {
            unit.context.note_denormals(&[x]);
            unit.context.from_int(format_of(format), x.exponent.into())
        }
        Class::Infinity => Float::infinity(false),
        _ => unit.context.nan_result(&[x]).unwrap_or(x),
    }
}

fn significand(unit: &mut Unit, x: Float, immediate: u8) -> Float {
    let (interval, always_positive, not_negative) = (immediate & 3, immediate & 4 != 0, immediate & 8 != 0);
    if let Some(nan) = unit.context.nan_result(&[x]) {
        return nan;
    }
    if not_negative && x.negative && x.class != Class::Zero {
        return unit.context.invalid();
    }
    let negative = x.negative && !always_positive;
    if x.class != Class::Finite {
        return Float { negative, ..ONE };
    }
    unit.context.note_denormals(&[x]);
    let upper_half = x.significand >> 62 & 1 != 0;
    let below_one = match interval {
        0 => false,
        1 => x.exponent & 1 != 0,
        2 => true,
        _ => upper_half,
    };
    Float { negative, exponent: -i32::from(below_one), denormal: false, ..x }
}

fn scale(unit: &mut Unit, format: FloatFormat, x: Float, y: Float) -> Float {
    let quiet = x.is_nan() && !x.is_signalling();
    match (x.class, y.class, y.negative) {
        (Class::Nan, Class::Infinity, false) if quiet => return Float::infinity(false),
        (Class::Nan, Class::Infinity, true) if quiet => return Float::zero(false),
        (Class::Nan, ..) | (_, Class::Nan, _) => return unit.context.nan_result(&[x, y]).unwrap_or(x),
        (Class::Infinity, Class::Infinity, true) | (Class::Zero, Class::Infinity, false) => {
            return unit.context.invalid();
        }
        _ => unit.context.note_denormals(&[x]),
    }
    match (x.class, y.class) {
        (_, Class::Infinity) if y.negative => Float::zero(x.negative),
        (_, Class::Infinity) => Float::infinity(x.negative),
        (Class::Finite, _) => {
            let by = unit.floor(y);
            unit.context.round(
                format_of(format),
                x.negative,
                x.exponent + by,
                u128::from(x.significand) << 64,
            )
        }
        _ => x,
    }
}

impl Unit<'_> {
    /// A finite value rounded down, as far as exponents of any format go.
    fn floor(&self, value: Float) -> i32 {
        const LIMIT: i64 = 1 << 16;
        if value.class == Class::Finite && value.exponent >= 16 {
            return if value.negative { -LIMIT } else { LIMIT } as i32;
        }
        let mut context = self.context;
        let floor = context.to_int(RoundingMode::Down, value, 64).unwrap_or(0);
        floor.clamp(-LIMIT, LIMIT) as i32
    }
}

fn range(unit: &mut Unit, x: Float, y: Float, immediate: u8) -> Float {
    if let Some(nan) = [x, y].into_iter().find(|value| value.is_signalling()) {
        unit.context.raise(INVALID);
        return nan.quieted();
    }
    let chosen = match (x.is_nan(), y.is_nan()) {
        (false, false) => {
            unit.context.note_denormals(&[x, y]);
            lesser_or_greater(x, y, immediate & 1 != 0, immediate & 2 != 0)
        }
        (true, false) => y,
        _ => x,
    };
    let negative = match immediate >> 2 & 3 {
        0 => x.negative,
        1 => chosen.negative,
        2 => false,
        _ => true,
    };
    Float { negative, ..chosen }
}

/// By value, or by magnitude; of equal ones the negative is the lesser.
fn lesser_or_greater(x: Float, y: Float, greater: bool, by_magnitude: bool) -> Float {
    let magnitudes = magnitude(x).cmp(&magnitude(y));
    let order = match (x.negative, y.negative) {
        _ if by_magnitude && magnitudes != Ordering::Equal => magnitudes,
        (false, false) => magnitudes,
        (true, true) => magnitudes.reverse(),
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
    };
    if (order == Ordering::Greater) == greater { x } else { y }
}

/// What puts numbers without their signs in order.
fn magnitude(x: Float) -> (u8, i32, u64) {
    match x.class {
        Class::Zero => (0, 0, 0),
        Class::Finite => (1, x.exponent, x.significand),
        _ => (2, 0, 0),
    }
}

/// The mode of an immediate of VRNDSCALE or VREDUCE.
fn mode(unit: &Unit, immediate: u8) -> RoundingMode {
    unit.mode(match immediate & 7 {
        0 => Rounding::NearestEven,
        1 => Rounding::Down,
        2 => Rounding::Up,
        3 => Rounding::Zero,
        _ => Rounding::Current,
    })
}

/// The nearest multiple of 2^-`immediate[7:4]`.
fn multiple(unit: &mut Unit, x: Float, immediate: u8) -> Float {
    let scale = i32::from(immediate >> 4);
    let mode = mode(unit, immediate);
    let scaled = Float { exponent: x.exponent + scale, ..x };
    let rounded = unit.context.round_to_integral(mode, if x.class == Class::Finite { scaled } else { x });
    match rounded.class {
        Class::Finite => Float { exponent: rounded.exponent - scale, ..rounded },
        _ => rounded,
    }
}

fn round_scaled(unit: &mut Unit, x: Float, immediate: u8) -> Float {
    let result = match unit.context.nan_result(&[x]) {
        Some(nan) => nan,
        None => multiple(unit, x, immediate),
    };
    unit.context.raised &= if immediate & 8 == 0 { INVALID | INEXACT } else { INVALID };
    result
}

fn reduce(unit: &mut Unit, format: FloatFormat, x: Float, immediate: u8) -> Float {
    let result = match x.class {
        Class::Nan => unit.context.nan_result(&[x]).unwrap_or(x),
        Class::Infinity => Float::zero(false),
        _ => {
            let multiple = multiple(unit, x, immediate);
            unit.context.raised = 0;
            // It raises no underflow, but flushes where that is masked.
            unit.context.flush_to_zero &= unit.context.masked & UNDERFLOW != 0;
            unit.context.masked = ALL;
            unit.context.rounding = mode(unit, immediate);
            unit.context.sub(format_of(format), x, multiple)
        }
    };
    unit.context.raised &= INVALID | INEXACT;
    if immediate & 8 != 0 {
        unit.context.raised &= !INEXACT;
    }
    result
}

/// The classes of VFPCLASS that a value is of.
fn classes(x: Float) -> u8 {
    let zero = if x.negative { 4 } else { 2 };
    let infinity = if x.negative { 16 } else { 8 };
    let denormal = if x.denormal { 32 } else { 0 };
    match x.class {
        Class::Zero => zero,
        Class::Infinity => infinity,
        Class::Finite if x.negative => denormal | 64,
        Class::Finite => denormal,
        _ if x.is_signalling() => 128,
        _ => 1,
    }
}

/// The place of a value's class in the tables of VFIXUPIMM.
fn token(x: Float) -> u32 {
    match x.class {
        Class::Nan if x.is_signalling() => 1,
        Class::Nan => 0,
        Class::Zero => 2,
        Class::Finite if x == ONE => 3,
        Class::Infinity if x.negative => 4,
        Class::Infinity => 5,
        _ if x.negative => 6,
        _ => 7,
    }
}

fn fix_up(unit: &mut Unit, format: FloatFormat, [old, _, table]: [u64; 3], x: Float, immediate: u8) -> u64 {
    let bits = x.to_bits(format_of(format));
    let token = token(x);
    let exceptions = match token {
        1 => [0x10, 0],
        2 => [0x02, 0x01],
        3 => [0x08, 0x04],
        4 => [0x20, 0],
        5 => [0x80, 0],
        6 => [0x40, 0],
        _ => [0, 0],
    };
    for (mask, exception) in exceptions.into_iter().zip([INVALID, DIVIDE_BY_ZERO]) {
        if immediate & mask != 0 {
            unit.context.raise(exception);
        }
    }
    match table >> (4 * token) & 15 {
        0 => old,
        1 => bits,
        response => response_bits(format, response, bits),
    }
}

/// What a response of VFIXUPIMM's tables stands for.
fn response_bits(format: FloatFormat, response: u64, bits: u64) -> u64 {
    let (sign, infinity, quiet) = match format {
        FloatFormat::F32 => (1 << 31, 0x7f80_0000, 0x7fc0_0000),
        FloatFormat::F64 => (1 << 63, 0x7ff0 << 48, 0x7ff8 << 48),
    };
    let constant = |single: f32, double: f64| match format {
        FloatFormat::F32 => u64::from(single.to_bits()),
        FloatFormat::F64 => double.to_bits(),
    };
    match response {
        2 => bits | quiet,
        3 => sign | quiet,
        4 => sign | infinity,
        5 => infinity,
        6 => bits & sign | infinity,
        7 => sign,
        8 => 0,
        9 => constant(-1.0, -1.0),
        10 => constant(1.0, 1.0),
        11 => constant(0.5, 0.5),
        12 => constant(90.0, 90.0),
        13 => constant(core::f32::consts::FRAC_PI_2, core::f64::consts::FRAC_PI_2),
        14 => constant(f32::MAX, f64::MAX),
        _ => constant(f32::MIN, f64::MIN),
    }
}
