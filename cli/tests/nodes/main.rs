//! The command line with two nodes on this machine, `x86` and `x86b`: units that cross between them natively and
//! translated, nodes and clients that die in mid-transfer, nodes that join, strangers, bad input.
#![allow(clippy::unwrap_used, clippy::panic, reason = "this is test code; a failure is a panic")]

mod bad_input;
mod belongings;
mod container_deaths;
#[cfg(feature = "long")]
mod container_partitions;
mod containers;
mod crossings;
mod dam;
mod deaths;
#[cfg(feature = "long")]
mod engines;
mod homecoming;
mod hostile_archives;
mod joining;
mod lab;
mod load;
#[cfg(feature = "long")]
mod precopy;
mod program;
mod rounds;
mod servers;
mod services;
#[cfg(feature = "long")]
mod supplied_containers;
mod supply;
