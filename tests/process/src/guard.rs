//! Entering compiled code so that a memory fault in it comes back as a value: the signal's handler goes on where the access
//! says, as the runtime's does, or else behind the call, with the stack as it was before.

use crate::host;
use libc::{c_int, c_void, siginfo_t};
use std::ptr::{self, addr_of_mut};
use std::sync::{Mutex, PoisonError};
use tranship_abi::block::{ObjectHeader, ThreadBlock};
use tranship_runtime::host::SignalContext;
use tranship_runtime::object::landing_in;

/// A memory fault of compiled code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fault {
    /// SIGSEGV or SIGBUS.
    pub signal: i32,
    /// Its `si_code`.
    pub code: i32,
    /// The address, where the kernel knows it.
    pub address: u64,
}

/// Where a guarded call goes on after a fault, as [`host::enter_guarded`] leaves it.
#[repr(C)]
pub(crate) struct Recovery {
    pub(crate) stack: u64,
    pub(crate) pc: u64,
}

/// What the handler works on. It may interrupt code whose thread pointer is not this process's, so it is in no
/// thread-local variable. Guarded by [`ONLY`].
static mut GUARDED: Guarded = Guarded {
    active: false,
    object: None,
    recovery: Recovery { stack: 0, pc: 0 },
    fault: None,
    previous: [None; 2],
};

static ONLY: Mutex<()> = Mutex::new(());

struct Guarded {
    /// Compiled code is running.
    active: bool,
    object: Option<&'static ObjectHeader>,
    recovery: Recovery,
    fault: Option<Fault>,
    /// What handled each of [`SIGNALS`] before.
    previous: [Option<libc::sigaction>; 2],
}

const SIGNALS: [c_int; 2] = [libc::SIGSEGV, libc::SIGBUS];

/// Call `enter(thread, code)` of `object`.
pub(crate) fn enter(
    object: &'static ObjectHeader,
    enter: u64,
    thread: *mut ThreadBlock,
    code: u64,
) -> Result<(), Fault> {
    let _only = ONLY.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: under the lock; the caller passes an object's function and its arguments, and compiled code holds
    // nothing that a fault in it would leave locked.
    unsafe {
        let guarded = addr_of_mut!(GUARDED);
        install(&mut (*guarded).previous);
        (*guarded).fault = None;
        (*guarded).object = Some(object);
        (*guarded).active = true;
        host::enter_guarded(enter, thread, code, &raw mut (*guarded).recovery);
        (*guarded).active = false;
        (*guarded).fault.map_or(Ok(()), Err)
    }
}

/// Whether the compiled code that runs has faulted, and is on its way out.
pub(crate) fn has_faulted() -> bool {
    // SAFETY: the handler has written it on this thread, if any has.
    unsafe { (*addr_of_mut!(GUARDED)).fault.is_some() }
}

/// Have [`handle`] in front of whatever handles the signals now.
fn install(previous: &mut [Option<libc::sigaction>; 2]) {
    for (signal, previous) in SIGNALS.into_iter().zip(previous) {
        // SAFETY: `sigaction` is plain data; the handler touches nothing but its frame and `GUARDED`.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            assert_eq!(libc::sigaction(signal, ptr::null(), &mut action), 0);
            if action.sa_sigaction == handle as *const () as usize {
                continue;
            }
            *previous = Some(action);
            action.sa_sigaction = handle as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            assert_eq!(libc::sigaction(signal, &action, ptr::null_mut()), 0);
        }
    }
}

unsafe extern "C" fn handle(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel passes a valid frame and information on a fault; `GUARDED` is active only while the thread
    // that holds the lock runs compiled code.
    unsafe {
        let guarded = &mut *addr_of_mut!(GUARDED);
        if !guarded.active {
            return pass_on(guarded, signal, info, context);
        }
        guarded.active = false;
        guarded.fault = Some(Fault { signal, code: (*info).si_code, address: (*info).si_addr() as u64 });
        let interrupted = &mut *context.cast::<SignalContext>();
        match guarded.object.and_then(|object| landing_in(object, interrupted.pc())) {
            Some(landing) => interrupted.set_pc(landing),
            None => host::go_on(context, &guarded.recovery),
        }
    }
}

/// Leave the signal to whoever had it before, or to the system.
unsafe fn pass_on(guarded: &Guarded, signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    let which = usize::from(signal != SIGNALS[0]);
    let previous = guarded.previous[which].filter(|action| action.sa_flags & libc::SA_SIGINFO != 0);
    // SAFETY: the action says what kind of function it is; the frame is the kernel's.
    unsafe {
        match previous {
            Some(action) => {
                let handler: extern "C" fn(c_int, *mut siginfo_t, *mut c_void) =
                    std::mem::transmute(action.sa_sigaction);
                handler(signal, info, context);
            }
            None => {
                libc::signal(signal, libc::SIG_DFL);
            }
        }
    }
}
