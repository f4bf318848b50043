//! The messages of CRIU's RPC, as far as they matter here (`rpc.proto`).
#![allow(missing_docs, unreachable_pub, clippy::all, clippy::unwrap_used, clippy::panic)]

include!(concat!(env!("OUT_DIR"), "/rpc/mod.rs"));

pub use rpc::*;
