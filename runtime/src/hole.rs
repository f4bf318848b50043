//! The hole: where it is, and the parts of it by name.

use crate::host;
use crate::linux::{self, Errno, PAGE};
use tranship_abi::block::{
    ARENA_BYTES, ARENA_OFFSET, BLOB_OFFSET, FILTERS_OFFSET, HOLE_BYTES, HOST_STACK_BYTES, HOST_STACK_STRIDE,
    HOST_STACKS_OFFSET, Header, MAGIC, OBJECTS_BYTES, OBJECTS_OFFSET, ProcessBlock, STATE_AREA_BYTES,
    THREADS_OFFSET, ThreadBlock, VERSION, machine_id,
};
use tranship_abi::seccomp::FilterStore;

/// Base address of the hole: the blob, once it runs there, knows it by its own.
pub fn base() -> u64 {
    host::image_base() - BLOB_OFFSET
}

/// The process block.
pub fn process() -> &'static mut ProcessBlock {
    // SAFETY: mapped for the process's life. Fields that several threads change are atomic or have a lock.
    unsafe { &mut *(base() as *mut ProcessBlock) }
}

/// The guest's seccomp filters.
pub fn filters() -> *mut FilterStore {
    (base() + FILTERS_OFFSET) as *mut FilterStore
}

/// Thread block `slot`.
pub fn thread_block(slot: usize) -> *mut ThreadBlock {
    (base() + THREADS_OFFSET + (slot * size_of::<ThreadBlock>()) as u64) as *mut ThreadBlock
}

/// The slot whose host stack `address` lies on.
pub fn slot_of_stack(address: u64) -> usize {
    (address.wrapping_sub(base() + HOST_STACKS_OFFSET) / HOST_STACK_STRIDE) as usize
}

/// Lowest and highest address of slot `slot`'s host stack.
pub fn host_stack(slot: usize) -> (u64, u64) {
    host_stack_in(base(), slot)
}

/// The same in a hole at `base`.
pub fn host_stack_in(base: u64, slot: usize) -> (u64, u64) {
    let end = base + HOST_STACKS_OFFSET + (slot as u64 + 1) * HOST_STACK_STRIDE;
    (end - HOST_STACK_BYTES as u64, end)
}

/// First address after the hole.
pub fn end() -> u64 {
    base() + HOLE_BYTES
}

/// Does `[start, start + len)` touch the hole?
pub fn overlaps(start: u64, len: u64) -> bool {
    start < base() + HOLE_BYTES && start.saturating_add(len) > base()
}

/// Is `address` in an object?
pub fn is_object(address: u64) -> bool {
    let offset = address.wrapping_sub(base());
    (OBJECTS_OFFSET..OBJECTS_OFFSET + OBJECTS_BYTES).contains(&offset)
        || (ARENA_OFFSET..ARENA_OFFSET + ARENA_BYTES).contains(&offset)
}

/// Why there is no hole.
#[derive(Debug)]
pub enum HoleError {
    /// The address asked for is in use or out of reach.
    Taken(u64, Errno),
    /// The address asked for is not a multiple of 64 KiB.
    Misaligned(u64),
    /// None of the usual places is free.
    NoRoom,
}

impl core::fmt::Display for HoleError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            HoleError::Taken(at, error) => write!(f, "--hole {at:#x}: cannot be mapped ({error})"),
            HoleError::Misaligned(at) => write!(f, "--hole {at:#x}: must be a multiple of 0x10000"),
            HoleError::NoRoom => write!(f, "no free place for the runtime: give one with --hole"),
        }
    }
}

/// Build the state area and host stack 0, at `wanted` or at the first usual place that is free. Yields the
/// base address.
pub fn create(wanted: Option<u64>) -> Result<u64, HoleError> {
    let base = match wanted {
        Some(at) if !at.is_multiple_of(1 << 16) => return Err(HoleError::Misaligned(at)),
        Some(at) => map_state_area(at).map_err(|error| HoleError::Taken(at, error))?,
        None => {
            let mut places = host::HOLE_CANDIDATES.iter();
            places.find_map(|&at| map_state_area(at).ok()).ok_or(HoleError::NoRoom)?
        }
    };
    // SAFETY: just mapped, zero, and ours alone.
    let process = unsafe { &mut *(base as *mut ProcessBlock) };
    process.header = Header {
        magic: MAGIC,
        version: VERSION,
        guest: machine_id::X86_64,
        host: host::HOST.machine_id(),
        reserved: 0,
        base,
        hole_bytes: HOLE_BYTES,
    };
    process.blob = base + BLOB_OFFSET;
    Ok(base)
}

/// Map state area and host stack 0 at `at`, after a look that the whole hole is free.
fn map_state_area(at: u64) -> Result<u64, Errno> {
    let whole = linux::map_anonymous(at, HOLE_BYTES)?;
    // SAFETY: nobody knows of it yet.
    unsafe { linux::munmap(whole, HOLE_BYTES) }?;
    linux::map_anonymous(at, STATE_AREA_BYTES.next_multiple_of(PAGE))?;
    linux::map_anonymous(
        at + HOST_STACKS_OFFSET + HOST_STACK_STRIDE - HOST_STACK_BYTES as u64,
        HOST_STACK_BYTES as u64,
    )?;
    Ok(at)
}
