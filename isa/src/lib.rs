//! What each guest machine is: its registers, its decoder, and the meaning of every instruction.
//!
//! Meanings are written once, against the [`machine::Machine`] trait. Instantiated with concrete
//! values it is the interpreter ([`interpret`]); instantiated with an LLVM builder (crate
//! `tranship-translate`) it is the lifter. This crate knows neither LLVM nor Linux, allocates nothing
//! of its own and runs without `std`, because the in-process runtime links it.
#![no_std]

extern crate alloc;

pub mod interpret;
pub mod machine;
pub mod softfloat;
pub mod x86_64;
