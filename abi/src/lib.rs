//! What Linux looks like from each machine, and the layout that a translated process has in memory.
#![no_std]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::panic))]

pub mod block;
pub mod host;
pub mod open_flags;
pub mod seccomp;
pub mod signal;
pub mod stat;
pub mod syscall;
pub mod xsave;
