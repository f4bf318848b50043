//! From a guest ELF file to an object that a host can run: [`elf`] reads the file, [`discover`] finds the
//! [`region`]s in it, lifting makes [`bitcode`] of them that suits any host, and [`compile`](mod@compile) turns that
//! into an object for one.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::panic))]

#[cfg(feature = "llvm")]
pub mod bitcode;
#[cfg(feature = "llvm")]
pub mod cache;
#[cfg(feature = "llvm")]
pub mod compile;
pub mod coverage;
pub mod discover;
#[cfg(feature = "llvm")]
pub mod dump;
pub mod elf;
#[cfg(feature = "llvm")]
mod hostconv;
#[cfg(feature = "llvm")]
mod ir;
#[cfg(feature = "llvm")]
mod layout;
#[cfg(feature = "llvm")]
mod lift;
#[cfg(feature = "llvm")]
mod parallel;
pub mod region;

/// Who hears how far a translation is.
pub trait Progress: Sync {
    /// `done` of `total` units of `phase` (`lift`, `compile`, `link`) are finished.
    fn advance(&self, phase: &str, done: usize, total: usize);
}

/// Nobody.
impl Progress for () {
    fn advance(&self, _phase: &str, _done: usize, _total: usize) {}
}
