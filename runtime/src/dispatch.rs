//! The dispatcher: compiled code where there is some, the interpreter where not, and what compiled code calls.

use crate::exact;
use crate::host;
use crate::interpret::{self, Stop};
use crate::object;
use crate::signal::{self, fault};
use crate::supply;
use crate::syscall;
use crate::thread::Thread;
use core::mem;
use core::sync::atomic::Ordering;
use tranship_abi::block::{RuntimeCalls, ThreadBlock};
use tranship_isa::machine::Trap;
use tranship_isa::x86_64::coprocessor;

/// Run the guest from its PC on, for good.
pub fn run(thread: Thread) -> ! {
    loop {
        // There are no frames below this one.
        thread.private().stale.store(0, Ordering::Release);
        thread.private().entered_at = 0;
        exact::start_afresh(thread);
        if thread.is_pending() {
            signal::safepoint(thread);
        }
        if supply::has_come() {
            supply::take();
        }
        if let Some(entry) = object::entry(thread) {
            entry.enter(thread);
        } else if let Stop::Compiled(entry) = interpret::run(thread, None) {
            entry.enter(thread);
        }
    }
}

/// The addresses that compiled code calls the runtime at.
pub fn calls() -> RuntimeCalls {
    RuntimeCalls {
        syscall: call_syscall as *const () as u64,
        safepoint: call_safepoint as *const () as u64,
        interpret_call: call_interpret_call as *const () as u64,
        lookup: call_lookup as *const () as u64,
        coprocessor: call_coprocessor as *const () as u64,
        interpret_one: call_interpret_one as *const () as u64,
        trap: call_trap as *const () as u64,
        fp_collect: call_fp_collect as *const () as u64,
        fp_apply: call_fp_apply as *const () as u64,
        reserved: [0; 7],
    }
}

/// Go on in compiled code.
const GO_ON: u64 = 0;
/// Leave compiled code for the dispatcher.
const UNWIND: u64 = 1;

/// May the thread go back to the compiled code that it came from?
fn may_return(thread: Thread) -> bool {
    !exact::must_leave(thread) && !thread.is_stale()
}

/// `thread` comes from compiled code, which keeps some of its state otherwise.
pub fn arrive(thread: Thread) {
    host::fp_collect(&mut thread.cpu().mxcsr);
    interpret::settle(thread);
}

/// Do what compiled code asks for with registers that are exact, floating-point status included. It is left if it may
/// not run any more.
fn with_exact(block: *mut ThreadBlock, action: impl FnOnce(Thread) -> u64) -> u64 {
    // SAFETY: compiled code passes its own block.
    let thread = unsafe { Thread::at(block) };
    arrive(thread);
    let result = action(thread);
    host::fp_apply(thread.cpu().mxcsr);
    if may_return(thread) { result } else { UNWIND }
}

extern "C" fn call_syscall(block: *mut ThreadBlock) -> u64 {
    // SAFETY: compiled code passes its own block.
    if syscall::read_clock(unsafe { Thread::at(block) }) {
        return GO_ON;
    }
    with_exact(block, |thread| if syscall::perform(thread) { UNWIND } else { GO_ON })
}

extern "C" fn call_safepoint(block: *mut ThreadBlock) -> u64 {
    with_exact(block, |thread| {
        // Else it is a function for whose frame there is no room on the host stack, and there will be none.
        let is_asked = thread.is_pending();
        if signal::safepoint(thread) || !is_asked { UNWIND } else { GO_ON }
    })
}

extern "C" fn call_interpret_call(block: *mut ThreadBlock) -> u64 {
    with_exact(block, |thread| {
        interpret::note_target(thread.cpu().rip);
        // A callee has been entered when its return address has been pushed: it is left when the stack
        // pointer is above that, be it by a return or by a jump out of frames that we do not know.
        let frame = thread.cpu().gpr[4];
        // Code that was entered below has jumped here, and has no frames that anyone comes back to.
        if frame == thread.private().entered_at {
            return UNWIND;
        }
        loop {
            if thread.is_deep() || !may_return(thread) {
                return UNWIND;
            }
            if thread.is_pending() {
                signal::safepoint(thread);
                continue;
            }
            if thread.cpu().gpr[4] > frame {
                return GO_ON;
            }
            let entry = match object::entry(thread) {
                Some(entry) => entry,
                None => match interpret::run(thread, Some(frame)) {
                    Stop::Compiled(entry) => entry,
                    Stop::Pending => continue,
                    Stop::Left => return GO_ON,
                },
            };
            let before = place_of(thread);
            let outer = mem::replace(&mut thread.private().entered_at, before.1);
            entry.enter(thread);
            thread.private().entered_at = outer;
            // There may be room on the host stack for this function, but not for that one.
            if place_of(thread) == before {
                return UNWIND;
            }
        }
    })
}

/// Where `thread` is: its PC and stack pointer.
fn place_of(thread: Thread) -> (u64, u64) {
    let cpu = thread.cpu();
    (cpu.rip, cpu.gpr[4])
}

extern "C" fn call_lookup(block: *mut ThreadBlock, guest: u64) -> u64 {
    // SAFETY: compiled code passes its own block.
    object::branch_target(unsafe { Thread::at(block) }, guest)
}

extern "C" fn call_coprocessor(block: *mut ThreadBlock, operation: u32, operands: *mut [u128; 2]) {
    // SAFETY: compiled code passes its own block and two operands.
    let (thread, operands) = unsafe { (Thread::at(block), &mut *operands) };
    operands[0] = match operation {
        coprocessor::TIMESTAMP => host::timestamp().into(),
        _ => coprocessor::run(thread.cpu(), operation, operands[0], operands[1]),
    };
}

extern "C" fn call_interpret_one(block: *mut ThreadBlock) -> u64 {
    with_exact(block, |thread| if interpret::one(thread) { UNWIND } else { GO_ON })
}

extern "C" fn call_trap(block: *mut ThreadBlock, trap: u32) -> u64 {
    with_exact(block, |thread| {
        fault::raise_trap(thread, Trap::ALL.get(trap as usize).copied().unwrap_or(Trap::Undefined));
        UNWIND
    })
}

extern "C" fn call_fp_collect(block: *mut ThreadBlock) {
    // SAFETY: compiled code passes its own block.
    host::fp_collect(&mut unsafe { Thread::at(block) }.cpu().mxcsr);
}

extern "C" fn call_fp_apply(block: *mut ThreadBlock) {
    // SAFETY: compiled code passes its own block.
    host::fp_apply(unsafe { Thread::at(block) }.cpu().mxcsr);
}
