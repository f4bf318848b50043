//! `tranship history`: the crossings there were.

use crate::error::Result;
use crate::output::{Context, bytes, table, time};
use clap::Args;
use std::process::ExitCode;
use tranship_node::UnitId;
use tranship_node::migrate::Crossing;

/// List crossings: how long each phase took, how long the unit stood still, how much moved meanwhile.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  tranship history\n  tranship history sum --json")]
pub(crate) struct History {
    /// Only this unit's.
    unit: Option<UnitId>,
}

impl History {
    pub(crate) fn run(self, context: &Context) -> Result<ExitCode> {
        let crossings = context.lab.history().crossings(self.unit.as_ref())?;
        context.print(&crossings, || text(&crossings))?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Crossings as a table, a row each.
pub(crate) fn text(crossings: &[Crossing]) -> String {
    let heading =
        ["UNIT", "CROSSING", "QUIESCE", "DUMP", "RECODE", "TRANSFER", "RESTORE", "DOWNTIME", "BYTES"];
    let row = |crossing: &Crossing| {
        vec![
            crossing.unit.to_string(),
            format!("{} to {}", crossing.from, crossing.to),
            time(crossing.quiesce_us),
            time(crossing.dump_us),
            time(crossing.recode_us),
            time(crossing.transfer_us),
            time(crossing.restore_us),
            time(crossing.downtime_us),
            bytes(crossing.bytes),
        ]
    };
    let rows = std::iter::once(heading.map(str::to_owned).to_vec()).chain(crossings.iter().map(row));
    table(&rows.collect::<Vec<_>>())
}
