//! Checkpoints that a real CRIU takes and restores.

#![allow(clippy::unwrap_used, clippy::panic)]

mod abroad;
mod crossings;
mod damage;
mod images;
mod in_vdso;
mod support;
mod translated;
