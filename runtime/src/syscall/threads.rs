//! Making threads and processes, and ending them.

use super::{Call, Outcome, attempt, read_extensible};
use crate::dispatch;
use crate::hole;
use crate::host::{self, HOST};
use crate::linux::{self, Errno};
use crate::memory::{self, access, map};
use crate::report;
use crate::signal::{self, action};
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
const CLEAR_SIGHAND: u64 = 1 << 32;

/// `struct clone_args` of clone3(2).
#[repr(C)]
#[derive(Clone, Copy)]
struct CloneArgs {
    flags: u64,
    pidfd: u64,
    child_tid: u64,
    parent_tid: u64,
    exit_signal: u64,
    stack: u64,
    stack_size: u64,
    tls: u64,
    set_tid: u64,
    set_tid_size: u64,
    cgroup: u64,
}

const WORDS: usize = 11;
const _: () = assert!(size_of::<CloneArgs>() == WORDS * 8);

/// What a new thread or process is to be.
struct Clone {
    args: CloneArgs,
    /// Only clone3(2) can say all of it.
    extended: bool,
}

/// clone(2)'s arguments in clone3(2)'s terms.
fn legacy(flags: u64, stack: u64, parent_tid: u64, child_tid: u64, tls: u64) -> Clone {
    const CSIGNAL: u64 = 0xff;
    let args = CloneArgs {
        flags: flags & 0xffff_ffff & !CSIGNAL,
        pidfd: parent_tid,
        child_tid,
        parent_tid,
        exit_signal: flags & CSIGNAL,
        stack,
        stack_size: 0,
        tls,
        set_tid: 0,
        set_tid_size: 0,
        cgroup: 0,
    };
    Clone { args, extended: false }
}

pub(super) fn clone(call: &Call) -> Outcome {
    let [flags, stack, parent_tid, child_tid, tls, _] = call.args;
    if flags & PIDFD != 0 && flags & PARENT_SETTID != 0 {
        return Errno::EINVAL.into();
    }
    legacy(flags, stack, parent_tid, child_tid, tls).start(call.thread)
}

pub(super) fn fork(call: &Call) -> Outcome {
    legacy(SIGCHLD.into(), 0, 0, 0, 0).start(call.thread)
}

pub(super) fn vfork(call: &Call) -> Outcome {
    legacy(VM | VFORK | u64::from(SIGCHLD), 0, 0, 0, 0).start(call.thread)
}

/// clone3(2). What clone(2) can do is done by that.
pub(super) fn clone3(call: &Call) -> Outcome {
    const FIRST_VERSION: u64 = 64;
    const LAST_SIGNAL: u64 = 64;
    let words = attempt!(read_extensible::<WORDS>(call.args[0], call.args[1], FIRST_VERSION));
    let [flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls, more @ ..] = words;
    let [set_tid, set_tid_size, cgroup] = more;
    let args = CloneArgs {
        flags,
        pidfd,
        child_tid,
        parent_tid,
        exit_signal,
        stack,
        stack_size,
        tls,
        set_tid,
        set_tid_size,
        cgroup,
    };
    if (stack == 0) != (stack_size == 0) {
        return Errno::EINVAL.into();
    }
    let both = flags & PIDFD != 0 && flags & PARENT_SETTID != 0;
    let odd = flags & 0xff != 0 || exit_signal > LAST_SIGNAL || (flags & !CLEAR_SIGHAND) >> 32 != 0;
    let extended = both || odd || more != [0; 3];
    Clone { args, extended }.start(call.thread)
}

impl Clone {
    fn has(&self, flag: u64) -> bool {
        self.args.flags & flag != 0
    }

    fn start(&self, parent: Thread) -> Outcome {
        if self.has(SIGHAND) && (!self.has(VM) || self.has(CLEAR_SIGHAND)) {
            return Errno::EINVAL.into();
        }
        if self.has(VM) { self.on_same_memory(parent) } else { self.process(parent) }
    }

    /// The child's registers and registrations, where they differ from its parent's.
    fn set_up_child(&self, state: &mut ThreadState) {
        let cpu = &mut state.cpu;
        cpu.gpr[0] = 0;
        (cpu.gpr[1], cpu.gpr[11]) = (cpu.rip, cpu.rflags());
        if self.args.stack != 0 {
            cpu.gpr[4] = self.args.stack + self.args.stack_size;
        }
        if self.has(SETTLS) {
            cpu.fs_base = self.args.tls;
        }
        state.clear_tid = if self.has(CHILD_CLEARTID) { self.args.child_tid } else { 0 };
        (state.robust_list, state.robust_list_len) = (0, 0);
        if self.has(VM) {
            (state.rseq, state.rseq_len, state.rseq_signature) = (0, 0, 0);
        }
    }

    /// The flags for the host, which knows nothing of the guest's thread pointer and handlers; with the signal as
    /// clone(2) has it.
    fn host_flags(&self) -> u64 {
        self.args.flags & !(SETTLS | CLEAR_SIGHAND) | if self.extended { 0 } else { self.args.exit_signal }
    }

    /// clone(2)'s argument for PARENT_SETTID or PIDFD.
    fn legacy_parent_tid(&self) -> u64 {
        if self.has(PIDFD) { self.args.pidfd } else { self.args.parent_tid }
    }

    /// clone3(2)'s structure for the host, with this stack.
    fn host_args(&self, stack: u64, stack_size: u64) -> [u64; WORDS] {
        let args = &self.args;
        let (flags, signal) = (self.host_flags(), args.exit_signal);
        let ids = [flags, args.pidfd, args.child_tid, args.parent_tid, signal];
        let [flags, pidfd, child_tid, parent_tid, signal] = ids;
        let more = [args.set_tid, args.set_tid_size, args.cgroup];
        [flags, pidfd, child_tid, parent_tid, signal, stack, stack_size, 0, more[0], more[1], more[2]]
    }

    /// A process of its own, with a copy of everything.
    fn process(&self, parent: Thread) -> Outcome {
        let extended = self.host_args(0, 0);
        let (flags, parent_tid, child_tid) =
            (self.host_flags(), self.legacy_parent_tid(), self.args.child_tid);
        let (number, args) = match HOST {
            _ if self.extended => (nr::clone3, [extended.as_ptr() as u64, WORDS as u64 * 8, 0, 0, 0, 0]),
            Host::X86_64 => (nr::clone, [flags, 0, parent_tid, child_tid, 0, 0]),
            Host::Aarch64 | Host::Riscv64 => (nr::clone, [flags, 0, parent_tid, 0, child_tid, 0]),
        };
        // SAFETY: the child goes on here with a copy of this stack.
        match unsafe { linux::call(number, args) } {
            Ok(0) => {
                self.set_up_child(parent.state());
                become_only_thread(parent);
                if self.has(CLEAR_SIGHAND) {
                    action::clear_handlers();
                }
                Outcome::Moved
            }
            result => result.into(),
        }
    }

    /// A thread of this process or another process on the same memory, in a slot of its own.
    fn on_same_memory(&self, parent: Thread) -> Outcome {
        let Some(child) = thread::claim_slot() else { return Errno::EAGAIN.into() };
        // SAFETY: both are thread states; the child does not run yet.
        unsafe { core::ptr::copy_nonoverlapping(parent.state(), child.state(), 1) };
        child.prepare();
        let state = child.state();
        if !self.has(VFORK) {
            (state.altstack_base, state.altstack_size, state.altstack_flags) = (0, 0, SS_DISABLE);
        }
        self.set_up_child(state);
        let (low, mut top) = hole::host_stack(child.slot());
        child.private().dispositions = parent.private().dispositions;
        if !self.has(SIGHAND) {
            top = action::give_own(child, top);
        }
        child.private().vforked = self.has(VFORK).into();
        child.private().clear_handlers = self.has(CLEAR_SIGHAND).into();
        // The child starts with everything blocked, so that no handler runs before it knows its block.
        linux::set_signal_mask(!0);
        let result = self.start_on(child, low, top);
        if self.has(VFORK) && result >= 0 {
            // Whatever it did, it does not use this memory any more.
            let left = child.private().left_by_exec;
            if left.start != left.end {
                let _ = map::munmap(left.start, left.end - left.start);
            }
        }
        if self.has(VFORK) || result < 0 {
            child.block().phase.store(phase::FREE, Ordering::Release);
        }
        signal::apply_mask(parent);
        Outcome::Done(result)
    }

    /// Start the child on its host stack.
    fn start_on(&self, child: Thread, low: u64, top: u64) -> i64 {
        let (flags, child_tid, block) = (self.host_flags(), self.args.child_tid, child.address().cast());
        // SAFETY: the child's stack is its own.
        unsafe {
            if self.extended {
                host::clone3_thread(&self.host_args(low, top - low), begin_thread, block)
            } else {
                host::clone_thread(flags, top, self.legacy_parent_tid(), child_tid, begin_thread, block)
            }
        }
    }
}

/// A new thread's first function.
unsafe extern "C" fn begin_thread(block: *mut u8) -> ! {
    // SAFETY: its parent passes its block.
    let thread = unsafe { Thread::at(block.cast()) };
    thread.state().tid = linux::gettid();
    if thread.private().clear_handlers != 0 {
        action::clear_handlers();
    }
    // A request to park may have come before there was a thread to see it.
    thread.pending().store(1, Ordering::Release);
    signal::apply_mask(thread);
    dispatch::run(thread)
}

/// In a forked child: the other threads, what was pending and what was counted are the parent's.
fn become_only_thread(thread: Thread) {
    let slot = thread.slot();
    for other in thread::used().filter(|other| other.slot() != slot) {
        other.block().phase.store(phase::FREE, Ordering::Relaxed);
    }
    memory::unlock_after_fork();
    if thread.private().dispositions != 0 {
        action::move_to_process(thread);
    }
    thread.private().vforked = 0;
    let process = hole::process();
    process.parked.store(0, Ordering::Relaxed);
    process.slots.store(slot as u64 + 1, Ordering::Relaxed);
    process.interpreted.store(0, Ordering::Relaxed);
    thread.state().tid = linux::gettid();
    thread.private().queued.signo = 0;
    signal::apply_mask(thread);
}

/// Is this the only thread?
fn is_last(thread: Thread) -> bool {
    !thread::used().any(|other| other.slot() != thread.slot())
}

pub(super) fn exit(call: &Call) -> Outcome {
    if is_last(call.thread) {
        report::print_stats(hole::process().interpreted.load(Ordering::Relaxed));
    }
    leave(call.thread, call.args[0])
}

/// End the calling thread alone.
pub(crate) fn leave(thread: Thread, status: u64) -> ! {
    linux::set_signal_mask(!0);
    if thread.private().vforked != 0 {
        linux::exit_thread(status);
    }
    // SAFETY: nothing uses this thread's block or stack any more.
    unsafe { host::leave_thread(&thread.block().phase, status) }
}

pub(super) fn exit_group(call: &Call) -> Outcome {
    // Of a process on another one's memory this is the only thread, and the slot is the other one's.
    if call.thread.private().dispositions != 0 {
        leave(call.thread, call.args[0]);
    }
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

/// A registration is only kept in the thread's state: the host's kernel could not restart a guest's sequence.
pub(super) fn rseq(call: &Call) -> Outcome {
    let [area, length, flags, signature, ..] = call.args;
    let state = call.thread.state();
    let asked = (area, length as u32, signature as u32);
    let present = (state.rseq, state.rseq_len, state.rseq_signature);
    let next = match registration(asked, present, flags) {
        Ok(next) => next,
        Err(errno) => return errno.into(),
    };
    if let Err(errno) = forget_cpu(area) {
        return errno.into();
    }
    (state.rseq, state.rseq_len, state.rseq_signature) = next;
    Outcome::Done(0)
}

/// A thread's area, its length and signature; zeros where there is none.
type Registration = (u64, u32, u32);

/// What a thread that has `present` has after rseq(2) with these arguments.
fn registration(asked: Registration, present: Registration, flags: u64) -> Result<Registration, Errno> {
    const UNREGISTER: u64 = 1;
    /// Bytes of the first version, and its alignment.
    const FIRST_VERSION: u32 = 32;
    let (area, length, signature) = asked;
    let known = area != 0 && area == present.0;
    match flags {
        0 | UNREGISTER if known && length == present.1 && signature != present.2 => Err(Errno::EPERM),
        UNREGISTER if known && asked == present => Ok((0, 0, 0)),
        0 if known && asked == present => Err(Errno::EBUSY),
        0 if present.0 == 0
            && area != 0
            && area % u64::from(FIRST_VERSION) == 0
            && length >= FIRST_VERSION =>
        {
            Ok(asked)
        }
        _ => Err(Errno::EINVAL),
    }
}

/// Have the rseq(2) area at `area` say that the thread's CPU is not known, as it does where nothing is registered.
pub(crate) fn forget_cpu(area: u64) -> Result<(), Errno> {
    const CPU_ID_START: u32 = 0;
    const CPU_ID_UNINITIALIZED: u32 = !0;
    access::write(area, &[CPU_ID_START, CPU_ID_UNINITIALIZED])
}
