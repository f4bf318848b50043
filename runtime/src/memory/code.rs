//! What of guest memory the guest may execute. The host maps it without that right.

use super::Locked;
use crate::hole;
use crate::linux::Errno;
use core::sync::atomic::{AtomicU64, Ordering};
use tranship_abi::block::{MAX_EXEC_RANGES, Range};

/// Grows whenever the ranges change.
static EPOCH: AtomicU64 = AtomicU64::new(0);

/// A number that stays the same as long as the ranges do.
pub fn epoch() -> u64 {
    EPOCH.load(Ordering::Acquire)
}

fn ranges() -> &'static [Range] {
    let state = &hole::process().state;
    state.exec_ranges.get(..state.exec_range_count as usize).unwrap_or_default()
}

/// The executable range that `address` lies in.
pub fn range_of(address: u64) -> Option<Range> {
    ranges().iter().find(|range| (range.start..range.end).contains(&address)).copied()
}

/// Where executable memory begins or ends next after `address`.
pub fn next_change(address: u64) -> u64 {
    let edges = ranges().iter().flat_map(|range| [range.start, range.end]);
    edges.filter(|&edge| edge > address).min().unwrap_or(u64::MAX)
}

/// Does any of `[start, end)` hold code?
pub fn touches(start: u64, end: u64) -> bool {
    ranges().iter().any(|range| range.start < end && range.end > start)
}

/// Make `[start, end)` executable or not. ENOMEM if that would be too many ranges.
pub fn set(_: &Locked, start: u64, end: u64, executable: bool) -> Result<(), Errno> {
    if !executable && !touches(start, end) {
        return Ok(());
    }
    let mut list = List { ranges: [Range { start: 0, end: 0 }; MAX_EXEC_RANGES], count: 0 };
    list.change(ranges(), Range { start, end }, executable)?;
    let state = &mut hole::process().state;
    state.exec_ranges[..list.count].copy_from_slice(&list.ranges[..list.count]);
    state.exec_range_count = list.count as u64;
    EPOCH.fetch_add(1, Ordering::Release);
    Ok(())
}

/// Ranges being put together.
struct List {
    ranges: [Range; MAX_EXEC_RANGES],
    count: usize,
}

impl List {
    /// `old` with `new` added (and merged with what it touches) or cut out.
    fn change(&mut self, old: &[Range], mut new: Range, executable: bool) -> Result<(), Errno> {
        for &range in old {
            if executable && range.start <= new.end && range.end >= new.start {
                new = Range { start: range.start.min(new.start), end: range.end.max(new.end) };
            } else {
                self.push(Range { start: range.start, end: range.end.min(new.start) })?;
                self.push(Range { start: range.start.max(new.end), end: range.end })?;
            }
        }
        if executable {
            self.push(new)?;
        }
        self.ranges[..self.count].sort_unstable_by_key(|range| range.start);
        Ok(())
    }

    fn push(&mut self, range: Range) -> Result<(), Errno> {
        if range.start >= range.end {
            return Ok(());
        }
        *self.ranges.get_mut(self.count).ok_or(Errno::ENOMEM)? = range;
        self.count += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn changed(old: &[(u64, u64)], (start, end): (u64, u64), executable: bool) -> Vec<(u64, u64)> {
        let old: Vec<Range> = old.iter().map(|&(start, end)| Range { start, end }).collect();
        let mut list = List { ranges: [Range { start: 0, end: 0 }; MAX_EXEC_RANGES], count: 0 };
        list.change(&old, Range { start, end }, executable).unwrap();
        list.ranges[..list.count].iter().map(|range| (range.start, range.end)).collect()
    }

    #[test]
    fn ranges_merge_and_split() {
        assert_eq!(changed(&[(1, 3), (5, 7)], (3, 5), true), [(1, 7)]);
        assert_eq!(changed(&[(1, 3), (9, 12)], (5, 7), true), [(1, 3), (5, 7), (9, 12)]);
        assert_eq!(changed(&[(1, 9)], (3, 5), false), [(1, 3), (5, 9)]);
        assert_eq!(changed(&[(1, 3), (5, 9)], (2, 6), false), [(1, 2), (6, 9)]);
        assert_eq!(changed(&[(1, 3)], (0, 9), false), []);
    }
}
