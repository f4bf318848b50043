//! Dispositions: the host's are made to follow the guest's.

use super::host_handler;
use crate::hole;
use crate::host;
use crate::linux::{self, Errno};
use crate::thread::Thread;
use tranship_abi::block::SigAction;
use tranship_abi::signal::number::{INTERRUPT, SIGBUS, SIGKILL, SIGSEGV, SIGSTOP};
use tranship_abi::signal::{SIG_DFL, SIG_IGN, bit, sa};
use tranship_abi::syscall::nr;

/// The host's `struct kernel_sigaction`: arm64 and x86-64 lay it out alike.
#[repr(C)]
struct HostAction {
    handler: u64,
    flags: u64,
    restorer: u64,
    mask: u64,
}

/// Dispositions of signals 1..=64.
type Actions = [SigAction; 64];

/// The calling thread's process's: a process that shares memory with another one has its own.
fn all() -> &'static mut Actions {
    match Thread::current().private().dispositions {
        0 => &mut hole::process().state.sigactions,
        // SAFETY: where `give_own` put them, on a host stack that is mapped as long as its thread is there.
        own => unsafe { &mut *(own as *mut Actions) },
    }
}

/// The guest's disposition of `signal`.
pub fn of(signal: u32) -> SigAction {
    all()[signal as usize - 1]
}

/// Note the guest's new disposition.
pub fn set(signal: u32, action: SigAction) {
    all()[signal as usize - 1] = action;
}

/// Let `child`, which does not run yet, start with a copy of the caller's at the top of its host stack. Yields what
/// is left of that.
pub fn give_own(child: Thread, stack_top: u64) -> u64 {
    let own = (stack_top - size_of::<Actions>() as u64) & !63;
    // SAFETY: mapped, aligned, and nobody else's.
    unsafe { (own as *mut Actions).write(*all()) };
    child.private().dispositions = own;
    own
}

/// In a forked child, which shares memory with nobody: its dispositions are the process's.
pub fn move_to_process(thread: Thread) {
    hole::process().state.sigactions = *all();
    thread.private().dispositions = 0;
}

/// CLONE_CLEAR_SIGHAND: what has a handler gets the default action.
pub fn clear_handlers() {
    for signal in (1..INTERRUPT).filter(|&signal| of(signal).handler > SIG_IGN) {
        let default = SigAction { handler: SIG_DFL, flags: 0, restorer: 0, mask: 0 };
        set(signal, default);
        let _ = install(signal, &default);
    }
}

/// Have the host do with `signal` what the guest's `action` asks for.
pub fn install(signal: u32, action: &SigAction) -> Result<(), Errno> {
    // Faults of our own accesses to guest memory arrive as these, whatever the guest does with them.
    let ours = signal == SIGSEGV || signal == SIGBUS;
    let handled = signal == INTERRUPT || ours || action.handler > SIG_IGN;
    let guest_flags = action.flags & (sa::NOCLDSTOP | sa::NOCLDWAIT | sa::RESTART);
    let restart = if signal == INTERRUPT || action.handler <= SIG_IGN { sa::RESTART } else { 0 };
    let host_action = HostAction {
        handler: if handled { host_handler as *const () as u64 } else { action.handler },
        flags: guest_flags | restart | sa::SIGINFO | sa::RESTORER,
        restorer: host::signal_return as *const () as u64,
        mask: !0,
    };
    install_on_host(signal, &host_action)
}

/// Let the kernel do with `signal` what it does by default.
pub fn install_default(signal: u32) {
    let _ = install_on_host(signal, &HostAction { handler: SIG_DFL, flags: 0, restorer: 0, mask: 0 });
}

/// Have the kernel ignore `signal`.
pub fn install_ignore(signal: u32) {
    let _ = install_on_host(signal, &HostAction { handler: SIG_IGN, flags: 0, restorer: 0, mask: 0 });
}

fn install_on_host(signal: u32, action: &HostAction) -> Result<(), Errno> {
    let args = [signal.into(), core::ptr::from_ref(action) as u64, 0, 8, 0, 0];
    // SAFETY: our handler runs on the host stack of a thread of ours.
    unsafe { linux::call(nr::rt_sigaction, args) }.map(drop)
}

/// Signals whose disposition may change at all.
pub fn can_change(signal: u32) -> bool {
    (1..INTERRUPT).contains(&signal) && bit(signal) & (bit(SIGKILL) | bit(SIGSTOP)) == 0
}

/// Install all of the guest's dispositions, and our own.
pub fn install_all() {
    for signal in (1..INTERRUPT).filter(|&signal| can_change(signal)) {
        let _ = install(signal, &of(signal));
    }
    let own = SigAction { handler: SIG_DFL, flags: 0, restorer: 0, mask: 0 };
    let _ = install(INTERRUPT, &own);
}

/// Take over the dispositions that a process starts with: what its parent ignored stays ignored.
pub fn inherit() {
    for signal in (1..INTERRUPT).filter(|&signal| can_change(signal)) {
        let mut host_action = HostAction { handler: 0, flags: 0, restorer: 0, mask: 0 };
        let args = [signal.into(), 0, (&raw mut host_action) as u64, 8, 0, 0];
        // SAFETY: the kernel fills the local.
        let _ = unsafe { linux::call(nr::rt_sigaction, args) };
        if host_action.handler == SIG_IGN {
            set(signal, SigAction { handler: SIG_IGN, flags: 0, restorer: 0, mask: 0 });
        }
    }
}
