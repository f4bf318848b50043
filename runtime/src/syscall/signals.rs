//! Signal calls: the guest's dispositions, mask and stack are ours to keep; signal 64 does not exist for it.

use super::poll::{pointer, signal_set};
use super::{Call, Outcome, attempt};
use crate::exact;
use crate::linux::Errno;
use crate::memory::access;
use crate::signal::{action, apply_mask, deliver};
use tranship_abi::block::SigAction;
use tranship_abi::signal::bit;
use tranship_abi::signal::number::{INTERRUPT, SIGKILL, SIGSTOP};
use tranship_abi::syscall::nr;

const UNBLOCKABLE: u64 = bit(SIGKILL) | bit(SIGSTOP) | bit(INTERRUPT);

pub(super) fn sigaction(call: &Call) -> Outcome {
    let [_, new, old, size, ..] = call.args;
    let signal = call.uint(0);
    if size != 8 || !(1..INTERRUPT).contains(&signal) {
        return Errno::EINVAL.into();
    }
    let new: Option<SigAction> = attempt!(access::read_optional(new));
    let current = action::of(signal);
    if let Some(new) = new {
        if !action::can_change(signal) {
            return Errno::EINVAL.into();
        }
        let new = SigAction { mask: new.mask & !UNBLOCKABLE, ..new };
        attempt!(action::install(signal, &new));
        action::set(signal, new);
        exact::look_again();
    }
    access::write_optional(old, &current).map(|()| 0).into()
}

pub(super) fn sigprocmask(call: &Call) -> Outcome {
    const BLOCK: i32 = 0;
    const UNBLOCK: i32 = 1;
    const SET: i32 = 2;
    let [_, new, old, size, ..] = call.args;
    if size != 8 {
        return Errno::EINVAL.into();
    }
    let state = call.thread.state();
    let current = state.signal_mask;
    if let Some(set) = attempt!(access::read_optional::<u64>(new)) {
        let set = set & !UNBLOCKABLE;
        state.signal_mask = match call.int(0) {
            BLOCK => current | set,
            UNBLOCK => current & !set,
            SET => set,
            _ => return Errno::EINVAL.into(),
        };
        apply_mask(call.thread);
    }
    access::write_optional(old, &current).map(|()| 0).into()
}

pub(super) fn sigreturn(call: &Call) -> Outcome {
    deliver::sigreturn(call.thread);
    apply_mask(call.thread);
    Outcome::Moved
}

pub(super) fn sigsuspend(call: &Call) -> Outcome {
    let set = attempt!(signal_set(call.args[0], call.args[1]));
    call.make(nr::rt_sigsuspend, [pointer(&set), 8, 0, 0, 0, 0])
}

pub(super) fn sigtimedwait(call: &Call) -> Outcome {
    let [set, info, timeout, size, ..] = call.args;
    let set = attempt!(signal_set(set, size));
    call.make(nr::rt_sigtimedwait, [pointer(&set), info, timeout, 8, 0, 0])
}

pub(super) fn sigaltstack(call: &Call) -> Outcome {
    let state = call.thread.state();
    let current = deliver::current_stack(state);
    if let Some(new) = attempt!(access::read_optional(call.args[0])) {
        attempt!(deliver::set_stack(state, new));
    }
    access::write_optional(call.args[1], &current).map(|()| 0).into()
}

/// Send a signal by call `number`, whose argument `n` is the signal.
fn send(call: &Call, number: u32, n: usize) -> Outcome {
    if call.uint(n) >= INTERRUPT {
        return Errno::EINVAL.into();
    }
    call.make(number, call.args)
}

pub(super) fn kill(call: &Call) -> Outcome {
    send(call, nr::kill, 1)
}

pub(super) fn tkill(call: &Call) -> Outcome {
    send(call, nr::tkill, 1)
}

pub(super) fn tgkill(call: &Call) -> Outcome {
    send(call, nr::tgkill, 2)
}

pub(super) fn sigqueueinfo(call: &Call) -> Outcome {
    send(call, nr::rt_sigqueueinfo, 1)
}

pub(super) fn tgsigqueueinfo(call: &Call) -> Outcome {
    send(call, nr::rt_tgsigqueueinfo, 2)
}
