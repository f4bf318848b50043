//! Containers of an engine on this node: finding them, and moving them to another node. What an engine's own checkpoint and
//! restore do is left to it (with `tranship-runc` as its runtime); here is what makes a move of the two: that the container goes on
//! here or there whatever fails, and that its address goes with it.

mod archive;
pub mod arrival;
pub mod departure;
pub mod engine;
mod gate;
pub mod migrate;
mod neighbours;
pub mod preflight;
mod record;
pub mod survey;

pub use gate::{GO, gate};
pub use record::{MoveId, outcome, recover, resume};
