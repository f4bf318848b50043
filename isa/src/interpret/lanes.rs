//! Concrete vectors and lane-wise integer operations: plain loops over lanes.

use super::Integer;
use crate::machine::{LaneOp, Width};
use crate::x86_64::VEC_BYTES;

/// A vector of `bits` bits; bytes beyond them are zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Vector {
    /// The value, little-endian.
    pub bytes: [u8; VEC_BYTES],
    /// 128, 256 or 512.
    pub bits: u32,
}

impl Vector {
    /// All zero.
    pub const fn zero(bits: u32) -> Vector {
        Vector { bytes: [0; VEC_BYTES], bits }
    }

    /// Every lane `value`.
    pub fn splat(value: Integer, bits: u32) -> Vector {
        Vector::from_lanes(value.width, bits, |_| value)
    }

    /// The vector's bytes.
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.bits as usize / 8]
    }

    /// The vector's bytes.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut self.bytes[..self.bits as usize / 8]
    }

    /// Number of lanes of width `lane`.
    pub const fn lane_count(&self, lane: Width) -> u32 {
        self.bits / lane.bits()
    }

    /// Lane `index` of width `lane`.
    #[inline]
    pub fn lane(&self, lane: Width, index: u32) -> Integer {
        let at = (index * lane.bytes()) as usize;
        let bits = match lane {
            Width::W8 => self.bytes[at].into(),
            Width::W16 => u16::from_le_bytes(self.chunk(at)).into(),
            Width::W32 => u32::from_le_bytes(self.chunk(at)).into(),
            Width::W64 => u64::from_le_bytes(self.chunk(at)).into(),
            Width::W128 => u128::from_le_bytes(self.chunk(at)),
        };
        Integer { bits, width: lane }
    }

    /// `N` bytes from `at`; a lane lies within the vector.
    #[inline]
    fn chunk<const N: usize>(&self, at: usize) -> [u8; N] {
        self.bytes[at..].first_chunk().copied().unwrap_or([0; N])
    }

    /// Replace lane `index`, of `value`'s width.
    #[inline]
    pub fn set_lane(&mut self, index: u32, value: Integer) {
        let at = (index * value.width.bytes()) as usize;
        let to = &mut self.bytes[at..];
        match value.width {
            Width::W8 => to[0] = value.bits as u8,
            Width::W16 => to[..2].copy_from_slice(&(value.bits as u16).to_le_bytes()),
            Width::W32 => to[..4].copy_from_slice(&(value.bits as u32).to_le_bytes()),
            Width::W64 => to[..8].copy_from_slice(&(value.bits as u64).to_le_bytes()),
            Width::W128 => to[..16].copy_from_slice(&value.bits.to_le_bytes()),
        }
    }

    /// The vector whose lane `i` is `make(i)`.
    #[inline]
    pub fn from_lanes(lane: Width, bits: u32, mut make: impl FnMut(u32) -> Integer) -> Vector {
        let mut vector = Vector::zero(bits);
        for index in 0..bits / lane.bits() {
            let value = make(index);
            debug_assert_eq!(value.width, lane);
            vector.set_lane(index, value);
        }
        vector
    }

    /// Lane-wise operation.
    pub(super) fn lanes(op: LaneOp, lane: Width, a: &Vector, b: &Vector) -> Vector {
        Vector::from_lanes(lane, a.bits, |n| lane_op(op, a.lane(lane, n), b.lane(lane, n)))
    }

    /// Lanes of the concatenation of `a` and `b`, by index.
    pub(super) fn shuffle(lane: Width, a: &Vector, b: &Vector, indices: &[u8]) -> Vector {
        let count = a.lane_count(lane);
        debug_assert_eq!(indices.len(), count as usize);
        Vector::from_lanes(lane, a.bits, |n| match u32::from(indices[n as usize]) {
            index if index < count => a.lane(lane, index),
            index => b.lane(lane, index - count),
        })
    }

    /// The low half's lanes, each twice as wide.
    pub(super) fn widen_low(&self, lane: Width, signed: bool) -> Vector {
        Vector::from_lanes(lane.double(), self.bits, |n| {
            let value = self.lane(lane, n);
            let bits = if signed { value.signed() as u128 } else { value.bits };
            Integer::new(lane.double(), bits)
        })
    }

    /// In each 128-bit block lanes of `a` then `b`, signed, each clamped into half its width.
    pub(super) fn narrow_saturating(a: &Vector, b: &Vector, lane: Width, to_signed: bool) -> Vector {
        let count = 128 / lane.bits();
        let narrow = lane.half();
        Vector::from_lanes(narrow, a.bits, |n| {
            let (block, n) = (n / (2 * count), n % (2 * count));
            let from = if n < count { a } else { b };
            clamp(from.lane(lane, block * count + n % count).signed(), narrow, to_signed)
        })
    }

    /// Lanes of `table` by index, modulo their number.
    pub(super) fn permute(lane: Width, table: &Vector, indices: &Vector) -> Vector {
        let count = table.lane_count(lane);
        Vector::from_lanes(lane, indices.bits, |n| {
            table.lane(lane, indices.lane(lane, n).low() as u32 & (count - 1))
        })
    }

    /// Bytes of each 128-bit block of `table`, by index; zero where the index is 16 or more.
    pub(super) fn lookup(table: &Vector, indices: &Vector) -> Vector {
        let mut result = Vector::zero(table.bits);
        for (n, &index) in indices.as_slice().iter().enumerate() {
            if index < 16 {
                result.bytes[n] = table.bytes[n / 16 * 16 + usize::from(index)];
            }
        }
        result
    }

    /// The top bit of each lane.
    pub(super) fn sign_mask(&self, lane: Width, width: Width) -> Integer {
        let mask = (0..self.lane_count(lane))
            .filter(|&n| self.lane(lane, n).signed() < 0)
            .fold(0, |mask, n| mask | 1 << n);
        Integer::new(width, mask)
    }
}

/// `value` limited to what fits in `width`.
fn clamp(value: i128, width: Width, signed: bool) -> Integer {
    let (min, max) = match signed {
        true => (-1 - (width.mask() >> 1) as i128, (width.mask() >> 1) as i128),
        false => (0, width.mask() as i128),
    };
    Integer::new(width, value.clamp(min, max) as u128)
}

/// One lane of a [`LaneOp`]. Lanes have at most 64 bits, so 128 bits hold every sum and product.
#[inline]
fn lane_op(op: LaneOp, a: Integer, b: Integer) -> Integer {
    let width = a.width;
    let (sa, sb) = (a.signed(), b.signed());
    let (ua, ub) = (a.bits, b.bits);
    match op {
        LaneOp::Int(op) => Integer::bin(op, a, b),
        LaneOp::AddSatSigned => clamp(sa + sb, width, true),
        LaneOp::AddSatUnsigned => clamp((ua + ub) as i128, width, false),
        LaneOp::SubSatSigned => clamp(sa - sb, width, true),
        LaneOp::SubSatUnsigned => Integer::new(width, ua.saturating_sub(ub)),
        LaneOp::MinSigned => Integer::new(width, sa.min(sb) as u128),
        LaneOp::MinUnsigned => Integer::new(width, ua.min(ub)),
        LaneOp::MaxSigned => Integer::new(width, sa.max(sb) as u128),
        LaneOp::MaxUnsigned => Integer::new(width, ua.max(ub)),
        LaneOp::MulHighSigned => Integer::new(width, ((sa * sb) >> width.bits()) as u128),
        LaneOp::MulHighUnsigned => Integer::new(width, (ua * ub) >> width.bits()),
        LaneOp::AverageUnsigned => Integer::new(width, (ua + ub + 1) >> 1),
        LaneOp::Cmp(op) => all_ones_if(Integer::cmp(op, a, b), width),
    }
}

/// The mask a lane comparison makes.
pub(super) fn all_ones_if(holds: bool, width: Width) -> Integer {
    Integer::new(width, if holds { width.mask() } else { 0 })
}
