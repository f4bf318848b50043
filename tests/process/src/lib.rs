//! A translated object in this process, for tests: it is mapped here, given a thread block and entered, on any host
//! that objects are made for. What compiled code calls for floating point and coprocessors is the runtime's own;
//! system calls and everything that needs a whole process are up to the test.
#![allow(clippy::unwrap_used, clippy::panic, reason = "this is test code; a failure is a panic")]

mod chamber;
pub mod exchange;
mod guard;
mod host;
mod memory;
mod object;
mod services;

pub use chamber::{Chamber, Ended};
pub use guard::Fault;
pub use memory::Memory;
pub use object::Object;
pub use services::{new_thread, services};

/// Map `bytes` anonymous bytes at `address` (0: anywhere) for good.
pub fn map(address: u64, bytes: u64, executable: bool) -> u64 {
    let fixed = if address == 0 { 0 } else { libc::MAP_FIXED_NOREPLACE };
    let rights = libc::PROT_READ | libc::PROT_WRITE | if executable { libc::PROT_EXEC } else { 0 };
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | fixed;
    // SAFETY: nothing that is mapped already is replaced.
    let at = unsafe { libc::mmap(address as *mut _, bytes as usize, rights, flags, -1, 0) };
    let error = std::io::Error::last_os_error();
    assert_ne!(at, libc::MAP_FAILED, "mapping {bytes:#x} bytes at {address:#x}: {error}");
    at as u64
}

/// Write `bytes` at address `to`, which the caller has mapped.
pub fn copy(to: u64, bytes: &[u8]) {
    // SAFETY: the caller has mapped the target.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to as *mut u8, bytes.len()) };
}
