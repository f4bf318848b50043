//! The guest's signals. The host's dispositions and masks are kept equal to the guest's, so that the kernel
//! itself decides what arrives; what has a guest handler comes to [`host_handler`] and is delivered at the
//! next safepoint.
//!
//! One signal at a time: when one arrives, the host's mask is closed until it has been delivered, so that all
//! others stay where a checkpoint finds them, in the kernel.

pub mod action;
pub mod deliver;
pub mod fault;

use crate::host::{self, SignalContext};
use crate::linux;
use crate::park;
use crate::thread::Thread;
use core::sync::atomic::Ordering;
use tranship_abi::signal::number::{INTERRUPT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP};
use tranship_abi::signal::{SigInfo, bit};
use tranship_abi::syscall::nr;

pub use action::{install, install_all};

/// Signals that the kernel raises for what an instruction did.
const SYNCHRONOUS: u64 = bit(SIGSEGV) | bit(SIGBUS) | bit(SIGFPE) | bit(SIGILL) | bit(SIGTRAP) | bit(SIGSYS);

/// The host's handler of every signal that the guest handles, of SIGSEGV and SIGBUS, and of signal 64.
pub(crate) unsafe extern "C" fn host_handler(signal: u32, info: *const SigInfo, context: *mut SignalContext) {
    // SAFETY: the kernel passes both to a handler with SA_SIGINFO.
    let (info, context) = unsafe { (&*info, &mut *context) };
    let thread = Thread::current();
    if bit(signal) & SYNCHRONOUS != 0 && info.code > 0 {
        return fault::on_host_fault(thread, signal, info, context);
    }
    if signal != INTERRUPT {
        queue(thread, signal, info, context);
    }
    thread.pending().store(1, Ordering::Release);
    context.set_pc(host::without_syscall(context.pc()));
}

/// Keep an arrived signal for the next safepoint.
fn queue(thread: Thread, signal: u32, info: &SigInfo, context: &mut SignalContext) {
    let private = thread.private();
    if private.queued.signo == 0 {
        private.queued = *info;
        let open = bit(INTERRUPT) | (SYNCHRONOUS & !thread.state().signal_mask);
        *context.mask() = !open;
        return;
    }
    // Only a synchronous signal's number, sent by somebody, can come while another one is queued: back to
    // the kernel with it.
    *context.mask() |= bit(signal);
    let (pid, tid) = (linux::getpid().into(), linux::gettid().into());
    let args = [pid, tid, signal.into(), core::ptr::from_ref(info) as u64, 0, 0];
    // SAFETY: the kernel reads `info`.
    let _ = unsafe { linux::call(nr::rt_tgsigqueueinfo, args) };
}

/// Is a signal waiting for its safepoint?
pub fn is_queued(thread: Thread) -> bool {
    thread.private().queued.signo != 0
}

/// Look at what is pending: deliver a signal, park. The registers are exact. True if the guest is somewhere
/// else now, or compiled code is to be left.
pub fn safepoint(thread: Thread) -> bool {
    let mut moved = false;
    while thread.pending().swap(0, Ordering::AcqRel) != 0 {
        let queued = thread.private().queued;
        if queued.signo != 0 {
            moved |= deliver::deliver(thread, queued);
            // From here on the next signal may come.
            thread.private().queued.signo = 0;
            apply_mask(thread);
        }
        park::park_if_asked(thread);
    }
    moved || thread.is_stale()
}

/// Put the guest's mask in force.
pub fn apply_mask(thread: Thread) {
    linux::set_signal_mask(thread.state().signal_mask & !bit(INTERRUPT));
}
