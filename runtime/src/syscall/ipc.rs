//! System V IPC: placing shared memory, and `struct semid64_ds`, which x86-64 pads differently.

use super::{Call, Outcome, attempt};
use crate::host::HOST;
use crate::memory::{access, code, lock, map};
use tranship_abi::host::Host;
use tranship_abi::syscall::nr;

const IPC_STAT: i32 = 2;
const SEM_STAT: i32 = 18;
const SEM_STAT_ANY: i32 = 20;

pub(super) fn shmat(call: &Call) -> Outcome {
    map::shmat(call.args[0], call.args[1], call.args[2]).into()
}

pub(super) fn shmdt(call: &Call) -> Outcome {
    let outcome = call.make(nr::shmdt, call.args);
    if let (Outcome::Done(0), Some(range)) = (outcome, code::range_of(call.args[0])) {
        attempt!(code::set(&lock(), range.start, range.end, 0));
    }
    outcome
}

/// Words of the generic structure: six of permissions, then otime, ctime, nsems and two unused; x86-64 has
/// an unused word after each time.
pub(super) fn semctl(call: &Call) -> Outcome {
    let [id, number, command, argument, ..] = call.args;
    if HOST == Host::X86_64 || !matches!(call.int(2), IPC_STAT | SEM_STAT | SEM_STAT_ANY) {
        return call.make(nr::semctl, call.args);
    }
    let mut generic = [0_u64; 11];
    let outcome = call.make(nr::semctl, [id, number, command, generic.as_mut_ptr() as u64, 0, 0]);
    if let Outcome::Done(0..) = outcome {
        let [p0, p1, p2, p3, p4, p5, otime, ctime, count, ..] = generic;
        attempt!(access::write(argument, &[p0, p1, p2, p3, p4, p5, otime, 0, ctime, 0, count, 0, 0]));
    }
    outcome
}
