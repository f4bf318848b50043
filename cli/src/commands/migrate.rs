//! `tranship migrate`: a unit to another node.

use super::history;
use crate::error::Result;
use crate::find;
use crate::objects::{Supply, Uncompiled};
use crate::output::Context;
use clap::Args;
use std::process::ExitCode;
use std::sync::Mutex;
use tranship_node::UnitId;
use tranship_node::migrate::{Migration, migrate};

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
    /// Compile nothing first: what has no object yet is interpreted there, until `tranship serve` supplies it.
    #[arg(long)]
    at_once: bool,
}

impl Migrate {
    pub(crate) fn run(self, context: &Context) -> Result<ExitCode> {
        let nodes = context.nodes()?;
        let to = nodes.node(&self.to)?;
        let located = find::unit(&nodes, &self.unit)?;
        let from = nodes.node(&located.node)?;
        let migration = Migration {
            unit: &self.unit,
            from: &from,
            to: &to,
            to_from_there: &nodes.peer(&located.node, &self.to)?,
            translated: self.translated,
        };
        let display = Mutex::new(context.progress());
        let mut supply = Supply {
            lab: &context.lab,
            unit: &self.unit,
            from: &from,
            to: &to,
            uncompiled: Uncompiled::unless(self.at_once),
            display,
        };
        let (_, crossing) = migrate(&migration, &mut supply)?;
        drop(supply);
        if let Err(error) = context.lab.history().add(&crossing) {
            context.say(&format!("the unit has moved, but not into the history: {error}"));
        }
        context.print(&crossing, || history::text(std::slice::from_ref(&crossing)))?;
        Ok(ExitCode::SUCCESS)
    }
}
