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

/// The value of `ProcessBlock::started` from which on the signal may come.
const STARTED: u32 = 2;
/// How long threads have to park.
pub const LIMIT: Duration = Duration::from_secs(10);
/// The signal that interrupts a system call; the guest never sees it.
const SIGNAL: i32 = 64;
/// Between two looks at threads that run.
const LOOK: Duration = Duration::from_micros(20);
/// Between two looks at which of them have gone to sleep.
const WAKE: Duration = Duration::from_micros(500);

/// A translated process.
#[derive(Debug)]
struct Process(StateArea);

/// A thread slot in use.
struct Slot {
    address: u64,
    phase: u32,
    tid: u32,
}

/// Have the threads of the processes that `pid` is the first of park when they get to run: before that they make no system call any
/// more. Processes that have not started yet are [`park`]'s to ask.
pub fn ask(pid: u32) -> Result<()> {
    let mut started = living(pid)?.into_iter().filter_map(|pid| Process::started(pid).ok());
    started.try_for_each(|process| process.ask(1))
}

/// Park every thread of the processes that `pid` is the first of. On an error they have all been let go again.
pub fn park(pid: u32) -> Result<()> {
    let parked = ahead(|| try_park(pid));
    if parked.is_err() {
        // The first error says more than one about processes that may have ended.
        let _ = release(pid);
    }
    parked
}

/// Do `work` ahead of the threads that it is to stop, which may keep all CPUs busy, where this process has the right to.
fn ahead<T>(work: impl FnOnce() -> T) -> T {
    let schedule = |policy, priority| {
        let parameters = libc::sched_param { sched_priority: priority };
        // SAFETY: sched_setscheduler(2) of this thread reads its argument. Without the right to, nothing changes.
        unsafe { libc::sched_setscheduler(0, policy, &parameters) };
    };
    schedule(libc::SCHED_FIFO, 1);
    let done = work();
    schedule(libc::SCHED_OTHER, 0);
    done
}

fn try_park(pid: u32) -> Result<()> {
    let deadline = Instant::now() + LIMIT;
    let mut asked = BTreeSet::new();
    loop {
        let living = living(pid)?;
        // The last ones to park may have made processes.
        if living == asked {
            return Ok(());
        }
        match park_all(&living, deadline) {
            Ok(()) => asked = living,
            // One of them may have ended, or be about to run another program.
            Err(_) if Instant::now() < deadline && proc::is_alive(pid) => thread::sleep(LOOK),
            Err(why) => return Err(why),
        }
    }
}

/// Ask these processes to park, all of them first.
fn park_all(pids: &BTreeSet<u32>, deadline: Instant) -> Result<()> {
    let processes = pids.iter().map(|pid| Process::started(*pid)).collect::<Result<Vec<_>>>()?;
    processes.iter().try_for_each(|process| process.ask(1))?;
    let mut running = Vec::new();
    for process in &processes {
        running.extend(process.unparked(deadline)?);
    }
    match running.is_empty() {
        true => Ok(()),
        false => Err(NodeError::NotQuiet { threads: running, waited_ms: LIMIT.as_millis() as u64 }),
    }
}

/// Let the threads go on.
pub fn release(pid: u32) -> Result<()> {
    for pid in living(pid)? {
        let process = Process(StateArea::open(pid)?);
        process.ask(0)?;
        process.wake(&process.slots()?.iter().map(|slot| slot.tid).collect())?;
    }
    Ok(())
}

/// The processes of the tree that starts with `pid`, but those that have ended and are not waited for yet.
fn living(pid: u32) -> Result<BTreeSet<u32>> {
    Ok(proc::tree(pid)?.into_iter().filter(|pid| proc::is_alive(*pid)).collect())
}

impl Process {
    /// Process `pid`, which must have come so far that its threads can be asked.
    fn started(pid: u32) -> Result<Process> {
        let area = StateArea::open(pid)?;
        match area.word(area.base() + offset_of!(ProcessBlock, started) as u64)? {
            STARTED => Ok(Process(area)),
            _ => Err(NodeError::io(format!("stopping process {pid}"), "it has not started yet")),
        }
    }

    /// The slots in use.
    fn slots(&self) -> Result<Vec<Slot>> {
        const TID: usize = offset_of!(ThreadBlock, state) + offset_of!(ThreadState, tid);
        let base = self.0.base();
        let count = self.0.long(base + offset_of!(ProcessBlock, slots) as u64)?.min(MAX_THREADS as u64);
        let block = |index| base + THREADS_OFFSET + index * size_of::<ThreadBlock>() as u64;
        let words = |block| [offset_of!(ThreadBlock, phase), TID].map(|offset| block + offset as u64);
        let found = self.0.words((0..count).map(block).flat_map(words))?;
        let (found, _) = found.as_chunks();
        let slots = (0..count).map(block).zip(found);
        let slots = slots.map(|(address, &[phase, tid])| Slot { address, phase, tid });
        Ok(slots.filter(|slot| slot.phase != phase::FREE).collect())
    }

    /// Set (1) or clear (0) the request to park.
    fn ask(&self, request: u8) -> Result<()> {
        self.0.set_word(self.0.base() + offset_of!(ProcessBlock, quiesce) as u64, request.into())?;
        for slot in self.slots()? {
            self.0.write(slot.address + offset_of!(ThreadBlock, pending) as u64, &[request])?;
        }
        Ok(())
    }

    /// Threads that are not parked.
    fn running(&self) -> Result<BTreeSet<u32>> {
        let slots = self.slots()?.into_iter();
        Ok(slots.filter(|slot| slot.phase != phase::PARKED).map(|slot| slot.tid).collect())
    }

    /// Wait until all threads are parked; those that are not when `deadline` comes.
    fn unparked(&self, deadline: Instant) -> Result<Vec<u32>> {
        let mut wake_at = Instant::now();
        loop {
            let look = Instant::now();
            let running = self.running()?;
            // One that parked during the first look may have made another one, in a slot that had been looked at.
            if running.is_empty() && self.running()?.is_empty() {
                return Ok(vec![]);
            }
            let now = Instant::now();
            if now > deadline {
                return Ok(running.into_iter().collect());
            }
            if now >= wake_at {
                // A thread that was just made has not been asked yet.
                self.ask(1)?;
                self.wake(&running)?;
                wake_at = now + WAKE;
            }
            // On a machine with one CPU, who is ahead of the threads must leave them most of it.
            thread::sleep(LOOK.max(look.elapsed() * 2));
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
