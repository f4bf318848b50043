//! Pages that the guest may write and that code was compiled from. The host has them without the right to write, so
//! that the first write is noticed.

use crate::linux::{self, Errno, PAGE, prot};
use core::sync::atomic::{AtomicU64, Ordering};

/// The pages' addresses; 0 for a free place.
static PAGES: [AtomicU64; 2048] = [const { AtomicU64::new(0) }; 2048];
/// Places in use, at most; so that asking is cheap where there are none.
static USED: AtomicU64 = AtomicU64::new(0);

fn places() -> &'static [AtomicU64] {
    &PAGES[..(USED.load(Ordering::Acquire) as usize).min(PAGES.len())]
}

/// Watch the pages of `[start, end)`. The caller holds the lock of the guest's mappings.
pub fn watch(start: u64, end: u64) -> Result<(), Errno> {
    let first = start / PAGE * PAGE;
    for page in (first..end).step_by(PAGE as usize) {
        if !is_watched(page, page + 1) {
            let free =
                PAGES.iter().position(|place| place.load(Ordering::Relaxed) == 0).ok_or(Errno::ENOMEM)?;
            PAGES[free].store(page, Ordering::Release);
            USED.fetch_max(free as u64 + 1, Ordering::AcqRel);
        }
    }
    // SAFETY: the guest's own pages; it gets its right back with the first write.
    unsafe { linux::mprotect(first, end.next_multiple_of(PAGE) - first, prot::READ) }.map(drop)
}

/// Are all pages of `[start, end)` watched?
pub fn is_watched(start: u64, end: u64) -> bool {
    let is_listed = |page| places().iter().any(|place| place.load(Ordering::Acquire) == page);
    (start / PAGE * PAGE..end).step_by(PAGE as usize).all(is_listed)
}

/// Stop watching the page of `address`, which the guest may write again. False if it was not watched.
pub fn release(address: u64) -> bool {
    let page = address / PAGE * PAGE;
    if page == 0 || !is_watched(page, page + 1) {
        return false;
    }
    // SAFETY: the guest has this right.
    let _ = unsafe { linux::mprotect(page, PAGE, prot::READ | prot::WRITE) };
    forget(page, page + PAGE);
    true
}

/// The pages of `[start, end)` were mapped or protected anew.
pub fn forget(start: u64, end: u64) {
    for place in places() {
        if (start..end).contains(&place.load(Ordering::Acquire)) {
            place.store(0, Ordering::Release);
        }
    }
}

/// One of the watched pages.
pub fn any() -> Option<u64> {
    places().iter().map(|place| place.load(Ordering::Acquire)).find(|&page| page != 0)
}
