//! Discovery on programs whose truth is known: assembly with known blocks, C compiled with symbols and then
//! stripped, and the system's own programs.
#![allow(clippy::unwrap_used, clippy::panic)]

mod assembly;
mod compiled;
mod files;
mod guest;
mod system;
