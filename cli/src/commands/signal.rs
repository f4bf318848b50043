//! `tranship signal`: to a unit.

use crate::error::Result;
use crate::find;
use crate::output::Context;
use clap::Args;
use std::process::ExitCode;
use tranship_node::UnitId;

/// Send a signal to a unit's first process.
#[derive(Args, Debug)]
#[command(
    after_help = "Example:\n  tranship signal sum 9\n\nA unit's program is the first process of its PID \
namespace: as in a container, a signal that it does not handle does nothing, except 9 and 19."
)]
pub(crate) struct Signal {
    /// The unit.
    unit: UnitId,
    /// Signal number.
    #[arg(value_parser = clap::value_parser!(i32).range(1..=64), default_value = "15")]
    signal: i32,
}

impl Signal {
    pub(crate) fn run(self, context: &Context) -> Result<ExitCode> {
        let nodes = context.nodes()?;
        let node = find::unit(&nodes, &self.unit)?.node;
        nodes.node(&node)?.signal(&self.unit, self.signal)?;
        Ok(ExitCode::SUCCESS)
    }
}
