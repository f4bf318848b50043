//! What runs inside a translated process, in the part of its address space that the guest does not use
//! ([`tranship_abi::block`]): it loads the guest program, enters compiled code and interprets what is not
//! compiled, makes the guest's system calls, delivers its signals, and parks it for a checkpoint.
//!
//! No libc, no allocation outside the blob, no thread-local storage: a thread is found by its host stack's
//! address, the process by the blob's.
#![no_std]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::panic))]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod digest;
pub mod dispatch;
pub mod exact;
pub mod heap;
pub mod hole;
pub mod host;
pub mod image;
pub mod interpret;
pub mod linux;
pub mod load;
pub mod memory;
pub mod object;
pub mod options;
pub mod park;
pub mod procfs;
pub mod report;
pub mod resume;
pub mod seccomp;
pub mod signal;
pub mod start;
pub mod supply;
pub mod syscall;
pub mod thread;
pub mod vdso;
