//! Making threads and processes, and ending them.

use super::{Call, Outcome, attempt};
use crate::dispatch;
use crate::hole;
use crate::host::{self, HOST};
use crate::linux::{self, Errno};
use crate::memory::{self, access};
use crate::report;
use crate::signal;
use crate::thread::{self, Thread};
use core::sync::atomic::Ordering;
use tranship_abi::block::{ThreadState, phase};
use tranship_abi::host::Host;
use tranship_abi::signal::{SS_DISABLE, number::SIGCHLD};
use tranship_abi::syscall::nr;

/// CLONE_* flags.
const VM: u64 = 0x100;
const SIGHAND: u64 = 0x800;
const PIDFD: u64 = 0x1000;
const VFORK: u64 = 0x4000;
const SETTLS: u64 = 0x8_0000;
const PARENT_SETTID: u64 = 0x10_0000;
const CHILD_CLEARTID: u64 = 0x20_0000;

/// What a new thread or process is to be.
struct Clone {
    flags: u64,
    /// Its guest stack pointer; 0 for the parent's.
    stack: u64,
    parent_tid: u64,
    child_tid: u64,
    tls: u64,
}

pub(super) fn clone(call: &Call) -> Outcome {
    let [flags, stack, parent_tid, child_tid, tls, _] = call.args;
    Clone { flags, stack, parent_tid, child_tid, tls }.start(call.thread)
}

pub(super) fn fork(call: &Call) -> Outcome {
    Clone { flags: SIGCHLD.into(), stack: 0, parent_tid: 0, child_tid: 0, tls: 0 }.start(call.thread)
}

pub(super) fn vfork(call: &Call) -> Outcome {
    let flags = VM | VFORK | u64::from(SIGCHLD);
    Clone { flags, stack: 0, parent_tid: 0, child_tid: 0, tls: 0 }.start(call.thread)
}

/// clone3(2) without what clone(2) cannot do; a C library then falls back to that.
pub(super) fn clone3(call: &Call) -> Outcome {
    const FIRST_VERSION: u64 = 64;
    let [address, size, ..] = call.args;
    if size < FIRST_VERSION {
        return Errno::EINVAL.into();
    }
    let [flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls]: [u64; 8] =
        attempt!(access::read(address));
    let mut more = [0_u8; 24];
    let more = &mut more[..(size - FIRST_VERSION).min(24) as usize];
    attempt!(access::read_bytes(address + FIRST_VERSION, more));
    let both = flags & PIDFD != 0 && flags & PARENT_SETTID != 0;
    if more.iter().any(|&byte| byte != 0) || size > FIRST_VERSION + 24 || both || flags >> 32 != 0 {
        return Errno::ENOSYS.into();
    }
    let parent_tid = if flags & PIDFD != 0 { pidfd } else { parent_tid };
    let stack = stack + stack_size;
    Clone { flags: flags | exit_signal, stack, parent_tid, child_tid, tls }.start(call.thread)
}

impl Clone {
    fn start(&self, parent: Thread) -> Outcome {
        if self.flags & VM != 0 && self.flags & VFORK == 0 {
            self.thread(parent)
        } else {
            self.process(parent)
        }
    }

    /// The child's registers and registrations, where they differ from its parent's.
    fn set_up_child(&self, state: &mut ThreadState) {
        let cpu = &mut state.cpu;
        cpu.gpr[0] = 0;
        (cpu.gpr[1], cpu.gpr[11]) = (cpu.rip, cpu.rflags());
        if self.stack != 0 {
            cpu.gpr[4] = self.stack;
        }
        if self.flags & SETTLS != 0 {
            cpu.fs_base = self.tls;
        }
        state.clear_tid = if self.flags & CHILD_CLEARTID != 0 { self.child_tid } else { 0 };
        (state.robust_list, state.robust_list_len) = (0, 0);
        if self.flags & VM != 0 {
            (state.rseq, state.rseq_len, state.rseq_signature) = (0, 0, 0);
        }
    }

    /// A process of its own, with a copy of everything. A vforked child gets a copy as well; its parent
    /// waits for it as it should.
    fn process(&self, parent: Thread) -> Outcome {
        let host_flags = self.flags & !(VM | SIGHAND | SETTLS);
        let args = match HOST {
            Host::X86_64 => [host_flags, 0, self.parent_tid, self.child_tid, 0, 0],
            Host::Aarch64 | Host::Riscv64 => [host_flags, 0, self.parent_tid, 0, self.child_tid, 0],
        };
        // SAFETY: the child goes on here with a copy of this stack.
        match unsafe { linux::call(nr::clone, args) } {
            Ok(0) => {
                self.set_up_child(parent.state());
                become_only_thread(parent);
                Outcome::Moved
            }
            result => result.into(),
        }
    }

    /// A thread of this process, in a slot of its own.
    fn thread(&self, parent: Thread) -> Outcome {
        let Some(child) = thread::claim_slot() else { return Errno::EAGAIN.into() };
        // SAFETY: both are thread states; the child does not run yet.
        unsafe { core::ptr::copy_nonoverlapping(parent.state(), child.state(), 1) };
        child.prepare();
        let state = child.state();
        (state.altstack_base, state.altstack_size, state.altstack_flags) = (0, 0, SS_DISABLE);
        self.set_up_child(state);
        // The child starts with everything blocked, so that no handler runs before it knows its block.
        linux::set_signal_mask(!0);
        // SAFETY: the child's stack is its own.
        let result = unsafe {
            host::clone_thread(
                self.flags & !SETTLS,
                hole::host_stack(child.slot()).1,
                self.parent_tid,
                self.child_tid,
                begin_thread,
                child.address().cast(),
            )
        };
        signal::apply_mask(parent);
        if result < 0 {
            child.block().phase.store(phase::FREE, Ordering::Release);
        }
        Outcome::Done(result)
    }
}

/// A new thread's first function.
unsafe extern "C" fn begin_thread(block: *mut u8) -> ! {
    // SAFETY: its parent passes its block.
    let thread = unsafe { Thread::at(block.cast()) };
    thread.state().tid = linux::gettid();
    // A request to park may have come before there was a thread to see it.
    thread.pending().store(1, Ordering::Release);
    signal::apply_mask(thread);
    dispatch::run(thread)
}

/// In a forked child: the other threads, what was pending and what was counted are the parent's.
fn become_only_thread(thread: Thread) {
    let slot = thread.slot();
    for other in thread::all().filter(|other| other.slot() != slot) {
        // Reading first, so that pages which were never used stay so.
        if other.block().phase.load(Ordering::Relaxed) != phase::FREE {
            other.block().phase.store(phase::FREE, Ordering::Relaxed);
        }
    }
    memory::unlock_after_fork();
    let process = hole::process();
    process.parked.store(0, Ordering::Relaxed);
    process.interpreted.store(0, Ordering::Relaxed);
    thread.state().tid = linux::gettid();
    thread.private().queued.signo = 0;
    signal::apply_mask(thread);
}

/// Is this the only thread?
fn is_last(thread: Thread) -> bool {
    let running = |other: &Thread| other.block().phase.load(Ordering::Acquire) != phase::FREE;
    !thread::all().any(|other| other.slot() != thread.slot() && running(&other))
}

pub(super) fn exit(call: &Call) -> Outcome {
    if is_last(call.thread) {
        report::print_stats(hole::process().interpreted.load(Ordering::Relaxed));
    }
    linux::set_signal_mask(!0);
    // SAFETY: nothing uses this thread's block or stack any more.
    unsafe { host::leave_thread(&call.thread.block().phase, call.args[0]) }
}

pub(super) fn exit_group(call: &Call) -> Outcome {
    report::print_stats(hole::process().interpreted.load(Ordering::Relaxed));
    linux::exit_group(call.int(0))
}

pub(super) fn set_tid_address(call: &Call) -> Outcome {
    call.thread.state().clear_tid = call.args[0];
    call.make(nr::set_tid_address, call.args)
}

pub(super) fn set_robust_list(call: &Call) -> Outcome {
    let outcome = call.make(nr::set_robust_list, call.args);
    if outcome == Outcome::Done(0) {
        let state = call.thread.state();
        (state.robust_list, state.robust_list_len) = (call.args[0], call.args[1]);
    }
    outcome
}

/// What was registered at home is kept in the thread's state; abroad there is no registration.
pub(super) fn rseq(_: &Call) -> Outcome {
    Errno::ENOSYS.into()
}
