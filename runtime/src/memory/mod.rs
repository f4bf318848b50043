//! Guest memory: reading and writing it, where new mappings go, what of it is code.

pub mod access;
pub mod code;
pub mod heap;
pub mod map;
pub mod place;
pub mod watch;

use crate::linux;
use core::sync::atomic::{AtomicU32, Ordering};

/// First address that an x86-64 program cannot have (TASK_SIZE with 4-level page tables).
pub const GUEST_END: u64 = 0x7fff_ffff_f000;

/// Held while the guest's mappings change: 0 free, 1 held, 2 held and waited for.
static LOCK: AtomicU32 = AtomicU32::new(0);

/// A held lock.
pub struct Locked(());

/// Let no other thread change the guest's mappings until the result is dropped.
pub fn lock() -> Locked {
    if LOCK.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_err() {
        while LOCK.swap(2, Ordering::Acquire) != 0 {
            linux::futex_wait(&LOCK, 2, 1_000_000_000);
        }
    }
    Locked(())
}

/// In a forked child: whoever held the lock is not here.
pub fn unlock_after_fork() {
    LOCK.store(0, Ordering::Release);
}

impl Drop for Locked {
    fn drop(&mut self) {
        if LOCK.swap(0, Ordering::Release) == 2 {
            linux::futex_wake(&LOCK);
        }
    }
}
