//! CRIU image sets as typed checkpoints, and their recoding between a guest's home and a foreign host.

pub mod catalogue;
mod error;
mod flatten;
pub mod image;
mod memory;
mod set;

pub use error::{RecodeError, Result};
pub use flatten::{FlatFile, Piece, flatten};
pub use memory::{Extent, Memory, PAGE};
pub use set::{FileSource, ImageSet};

#[allow(missing_docs, unreachable_pub, clippy::all)]
pub mod proto {
    //! CRIU's messages, generated from `recode/proto`.
    include!(concat!(env!("OUT_DIR"), "/proto/mod.rs"));
}
