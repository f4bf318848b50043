//! VRCP14 and VRSQRT14: what AMD's CPUs (Zen 4 and later) yield, bit for bit, as found by trying all significands. SDM
//! vol. 2C leaves the estimate open, within a relative error of 2^-14.

use crate::machine::FloatFormat;
use crate::softfloat::{Class, Float};

use super::float::{Unit, format_of};

/// A straight line: its start, and by how much it falls in each of 1024 steps.
type Line = (u32, u32);

/// 1/x in the 64 parts of 1 ≤ x < 2, less 1/2, in units of 2^-26.
const RECIPROCALS: [Line; 64] = [
    (33552640, 1009),
    (32519680, 977),
    (31519232, 949),
    (30547968, 921),
    (29604608, 893),
    (28690176, 869),
    (27800320, 843),
    (26936832, 821),
    (26096128, 797),
    (25279488, 777),
    (24483840, 755),
    (23710208, 735),
    (22957056, 717),
    (22223616, 699),
    (21508352, 681),
    (20810752, 663),
    (20131584, 647),
    (19468544, 631),
    (18822656, 617),
    (18191104, 601),
    (17575168, 587),
    (16973568, 573),
    (16386560, 561),
    (15811840, 547),
    (15250944, 535),
    (14702592, 523),
    (14167296, 513),
    (13642240, 501),
    (13129472, 491),
    (12627200, 479),
    (12135936, 469),
    (11654912, 459),
    (11184640, 451),
    (10723072, 441),
    (10271744, 433),
    (9828352, 423),
    (9394688, 415),
    (8969472, 407),
    (8552448, 399),
    (8143616, 391),
    (7743488, 385),
    (7349504, 377),
    (6963456, 369),
    (6585088, 363),
    (6213888, 357),
    (5848320, 349),
    (5490176, 343),
    (5138432, 337),
    (4793088, 331),
    (4453632, 325),
    (4120064, 319),
    (3793408, 315),
    (3470848, 309),
    (3154176, 303),
    (2843648, 299),
    (2537216, 293),
    (2236928, 289),
    (1941248, 285),
    (1649920, 279),
    (1364736, 275),
    (1083648, 271),
    (806656, 267),
    (533760, 263),
    (264960, 259),
];
/// 1/√x in the 32 parts of 1 ≤ x < 2, and of 2 ≤ x < 4, less 1/2, in units of 2^-26.
const RECIPROCAL_ROOTS: [[Line; 32]; 2] = [
    [
        (33551488, 1001),
        (32526464, 955),
        (31548032, 915),
        (30611712, 877),
        (29714176, 841),
        (28853120, 807),
        (28026496, 775),
        (27232384, 747),
        (26467584, 719),
        (25731200, 693),
        (25021312, 669),
        (24336896, 647),
        (23675136, 625),
        (23035136, 603),
        (22417280, 585),
        (21818752, 567),
        (21238656, 549),
        (20676992, 533),
        (20131712, 517),
        (19602432, 501),
        (19089024, 487),
        (18590080, 473),
        (18105344, 461),
        (17633664, 449),
        (17174400, 437),
        (16727424, 425),
        (16292608, 415),
        (15867648, 403),
        (15454080, 393),
        (15051520, 385),
        (14657408, 375),
        (14273792, 367),
    ],
    [
        (13896320, 707),
        (13171840, 675),
        (12480000, 647),
        (11817472, 619),
        (11183616, 595),
        (10574720, 571),
        (9990272, 549),
        (9428096, 527),
        (8887936, 509),
        (8367488, 491),
        (7864960, 473),
        (7380608, 457),
        (6912640, 441),
        (6460672, 427),
        (6023296, 413),
        (5600640, 401),
        (5190528, 389),
        (4792704, 377),
        (4407168, 365),
        (4033664, 355),
        (3670400, 345),
        (3317504, 335),
        (2974208, 325),
        (2640896, 317),
        (2316544, 309),
        (2000512, 301),
        (1692544, 293),
        (1392384, 285),
        (1100416, 279),
        (814720, 271),
        (536576, 265),
        (264960, 259),
    ],
];

/// Between 1/2 and 1, with 17 significant bits, times 2^`exponent`: `steps` in the upper bits of `fraction`, which follow the
/// number of the line.
fn estimate(negative: bool, lines: &[Line], fraction: u64, exponent: i32) -> Float {
    let line_bits = lines.len().ilog2();
    let (start, slope) = lines[(fraction >> (64 - line_bits)) as usize];
    let step = (fraction << line_bits >> 54) as u32;
    let beyond_half = (start - slope * step) >> 9;
    Float::finite(negative, exponent - 1, u64::from(1 << 16 | beyond_half) << 47)
}

/// The bits of a normal significand behind the leading one.
fn fraction(x: Float) -> u64 {
    x.significand << 1
}

impl Unit<'_> {
    /// About 1/`x`.
    pub(super) fn reciprocal(&self, format: FloatFormat, x: Float) -> Float {
        match x.class {
            Class::Zero => Float::infinity(x.negative),
            Class::Infinity => Float::zero(x.negative),
            Class::Finite if fraction(x) == 0 => self.fitting(format, Float { exponent: -x.exponent, ..x }),
            Class::Finite => {
                self.fitting(format, estimate(x.negative, &RECIPROCALS, fraction(x), -x.exponent))
            }
            _ => x.quieted(),
        }
    }

    /// About 1/√`x`.
    pub(super) fn reciprocal_root(&self, x: Float) -> Float {
        let half = x.exponent.div_euclid(2);
        let is_odd = x.exponent.rem_euclid(2) as usize;
        match x.class {
            Class::Nan => x.quieted(),
            Class::Zero => Float::infinity(x.negative),
            _ if x.negative => Float::INDEFINITE,
            Class::Infinity => Float::zero(false),
            _ if fraction(x) == 0 && is_odd == 0 => Float { exponent: -half, denormal: false, ..x },
            _ => estimate(false, &RECIPROCAL_ROOTS[is_odd], fraction(x), -half),
        }
    }

    /// Infinite beyond the format; zero below its normal numbers, if those are flushed.
    fn fitting(&self, format: FloatFormat, value: Float) -> Float {
        let format = format_of(format);
        if value.exponent > format.max_exponent {
            Float::infinity(value.negative)
        } else if value.exponent < format.min_exponent() && self.context.flush_to_zero {
            Float::zero(value.negative)
        } else {
            value
        }
    }
}
