//! What the guest may see of compiled code. Where its handlers look at faults, only objects run that can say the exact
//! state ([`FAULTS_EXACT`]); where it unmasks SSE exceptions, which compiled code does not raise, none do.

use crate::dispatch;
use crate::hole;
use crate::host::SignalContext;
use crate::interpret;
use crate::object;
use crate::signal::action;
use crate::supply;
use crate::thread::{self, Thread};
use core::sync::atomic::Ordering;
use tranship_abi::block::{FAULTS_EXACT, ThreadBlock};
use tranship_abi::signal::SIG_IGN;
use tranship_abi::signal::number::{SIGBUS, SIGSEGV};

/// MXCSR's exception masks.
const MASKS: u32 = 0x1f80;

/// Does the guest look at what a fault finds? Without a handler it ends.
fn is_demanded() -> bool {
    [SIGSEGV, SIGBUS].into_iter().any(|signal| action::of(signal).handler > SIG_IGN)
}

/// Is only code of use that can say the exact state? Once it is, it stays so: code of the two kinds cannot call each other,
/// as they have the status flags in different places.
pub fn is_on() -> bool {
    hole::process().supply.exact.load(Ordering::Acquire) != 0
}

/// May `thread` run compiled code at all?
pub fn admits_compiled(thread: Thread) -> bool {
    thread.cpu().mxcsr & MASKS == MASKS
}

/// May code run of an object with these [`ObjectHeader::faults`](tranship_abi::block::ObjectHeader::faults)?
pub fn admits(faults: u64) -> bool {
    is_on() == (faults == FAULTS_EXACT)
}

/// `thread` gets code of an object with these.
pub fn note(thread: Thread, faults: u64) {
    if faults != FAULTS_EXACT {
        thread.private().inexact = 1;
    }
}

/// Must `thread` leave the compiled code that it is in?
pub fn must_leave(thread: Thread) -> bool {
    !admits_compiled(thread) || thread.private().inexact != 0 && is_on()
}

/// `thread` is in no compiled code: what it enters from now on counts.
pub fn start_afresh(thread: Thread) {
    if core::mem::take(&mut thread.private().inexact) != 0 && is_on() {
        thread.forget_branches();
    }
}

/// The guest's handlers may have changed.
pub fn look_again() {
    if is_demanded() {
        turn_on();
    }
}

/// From now on only code is of use that can say the exact state.
pub fn turn_on() {
    if is_on() {
        return;
    }
    supply::turn_exact();
    interpret::entries_changed();
    interpret::cool();
    thread::used().for_each(Thread::leave_compiled_code);
}

/// Have `thread`, which has faulted in compiled code, come to the same instruction by interpreting when the signal's handler
/// returns: from the access's own landing or, where it has none, from the thread block, which is complete then. False: the
/// code cannot say the exact state.
pub fn leave_for_interpreter(thread: Thread, context: &mut SignalContext) -> bool {
    if let Some(landing) = object::landing(context.pc()) {
        context.set_pc(landing);
        return true;
    }
    let possible = hole::is_object(context.pc()) && thread.private().inexact == 0;
    if possible {
        let stack = thread.block().host_stack_top;
        context.call(after_fault as *const () as u64, thread.address() as u64, stack);
    }
    possible
}

/// Here a thread goes on with what its block has, on an empty host stack.
unsafe extern "C" fn after_fault(block: *mut ThreadBlock) -> ! {
    // SAFETY: `go_back` passes the thread's own block.
    let thread = unsafe { Thread::at(block) };
    dispatch::arrive(thread);
    interpret::one(thread);
    dispatch::run(thread)
}
