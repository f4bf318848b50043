//! Functions that have no exact result: logarithms, exponentials, trigonometry. Computed to well above 64
//! bits and rounded once. Angles are reduced by the 66-bit π that the unit has always had (SDM vol. 1, 8.3.8).

use super::Operation;
use super::unit::{C2, Unit};
use super::wide::{HALF_PI, LN_2, PI, Wide};
use crate::softfloat::exception::{DIVIDE_BY_ZERO, INEXACT};
use crate::softfloat::{Class, Float, Format};

/// 1.
const ONE_FLOAT: Float = Float::finite(false, 0, 1 << 63);
/// The unit's π/2, times 2^67.
const HALF_PI_66: u128 = 0xc_90fd_aa22_168c_234c;
/// Angles from 2 to this power on are not reduced.
const LARGEST_ANGLE: i32 = 63;

/// A result before it is rounded. (Rounding raises exceptions, so only results that are wanted are.)
#[derive(Clone, Copy)]
enum Value {
    Exact(Float),
    Inexact(Wide),
}

impl Unit<'_> {
    /// F2XM1, FSIN, FCOS.
    pub(super) fn transcendental(&mut self, operation: Operation) {
        if operation != Operation::Exp2Minus1 {
            self.set_conditions(C2, 0);
        }
        let Some(x) = self.get(0) else { return self.underflow(0, 0) };
        let result = match self.context.nan_result(&[x]) {
            Some(nan) => nan,
            None if operation == Operation::Exp2Minus1 => self.exp2_minus_1(x),
            None => {
                let Some([sine, cosine]) = self.sine_cosine(x) else { return };
                self.finished(if operation == Operation::Sine { sine } else { cosine })
            }
        };
        self.deliver(0, result, 0);
    }

    /// FSINCOS, FPTAN: the second result is pushed.
    pub(super) fn transcendental_push(&mut self, operation: Operation) {
        self.set_conditions(C2, 0);
        let Some(x) = self.get(0) else { return self.underflow_pair() };
        if !self.is_empty(7) {
            return self.overflow_pair();
        }
        let (first, second) = match self.context.nan_result(&[x]) {
            Some(nan) => (nan, nan),
            None if operation == Operation::SineCosine => match self.sine_cosine(x) {
                Some(both) => {
                    let [sine, cosine] = both.map(|value| self.finished(value));
                    (sine, cosine)
                }
                None => return,
            },
            None => match self.tangent(x) {
                Some(tangent) if tangent.is_nan() => (tangent, tangent),
                Some(tangent) => (tangent, ONE_FLOAT),
                None => return,
            },
        };
        self.deliver_pair(first, second);
    }

    /// FYL2X, FYL2XP1, FPATAN: of ST(1) and ST(0), to ST(1), and pop.
    pub(super) fn transcendental_pair(&mut self, operation: Operation) {
        let (Some(y), Some(x)) = (self.get(1), self.get(0)) else { return self.underflow(1, 1) };
        let result = match self.context.nan_result(&[y, x]) {
            Some(nan) => nan,
            None => match operation {
                Operation::YLog2X => self.y_log2_x(y, x),
                Operation::YLog2XPlus1 => self.y_log2_x_plus_1(y, x),
                _ => self.arctangent(y, x),
            },
        };
        self.deliver(1, result, 1);
    }

    fn finished(&mut self, value: Value) -> Float {
        match value {
            Value::Exact(value) => value,
            Value::Inexact(value) => self.rounded(value),
        }
    }

    /// Round what is not exact.
    fn rounded(&mut self, value: Wide) -> Float {
        if value.is_zero() {
            return Float::zero(value.negative);
        }
        self.context.round(Format::X87, value.negative, value.exponent, value.significand | 1)
    }

    fn exp2_minus_1(&mut self, x: Float) -> Float {
        self.context.note_denormals(&[x]);
        match x.class {
            Class::Infinity if x.negative => return ONE_FLOAT.negated(),
            Class::Zero | Class::Infinity => return x,
            _ => self.context.raise(INEXACT),
        }
        match x.exponent {
            // Undefined outside of -1 to 1; as AMD has it.
            0.. if x.exponent > 0 || x.significand > 1 << 63 => x,
            0 if x.negative => Float::finite(true, -1, 1 << 63),
            0 => x,
            _ => {
                let value = Wide::from_float(x).mul(LN_2).exp_minus_1();
                self.rounded(value)
            }
        }
    }

    // ---- trigonometry ----

    /// The quadrant of a finite angle and what is left within ±π/4. Nothing if it is too large.
    fn reduce(x: Float) -> Option<(u128, Wide)> {
        if x.exponent >= LARGEST_ANGLE {
            return None;
        }
        if x.exponent < -4 || x.class == Class::Zero {
            return Some((0, Wide::from_float(x)));
        }
        // In units of 2^-67; in two steps, to stay within 128 bits.
        let scale = (x.exponent + 4) as u32;
        let first = u128::from(x.significand) << scale.min(60);
        let rest = scale.saturating_sub(60);
        let (quotient, first) = (first / HALF_PI_66, first % HALF_PI_66);
        let (low, mut angle) = ((first << rest) / HALF_PI_66, (first << rest) % HALF_PI_66);
        let mut quadrant = (quotient << rest) + low;
        let beyond = 2 * angle > HALF_PI_66;
        if beyond {
            angle = HALF_PI_66 - angle;
            quadrant += 1;
        }
        if x.negative {
            quadrant = quadrant.wrapping_neg();
        }
        Some((quadrant & 3, Wide::scaled(x.negative != beyond, angle, -67)))
    }

    /// Nothing, and C2 set, if the angle is too large.
    fn reduced(&mut self, x: Float) -> Option<(u128, Wide)> {
        let reduced = Self::reduce(x);
        if reduced.is_none() {
            self.settle();
            self.set_conditions(C2, C2);
        }
        reduced
    }

    fn sine_cosine(&mut self, x: Float) -> Option<[Value; 2]> {
        match x.class {
            Class::Infinity => return Some([Value::Exact(self.context.invalid()); 2]),
            Class::Zero => return Some([x, ONE_FLOAT].map(Value::Exact)),
            _ => {}
        }
        let (quadrant, angle) = self.reduced(x)?;
        self.context.note_denormals(&[x]);
        let (sine, cosine) = (angle.sine(), angle.cosine());
        let both = match quadrant {
            0 => [sine, cosine],
            1 => [cosine, sine.negated()],
            2 => [sine.negated(), cosine.negated()],
            _ => [cosine.negated(), sine],
        };
        Some(both.map(Value::Inexact))
    }

    fn tangent(&mut self, x: Float) -> Option<Float> {
        match x.class {
            Class::Infinity => return Some(self.context.invalid()),
            Class::Zero => return Some(x),
            _ => {}
        }
        let (quadrant, angle) = self.reduced(x)?;
        self.context.note_denormals(&[x]);
        let (sine, cosine) = (angle.sine(), angle.cosine());
        let tangent = if quadrant & 1 == 0 { sine.div(cosine) } else { cosine.div(sine).negated() };
        Some(self.rounded(tangent))
    }

    fn arctangent(&mut self, y: Float, x: Float) -> Float {
        self.context.note_denormals(&[y, x]);
        let infinite = (y.class == Class::Infinity, x.class == Class::Infinity);
        let magnitude = match (y.class, x.class) {
            (Class::Zero, _) | (Class::Finite, Class::Infinity) if !x.negative => {
                return Float::zero(y.negative);
            }
            (Class::Zero, _) | (Class::Finite, Class::Infinity) => PI,
            (Class::Infinity, Class::Infinity) => {
                let eighth = HALF_PI.div_small(2);
                if x.negative { PI.sub(eighth) } else { eighth }
            }
            _ if infinite.0 || x.class == Class::Zero => HALF_PI,
            _ => arctangent_of_quotient(Wide::from_float(y).magnitude(), Wide::from_float(x)),
        };
        self.rounded(magnitude.with_sign(y.negative))
    }

    // ---- logarithms ----

    fn y_log2_x(&mut self, y: Float, x: Float) -> Float {
        let is_one = x.class == Class::Finite && x.exponent == 0 && x.significand == 1 << 63;
        let below_one = x.class == Class::Zero || x.class == Class::Finite && x.exponent < 0;
        match (y.class, x.class) {
            (_, Class::Finite | Class::Infinity) if x.negative => return self.context.invalid(),
            (Class::Zero, Class::Zero | Class::Infinity) => return self.context.invalid(),
            (Class::Infinity, _) if is_one => return self.context.invalid(),
            (Class::Finite, Class::Zero) => {
                self.context.raise(DIVIDE_BY_ZERO);
                return Float::infinity(!y.negative);
            }
            _ => self.context.note_denormals(&[y, x]),
        }
        let negative = y.negative != below_one;
        match (y.class, x.class) {
            (Class::Infinity, _) | (_, Class::Infinity) => Float::infinity(negative),
            (Class::Zero, _) => Float::zero(negative),
            _ if is_one => Float::zero(y.negative),
            _ if x.significand == 1 << 63 => self.times_integer(y, x.exponent),
            _ => {
                let value = Wide::from_float(x).log2().mul(Wide::from_float(y));
                self.rounded(value)
            }
        }
    }

    /// y × n, which may be exact, but is reported as if it were not.
    fn times_integer(&mut self, y: Float, n: i32) -> Float {
        let n = self.context.from_int(Format::X87, n.into());
        let product = self.context.mul(Format::X87, y, n);
        self.context.raise(INEXACT);
        product
    }

    fn y_log2_x_plus_1(&mut self, y: Float, x: Float) -> Float {
        match (y.class, x.class) {
            (_, Class::Infinity) if x.negative => return self.context.invalid(),
            (Class::Zero, Class::Infinity) | (Class::Infinity, Class::Zero) => return self.context.invalid(),
            _ => self.context.note_denormals(&[y, x]),
        }
        let negative = y.negative != x.negative;
        match (y.class, x.class) {
            (Class::Infinity, _) | (_, Class::Infinity) => Float::infinity(negative),
            (Class::Zero, _) | (_, Class::Zero) => Float::zero(negative),
            // Undefined from -1 down; as AMD has it.
            _ if x.negative && x.exponent >= 0 => {
                self.context.raise(INEXACT);
                x
            }
            _ => {
                let value = Wide::from_float(x).log2_plus_1().mul(Wide::from_float(y));
                self.rounded(value)
            }
        }
    }
}

/// The angle of (x, y), y positive: 0 to π.
fn arctangent_of_quotient(y: Wide, x: Wide) -> Wide {
    let steep = (y.exponent, y.significand) > (x.exponent, x.significand);
    let quotient = if steep { x.magnitude().div(y) } else { y.div(x.magnitude()) };
    let angle = quotient.arctangent();
    match (steep, x.negative) {
        (false, false) => angle,
        (false, true) => PI.sub(angle),
        (true, false) => HALF_PI.sub(angle),
        (true, true) => HALF_PI.add(angle),
    }
}
