//! Nodes: the agent that runs units, freezes and dumps them, sends and restores them; and the client for it.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::panic))]

pub mod agent;
pub mod baseline;
pub mod boot;
pub mod client;
pub mod container;
mod cpu;
mod error;
pub mod history;
pub mod migrate;
pub mod operator;
mod progress;
pub mod protocol;
mod record;
pub mod relay;
mod serve;
pub mod tree;
pub mod trust;
pub mod unit;

pub use cpu::Cpu;
pub use error::{NodeError, Result};
pub use progress::{Progress, ProgressReport};
pub use record::{ExitStatus, Isa, Mode, UnitId, UnitRecord, UnitSpec, UnitState};
