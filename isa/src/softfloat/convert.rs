//! Between values, their encodings and integers.

use super::exception::{INEXACT, INVALID};
use super::{Class, Context, Cut, Float, Format, RoundingMode, shift_right_sticky};

impl Float {
    /// Take apart the interchange encoding of an IEEE format.
    pub fn from_bits(format: Format, bits: u64) -> Float {
        let fraction_bits = format.precision - 1;
        let fraction = bits & ((1 << fraction_bits) - 1);
        let biased = (bits >> fraction_bits) as i32 & (2 * format.max_exponent + 1);
        let negative = bits >> fraction_bits & (2 * format.max_exponent as u64 + 2) != 0;
        let aligned = fraction << (64 - format.precision);
        match (biased, fraction) {
            (0, 0) => Float::zero(negative),
            (0, _) => Float { denormal: true, ..Float::finite(negative, format.min_exponent(), aligned) },
            (b, 0) if b > 2 * format.max_exponent => Float::infinity(negative),
            (b, _) if b > 2 * format.max_exponent => Float {
                negative,
                class: Class::Nan,
                exponent: 0,
                significand: aligned | 1 << 63,
                denormal: false,
            },
            _ => Float::finite(negative, biased - format.max_exponent, aligned | 1 << 63),
        }
    }

    /// Put together the interchange encoding. The value must be one of `format`'s.
    pub fn to_bits(self, format: Format) -> u64 {
        let fraction_bits = format.precision - 1;
        let fraction = self.significand << 1 >> (65 - format.precision);
        let (biased, fraction) = match self.class {
            Class::Zero => (0, 0),
            Class::Finite if self.exponent < format.min_exponent() => {
                let below = (format.min_exponent() - self.exponent) as u32;
                (0, self.significand.unbounded_shr(64 - format.precision + below))
            }
            Class::Finite => ((self.exponent + format.max_exponent) as u64, fraction),
            Class::Infinity => (2 * format.max_exponent as u64 + 1, 0),
            Class::Nan | Class::Unsupported => (2 * format.max_exponent as u64 + 1, fraction),
        };
        let sign = u64::from(self.negative) * (2 * format.max_exponent as u64 + 2);
        (sign | biased) << fraction_bits | fraction
    }

    /// Take apart an x87 double extended value (SDM vol. 1, table 8-3).
    pub fn from_x87(sign_exponent: u16, significand: u64) -> Float {
        let negative = sign_exponent >> 15 != 0;
        let integer_bit = significand >> 63 != 0;
        let special = |class| Float { negative, class, exponent: 0, significand, denormal: false };
        match sign_exponent & 0x7fff {
            0 => {
                let value = Float::finite(negative, Format::X87.min_exponent(), significand);
                Float { denormal: significand != 0, ..value }
            }
            _ if !integer_bit => special(Class::Unsupported),
            0x7fff if significand == 1 << 63 => Float::infinity(negative),
            0x7fff => special(Class::Nan),
            biased => Float::finite(negative, i32::from(biased) - 16383, significand),
        }
    }

    /// Sign with exponent, and significand, of an x87 double extended value.
    pub fn to_x87(self) -> (u16, u64) {
        let (biased, significand) = match self.class {
            Class::Zero => (0, 0),
            Class::Finite if self.exponent < Format::X87.min_exponent() => {
                let below = (Format::X87.min_exponent() - self.exponent) as u32;
                (0, self.significand.unbounded_shr(below))
            }
            Class::Finite => ((self.exponent + 16383) as u16, self.significand),
            _ => (0x7fff, self.significand),
        };
        (u16::from(self.negative) << 15 | biased, significand)
    }
}

impl Context {
    /// `value` in another format, as a conversion instruction does it.
    pub fn convert(&mut self, to: Format, value: Float) -> Float {
        if let Some(nan) = self.nan_result(&[value]) {
            return nan;
        }
        self.note_denormals(&[value]);
        self.round_value(to, value)
    }

    /// An integer as a float.
    pub fn from_int(&mut self, to: Format, value: i64) -> Float {
        let exact = Float::finite(value < 0, 63, value.unsigned_abs());
        self.round_value(to, if value == 0 { Float::zero(false) } else { exact })
    }

    /// A float as a signed integer of `bits` (at most 64); nothing, and invalid, if it has no such value.
    pub fn to_int(&mut self, mode: RoundingMode, value: Float, bits: u32) -> Option<i64> {
        let converted = self.integer_part(mode, value).and_then(|(magnitude, cut)| {
            let limit = (1 << (bits - 1)) - u64::from(!value.negative);
            (magnitude <= limit).then_some((magnitude, cut))
        });
        let Some((magnitude, cut)) = converted else {
            self.raise(INVALID);
            return None;
        };
        self.rounded_up = cut.up;
        if cut.inexact {
            self.raise(INEXACT);
        }
        Some(if value.negative { magnitude.wrapping_neg() } else { magnitude } as i64)
    }

    /// Magnitude rounded to an integer, where it has fewer than 64 bits before the point.
    fn integer_part(&self, mode: RoundingMode, value: Float) -> Option<(u64, Cut)> {
        let significand = match value.class {
            Class::Zero => 0,
            Class::Finite if value.exponent <= 63 => u128::from(value.significand) << 64,
            _ => return None,
        };
        let shifted = shift_right_sticky(significand, (63 - value.exponent) as u32);
        let cut = Cut::new(mode, value.negative, shifted, 64);
        u64::try_from(cut.kept).ok().map(|magnitude| (magnitude, cut))
    }

    /// A float rounded to an integral one; not a NaN. Raises inexact where it changes.
    pub fn round_to_integral(&mut self, mode: RoundingMode, value: Float) -> Float {
        if value.class != Class::Finite || value.exponent >= 63 {
            self.rounded_up = false;
            return value;
        }
        let Some((magnitude, cut)) = self.integer_part(mode, value) else { return value };
        self.rounded_up = cut.up;
        if cut.inexact {
            self.raise(INEXACT);
        }
        Float::finite(value.negative, 63, magnitude)
    }
}
