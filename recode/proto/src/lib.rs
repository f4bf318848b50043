//! The messages of CRIU's images, one module per file in `criu/`. A crate of its own, since it is large, depends on
//! nothing of ours and so is compiled once.
#![allow(missing_docs, unreachable_pub, clippy::all, clippy::unwrap_used, clippy::panic)]

include!(concat!(env!("OUT_DIR"), "/criu/mod.rs"));
