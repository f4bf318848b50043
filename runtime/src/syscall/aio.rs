//! Asynchronous input and output in the kernel's old way: a context is known by the address of a ring that the kernel
//! maps, and that C libraries look into.

use super::poll::{pointer, signal_set};
use super::{Call, Outcome, attempt};
use crate::linux::{self, Errno, PAGE};
use crate::memory::{access, map};
use tranship_abi::syscall::nr;

/// `struct aio_ring`: id, number of events, head, tail, magic, and so on.
const HEADER_WORDS: usize = 8;
const MAGIC: u32 = 0xa10a_10a1;
/// Bytes of the header and of each event.
const ENTRY_BYTES: u64 = 32;

/// io_setup(2). The kernel maps the ring where it likes; the guest is to find it where its own mappings go. A context
/// takes the new address for its name when its ring is moved.
pub(super) fn setup(call: &Call) -> Outcome {
    let [events, address, ..] = call.args;
    let given: u64 = attempt!(access::read(address));
    let mut context = given;
    // SAFETY: the kernel reads and writes the local.
    attempt!(unsafe { linux::call(nr::io_setup, [events, (&raw mut context) as u64, 0, 0, 0, 0]) });
    let moved = move_ring(context).and_then(|at| access::write(address, &at).map(|()| at));
    if moved.is_err() {
        // SAFETY: the context of a moment ago, which nobody knows.
        let _ = unsafe { linux::call(nr::io_destroy, [context, 0, 0, 0, 0, 0]) };
    }
    moved.map(|_| 0).into()
}

/// Move the ring at `from` among the guest's mappings; yields its new address.
fn move_ring(from: u64) -> Result<u64, Errno> {
    let header: [u32; HEADER_WORDS] = access::read(from)?;
    if header[4] != MAGIC {
        return Err(Errno::ENOSYS);
    }
    let len = (ENTRY_BYTES + u64::from(header[1]) * ENTRY_BYTES).next_multiple_of(PAGE);
    map::adopt(from, len)
}

/// io_pgetevents(2): a signal mask without signal 64.
pub(super) fn pgetevents(call: &Call) -> Outcome {
    let [context, least, most, events, timeout, mask] = call.args;
    let [set, size] = attempt!(access::read_optional::<[u64; 2]>(mask)).unwrap_or_default();
    let set = attempt!(signal_set(set, size));
    let host_mask = [pointer(&set), 8];
    let host_mask = if mask == 0 { 0 } else { host_mask.as_ptr() as u64 };
    call.make(nr::io_pgetevents, [context, least, most, events, timeout, host_mask])
}
