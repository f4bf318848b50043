//! The translation service: watches translated processes from outside, compiles what they interpret often, and supplies
//! them with it while they run. Code of files is compiled as far as it is hot; code that was generated at run time is read
//! from the process's memory.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::panic))]

mod error;
mod host;
mod image;
mod program;
mod site;
mod supplier;
mod workshop;

pub use error::{Result, ServiceError};
pub use host::{host, host_here};
pub use site::Site;
pub use supplier::{Counts, Supplier};
pub use workshop::Workshop;
