//! Binary floating point in integers, exact to the last bit and exception, for the formats, precisions and
//! rounding modes that guests have. IEEE 754-2008, with tininess detected after rounding.
//!
//! Written here rather than taken from a port of LLVM's APFloat, since guests need what that does not
//! have: square root, the denormal-operand exception, x87 precision control (24 or 53 bits at full exponent
//! range), the direction of the last rounding, and both ways of flushing denormals.

mod arithmetic;
mod convert;

/// Exceptions as a set of bits, placed as in x86's MXCSR and FSW.
pub mod exception {
    /// Operand has no meaning for the operation.
    pub const INVALID: u8 = 1;
    /// An operand is denormal.
    pub const DENORMAL: u8 = 2;
    /// Division of a finite value by zero.
    pub const DIVIDE_BY_ZERO: u8 = 4;
    /// The rounded result exceeds the format.
    pub const OVERFLOW: u8 = 8;
    /// The result is tiny and inexact.
    pub const UNDERFLOW: u8 = 16;
    /// The result was rounded.
    pub const INEXACT: u8 = 32;
    /// All of them.
    pub const ALL: u8 = 63;
}
use exception::{DENORMAL, INEXACT, INVALID, OVERFLOW, UNDERFLOW};

/// How a result that is not exact is rounded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RoundingMode {
    /// To nearest, ties to even.
    NearestEven,
    /// Towards minus infinity.
    Down,
    /// Towards plus infinity.
    Up,
    /// Towards zero.
    Zero,
}

impl RoundingMode {
    /// The two-bit rounding field of MXCSR and of the x87 control word.
    pub const fn from_x86(field: u32) -> RoundingMode {
        match field & 3 {
            0 => RoundingMode::NearestEven,
            1 => RoundingMode::Down,
            2 => RoundingMode::Up,
            _ => RoundingMode::Zero,
        }
    }
}

/// What finite values a destination can hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Format {
    /// Bits of the significand, the leading one included; at most 64.
    pub precision: u32,
    /// Exponent of the largest finite values; the smallest normal ones have `1 - max_exponent`.
    pub max_exponent: i32,
}

impl Format {
    /// IEEE 754 binary32.
    pub const F32: Format = Format { precision: 24, max_exponent: 127 };
    /// IEEE 754 binary16.
    pub const F16: Format = Format { precision: 11, max_exponent: 15 };
    /// IEEE 754 binary64.
    pub const F64: Format = Format { precision: 53, max_exponent: 1023 };
    /// x87 double extended.
    pub const X87: Format = Format { precision: 64, max_exponent: 16383 };

    /// Exponent of the smallest normal values.
    pub const fn min_exponent(self) -> i32 {
        1 - self.max_exponent
    }
}

/// What kind of value a [`Float`] is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// Plus or minus zero.
    Zero,
    /// A non-zero finite value.
    Finite,
    /// Plus or minus infinity.
    Infinity,
    /// Quiet if bit 62 of the significand is set, else signalling.
    Nan,
    /// An x87 encoding that is no value (pseudo-infinity, pseudo-NaN, unnormal).
    Unsupported,
}

/// A value of any format, taken apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Float {
    /// Sign bit.
    pub negative: bool,
    /// Kind of value.
    pub class: Class,
    /// Exponent of the significand's leading bit; finite values only.
    pub exponent: i32,
    /// Finite: bit 63 is set and counts `2^exponent`. NaN: the payload below bit 63.
    pub significand: u64,
    /// It was encoded without the leading bit that normal values have.
    pub denormal: bool,
}

/// Bit 62: what makes a NaN quiet.
const QUIET: u64 = 1 << 62;

impl Float {
    /// x86's default NaN: negative, quiet, no payload ("real indefinite").
    pub const INDEFINITE: Float =
        Float { negative: true, class: Class::Nan, exponent: 0, significand: 3 << 62, denormal: false };

    /// Zero of a sign.
    pub const fn zero(negative: bool) -> Float {
        Float { negative, class: Class::Zero, exponent: 0, significand: 0, denormal: false }
    }

    /// Infinity of a sign.
    pub const fn infinity(negative: bool) -> Float {
        Float { negative, class: Class::Infinity, exponent: 0, significand: 1 << 63, denormal: false }
    }

    /// `significand × 2^(exponent − 63)`, any alignment; zero where `significand` is.
    pub const fn finite(negative: bool, exponent: i32, significand: u64) -> Float {
        if significand == 0 {
            return Float::zero(negative);
        }
        let shift = significand.leading_zeros();
        Float {
            negative,
            class: Class::Finite,
            exponent: exponent - shift as i32,
            significand: significand << shift,
            denormal: false,
        }
    }

    /// Neither finite nor infinite.
    pub fn is_nan(self) -> bool {
        self.class == Class::Nan
    }

    /// A signalling NaN.
    pub fn is_signalling(self) -> bool {
        self.is_nan() && self.significand & QUIET == 0
    }

    /// The NaN made quiet.
    pub fn quieted(self) -> Float {
        Float { significand: self.significand | QUIET, ..self }
    }

    /// The other sign.
    pub fn negated(self) -> Float {
        Float { negative: !self.negative, ..self }
    }

    /// Without its sign.
    pub fn magnitude(self) -> Float {
        Float { negative: false, ..self }
    }
}

/// Which of two NaN operands a result is made from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NanChoice {
    /// SSE: the first one.
    First,
    /// x87: a quiet one rather than a signalling one, else the larger significand, else the positive one.
    Larger,
}

/// Modes in force, and the exceptions raised under them so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Context {
    /// Rounding of results.
    pub rounding: RoundingMode,
    /// Tiny results become zero.
    pub flush_to_zero: bool,
    /// Exceptions that do not trap. An unmasked underflow is raised by exact tiny results too.
    pub masked: u8,
    /// What an unmasked overflow or underflow takes from or adds to the exponent of a result (SDM vol. 1,
    /// 8.5.4), if there is a result then.
    pub wrap_exponent: Option<i32>,
    /// Choice between NaNs.
    pub nan: NanChoice,
    /// Exceptions raised.
    pub raised: u8,
    /// The last rounding increased the magnitude.
    pub rounded_up: bool,
}

impl Context {
    /// Round to nearest, everything masked, nothing raised.
    pub const fn new(nan: NanChoice) -> Context {
        Context {
            rounding: RoundingMode::NearestEven,
            flush_to_zero: false,
            masked: exception::ALL,
            wrap_exponent: None,
            nan,
            raised: 0,
            rounded_up: false,
        }
    }

    /// Raise exceptions.
    pub fn raise(&mut self, exceptions: u8) {
        self.raised |= exceptions;
    }

    /// An invalid operation's result.
    pub fn invalid(&mut self) -> Float {
        self.raise(INVALID);
        Float::INDEFINITE
    }

    /// Raise the denormal exception if an operand is denormal.
    pub fn note_denormals(&mut self, operands: &[Float]) {
        if operands.iter().any(|x| x.denormal) {
            self.raise(DENORMAL);
        }
    }

    /// The result if an operand is a NaN or no value at all.
    pub fn nan_result(&mut self, operands: &[Float]) -> Option<Float> {
        if operands.iter().any(|x| x.class == Class::Unsupported) {
            return Some(self.invalid());
        }
        if operands.iter().any(|x| x.is_signalling()) {
            self.raise(INVALID);
        }
        let nans = operands.iter().copied().filter(|x| x.is_nan());
        let chosen = match self.nan {
            NanChoice::First => nans.into_iter().next(),
            NanChoice::Larger => nans.max_by_key(|x| (!x.is_signalling(), x.significand, !x.negative)),
        };
        chosen.map(Float::quieted)
    }

    /// Round `significand × 2^(exponent − 127)` into `format`. Any alignment but zero; if bits below the
    /// significand are lost, its lowest bit is set.
    pub fn round(&mut self, format: Format, negative: bool, exponent: i32, significand: u128) -> Float {
        let shift = significand.leading_zeros();
        let (exponent, significand) = (exponent - shift as i32, significand << shift);
        let cut = Cut::new(self.rounding, negative, significand, 128 - format.precision);
        let rounded_exponent = exponent + i32::from(cut.kept >> format.precision != 0);
        if rounded_exponent < format.min_exponent() {
            return self.tiny(format, negative, exponent, significand, cut);
        }
        if rounded_exponent > format.max_exponent {
            return self.overflow(format, negative, exponent, cut);
        }
        self.note(cut);
        cut.value(format, negative, exponent)
    }

    /// Round a value into `format`; not a NaN.
    pub fn round_value(&mut self, format: Format, value: Float) -> Float {
        match value.class {
            Class::Finite => {
                self.round(format, value.negative, value.exponent, u128::from(value.significand) << 64)
            }
            _ => value,
        }
    }

    fn note(&mut self, cut: Cut) {
        self.rounded_up = cut.up;
        if cut.inexact {
            self.raise(INEXACT);
        }
    }

    /// What an unmasked overflow (`direction` -1) or underflow (1) yields: the result rounded as if there were
    /// no limits to exponents, its exponent wrapped where the unit does so. Where that is not enough (only
    /// scaling gets so far), zero or infinity.
    fn trapped(&mut self, format: Format, cut: Cut, negative: bool, exponent: i32, direction: i32) -> Float {
        self.note(cut);
        let value = cut.value(format, negative, exponent + direction * self.wrap_exponent.unwrap_or(0));
        if (format.min_exponent()..=format.max_exponent).contains(&value.exponent) {
            return value;
        }
        if self.wrap_exponent.is_some() {
            self.raise(INEXACT);
            self.rounded_up = direction < 0;
        }
        if direction < 0 { Float::infinity(negative) } else { Float::zero(negative) }
    }

    fn overflow(&mut self, format: Format, negative: bool, exponent: i32, cut: Cut) -> Float {
        self.raise(OVERFLOW);
        if self.masked & OVERFLOW == 0 {
            return self.trapped(format, cut, negative, exponent, -1);
        }
        self.raise(INEXACT);
        let to_infinity = match self.rounding {
            RoundingMode::NearestEven => true,
            RoundingMode::Down => negative,
            RoundingMode::Up => !negative,
            RoundingMode::Zero => false,
        };
        self.rounded_up = to_infinity;
        if to_infinity {
            Float::infinity(negative)
        } else {
            Float::finite(negative, format.max_exponent, u64::MAX << (64 - format.precision))
        }
    }

    fn tiny(
        &mut self,
        format: Format,
        negative: bool,
        exponent: i32,
        significand: u128,
        unbounded: Cut,
    ) -> Float {
        if self.masked & UNDERFLOW == 0 {
            self.raise(UNDERFLOW);
            return self.trapped(format, unbounded, negative, exponent, 1);
        } else if self.flush_to_zero {
            self.raise(UNDERFLOW | INEXACT);
            return Float::zero(negative);
        }
        let below = (format.min_exponent() - exponent) as u32;
        let shifted = shift_right_sticky(significand, below);
        let cut = Cut::new(self.rounding, negative, shifted, 128 - format.precision);
        if cut.inexact {
            self.raise(UNDERFLOW);
        }
        self.note(cut);
        cut.value(format, negative, format.min_exponent())
    }
}

/// A significand cut down to its upper bits.
#[derive(Clone, Copy)]
struct Cut {
    kept: u128,
    inexact: bool,
    up: bool,
}

impl Cut {
    /// Drop the low `drop` bits (1 to 127).
    fn new(mode: RoundingMode, negative: bool, significand: u128, drop: u32) -> Cut {
        let (kept, rest) = (significand >> drop, significand & ((1 << drop) - 1));
        let half = 1 << (drop - 1);
        let up = match mode {
            RoundingMode::NearestEven => rest > half || rest == half && kept & 1 == 1,
            RoundingMode::Down => negative && rest != 0,
            RoundingMode::Up => !negative && rest != 0,
            RoundingMode::Zero => false,
        };
        Cut { kept: kept + u128::from(up), inexact: rest != 0, up }
    }

    /// The value, if the significand's bit 127 counted `2^exponent`.
    fn value(self, format: Format, negative: bool, exponent: i32) -> Float {
        if self.kept >> format.precision != 0 {
            Float::finite(negative, exponent + 1, 1 << 63)
        } else {
            Float::finite(negative, exponent, (self.kept as u64) << (64 - format.precision))
        }
    }
}

/// `value >> by`, the lowest bit also standing for all that fell out.
fn shift_right_sticky(value: u128, by: u32) -> u128 {
    match by {
        0 => value,
        1..=127 => value >> by | u128::from(value << (128 - by) != 0),
        _ => u128::from(value != 0),
    }
}
