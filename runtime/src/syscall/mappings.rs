//! mmap(2) and its kin: arguments only, the work is in [`crate::memory`].

use super::{Call, Outcome};
use crate::linux::Errno;
use crate::memory::{heap, map};

pub(super) fn mmap(call: &Call) -> Outcome {
    let [address, length, _, _, _, offset] = call.args;
    map::mmap(address, length, call.uint(2), call.uint(3), call.int(4), offset).into()
}

pub(super) fn mprotect(call: &Call) -> Outcome {
    map::mprotect(call.args[0], call.args[1], call.uint(2)).into()
}

pub(super) fn munmap(call: &Call) -> Outcome {
    map::munmap(call.args[0], call.args[1]).into()
}

pub(super) fn mremap(call: &Call) -> Outcome {
    let [old, old_length, new_length, flags, wanted, _] = call.args;
    map::mremap(old, old_length, new_length, flags, wanted).into()
}

pub(super) fn brk(call: &Call) -> Outcome {
    Ok(heap::set_break(call.args[0])).into()
}

/// The guest's CPU has no protection keys: only the key that stands for none is taken.
pub(super) fn pkey_mprotect(call: &Call) -> Outcome {
    if call.int(3) == -1 { mprotect(call) } else { Errno::EINVAL.into() }
}

pub(super) fn pkey_alloc(call: &Call) -> Outcome {
    const DISABLE: u64 = 3;
    let valid = call.args[0] == 0 && call.args[1] & !DISABLE == 0;
    if valid { Errno::ENOSPC } else { Errno::EINVAL }.into()
}

pub(super) fn pkey_free(_: &Call) -> Outcome {
    Errno::EINVAL.into()
}

/// Nor does it have shadow stacks.
pub(super) fn map_shadow_stack(_: &Call) -> Outcome {
    Errno::EOPNOTSUPP.into()
}
