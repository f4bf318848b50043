//! epoll(7): `struct epoll_event` is packed on x86-64 only.

use super::poll::{pointer, signal_set};
use super::time::Deadline;
use super::{Call, Outcome, attempt};
use crate::host::HOST;
use crate::linux::Errno;
use crate::memory::access;
use tranship_abi::host::Host;
use tranship_abi::syscall::nr;

/// Events that one call yields at most where they have to be converted.
const BATCH: usize = 64;
const EPOLL_CTL_DEL: i32 = 2;

/// The generic `struct epoll_event`.
#[repr(C, align(8))]
#[derive(Clone, Copy, Default)]
struct Event {
    events: u32,
    pad: u32,
    data: u64,
}

/// x86-64's `struct epoll_event`: 12 bytes.
type PackedEvent = [u32; 3];

impl Event {
    fn from_packed([events, low, high]: PackedEvent) -> Event {
        Event { events, pad: 0, data: u64::from(low) | u64::from(high) << 32 }
    }

    fn packed(self) -> PackedEvent {
        [self.events, self.data as u32, (self.data >> 32) as u32]
    }
}

pub(super) fn create(call: &Call) -> Outcome {
    if call.int(0) <= 0 {
        return Errno::EINVAL.into();
    }
    call.make(nr::epoll_create1, [0; 6])
}

pub(super) fn ctl(call: &Call) -> Outcome {
    let [epoll, operation, fd, event, ..] = call.args;
    if HOST == Host::X86_64 || call.int(1) == EPOLL_CTL_DEL {
        return call.make(nr::epoll_ctl, call.args);
    }
    let event = Event::from_packed(attempt!(access::read(event)));
    call.make(nr::epoll_ctl, [epoll, operation, fd, (&raw const event) as u64, 0, 0])
}

/// Wait with `timeout` in milliseconds or as a pointer, and hand the events over.
fn wait_with(call: &Call, number: u32, timeout: u64, mask: Option<u64>) -> Outcome {
    let [epoll, events, count, ..] = call.args;
    let mask = pointer(&mask);
    if HOST == Host::X86_64 {
        return call.make(number, [epoll, events, count, timeout, mask, 8]);
    }
    let mut batch = [Event::default(); BATCH];
    let limit = (call.int(2)).min(BATCH as i32);
    let outcome = call.make(number, [epoll, batch.as_mut_ptr() as u64, limit as u64, timeout, mask, 8]);
    if let Outcome::Done(got @ 1..) = outcome {
        for (n, event) in batch.iter().take(got as usize).enumerate() {
            attempt!(access::write(events + (n * size_of::<PackedEvent>()) as u64, &event.packed()));
        }
    }
    outcome
}

fn wait_until(call: &Call, mask: Option<u64>) -> Outcome {
    let deadline = Deadline::in_milliseconds(call.thread, call.int(3));
    wait_with(call, nr::epoll_pwait, deadline.left_in_milliseconds() as u64, mask)
}

pub(super) fn wait(call: &Call) -> Outcome {
    wait_until(call, None)
}

pub(super) fn pwait(call: &Call) -> Outcome {
    let mask = attempt!(signal_set(call.args[4], call.args[5]));
    wait_until(call, mask)
}

pub(super) fn pwait2(call: &Call) -> Outcome {
    let mask = attempt!(signal_set(call.args[4], call.args[5]));
    wait_with(call, nr::epoll_pwait2, call.args[3], mask)
}
