//! brk(2): the guest's heap, kept by the runtime because the host's own break is elsewhere.

use super::{GUEST_END, lock};
use crate::hole;
use crate::linux::{self, PAGE};

/// brk(2): the new end, or the old one if `wanted` cannot be had.
pub fn set_break(wanted: u64) -> u64 {
    let _held = lock();
    let state = &mut hole::process().state;
    if wanted < state.brk_start || wanted > GUEST_END {
        return state.brk;
    }
    let (old, new) = (state.brk.next_multiple_of(PAGE), wanted.next_multiple_of(PAGE));
    let moved = if new > old {
        !hole::overlaps(old, new - old) && linux::map_anonymous(old, new - old).is_ok()
    } else if new < old {
        // SAFETY: the guest gives it back.
        unsafe { linux::munmap(new, old - new) }.is_ok()
    } else {
        true
    };
    if moved {
        state.brk = wanted;
    }
    state.brk
}
