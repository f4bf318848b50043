//! `tranship migrate`: a unit to another node.

use crate::error::Result;
use crate::find;
use crate::objects::Supply;
use crate::output::{Context, bytes, table, time};
use clap::Args;
use std::process::ExitCode;
use std::sync::Mutex;
use tranship_node::UnitId;
use tranship_node::migrate::{Crossing, Migration, migrate};

/// Move a running unit to another node.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  tranship migrate sum --to arm64\n  tranship migrate sum --to x86 --json\n\n\
If anything fails, the unit goes on where it was."
)]
pub(crate) struct Migrate {
    /// The unit.
    unit: UnitId,
    /// The node to move it to.
    #[arg(long, value_name = "NODE")]
    to: String,
    /// Translate even if that node could run it natively.
    #[arg(long)]
    translated: bool,
}

impl Migrate {
    pub(crate) fn run(self, context: &Context) -> Result<ExitCode> {
        let lab = context.lab.load()?;
        let to = lab.node(&self.to)?;
        let located = find::unit(&lab, &self.unit)?;
        let from = lab.node(&located.node)?;
        let migration = Migration {
            unit: &self.unit,
            from: &from,
            to: &to,
            to_from_there: &lab.peer(&located.node, &self.to)?,
            translated: self.translated,
        };
        let display = Mutex::new(context.progress());
        let mut supply = Supply { lab: &context.lab, unit: &self.unit, from: &from, to: &to, display };
        let (_, crossing) = migrate(&migration, &mut supply)?;
        drop(supply);
        context.print(&crossing, || text(&crossing))?;
        Ok(ExitCode::SUCCESS)
    }
}

fn text(crossing: &Crossing) -> String {
    let heading = ["CROSSING", "QUIESCE", "DUMP", "RECODE", "TRANSFER", "RESTORE", "DOWNTIME", "BYTES"];
    let row = vec![
        format!("{} to {}", crossing.from, crossing.to),
        time(crossing.quiesce_us),
        time(crossing.dump_us),
        time(crossing.recode_us),
        time(crossing.transfer_us),
        time(crossing.restore_us),
        time(crossing.downtime_us),
        bytes(crossing.bytes),
    ];
    table(&[heading.map(str::to_owned).to_vec(), row])
}
