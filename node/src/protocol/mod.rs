//! The wire: what a client, an agent and a unit's supervisor say to each other.
//!
//! A connection opens with [`Hello`] and [`Welcome`]; then the client sends [`Request`]s, one at a time, and reads
//! [`Reply`]s: any number of [`Reply::Progress`], at least one a second, then `Done` or `Error`. So whoever says
//! nothing for [`SILENCE`] is dead.

mod channel;
mod message;

pub use channel::{Channel, Frame};
pub use message::*;

use std::time::Duration;

/// Version of everything in this module; both sides have the same one.
pub const VERSION: u32 = 5;
/// How often a busy node reports.
pub const HEARTBEAT: Duration = Duration::from_millis(250);
/// Silence after which the other side is taken for dead.
pub const SILENCE: Duration = Duration::from_secs(20);
/// Time to connect.
pub const CONNECT: Duration = Duration::from_secs(5);
/// Largest message, its body not counted, in bytes.
pub const MAX_MESSAGE: u32 = 4 << 20;
/// Largest body that is held in memory, in bytes.
pub const MAX_BODY: u64 = 64 << 20;
