//! `tranship resume`: a unit or container that is held.

use crate::error::Result;
use crate::find::{self, Found, Place};
use crate::output::Context;
use clap::Args;
use std::process::ExitCode;

/// Let a unit or container go on that is held because its new node died in the moment of taking it over.
#[derive(Args, Debug)]
#[command(
    after_help = "Example:\n  tranship resume sum\n\nMake sure first that the new node is dead: if it is only \
cut off, there would be two."
)]
pub(crate) struct Resume {
    /// The unit or container.
    name: String,
}

impl Resume {
    pub(crate) fn run(self, context: &Context) -> Result<ExitCode> {
        let nodes = context.nodes()?;
        match find::anything(&nodes, &self.name)? {
            Found::Unit { id, node } => nodes.node(&node)?.attach(&id)?.abort()?,
            Found::Container(Place { id, node }) => nodes.node(&node)?.resume(&id)?,
        }
        Ok(ExitCode::SUCCESS)
    }
}
