//! What of guest memory the guest may execute. The host maps it without that right.

use super::{Locked, watch};
use crate::hole;
use crate::linux::{Errno, prot};
use crate::supply;
use core::sync::atomic::{AtomicU64, Ordering};
use tranship_abi::block::{CodeRange, MAX_EXEC_RANGES};

/// Grows whenever the ranges change.
static EPOCH: AtomicU64 = AtomicU64::new(0);

/// A number that stays the same as long as the ranges do.
pub fn epoch() -> u64 {
    EPOCH.load(Ordering::Acquire)
}

fn ranges() -> &'static [CodeRange] {
    let state = &hole::process().state;
    state.exec_ranges.get(..state.exec_range_count as usize).unwrap_or_default()
}

/// The executable range that `address` lies in.
pub fn range_of(address: u64) -> Option<CodeRange> {
    ranges().iter().find(|range| (range.start..range.end).contains(&address)).copied()
}

/// Where executable memory begins or ends next after `address`.
pub fn next_change(address: u64) -> u64 {
    let edges = ranges().iter().flat_map(|range| [range.start, range.end]);
    edges.filter(|&edge| edge > address).min().unwrap_or(u64::MAX)
}

/// The guest's protection of a mapping that is to be as the one at `address`, as far as code is concerned.
pub fn protection_of(address: u64) -> u32 {
    match range_of(address) {
        None => 0,
        Some(CodeRange { writable: 0, .. }) => prot::EXEC,
        Some(_) => prot::EXEC | prot::WRITE,
    }
}

/// Does any of `[start, end)` hold code?
pub fn touches(start: u64, end: u64) -> bool {
    ranges().iter().any(|range| range.start < end && range.end > start)
}

/// Is all of `[start, end)` code?
pub fn covers(mut start: u64, end: u64) -> bool {
    while start < end {
        match range_of(start) {
            Some(range) => start = range.end,
            None => return false,
        }
    }
    true
}

/// The guest has mapped `[start, end)` anew with protection `guest_prot`, or unmapped it (0). ENOMEM if that would be
/// too many ranges.
pub fn set(held: &Locked, start: u64, end: u64, guest_prot: u32) -> Result<(), Errno> {
    let executable = guest_prot & prot::EXEC != 0;
    if !executable && !touches(start, end) {
        return Ok(());
    }
    let empty = CodeRange { start: 0, end: 0, writable: 0 };
    let mut list = List { ranges: [empty; MAX_EXEC_RANGES], count: 0 };
    list.cut(ranges(), start, end)?;
    if executable {
        list.add(CodeRange { start, end, writable: (guest_prot & prot::WRITE != 0).into() })?;
    }
    let state = &mut hole::process().state;
    state.exec_ranges[..list.count].copy_from_slice(&list.ranges[..list.count]);
    state.exec_range_count = list.count as u64;
    EPOCH.fetch_add(1, Ordering::Release);
    watch::forget(start, end);
    supply::code_changed(held, start, end);
    Ok(())
}

/// Ranges being put together.
struct List {
    ranges: [CodeRange; MAX_EXEC_RANGES],
    count: usize,
}

impl List {
    /// Take over `old` without `[start, end)`.
    fn cut(&mut self, old: &[CodeRange], start: u64, end: u64) -> Result<(), Errno> {
        for &range in old {
            self.push(CodeRange { end: range.end.min(start), ..range })?;
            self.push(CodeRange { start: range.start.max(end), ..range })?;
        }
        Ok(())
    }

    /// Put `new` where it belongs, merged with its like on either side.
    fn add(&mut self, new: CodeRange) -> Result<(), Errno> {
        self.push(new)?;
        let ranges = &mut self.ranges[..self.count];
        ranges.sort_unstable_by_key(|range| range.start);
        let mut kept = 0;
        for n in 1..ranges.len() {
            let (last, next) = (ranges[kept], ranges[n]);
            if last.end == next.start && last.writable == next.writable {
                ranges[kept].end = next.end;
            } else {
                kept += 1;
                ranges[kept] = next;
            }
        }
        self.count = kept + 1;
        Ok(())
    }

    fn push(&mut self, range: CodeRange) -> Result<(), Errno> {
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

    fn changed(old: &[(u64, u64)], (start, end): (u64, u64), add: Option<u64>) -> Vec<(u64, u64)> {
        let range = |(start, end), writable| CodeRange { start, end, writable };
        let old: Vec<CodeRange> = old.iter().map(|&bounds| range(bounds, 0)).collect();
        let mut list = List { ranges: [range((0, 0), 0); MAX_EXEC_RANGES], count: 0 };
        list.cut(&old, start, end).unwrap();
        if let Some(writable) = add {
            list.add(range((start, end), writable)).unwrap();
        }
        list.ranges[..list.count].iter().map(|range| (range.start, range.end)).collect()
    }

    #[test]
    fn ranges_merge_and_split() {
        assert_eq!(changed(&[(1, 3), (5, 7)], (3, 5), Some(0)), [(1, 7)]);
        assert_eq!(changed(&[(1, 3), (9, 12)], (5, 7), Some(0)), [(1, 3), (5, 7), (9, 12)]);
        assert_eq!(changed(&[(1, 9)], (2, 4), Some(0)), [(1, 9)]);
        assert_eq!(changed(&[(1, 9)], (2, 4), Some(1)), [(1, 2), (2, 4), (4, 9)]);
        assert_eq!(changed(&[(1, 9)], (3, 5), None), [(1, 3), (5, 9)]);
        assert_eq!(changed(&[(1, 3), (5, 9)], (2, 6), None), [(1, 2), (6, 9)]);
        assert_eq!(changed(&[(1, 3)], (0, 9), None), []);
    }
}
