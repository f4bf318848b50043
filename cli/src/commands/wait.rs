//! `tranship wait`: for a unit's end.

use crate::commands::logs::{Follower, exit_code};
use crate::error::Result;
use crate::output::Context;
use clap::Args;
use std::process::ExitCode;
use tranship_node::UnitId;

/// Wait for a unit to end, wherever it moves, and exit as it did.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  tranship wait sum; echo $?")]
pub(crate) struct Wait {
    /// The unit.
    unit: UnitId,
}

impl Wait {
    pub(crate) fn run(self, context: &Context) -> Result<ExitCode> {
        let end = Follower { context, unit: &self.unit, print: false, seen: [0; 2] }.run(true)?;
        if let Some(status) = end {
            context.print(&status, || status.to_string())?;
        }
        Ok(end.map_or(ExitCode::SUCCESS, exit_code))
    }
}
