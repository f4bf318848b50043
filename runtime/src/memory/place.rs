//! Where new mappings go: below the stack downwards, each below the one before, as on x86-64. The kernel is
//! asked whether a place is free; no list of mappings is kept.

use super::GUEST_END;
use crate::hole;
use crate::linux::{Errno, PAGE};
use core::sync::atomic::{AtomicU64, Ordering};

/// Where the downward search starts: room for stacks above.
const TOP: u64 = GUEST_END - (1 << 36);
/// Where it starts anew from the top.
const FLOOR: u64 = 1 << 32;
/// MAP_32BIT: the second gigabyte.
pub const LOW_TOP: u64 = 0x8000_0000;
const LOW_FLOOR: u64 = 0x4000_0000;
/// Places that are tried before the address space counts as full.
const ATTEMPTS: usize = 4096;

/// The lowest place given out lately; 0 for none yet.
static CURSOR: AtomicU64 = AtomicU64::new(0);

/// Find room for `len` bytes: `attempt` maps them at a place, or says EEXIST. `low`: in the low 2 GiB.
pub fn find(
    len: u64,
    align: u64,
    low: bool,
    mut attempt: impl FnMut(u64) -> Result<u64, Errno>,
) -> Result<u64, Errno> {
    let (top, floor) = if low { (LOW_TOP, LOW_FLOOR) } else { (TOP, FLOOR) };
    let cursor = CURSOR.load(Ordering::Relaxed);
    let mut end = if low || cursor == 0 { top } else { cursor };
    let (mut gap, mut wrapped) = (0, end == top);
    for _ in 0..ATTEMPTS {
        let start = end.saturating_sub(len) / align * align;
        if start < floor {
            if wrapped {
                break;
            }
            (end, gap, wrapped) = (top, 0, true);
        } else if hole::overlaps(start, len) {
            end = hole::base();
        } else {
            match attempt(start) {
                // Something is there, of unknown size: look below, in growing steps.
                Err(Errno::EEXIST) => {
                    end = (start + len - align.max(PAGE)).saturating_sub(gap);
                    gap = (gap * 2).max(align);
                }
                Ok(at) => {
                    if !low {
                        CURSOR.store(start, Ordering::Relaxed);
                    }
                    return Ok(at);
                }
                error => return error,
            }
        }
    }
    Err(Errno::ENOMEM)
}

/// `[start, end)` is free again: if the latest mapping lay there, its place is the next to be used.
pub fn freed(start: u64, end: u64) {
    let cursor = CURSOR.load(Ordering::Relaxed);
    if (start..end).contains(&cursor) {
        CURSOR.store(end.min(TOP), Ordering::Relaxed);
    }
}
