//! `tranship resume`: a unit that is held.

use crate::error::Result;
use crate::find;
use crate::output::Context;
use clap::Args;
use std::process::ExitCode;
use tranship_node::UnitId;

/// Let a unit go on that is held because its new node died in the moment of taking it over.
#[derive(Args, Debug)]
#[command(
    after_help = "Example:\n  tranship resume sum\n\nMake sure first that the new node is dead: if it is only \
cut off, there would be two."
)]
pub(crate) struct Resume {
    /// The unit.
    unit: UnitId,
}

impl Resume {
    pub(crate) fn run(self, context: &Context) -> Result<ExitCode> {
        let nodes = context.nodes()?;
        let node = find::unit(&nodes, &self.unit)?.node;
        nodes.node(&node)?.attach(&self.unit)?.abort()?;
        Ok(ExitCode::SUCCESS)
    }
}
