//! `tranship rm`: what a unit left.

use crate::error::{CliError, Result};
use crate::output::Context;
use clap::Args;
use std::process::ExitCode;
use tranship_node::{NodeError, UnitId};

/// Remove a unit that ended, with its root and output, from all nodes.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  tranship rm sum")]
pub(crate) struct Rm {
    /// The unit.
    unit: UnitId,
}

impl Rm {
    pub(crate) fn run(self, context: &Context) -> Result<ExitCode> {
        let nodes = context.nodes()?;
        let mut had_it = false;
        for name in nodes.names() {
            match nodes.node(name)?.remove(&self.unit) {
                Ok(()) => had_it = true,
                Err(NodeError::NoUnit { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let nodes = nodes.names().cloned().collect();
        if had_it { Ok(ExitCode::SUCCESS) } else { Err(CliError::NoUnit { unit: self.unit, nodes }) }
    }
}
