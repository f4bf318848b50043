//! Sum, product, quotient, square root and comparison.

use super::{Class, Context, Float, Format, RoundingMode, shift_right_sticky};
use core::cmp::Ordering;

impl Context {
    /// `a + b`.
    pub fn add(&mut self, format: Format, a: Float, b: Float) -> Float {
        if let Some(nan) = self.nan_result(&[a, b]) {
            return nan;
        }
        if a.class == Class::Infinity && b.class == Class::Infinity && a.negative != b.negative {
            return self.invalid();
        }
        self.note_denormals(&[a, b]);
        match (a.class, b.class) {
            (Class::Infinity, _) => a,
            (_, Class::Infinity) => b,
            (Class::Zero, Class::Zero) if a.negative == b.negative => a,
            (Class::Zero, Class::Zero) => self.exact_zero(),
            (Class::Zero, _) => self.round_value(format, b),
            (_, Class::Zero) => self.round_value(format, a),
            _ => self.add_finite(format, a, b),
        }
    }

    /// `a - b`.
    pub fn sub(&mut self, format: Format, a: Float, b: Float) -> Float {
        self.add(format, a, if b.is_nan() { b } else { b.negated() })
    }

    /// The zero that a sum of opposites makes.
    fn exact_zero(&self) -> Float {
        Float::zero(self.rounding == RoundingMode::Down)
    }

    fn add_finite(&mut self, format: Format, a: Float, b: Float) -> Float {
        let (large, small) =
            if (a.exponent, a.significand) >= (b.exponent, b.significand) { (a, b) } else { (b, a) };
        let distance = (large.exponent - small.exponent) as u32;
        let upper = u128::from(large.significand) << 63;
        let lower = shift_right_sticky(u128::from(small.significand) << 63, distance);
        let sum = if a.negative == b.negative { upper + lower } else { upper - lower };
        if sum == 0 {
            return self.exact_zero();
        }
        self.round(format, large.negative, large.exponent + 1, sum)
    }

    /// `a × b`.
    pub fn mul(&mut self, format: Format, a: Float, b: Float) -> Float {
        if let Some(nan) = self.nan_result(&[a, b]) {
            return nan;
        }
        let negative = a.negative != b.negative;
        match (a.class, b.class) {
            (Class::Infinity, Class::Zero) | (Class::Zero, Class::Infinity) => return self.invalid(),
            _ => self.note_denormals(&[a, b]),
        }
        match (a.class, b.class) {
            (Class::Infinity, _) | (_, Class::Infinity) => Float::infinity(negative),
            (Class::Zero, _) | (_, Class::Zero) => Float::zero(negative),
            _ => {
                let product = u128::from(a.significand) * u128::from(b.significand);
                self.round(format, negative, a.exponent + b.exponent + 1, product)
            }
        }
    }

    /// `a × b + c`, the product or the addend negated, rounded once; for formats of at most 53 bits.
    pub fn multiply_add(
        &mut self,
        format: Format,
        (negate_product, negate_addend): (bool, bool),
        [a, b, c]: [Float; 3],
    ) -> Float {
        if let Some(nan) = self.nan_result(&[a, b, c]) {
            return nan;
        }
        let negative = (a.negative != b.negative) != negate_product;
        let c = if negate_addend { c.negated() } else { c };
        let infinite = a.class == Class::Infinity || b.class == Class::Infinity;
        let zero = a.class == Class::Zero || b.class == Class::Zero;
        if infinite && (zero || c.class == Class::Infinity && c.negative != negative) {
            return self.invalid();
        }
        self.note_denormals(&[a, b, c]);
        match (infinite, zero, c.class) {
            (true, ..) => Float::infinity(negative),
            (_, _, Class::Infinity) => c,
            (_, true, Class::Zero) if c.negative == negative => c,
            (_, true, Class::Zero) => self.exact_zero(),
            (_, true, _) => self.round_value(format, c),
            _ => {
                // Two bits of room for the sum; the factors' low bits are zero.
                let product = (u128::from(a.significand) * u128::from(b.significand)) >> 2;
                self.add_to_product(format, (negative, a.exponent + b.exponent + 3, product), c)
            }
        }
    }

    /// The sum of a value that is not zero, `significand × 2^(exponent − 127)` below 2^126, and `c`.
    fn add_to_product(
        &mut self,
        format: Format,
        (negative, exponent, product): (bool, i32, u128),
        c: Float,
    ) -> Float {
        let c_exponent = if c.class == Class::Zero { exponent } else { c.exponent + 2 };
        let addend = u128::from(c.significand) << 62;
        let top = exponent.max(c_exponent);
        let product = shift_right_sticky(product, (top - exponent) as u32);
        let addend = shift_right_sticky(addend, (top - c_exponent) as u32);
        let (sum, negative) = if negative == c.negative {
            (product + addend, negative)
        } else if product >= addend {
            (product - addend, negative)
        } else {
            (addend - product, c.negative)
        };
        if sum == 0 { self.exact_zero() } else { self.round(format, negative, top, sum) }
    }

    /// `a ÷ b`.
    pub fn div(&mut self, format: Format, a: Float, b: Float) -> Float {
        if let Some(nan) = self.nan_result(&[a, b]) {
            return nan;
        }
        let negative = a.negative != b.negative;
        match (a.class, b.class) {
            (Class::Infinity, Class::Infinity) | (Class::Zero, Class::Zero) => return self.invalid(),
            (Class::Finite, Class::Zero) => {
                self.raise(super::exception::DIVIDE_BY_ZERO);
                return Float::infinity(negative);
            }
            _ => self.note_denormals(&[a, b]),
        }
        match (a.class, b.class) {
            (Class::Infinity, _) => Float::infinity(negative),
            (Class::Zero, _) | (_, Class::Infinity) => Float::zero(negative),
            _ => {
                let quotient = quotient(a.significand, b.significand);
                self.round(format, negative, a.exponent - b.exponent + 31, quotient)
            }
        }
    }

    /// Square root.
    pub fn sqrt(&mut self, format: Format, a: Float) -> Float {
        if let Some(nan) = self.nan_result(&[a]) {
            return nan;
        }
        if a.negative && a.class != Class::Zero {
            return self.invalid();
        }
        self.note_denormals(&[a]);
        if a.class != Class::Finite {
            return a;
        }
        let odd = a.exponent & 1;
        let root = square_root(u128::from(a.significand) << odd);
        self.round(format, false, (a.exponent - odd) / 2, root)
    }

    /// How `a` compares with `b`; nothing if a NaN is involved. `signalling`: a quiet NaN is invalid too.
    pub fn compare(&mut self, signalling: bool, a: Float, b: Float) -> Option<Ordering> {
        if a.is_nan() || b.is_nan() || a.class == Class::Unsupported || b.class == Class::Unsupported {
            self.nan_result(&[a, b]);
            if signalling {
                self.invalid();
            }
            return None;
        }
        self.note_denormals(&[a, b]);
        Some(order(a, b))
    }
}

/// Numeric order of two values that are not NaNs.
pub(crate) fn order(a: Float, b: Float) -> Ordering {
    let key = |x: Float| {
        let magnitude = match x.class {
            Class::Zero => (i32::MIN, 0),
            Class::Infinity => (i32::MAX, 0),
            _ => (x.exponent, x.significand),
        };
        (x.negative && x.class != Class::Zero, magnitude)
    };
    match (key(a), key(b)) {
        ((false, a), (false, b)) => a.cmp(&b),
        ((true, a), (true, b)) => b.cmp(&a),
        ((a, _), _) => {
            if a {
                Ordering::Less
            } else {
                Ordering::Greater
            }
        }
    }
}

/// `a ÷ b × 2^96` of two normalised significands, sticky.
fn quotient(a: u64, b: u64) -> u128 {
    let (a, b) = (u128::from(a) << 64, u128::from(b));
    let (high, rest) = (a / b, a % b);
    let (low, rest) = ((rest << 32) / b, (rest << 32) % b);
    high << 32 | low | u128::from(rest != 0)
}

/// The square root of `value × 2^-63`, which is 1 to 4, times `2^127`; sticky. Digit by digit.
fn square_root(value: u128) -> u128 {
    let (mut root, mut rest) = (0u128, 0u128);
    for step in 0..67 {
        let position = 132 - 2 * step;
        let pair = match position {
            69.. => value >> (position - 69),
            68 => value << 1,
            _ => 0,
        };
        rest = rest << 2 | pair & 3;
        let trial = root << 2 | 1;
        root <<= 1;
        if rest >= trial {
            rest -= trial;
            root |= 1;
        }
    }
    root << 61 | u128::from(rest != 0)
}
