//! Time: sleeping so that an interruption for the runtime's sake makes it no longer, and legacy calls.

use super::{Call, Outcome, attempt};
use crate::linux::{self, Errno};
use crate::memory::access;
use crate::thread::Thread;
use crate::vdso;
use tranship_abi::syscall::nr;

/// Nanoseconds of a second.
pub(super) const NANOSECONDS: u64 = 1_000_000_000;
const CLOCK_REALTIME: i32 = 0;
const CLOCK_MONOTONIC: i32 = 1;
const CLOCK_REALTIME_COARSE: i32 = 5;
const TIMER_ABSTIME: u64 = 1;

/// When a wait is over: a call that is made again goes on with the same deadline.
pub(super) struct Deadline(Option<u64>);

impl Deadline {
    /// In `nanoseconds`, or as it was when this call was made first.
    fn in_nanoseconds(thread: Thread, nanoseconds: u64) -> Deadline {
        let kept = &mut thread.private().sleep_until;
        if *kept == 0 {
            *kept = linux::monotonic_ns().saturating_add(nanoseconds);
        }
        Deadline(Some(*kept))
    }

    /// Likewise; a negative number is for ever.
    pub(super) fn in_milliseconds(thread: Thread, milliseconds: i32) -> Deadline {
        match u64::try_from(milliseconds) {
            Ok(0) => Deadline(Some(0)),
            Ok(milliseconds) => Deadline::in_nanoseconds(thread, milliseconds * 1_000_000),
            Err(_) => Deadline(None),
        }
    }

    fn left_in_nanoseconds(&self) -> Option<u64> {
        self.0.map(|until| if until == 0 { 0 } else { until.saturating_sub(linux::monotonic_ns()) })
    }

    /// Time left as a `struct timespec`; `None` for ever.
    pub(super) fn left(&self) -> Option<[u64; 2]> {
        self.left_in_nanoseconds().map(|left| [left / NANOSECONDS, left % NANOSECONDS])
    }

    /// Time left, rounded up; -1 for ever.
    pub(super) fn left_in_milliseconds(&self) -> i64 {
        self.left_in_nanoseconds().map_or(-1, |left| left.div_ceil(1_000_000) as i64)
    }
}

pub(super) fn clock_gettime(call: &Call) -> Outcome {
    match vdso::clock(call.int(0)) {
        Some(time) => access::write(call.args[1], &attempt!(time)).map(|()| 0).into(),
        None => call.pass_number(nr::clock_gettime),
    }
}

pub(super) fn gettimeofday(call: &Call) -> Outcome {
    let [buffer, zone, ..] = call.args;
    match vdso::clock(CLOCK_REALTIME).filter(|_| zone == 0) {
        Some(time) => {
            let [seconds, nanoseconds] = attempt!(time);
            access::write_optional(buffer, &[seconds, nanoseconds / 1000]).map(|()| 0).into()
        }
        None => call.pass_number(nr::gettimeofday),
    }
}

pub(super) fn time(call: &Call) -> Outcome {
    let seconds = attempt!(seconds_since_the_epoch());
    attempt!(access::write_optional(call.args[0], &seconds));
    Outcome::Done(seconds as i64)
}

/// As time(2) has them: those of the latest tick.
fn seconds_since_the_epoch() -> Result<u64, Errno> {
    if let Some(time) = vdso::clock(CLOCK_REALTIME_COARSE) {
        return time.map(|[seconds, _]| seconds);
    }
    let mut time = [0_u64; 2];
    let args = [CLOCK_REALTIME_COARSE as u64, time.as_mut_ptr() as u64, 0, 0, 0, 0];
    // SAFETY: the kernel fills the local.
    unsafe { linux::call(nr::clock_gettime, args) }.map(|_| time[0])
}

/// alarm(2) yields whole seconds that were left, never 0 for a timer that was running.
pub(super) fn alarm(call: &Call) -> Outcome {
    let new = [0, 0, u64::from(call.uint(0)), 0];
    let mut old = [0_u64; 4];
    // SAFETY: the kernel reads one local and fills the other.
    attempt!(unsafe {
        linux::call(nr::setitimer, [0, new.as_ptr() as u64, old.as_mut_ptr() as u64, 0, 0, 0])
    });
    let [_, _, seconds, micros] = old;
    let round_up = micros >= 500_000 || (seconds == 0 && micros > 0);
    Outcome::Done((seconds + u64::from(round_up)) as i64)
}

pub(super) fn nanosleep(call: &Call) -> Outcome {
    sleep(call, call.args[0], call.args[1])
}

/// Only the relative sleeps that CLOCK_MONOTONIC measures as well are made again with what is left.
pub(super) fn clock_nanosleep(call: &Call) -> Outcome {
    let [_, flags, request, left, ..] = call.args;
    if flags & TIMER_ABSTIME == 0 && matches!(call.int(0), CLOCK_REALTIME | CLOCK_MONOTONIC) {
        return sleep(call, request, left);
    }
    call.make(nr::clock_nanosleep, call.args)
}

fn sleep(call: &Call, request: u64, left: u64) -> Outcome {
    let [seconds, nanos]: [u64; 2] = attempt!(access::read(request));
    if seconds > i64::MAX as u64 || nanos >= NANOSECONDS {
        return Errno::EINVAL.into();
    }
    let duration = seconds.saturating_mul(NANOSECONDS).saturating_add(nanos);
    let deadline = Deadline::in_nanoseconds(call.thread, duration.min(i64::MAX as u64 / 2));
    let until = deadline.0.unwrap_or(0);
    let until = [until / NANOSECONDS, until % NANOSECONDS];
    let args = [CLOCK_MONOTONIC as u64, TIMER_ABSTIME, until.as_ptr() as u64, 0, 0, 0];
    let outcome = call.make(nr::clock_nanosleep, args);
    if outcome == Errno::EINTR.into() {
        let rest = deadline.left().unwrap_or_default();
        attempt!(access::write_optional(left, &rest));
    }
    outcome
}
