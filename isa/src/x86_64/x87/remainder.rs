//! FPREM and FPREM1.

use super::unit::{C0, C1, C2, C3, Unit};
use crate::softfloat::{Class, Float, Format};

/// The largest difference of exponents that one step reduces completely.
const COMPLETE: i32 = 64;

/// The remainder, and the quotient's low bits unless the reduction is not complete.
struct Reduced {
    value: Float,
    quotient: Option<u64>,
}

impl Unit<'_> {
    /// FPREM (truncating) and FPREM1 (`nearest`).
    pub(super) fn remainder(&mut self, nearest: bool) {
        self.set_conditions(C2, 0);
        let (Some(x), Some(y)) = (self.get(0), self.get(1)) else { return self.underflow(0, 0) };
        if let Some(nan) = self.context.nan_result(&[x, y]) {
            return self.deliver(0, nan, 0);
        }
        if x.class == Class::Infinity || y.class == Class::Zero {
            let result = self.context.invalid();
            return self.deliver(0, result, 0);
        }
        self.context.note_denormals(&[x, y]);
        let reduced = match (x.class, y.class) {
            (Class::Finite, Class::Finite) => reduce(x, y, nearest),
            _ => Reduced { value: x, quotient: Some(0) },
        };
        let value = self.context.round_value(Format::X87, reduced.value);
        self.deliver(0, value, 0);
        if self.context.raised & !self.context.masked & 7 == 0 {
            self.set_conditions(C0 | C1 | C2 | C3, conditions(reduced.quotient));
        }
    }
}

/// C0, C3, C1: bits 2, 1, 0 of the quotient. C2: not complete.
fn conditions(quotient: Option<u64>) -> u16 {
    let Some(q) = quotient else { return C2 };
    [(2, C0), (1, C3), (0, C1)].into_iter().filter(|(bit, _)| q >> bit & 1 != 0).map(|(_, code)| code).sum()
}

fn reduce(x: Float, y: Float, nearest: bool) -> Reduced {
    let distance = x.exponent - y.exponent;
    if distance < -1 || distance < 0 && !nearest {
        return Reduced { value: x, quotient: Some(0) };
    }
    if distance >= COMPLETE {
        return Reduced { value: partial(x, y, distance), quotient: None };
    }
    // Both significands as multiples of 2^(y.exponent - 64).
    let (dividend, divisor) = (u128::from(x.significand) << (distance + 1), u128::from(y.significand) << 1);
    let (mut quotient, mut rest) = (dividend / divisor, dividend % divisor);
    let mut negative = x.negative;
    if nearest && (rest > divisor - rest || rest == divisor - rest && quotient & 1 == 1) {
        quotient += 1;
        rest = divisor - rest;
        negative = !negative;
    }
    Reduced { value: integral(negative, y.exponent - 64, rest, x.negative), quotient: Some(quotient as u64) }
}

/// Reduce the distance by a number of bits between 32 and 63, as the CPU chooses it.
fn partial(x: Float, y: Float, distance: i32) -> Float {
    let bits = distance & 31 | 32;
    let rest = (u128::from(x.significand) << bits) % u128::from(y.significand);
    integral(x.negative, y.exponent + distance - bits - 63, rest, x.negative)
}

/// `rest × 2^exponent`, or a zero of sign `zero`.
fn integral(negative: bool, exponent: i32, rest: u128, zero: bool) -> Float {
    if rest == 0 {
        return Float::zero(zero);
    }
    let shift = rest.leading_zeros();
    Float::finite(negative, exponent + 127 - shift as i32, (rest << shift >> 64) as u64)
}
