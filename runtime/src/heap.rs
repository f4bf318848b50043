//! The blob's allocator. The decoder's tables (built once) and error texts are all that is ever allocated, so
//! nothing is given back.

use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicUsize, Ordering};

const BYTES: usize = 1 << 20;

/// A piece of `.bss` that is handed out once.
pub struct Heap {
    memory: UnsafeCell<[u8; BYTES]>,
    used: AtomicUsize,
}

// SAFETY: `used` hands out each byte once.
unsafe impl Sync for Heap {}

impl Heap {
    /// Empty.
    pub const fn new() -> Heap {
        Heap { memory: UnsafeCell::new([0; BYTES]), used: AtomicUsize::new(0) }
    }
}

impl Default for Heap {
    fn default() -> Self {
        Heap::new()
    }
}

// SAFETY: pieces are disjoint, aligned and inside `memory`.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let base = self.memory.get() as usize;
        let place = |used: usize| (base + used).next_multiple_of(layout.align()) - base;
        let taken = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            Some(place(used) + layout.size()).filter(|&end| end <= BYTES)
        });
        match taken {
            // SAFETY: `place(used)` is inside, or `fetch_update` had failed.
            Ok(used) => unsafe { self.memory.get().cast::<u8>().add(place(used)) },
            Err(_) => core::ptr::null_mut(),
        }
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}
