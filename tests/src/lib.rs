//! What tests that cross crates share: oracles and generators.
#![allow(clippy::unwrap_used, clippy::panic, reason = "this is test code; a failure is a panic")]

pub mod differential;
pub mod guest;
