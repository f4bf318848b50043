//! mmap(2) and its kin: arguments only, the work is in [`crate::memory`].

use super::{Call, Outcome};
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
