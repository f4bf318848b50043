//! mmap(2) and its kin: the runtime chooses places, and remembers what is code.

use super::{GUEST_END, Locked, code, lock, place};
use crate::hole;
use crate::linux::{self, Errno, PAGE, map, prot};
use tranship_abi::syscall::nr;

/// MAP_32BIT and MAP_ABOVE4G, which x86-64 alone has.
const MAP_32BIT: u32 = 0x40;
const X86_ONLY: u32 = MAP_32BIT | 0x80;
/// Hints below this are not taken, as with the usual vm.mmap_min_addr.
const LOWEST_HINT: u64 = 0x1_0000;
/// MREMAP_* flags.
const MREMAP_MAYMOVE: u64 = 1;
const MREMAP_FIXED: u64 = 2;
const MREMAP_DONTUNMAP: u64 = 4;
/// SHM_* numbers.
const SHM_RDONLY: u64 = 0o10000;
const SHM_REMAP: u64 = 0o40000;
const SHM_EXEC: u64 = 0o100000;
const IPC_STAT: u64 = 2;

/// The guest's protection as the host is to have it: readable instead of executable.
pub fn host_protection(guest: u32) -> u32 {
    let readable = if guest & prot::EXEC != 0 { prot::READ } else { 0 };
    (guest & !prot::EXEC) | readable
}

/// `[start, start + len)` in whole pages, if a guest may have it.
fn range(start: u64, len: u64) -> Result<(u64, u64), Errno> {
    if !start.is_multiple_of(PAGE) {
        return Err(Errno::EINVAL);
    }
    let len = len.checked_next_multiple_of(PAGE).filter(|&len| len != 0).ok_or(Errno::EINVAL)?;
    let end = start.checked_add(len).filter(|&end| end <= GUEST_END).ok_or(Errno::ENOMEM)?;
    if hole::overlaps(start, len) {
        return Err(Errno::EINVAL);
    }
    Ok((start, end))
}

/// mmap(2) as the guest asks for it.
pub fn mmap(address: u64, len: u64, guest_prot: u32, flags: u32, fd: i32, offset: u64) -> Result<u64, Errno> {
    let held = lock();
    if len == 0 {
        return Err(Errno::EINVAL);
    }
    let len = len.checked_next_multiple_of(PAGE).ok_or(Errno::ENOMEM)?;
    let at = if flags & (map::FIXED | map::FIXED_NOREPLACE) == 0 {
        map_anywhere(address / PAGE * PAGE, len, guest_prot, flags, fd, offset)?
    } else if hole::overlaps(address, len) {
        return Err(if flags & map::FIXED_NOREPLACE != 0 { Errno::EEXIST } else { Errno::ENOMEM });
    } else {
        range(address, len)?;
        map_at(address, len, guest_prot, flags, fd, offset)?
    };
    code::set(&held, at, at + len, guest_prot)?;
    Ok(at)
}

fn map_at(at: u64, len: u64, guest_prot: u32, flags: u32, fd: i32, offset: u64) -> Result<u64, Errno> {
    // SAFETY: outside the hole; the guest does with its own memory what it likes.
    unsafe { linux::mmap(at, len, host_protection(guest_prot), flags & !X86_ONLY, fd, offset) }
}

fn map_anywhere(hint: u64, len: u64, prot: u32, flags: u32, fd: i32, offset: u64) -> Result<u64, Errno> {
    let placed = flags | map::FIXED_NOREPLACE;
    let attempt = |at| map_at(at, len, prot, placed, fd, offset);
    let low = flags & MAP_32BIT != 0;
    let fits = !low || hint.saturating_add(len) <= place::LOW_TOP;
    if hint >= LOWEST_HINT && fits && range(hint, len).is_ok() {
        match attempt(hint) {
            Err(Errno::EEXIST | Errno::EINVAL) => {}
            done => return done,
        }
    }
    place::find(len, alignment(flags), low, attempt)
}

/// Huge pages must be aligned to their own size, which the flags' upper bits may give.
fn alignment(flags: u32) -> u64 {
    const DEFAULT_HUGE_SHIFT: u32 = 21;
    match (flags & map::HUGETLB != 0, flags >> 26) {
        (false, _) => PAGE,
        (true, 0) => 1 << DEFAULT_HUGE_SHIFT,
        (true, shift) => 1 << shift,
    }
}

/// mprotect(2).
pub fn mprotect(start: u64, len: u64, guest_prot: u32) -> Result<u64, Errno> {
    if len == 0 && start.is_multiple_of(PAGE) {
        return Ok(0);
    }
    let held = lock();
    let (start, end) = range(start, len)?;
    // SAFETY: outside the hole.
    unsafe { linux::mprotect(start, end - start, host_protection(guest_prot)) }?;
    code::set(&held, start, end, guest_prot)?;
    Ok(0)
}

/// munmap(2).
pub fn munmap(start: u64, len: u64) -> Result<u64, Errno> {
    let held = lock();
    let (start, end) = range(start, len).map_err(|_| Errno::EINVAL)?;
    // SAFETY: outside the hole.
    unsafe { linux::munmap(start, end - start) }?;
    forget(&held, start, end)?;
    Ok(0)
}

/// `[start, end)` is not mapped any more.
fn forget(held: &Locked, start: u64, end: u64) -> Result<(), Errno> {
    place::freed(start, end);
    code::set(held, start, end, 0)
}

/// mremap(2).
pub fn mremap(old: u64, old_len: u64, new_len: u64, flags: u64, wanted: u64) -> Result<u64, Errno> {
    let held = lock();
    let new_len = new_len.checked_next_multiple_of(PAGE).ok_or(Errno::EINVAL)?;
    range(old, old_len.max(PAGE))?;
    let guest_prot = code::protection_of(old);
    let to = if flags & MREMAP_FIXED != 0 {
        range(wanted, new_len)?;
        remap(old, old_len, new_len, flags, wanted)?
    } else {
        resize_or_move(old, old_len, new_len, flags)?
    };
    if flags & MREMAP_DONTUNMAP == 0 {
        forget(&held, old, old + old_len.next_multiple_of(PAGE))?;
    }
    code::set(&held, to, to + new_len, guest_prot)?;
    Ok(to)
}

fn remap(old: u64, old_len: u64, new_len: u64, flags: u64, to: u64) -> Result<u64, Errno> {
    // SAFETY: both ranges are the guest's.
    unsafe { linux::call(nr::mremap, [old, old_len, new_len, flags, to, 0]) }
}

/// In place if that is possible; otherwise, if the guest allows it, to a place of our choice.
fn resize_or_move(old: u64, old_len: u64, new_len: u64, flags: u64) -> Result<u64, Errno> {
    if flags & MREMAP_DONTUNMAP == 0 {
        match remap(old, old_len, new_len, flags & !MREMAP_MAYMOVE, 0) {
            Err(Errno::ENOMEM) if flags & MREMAP_MAYMOVE != 0 => {}
            done => return done,
        }
    }
    let to = reserve(new_len)?;
    remap(old, old_len, new_len, flags | MREMAP_FIXED, to).inspect_err(|_| {
        // SAFETY: the reservation of a moment ago.
        let _ = unsafe { linux::munmap(to, new_len) };
    })
}

/// Take address space without memory.
pub fn reserve(len: u64) -> Result<u64, Errno> {
    let flags = map::PRIVATE | map::ANONYMOUS | map::NORESERVE | map::FIXED_NOREPLACE;
    // SAFETY: replaces nothing.
    place::find(len, PAGE, false, |at| unsafe { linux::mmap(at, len, 0, flags, -1, 0) })
}

/// Move what the kernel has mapped somewhere to a place among the guest's mappings; yields that.
pub fn adopt(from: u64, len: u64) -> Result<u64, Errno> {
    let _held = lock();
    let to = reserve(len)?;
    remap(from, len, len, MREMAP_MAYMOVE | MREMAP_FIXED, to).inspect_err(|_| {
        // SAFETY: the reservation of a moment ago.
        let _ = unsafe { linux::munmap(to, len) };
    })
}

/// shmat(2).
pub fn shmat(id: u64, address: u64, flags: u64) -> Result<u64, Errno> {
    let held = lock();
    // struct shmid64_ds: ipc64_perm is 48 bytes, then shm_segsz; 112 bytes in all.
    let mut description = [0_u64; 14];
    // SAFETY: the kernel fills the local.
    unsafe { linux::call(nr::shmctl, [id, IPC_STAT, description.as_mut_ptr() as u64, 0, 0, 0]) }?;
    let len = description[6].next_multiple_of(PAGE);
    let host_flags = flags & !SHM_EXEC;
    let at = if address == 0 {
        let at = reserve(len)?;
        // SAFETY: replaces the reservation.
        unsafe { linux::call(nr::shmat, [id, at, host_flags | SHM_REMAP, 0, 0, 0]) }?
    } else {
        range(address / PAGE * PAGE, len)?;
        // SAFETY: outside the hole.
        unsafe { linux::call(nr::shmat, [id, address, host_flags, 0, 0, 0]) }?
    };
    let writable = if flags & SHM_RDONLY != 0 { 0 } else { prot::WRITE };
    let executable = if flags & SHM_EXEC != 0 { prot::EXEC } else { 0 };
    code::set(&held, at, at + len, executable | writable)?;
    Ok(at)
}
