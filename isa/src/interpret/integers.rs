//! Concrete integers of a known width.

use crate::machine::{BinOp, CmpOp, UnOp, Width};

/// An integer of `width`; bits above it are zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Integer {
    /// The value, zero-extended.
    pub bits: u128,
    /// Its width.
    pub width: Width,
}

impl Integer {
    /// `bits`, truncated to `width`.
    pub const fn new(width: Width, bits: u128) -> Integer {
        Integer { bits: bits & width.mask(), width }
    }

    /// The low 64 bits.
    pub const fn low(self) -> u64 {
        self.bits as u64
    }

    /// The value as a signed number.
    pub const fn signed(self) -> i128 {
        let unused = 128 - self.width.bits();
        ((self.bits << unused) as i128) >> unused
    }

    /// Two-operand arithmetic. A division whose operands the caller had to exclude yields zero: its trap
    /// has been raised and nothing will be made of the value.
    #[inline]
    pub(super) fn bin(op: BinOp, a: Integer, b: Integer) -> Integer {
        debug_assert_eq!(a.width, b.width, "operands of {op:?}");
        let (x, y) = (a.bits, b.bits);
        let count = y as u32;
        debug_assert!(!is_shift(op) || y < u128::from(a.width.bits()), "shift count {y}");
        let bits = match op {
            BinOp::Add => x.wrapping_add(y),
            BinOp::Sub => x.wrapping_sub(y),
            BinOp::Mul => x.wrapping_mul(y),
            BinOp::And => x & y,
            BinOp::Or => x | y,
            BinOp::Xor => x ^ y,
            BinOp::Shl => x.wrapping_shl(count),
            BinOp::LShr => x.wrapping_shr(count),
            BinOp::AShr => a.signed().wrapping_shr(count) as u128,
            BinOp::UDiv => divide(x, y, |x, y| x / y),
            BinOp::URem => divide(x, y, |x, y| x % y),
            BinOp::SDiv => a.signed().checked_div(b.signed()).unwrap_or(0) as u128,
            BinOp::SRem => a.signed().checked_rem(b.signed()).unwrap_or(0) as u128,
        };
        Integer::new(a.width, bits)
    }

    /// One-operand arithmetic.
    #[inline]
    pub(super) fn un(op: UnOp, a: Integer) -> Integer {
        let width = a.width.bits();
        let bits = match op {
            UnOp::Not => !a.bits,
            UnOp::Neg => a.bits.wrapping_neg(),
            UnOp::CountOnes => a.bits.count_ones().into(),
            UnOp::LeadingZeros => (a.bits.leading_zeros() - (128 - width)).into(),
            UnOp::TrailingZeros => a.bits.trailing_zeros().min(width).into(),
            UnOp::SwapBytes => a.bits.swap_bytes() >> (128 - width),
        };
        Integer::new(a.width, bits)
    }

    /// Carry-less product of two 64-bit integers.
    pub(super) fn carryless_mul(a: Integer, b: Integer) -> Integer {
        let bits = (0..64).filter(|n| b.bits >> n & 1 != 0).fold(0, |sum, n| sum ^ a.bits << n);
        Integer::new(Width::W128, bits)
    }

    /// Comparison.
    #[inline]
    pub(super) fn cmp(op: CmpOp, a: Integer, b: Integer) -> bool {
        debug_assert_eq!(a.width, b.width, "operands of {op:?}");
        match op {
            CmpOp::Eq => a.bits == b.bits,
            CmpOp::Ne => a.bits != b.bits,
            CmpOp::Ult => a.bits < b.bits,
            CmpOp::Ule => a.bits <= b.bits,
            CmpOp::Slt => a.signed() < b.signed(),
            CmpOp::Sle => a.signed() <= b.signed(),
        }
    }
}

fn is_shift(op: BinOp) -> bool {
    matches!(op, BinOp::Shl | BinOp::LShr | BinOp::AShr)
}

/// Unsigned division, in 64 bits where that is enough.
fn divide(x: u128, y: u128, wide: fn(u128, u128) -> u128) -> u128 {
    if y == 0 { 0 } else { wide(x, y) }
}
