//! Tidiness of the repository itself: what ARCHITECTURE.md and deny.toml say, held against the sources.
#![allow(clippy::unwrap_used, clippy::panic)]

mod architecture;
mod pages;
mod sources;
mod supply;
mod tree;
