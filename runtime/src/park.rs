//! Parking at a safepoint while the process is being checkpointed.

use crate::hole;
use crate::linux;
use crate::thread::Thread;
use core::sync::atomic::Ordering;
use tranship_abi::block::phase;

/// How often a parked thread looks by itself, in ns, should nobody wake it.
const PATIENCE: u64 = 100_000_000;

/// If the process is to be quiet, wait here until it may go on. Signal 64 wakes early.
pub fn park_if_asked(thread: Thread) {
    // Its maker cannot park before it; it will be gone or another program soon.
    if thread.private().vforked != 0 {
        return;
    }
    let process = hole::process();
    if process.quiesce.load(Ordering::Acquire) == 0 {
        return;
    }
    thread.block().phase.store(phase::PARKED, Ordering::Release);
    process.parked.fetch_add(1, Ordering::AcqRel);
    linux::futex_wake(&process.parked);
    loop {
        match process.quiesce.load(Ordering::Acquire) {
            0 => break,
            asked => linux::futex_wait(&process.quiesce, asked, PATIENCE),
        }
    }
    process.parked.fetch_sub(1, Ordering::AcqRel);
    thread.block().phase.store(phase::RUNNING, Ordering::Release);
}
