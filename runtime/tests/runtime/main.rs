//! The runtime as a whole: real programs, native and under the runtime on every host, must do the same. Code
//! is interpreted here; compiled code has its own tests.
#![allow(clippy::unwrap_used, clippy::panic)]

mod busybox;
mod errors;
mod packages;
mod park;
mod programs;
mod resume;
mod run;
