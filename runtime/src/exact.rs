//! When compiled code may run. It keeps registers where the host's compiler put them, so of a fault in it no exact
//! guest state is known; and it does not raise SSE exceptions. Where the guest could see that, its code is interpreted.

use crate::signal::action;
use crate::thread::{self, Thread};
use core::sync::atomic::Ordering;
use tranship_abi::block::phase;
use tranship_abi::signal::SIG_IGN;
use tranship_abi::signal::number::{SIGBUS, SIGSEGV};

/// MXCSR's exception masks.
const MASKS: u32 = 0x1f80;

/// Does the guest look at what a fault finds? Without a handler it ends.
pub fn is_demanded() -> bool {
    [SIGSEGV, SIGBUS].into_iter().any(|signal| action::of(signal).handler > SIG_IGN)
}

/// May `thread` run compiled code?
pub fn admits_compiled(thread: Thread) -> bool {
    thread.cpu().mxcsr & MASKS == MASKS && !is_demanded()
}

/// The demand may have changed from `before`: all threads are to look at it again.
pub fn look_again(before: bool) {
    if before == is_demanded() {
        return;
    }
    for thread in thread::all().filter(|thread| thread.block().phase.load(Ordering::Relaxed) != phase::FREE) {
        thread.pending().store(1, Ordering::Release);
    }
}
