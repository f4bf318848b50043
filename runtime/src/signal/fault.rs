//! Signals that an instruction of the guest causes, and dying by a signal.

use super::{action, apply_mask, deliver};
use crate::exact;
use crate::host::{self, PageFault, SignalContext};
use crate::linux;
use crate::report;
use crate::supply;
use crate::thread::Thread;
use tranship_abi::signal::number::{SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGTRAP};
use tranship_abi::signal::{SIG_IGN, SigInfo, TrapFrame, bit};
use tranship_abi::syscall::nr;
use tranship_isa::machine::Trap;

/// `si_code` values.
const SI_KERNEL: i32 = 0x80;
const FPE_INTDIV: i32 = 1;
const ILL_ILLOPN: i32 = 2;
const TRAP_BRKPT: i32 = 1;
const SEGV_MAPERR: i32 = 1;
const SEGV_ACCERR: i32 = 2;
/// x86 exception numbers.
const GENERAL_PROTECTION: u64 = 13;
const PAGE_FAULT: u64 = 14;

/// A fault reached the host: of one of our own accesses to guest memory, which then fails; or of compiled
/// code or the runtime, of which no exact guest state is known.
pub(super) fn on_host_fault(thread: Thread, signal: u32, info: &SigInfo, context: &mut SignalContext) {
    let memory = signal == SIGSEGV || signal == SIGBUS;
    if signal == SIGSEGV && supply::written(info.address()) {
        return;
    }
    if let (true, Some(pc)) = (memory, host::after_fault(context.pc())) {
        thread.private().fault = context.page_fault(info);
        context.set_pc(pc);
        return;
    }
    let handled = action::of(signal).handler > SIG_IGN;
    if memory && handled && exact::leave_for_interpreter(thread, context) {
        return;
    }
    if handled {
        report::complain(format_args!(
            "signal {signal} at host address {:#x} (address {:#x}) in compiled code: its handler at {:#x} cannot be entered yet",
            context.pc(),
            info.address(),
            action::of(signal).handler
        ));
    }
    // The instruction faults again, and then the kernel does as it does by default.
    action::install_default(signal);
    *context.mask() &= !bit(signal);
}

/// The fault of executing at `address`, which the guest may not.
pub fn not_executable(address: u64) -> PageFault {
    const USER_FETCH: u64 = 0x14;
    let mut resident = 0_u8;
    let page = address / linux::PAGE * linux::PAGE;
    // SAFETY: the kernel writes one byte.
    let mapped =
        unsafe { linux::call(nr::mincore, [page, linux::PAGE, (&raw mut resident) as u64, 0, 0, 0]) }.is_ok();
    let code = if mapped { SEGV_ACCERR } else { SEGV_MAPERR };
    PageFault { signal: SIGSEGV, code, address, error: USER_FETCH | u64::from(mapped) }
}

/// Raise what the kernel raises for a page fault at the guest PC. Not every host's frame says whether it was a
/// `write`.
pub fn raise_page_fault(thread: Thread, fault: PageFault, write: bool) {
    const WRITE: u64 = 2;
    // No page has such an address: a host of the guest's kind says #GP, others know no such thing.
    let canonical = (fault.address << 16) as i64 >> 16 == fault.address as i64;
    if fault.code == SI_KERNEL || !canonical {
        return raise_with(thread, SigInfo::fault(SIGSEGV, SI_KERNEL, 0), GENERAL_PROTECTION);
    }
    let err = (fault.error & !WRITE) | if write { WRITE } else { 0 };
    let trap = TrapFrame { trapno: PAGE_FAULT, err, cr2: fault.address };
    force(thread, SigInfo::fault(fault.signal, fault.code, fault.address), trap);
}

/// Raise what the kernel raises for an exception at the guest PC.
pub fn raise_trap(thread: Thread, trap: Trap) {
    let cpu = thread.cpu();
    let (signal, code, address, trapno) = match trap {
        Trap::Divide => (SIGFPE, FPE_INTDIV, cpu.rip, 0),
        Trap::Debug => (SIGTRAP, TRAP_BRKPT, cpu.rip, 1),
        Trap::Breakpoint => (SIGTRAP, SI_KERNEL, 0, 3),
        Trap::Undefined => (SIGILL, ILL_ILLOPN, cpu.rip, 6),
        Trap::GeneralProtection => (SIGSEGV, SI_KERNEL, 0, GENERAL_PROTECTION),
        Trap::FloatingPoint => float_exception(thread),
    };
    raise_with(thread, SigInfo::fault(signal, code, address), trapno);
}

/// Raise a signal for an exception that leaves CR2 as the latest page fault has set it.
fn raise_with(thread: Thread, info: SigInfo, trapno: u64) {
    let cr2 = thread.private().trap.cr2;
    force(thread, info, TrapFrame { trapno, err: 0, cr2 });
}

/// #XM or #MF, whichever unit has an exception that is not masked (`fpu__exception_code`).
fn float_exception(thread: Thread) -> (u32, i32, u64, u64) {
    let cpu = thread.cpu();
    let unmasked_x87 = u32::from(cpu.x87.status & !cpu.x87.control) & 0x3f;
    let unmasked_sse = cpu.mxcsr & !(cpu.mxcsr >> 7) & 0x3f;
    let (raised, trapno) = if unmasked_sse != 0 { (unmasked_sse, 19) } else { (unmasked_x87, 16) };
    let code = match raised {
        r if r & 1 != 0 => 7,    // FPE_FLTINV
        r if r & 4 != 0 => 3,    // FPE_FLTDIV
        r if r & 8 != 0 => 4,    // FPE_FLTOVF
        r if r & 0x12 != 0 => 5, // FPE_FLTUND
        _ => 6,                  // FPE_FLTRES
    };
    (SIGFPE, code, cpu.rip, trapno)
}

/// Raise SIGSYS for a call that a filter of the guest's does not allow.
pub fn raise_seccomp(thread: Thread, info: SigInfo) {
    let trap = thread.private().trap;
    force(thread, info, trap);
}

/// A signal that cannot wait: to its handler, or the end if that is blocked or not there.
fn force(thread: Thread, info: SigInfo, trap: TrapFrame) {
    let signal = info.signo as u32;
    let handled = action::of(signal).handler > SIG_IGN;
    if !handled || thread.state().signal_mask & bit(signal) != 0 {
        die_by(thread, signal);
    }
    thread.private().trap = trap;
    deliver::enter_handler(thread, info);
    apply_mask(thread);
}

/// A frame for `signal` could not be pushed: SIGSEGV, and if it was that already, the end.
pub(super) fn stack_is_bad(thread: Thread, signal: u32) {
    if signal == SIGSEGV {
        die_by(thread, SIGSEGV);
    }
    raise_bad_frame(thread);
}

/// A frame could not be pushed or popped.
pub(super) fn raise_bad_frame(thread: Thread) {
    raise_with(thread, SigInfo::fault(SIGSEGV, SI_KERNEL, 0), GENERAL_PROTECTION);
}

/// Have the kernel do with `signal` what it does by default. Returns false if the process is still there.
pub(super) fn default_action(thread: Thread, signal: u32) -> bool {
    action::install_default(signal);
    linux::raise(signal);
    linux::set_signal_mask(!bit(signal));
    apply_mask(thread);
    let _ = action::install(signal, &action::of(signal));
    false
}

/// End the process by `signal`, as the kernel would.
pub fn die_by(thread: Thread, signal: u32) -> ! {
    report::print_stats(crate::hole::process().interpreted.load(core::sync::atomic::Ordering::Relaxed));
    default_action(thread, signal);
    linux::exit_group(128 + signal as i32)
}
