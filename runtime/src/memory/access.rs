//! Reading and writing guest memory that may not be there.

use crate::host::{self, Accessed, PageFault};
use crate::linux::Errno;
use crate::thread::Thread;
use core::mem::MaybeUninit;
use tranship_abi::block::SigAction;
use tranship_abi::signal::{RtSigFrame, SigInfo, Stack};
use tranship_abi::stat::X86Stat;

/// Types that any bits are valid for.
///
/// # Safety
/// No padding, no references, no enums.
pub unsafe trait Plain: Copy {}

macro_rules! plain {
    ($($type:ty),*) => {
        $(
            // SAFETY: an integer, or a structure of integers without padding.
            unsafe impl Plain for $type {}
        )*
    };
}
plain!(u8, u16, u32, i32, u64, i64, SigAction, SigInfo, Stack, RtSigFrame, X86Stat);

// SAFETY: as its elements.
unsafe impl<T: Plain, const N: usize> Plain for [T; N] {}

/// The fault that stopped the calling thread's latest access.
pub fn last_fault() -> PageFault {
    Thread::current().private().fault
}

fn check(accessed: Accessed) -> Result<u64, PageFault> {
    if accessed.faulted == 0 { Ok(accessed.value) } else { Err(last_fault()) }
}

/// Copy from guest memory.
pub fn read_bytes(address: u64, into: &mut [u8]) -> Result<(), PageFault> {
    // SAFETY: `into` is writable; faults on the other side are caught.
    check(unsafe { host::guest_copy(into.as_mut_ptr() as u64, address, into.len() as u64) }).map(drop)
}

/// Copy to guest memory. On a fault some of it may have been written.
pub fn write_bytes(address: u64, bytes: &[u8]) -> Result<(), PageFault> {
    // SAFETY: `bytes` is readable; faults on the other side are caught.
    check(unsafe { host::guest_copy(address, bytes.as_ptr() as u64, bytes.len() as u64) }).map(drop)
}

/// Read a value from guest memory.
pub fn read<T: Plain>(address: u64) -> Result<T, Errno> {
    let mut value = MaybeUninit::<T>::uninit();
    // SAFETY: `value` is writable for its size; faults on the other side are caught.
    check(unsafe { host::guest_copy(value.as_mut_ptr() as u64, address, size_of::<T>() as u64) })?;
    // SAFETY: every byte was written, any bits are valid.
    Ok(unsafe { value.assume_init() })
}

/// Write a value to guest memory.
pub fn write<T: Plain>(address: u64, value: &T) -> Result<(), Errno> {
    let from = core::ptr::from_ref(value) as u64;
    // SAFETY: `value` is readable for its size; faults on the other side are caught.
    check(unsafe { host::guest_copy(address, from, size_of::<T>() as u64) })?;
    Ok(())
}

/// Read a value unless `address` is null.
pub fn read_optional<T: Plain>(address: u64) -> Result<Option<T>, Errno> {
    if address == 0 { Ok(None) } else { read(address).map(Some) }
}

/// Write a value unless `address` is null.
pub fn write_optional<T: Plain>(address: u64, value: &T) -> Result<(), Errno> {
    if address == 0 { Ok(()) } else { write(address, value) }
}

/// Read a NUL-terminated string with its NUL into `into`.
pub fn read_string(address: u64, into: &mut [u8]) -> Result<&[u8], Errno> {
    for n in 0..into.len() {
        into[n] = read(address.wrapping_add(n as u64))?;
        if into[n] == 0 {
            return Ok(&into[..=n]);
        }
    }
    Err(Errno::ENAMETOOLONG)
}
