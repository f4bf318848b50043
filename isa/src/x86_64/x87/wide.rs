//! Real numbers with 128 significant bits: enough above 64 for elementary functions by their series.

use crate::softfloat::Float;

/// `significand × 2^(exponent − 127)`; the significand's top bit is set unless the number is zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Wide {
    pub(super) negative: bool,
    pub(super) exponent: i32,
    pub(super) significand: u128,
}

pub(super) const ONE: Wide = Wide::new(0, 1 << 127);
pub(super) const LN_2: Wide = Wide::new(-1, 0xb172_17f7_d1cf_79ab_c9e3_b398_03f2_f6af);
pub(super) const LOG2_E: Wide = Wide::new(0, 0xb8aa_3b29_5c17_f0bb_be87_fed0_691d_3e89);
pub(super) const PI: Wide = Wide::new(1, 0xc90f_daa2_2168_c234_c4c6_628b_80dc_1cd1);
pub(super) const HALF_PI: Wide = Wide::new(0, 0xc90f_daa2_2168_c234_c4c6_628b_80dc_1cd1);
/// Arctangents of 1/8 to 8/8.
const ARCTANGENTS: [Wide; 8] = [
    Wide::new(-4, 0xfead_d4d5_617b_6e32_c897_989f_3e88_8ef8),
    Wide::new(-3, 0xfadb_afc9_6406_eb15_6dc7_9ef5_f7a2_17e6),
    Wide::new(-2, 0xb7b0_ca0f_26f7_8473_8aa3_2122_dcfe_4483),
    Wide::new(-2, 0xed63_382b_0dda_7b45_6fe4_45ec_bc3a_8d03),
    Wide::new(-1, 0x8f00_5d5e_f7f5_9f9b_5c83_5e16_65c4_3748),
    Wide::new(-1, 0xa4bc_7d19_34f7_0924_19a8_7f2a_457d_ac9f),
    Wide::new(-1, 0xb805_3e2b_c231_9e73_cb2d_a552_10a4_443d),
    Wide::new(-1, 0xc90f_daa2_2168_c234_c4c6_628b_80dc_1cd1),
];

impl Wide {
    pub(super) const ZERO: Wide = Wide::new(0, 0);

    const fn new(exponent: i32, significand: u128) -> Wide {
        Wide { negative: false, exponent, significand }
    }

    /// `integer × 2^scale`.
    pub(super) fn scaled(negative: bool, integer: u128, scale: i32) -> Wide {
        if integer == 0 {
            return Wide::ZERO;
        }
        let shift = integer.leading_zeros();
        Wide { negative, exponent: scale + 127 - shift as i32, significand: integer << shift }
    }

    /// A finite value.
    pub(super) fn from_float(x: Float) -> Wide {
        Wide::scaled(x.negative, x.significand.into(), x.exponent - 63)
    }

    pub(super) fn is_zero(self) -> bool {
        self.significand == 0
    }

    pub(super) fn negated(self) -> Wide {
        Wide { negative: !self.negative, ..self }
    }

    pub(super) fn magnitude(self) -> Wide {
        Wide { negative: false, ..self }
    }

    pub(super) fn with_sign(self, negative: bool) -> Wide {
        Wide { negative, ..self }
    }

    /// Times two.
    pub(super) fn doubled(self) -> Wide {
        Wide { exponent: self.exponent + 1, ..self }
    }

    pub(super) fn mul(self, other: Wide) -> Wide {
        let (a, b) = (self.significand, other.significand);
        let (a1, a0, b1, b0) = (a >> 64, a & LOW, b >> 64, b & LOW);
        let (middle, carried) = (a1 * b0).overflowing_add(a0 * b1);
        let (middle, carried_low) = middle.overflowing_add((a0 * b0) >> 64);
        let carries = u128::from(carried) + u128::from(carried_low);
        let high = a1 * b1 + (middle >> 64) + (carries << 64);
        let product = Wide::scaled(self.negative != other.negative, high, 0);
        if product.is_zero() {
            return product;
        }
        // The product's leading bit is at most one below the top, so its lowest bit is the only one lost.
        let exponent = self.exponent + other.exponent + 1 - high.leading_zeros() as i32;
        Wide { exponent, ..product }
    }

    /// Quotient by a non-zero number, digit by digit.
    pub(super) fn div(self, other: Wide) -> Wide {
        if self.is_zero() {
            return self;
        }
        let (mut rest, mut quotient, mut carry) = (self.significand, 0u128, false);
        for _ in 0..128 {
            let fits = carry || rest >= other.significand;
            quotient = quotient << 1 | u128::from(fits);
            if fits {
                rest = rest.wrapping_sub(other.significand);
            }
            carry = rest >> 127 != 0;
            rest <<= 1;
        }
        let value = Wide::scaled(self.negative != other.negative, quotient, -127);
        Wide { exponent: value.exponent + self.exponent - other.exponent, ..value }
    }

    /// Quotient by a small integer.
    pub(super) fn div_small(self, by: u64) -> Wide {
        Wide::scaled(self.negative, self.significand / u128::from(by), self.exponent - 127)
    }

    pub(super) fn add(self, other: Wide) -> Wide {
        if self.is_zero() {
            return other;
        }
        if other.is_zero() {
            return self;
        }
        let (large, small) = if (self.exponent, self.significand) >= (other.exponent, other.significand) {
            (self, other)
        } else {
            (other, self)
        };
        let distance = (large.exponent - small.exponent) as u32;
        let aligned = small.significand.unbounded_shr(distance);
        if large.negative != small.negative {
            return Wide::scaled(large.negative, large.significand - aligned, large.exponent - 127);
        }
        match large.significand.checked_add(aligned) {
            Some(sum) => Wide { significand: sum, ..large },
            None => {
                let sum = large.significand.wrapping_add(aligned) >> 1 | 1 << 127;
                Wide { significand: sum, exponent: large.exponent + 1, ..large }
            }
        }
    }

    pub(super) fn sub(self, other: Wide) -> Wide {
        self.add(other.negated())
    }

    /// The number, which is known to be less than `bound`, even if the difference is too small to show:
    /// directed rounding depends on it.
    fn but_below(self, bound: Wide) -> Wide {
        if self != bound || self.is_zero() {
            return self;
        }
        Wide::scaled(self.negative, self.significand - 1, self.exponent - 127)
    }

    // ---- functions ----

    /// `1 + x/d(1) (1 + x/d(2) (1 + …))`, `terms` deep.
    fn nested(self, terms: u64, divisor: fn(u64) -> u64) -> Wide {
        (1..=terms).rev().fold(ONE, |sum, k| ONE.add(self.mul(sum).div_small(divisor(k))))
    }

    /// `1 + x/3 + x²/5 + …`.
    fn odd_series(self, terms: u64) -> Wide {
        (0..terms).rev().fold(Wide::ZERO, |sum, k| ONE.div_small(2 * k + 1).add(self.mul(sum)))
    }

    /// e^x − 1 for |x| below 1.
    pub(super) fn exp_minus_1(self) -> Wide {
        self.mul(self.nested(34, |k| k + 1))
    }

    /// Sine of at most π/4.
    pub(super) fn sine(self) -> Wide {
        self.mul(self.mul(self).negated().nested(17, |k| 2 * k * (2 * k + 1))).but_below(self)
    }

    /// Cosine of at most π/4.
    pub(super) fn cosine(self) -> Wide {
        self.mul(self).negated().nested(18, |k| (2 * k - 1) * 2 * k).but_below(ONE)
    }

    /// log2((1 + z) / (1 − z)) for |z| up to 0.18.
    fn log2_of_ratio(self) -> Wide {
        self.mul(self.mul(self).odd_series(28)).doubled().mul(LOG2_E)
    }

    /// Base-2 logarithm of a positive number.
    pub(super) fn log2(self) -> Wide {
        /// √2.
        const MIDDLE: u128 = 0xb504_f333_f9de_6484_597d_89b3_754a_be9f;
        let above = i32::from(self.significand > MIDDLE);
        let whole = self.exponent + above;
        let fraction = Wide { exponent: -above, ..self };
        let logarithm = fraction.sub(ONE).div(fraction.add(ONE)).log2_of_ratio();
        logarithm.add(Wide::scaled(whole < 0, whole.unsigned_abs().into(), 0))
    }

    /// log2(1 + x), x above −1.
    pub(super) fn log2_plus_1(self) -> Wide {
        if self.exponent < -2 {
            return self.div(ONE.doubled().add(self)).log2_of_ratio();
        }
        ONE.add(self).log2()
    }

    /// Arctangent of 0 to 1: by the tabulated one of the nearest eighth and that of what is left.
    pub(super) fn arctangent(self) -> Wide {
        let eighths = Wide { exponent: self.exponent + 4, ..self };
        let nearest = match eighths.exponent {
            ..0 => 0,
            exponent => ((eighths.significand >> (127 - exponent)) as usize).div_ceil(2),
        };
        if nearest == 0 {
            return self.mul(self.mul(self).negated().odd_series(16)).but_below(self);
        }
        let known = Wide::scaled(false, nearest as u128, -3);
        let rest = self.sub(known).div(ONE.add(self.mul(known)));
        let correction = rest.mul(rest.mul(rest).negated().odd_series(16));
        ARCTANGENTS[nearest - 1].add(correction)
    }
}

/// The low half of a significand.
const LOW: u128 = u64::MAX as u128;
