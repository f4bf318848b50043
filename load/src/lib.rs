//! Clients of a redis that moves: each has one connection and never opens another, and at the end everything that was
//! acknowledged is read back. What is answered when is recorded, and drawn.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::panic))]

mod clients;
mod error;
mod picture;
mod record;
mod redis;
mod terminal;

pub use clients::{Load, Outcome};
pub use error::{LoadError, Result};
pub use picture::{png, svg};
pub use record::{Event, Phase, Record, Recorder};
pub use redis::Connection;
pub use terminal::bars;
