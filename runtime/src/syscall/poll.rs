//! poll(2) and select(2): legacy timeouts, and signal masks without signal 64.

use super::time::{Deadline, NANOSECONDS};
use super::{Call, Outcome, attempt};
use crate::linux::Errno;
use crate::memory::access;
use tranship_abi::signal::bit;
use tranship_abi::signal::number::INTERRUPT;
use tranship_abi::syscall::nr;

/// The signal set at `address` as the host is to have it; `None` for none.
pub(super) fn signal_set(address: u64, size: u64) -> Result<Option<u64>, Errno> {
    if address != 0 && size != 8 {
        return Err(Errno::EINVAL);
    }
    Ok(access::read_optional::<u64>(address)?.map(|set| set & !bit(INTERRUPT)))
}

/// A pointer to what an option holds, or null.
pub(super) fn pointer<T>(value: &Option<T>) -> u64 {
    value.as_ref().map_or(0, |value| core::ptr::from_ref(value) as u64)
}

pub(super) fn poll(call: &Call) -> Outcome {
    let [fds, count, ..] = call.args;
    let deadline = Deadline::in_milliseconds(call.thread, call.int(2));
    let left = deadline.left();
    call.make(nr::ppoll, [fds, count, pointer(&left), 0, 0, 0])
}

pub(super) fn ppoll(call: &Call) -> Outcome {
    let [fds, count, timeout, mask, size, _] = call.args;
    let mask = attempt!(signal_set(mask, size));
    call.make(nr::ppoll, [fds, count, timeout, pointer(&mask), 8, 0])
}

/// select(2) writes the time left back.
pub(super) fn select(call: &Call) -> Outcome {
    let [count, read, write, except, timeout, _] = call.args;
    let given: Option<[i64; 2]> = attempt!(access::read_optional(timeout));
    if given.is_some_and(|[seconds, micros]| seconds < 0 || micros < 0) {
        return Errno::EINVAL.into();
    }
    let mut left = given.map(|[seconds, micros]| [seconds + micros / 1_000_000, micros % 1_000_000 * 1000]);
    let pointer = left.as_mut().map_or(0, |left| left.as_mut_ptr() as u64);
    let outcome = call.make(nr::pselect6, [count, read, write, except, pointer, 0]);
    if let Some([seconds, nanos]) = left {
        // As the kernel does it: a timeout that cannot be written is no error.
        let _ = access::write(timeout, &[seconds, nanos * 1_000_000 / NANOSECONDS as i64]);
    }
    outcome
}

pub(super) fn pselect6(call: &Call) -> Outcome {
    let [count, read, write, except, timeout, mask] = call.args;
    let [set, size] = attempt!(access::read_optional::<[u64; 2]>(mask)).unwrap_or_default();
    let set = attempt!(signal_set(set, size));
    let mask = [pointer(&set), 8];
    call.make(nr::pselect6, [count, read, write, except, timeout, mask.as_ptr() as u64])
}
