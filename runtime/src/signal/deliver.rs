//! Entering a guest's handler, and returning from it.

use super::{action, fault};
use crate::linux::Errno;
use crate::memory::access;
use crate::thread::Thread;
use tranship_abi::block::{SigAction, ThreadState};
use tranship_abi::signal::number::{INTERRUPT, SIGKILL, SIGSTOP};
use tranship_abi::signal::{
    RtSigFrame, SIG_DFL, SIG_IGN, SS_AUTODISARM, SS_DISABLE, SS_ONSTACK, SigInfo, Stack, bit, place, sa,
    save_fpstate,
};
use tranship_abi::xsave::{self, Area};
use tranship_isa::x86_64::Cpu;

/// Signals that cannot be blocked.
const UNBLOCKABLE: u64 = bit(SIGKILL) | bit(SIGSTOP) | bit(INTERRUPT);

/// Deliver an asynchronous signal. True if a handler was entered.
pub fn deliver(thread: Thread, info: SigInfo) -> bool {
    let signal = info.signo as u32;
    match action::of(signal).handler {
        // The disposition may have changed since the signal arrived.
        SIG_IGN => false,
        SIG_DFL => fault::default_action(thread, signal),
        _ => {
            enter_handler(thread, info);
            true
        }
    }
}

/// Build the frame and go to the handler, which there is. A stack that cannot take it is SIGSEGV.
pub fn enter_handler(thread: Thread, info: SigInfo) {
    let signal = info.signo as u32;
    let action = action::of(signal);
    crate::report::count(&crate::report::COUNTERS.signals);
    if push_frame(thread, &action, info).is_err() {
        return fault::stack_is_bad(thread, signal);
    }
    let state = thread.state();
    state.signal_mask |= action.mask & !UNBLOCKABLE;
    if action.flags & sa::NODEFER == 0 {
        state.signal_mask |= bit(signal);
    }
    if action.flags & sa::RESETHAND != 0 {
        let reset = SigAction { handler: SIG_DFL, ..action };
        action::set(signal, reset);
        let _ = action::install(signal, &reset);
    }
}

fn push_frame(thread: Thread, action: &SigAction, info: SigInfo) -> Result<(), Errno> {
    let state = thread.state();
    // As the kernel has it: of the latest trap, whatever this signal is about.
    let trap = thread.private().trap;
    let alternate = alternate_stack(state, action.flags);
    let mut fp = Area::new();
    let fp_bytes = save_fpstate(&state.cpu, &mut fp);
    let place = place(state.cpu.gpr[4], alternate, fp_bytes as u64);
    if alternate.is_some_and(|(base, _)| place.frame < base) {
        return Err(Errno::EFAULT);
    }
    let stack = current_stack(state);
    let frame =
        RtSigFrame::new(&state.cpu, info, trap, state.signal_mask, stack, place.fpstate, action.restorer);
    access::write_bytes(place.fpstate, &fp.0[..fp_bytes])?;
    access::write(place.frame, &frame)?;
    frame.enter(&mut state.cpu, action.handler, place);
    initialize_extended(&mut state.cpu);
    // Of any handler, also of one that stays where it is.
    if state.altstack_flags & SS_AUTODISARM != 0 {
        (state.altstack_base, state.altstack_size, state.altstack_flags) = (0, 0, SS_DISABLE);
    }
    Ok(())
}

/// Is the guest on its alternate stack?
pub fn on_alternate_stack(state: &ThreadState) -> bool {
    let sp = state.cpu.gpr[4];
    state.altstack_flags & SS_AUTODISARM == 0
        && sp > state.altstack_base
        && sp - state.altstack_base <= state.altstack_size
}

/// The alternate stack (base, size), if a handler with `flags` is to move there.
fn alternate_stack(state: &ThreadState, flags: u64) -> Option<(u64, u64)> {
    let wanted = flags & sa::ONSTACK != 0 && state.altstack_size != 0;
    (wanted && !on_alternate_stack(state)).then_some((state.altstack_base, state.altstack_size))
}

/// sigaltstack(2)'s answer.
pub fn current_stack(state: &ThreadState) -> Stack {
    let flags = match (state.altstack_size, on_alternate_stack(state)) {
        (0, _) => SS_DISABLE,
        (_, true) => SS_ONSTACK,
        (_, false) => 0,
    };
    let kept = state.altstack_flags & SS_AUTODISARM;
    Stack { sp: state.altstack_base, flags: flags | kept, pad: 0, size: state.altstack_size }
}

/// Set the alternate stack; EPERM while it is in use.
pub fn set_stack(state: &mut ThreadState, stack: Stack) -> Result<(), Errno> {
    const MIN_SIZE: u64 = 2048;
    if on_alternate_stack(state) {
        return Err(Errno::EPERM);
    }
    match stack.flags & !SS_AUTODISARM {
        SS_DISABLE => (state.altstack_base, state.altstack_size) = (0, 0),
        0 | SS_ONSTACK if stack.size < MIN_SIZE => return Err(Errno::ENOMEM),
        0 | SS_ONSTACK => (state.altstack_base, state.altstack_size) = (stack.sp, stack.size),
        _ => return Err(Errno::EINVAL),
    }
    state.altstack_flags = stack.flags;
    Ok(())
}

/// rt_sigreturn(2): back to what the frame below the stack pointer says.
pub fn sigreturn(thread: Thread) {
    if pop_frame(thread.state()).is_err() {
        fault::raise_bad_frame(thread);
    }
}

fn pop_frame(state: &mut ThreadState) -> Result<(), Errno> {
    // The handler's return has popped `pretcode`.
    let frame: RtSigFrame = access::read(state.cpu.gpr[4].wrapping_sub(8))?;
    let fpstate = frame.uc.mcontext.fpstate;
    if fpstate == 0 {
        initialize_extended(&mut state.cpu);
    } else {
        restore_fpstate(state, fpstate)?;
    }
    frame.uc.mcontext.restore(&mut state.cpu);
    state.signal_mask = frame.uc.sigmask & !UNBLOCKABLE;
    // As the kernel does it: what cannot be set is left.
    let _ = set_stack(state, frame.uc.stack);
    Ok(())
}

/// The extended state as a program starts with it. A handler does so too (`fpu__clear_user_states`).
fn initialize_extended(cpu: &mut Cpu) {
    let initial = Cpu::at_exec(0, 0);
    (cpu.x87, cpu.mxcsr, cpu.vec, cpu.opmask) = (initial.x87, initial.mxcsr, initial.vec, initial.opmask);
}

fn restore_fpstate(state: &mut ThreadState, address: u64) -> Result<(), Errno> {
    const LEGACY_BYTES: usize = 512;
    let mut area = Area::new();
    access::read_bytes(address, &mut area.0[..LEGACY_BYTES])?;
    if let Some(bytes) = area.frame_bytes() {
        access::read_bytes(address, &mut area.0[..bytes])?;
        if area.frame_is_whole(bytes) {
            xsave::restore(&mut state.cpu, &area);
            return Ok(());
        }
    }
    xsave::restore_legacy(&mut state.cpu, &area);
    Ok(())
}
