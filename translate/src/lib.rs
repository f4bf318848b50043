//! From a guest ELF file to an object that a host can run: [`elf`] reads the file, [`discover`] finds the
//! [`region`]s in it.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::panic))]

pub mod discover;
pub mod elf;
pub mod region;
