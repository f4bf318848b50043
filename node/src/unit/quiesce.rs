//! Bringing every thread of a translated unit to a safepoint and parking it there, and letting it go again: words in
//! the state area, written through /proc/PID/mem, and the reserved signal for threads that sleep in a system call.

use super::proc;
use super::state_area::StateArea;
use crate::error::{NodeError, Result};
use std::collections::BTreeSet;
use std::mem::offset_of;
use std::thread;
use std::time::{Duration, Instant};
use tranship_abi::block::{MAX_THREADS, ProcessBlock, THREADS_OFFSET, ThreadBlock, ThreadState, phase};

/// How long threads have to park.
pub const LIMIT: Duration = Duration::from_secs(10);
/// The signal that interrupts a system call; the guest never sees it.
const SIGNAL: i32 = 64;
/// Time for threads that run to park by themselves, before those that sleep are woken.
const GRACE: Duration = Duration::from_micros(200);

/// A translated process.
#[derive(Debug)]
struct Process(StateArea);

/// A thread slot in use.
struct Slot {
    address: u64,
    phase: u32,
    tid: u32,
}

/// Park every thread of the processes that `pid` is the first of. On an error they have all been let go again.
pub fn park(pid: u32) -> Result<()> {
    let parked = try_park(pid);
    if parked.is_err() {
        // The first error says more than one about processes that may have ended.
        let _ = release(pid);
    }
    parked
}

fn try_park(pid: u32) -> Result<()> {
    let deadline = Instant::now() + LIMIT;
    loop {
        let mut running = Vec::new();
        for process in processes(pid)? {
            process.ask(1)?;
            running.extend(process.unparked(deadline)?);
        }
        if running.is_empty() {
            return Ok(());
        }
        if Instant::now() > deadline {
            return Err(NodeError::NotQuiet { threads: running, waited_ms: LIMIT.as_millis() as u64 });
        }
    }
}

/// Let the threads go on.
pub fn release(pid: u32) -> Result<()> {
    for process in processes(pid)? {
        process.ask(0)?;
        process.wake(&process.slots()?.iter().map(|slot| slot.tid).collect())?;
    }
    Ok(())
}

fn processes(pid: u32) -> Result<Vec<Process>> {
    proc::tree(pid)?.into_iter().map(|pid| StateArea::open(pid).map(Process)).collect()
}

impl Process {
    fn slots(&self) -> Result<Vec<Slot>> {
        let mut slots = Vec::new();
        for index in 0..MAX_THREADS as u64 {
            let address = self.0.base() + THREADS_OFFSET + index * size_of::<ThreadBlock>() as u64;
            let phase = self.0.word(address + offset_of!(ThreadBlock, phase) as u64)?;
            if phase != phase::FREE {
                let tid = offset_of!(ThreadBlock, state) + offset_of!(ThreadState, tid);
                slots.push(Slot { address, phase, tid: self.0.word(address + tid as u64)? });
            }
        }
        Ok(slots)
    }

    /// Set (1) or clear (0) the request to park.
    fn ask(&self, request: u32) -> Result<()> {
        self.0.set_word(self.0.base() + offset_of!(ProcessBlock, quiesce) as u64, request)?;
        for slot in self.slots()? {
            self.0.set_word(slot.address + offset_of!(ThreadBlock, pending) as u64, request)?;
        }
        Ok(())
    }

    /// Wait until all threads are parked; those that are not when `deadline` comes or threads appear.
    fn unparked(&self, deadline: Instant) -> Result<Vec<u32>> {
        let mut wake_at = Instant::now() + GRACE;
        loop {
            let slots = self.slots()?;
            let running: BTreeSet<u32> =
                slots.iter().filter(|slot| slot.phase != phase::PARKED).map(|slot| slot.tid).collect();
            if running.is_empty() {
                return Ok(vec![]);
            }
            let now = Instant::now();
            if now > deadline {
                return Ok(running.into_iter().collect());
            }
            if now > wake_at {
                // A thread that was just made has not been asked yet.
                self.ask(1)?;
                self.wake(&running)?;
                wake_at = now + 10 * GRACE;
            }
            thread::sleep(Duration::from_micros(50));
        }
    }

    /// Interrupt those of the threads (by their own ids) that sleep in the kernel.
    fn wake(&self, threads: &BTreeSet<u32>) -> Result<()> {
        for tid in proc::threads(self.0.pid())? {
            if proc::own_id_if_asleep(self.0.pid(), tid).is_some_and(|own| threads.contains(&own)) {
                // SAFETY: tgkill(2) takes numbers only. That the thread may have ended is no error.
                unsafe { libc::syscall(libc::SYS_tgkill, self.0.pid(), tid, SIGNAL) };
            }
        }
        Ok(())
    }
}
