//! `tranship ps`: units on all nodes.

use crate::error::Result;
use crate::output::{Context, bytes, table};
use clap::Args;
use serde::Serialize;
use std::process::ExitCode;
use tranship_node::protocol::UnitStatus;

/// List units on all nodes.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  tranship ps\n  tranship ps --all --json")]
pub(crate) struct Ps {
    /// Also those that ended or moved away.
    #[arg(long, short)]
    all: bool,
}

#[derive(Serialize)]
struct Row {
    node: String,
    #[serde(flatten)]
    status: UnitStatus,
}

impl Ps {
    pub(crate) fn run(self, context: &Context) -> Result<ExitCode> {
        let nodes = context.nodes()?;
        let mut rows = Vec::new();
        for name in nodes.names() {
            match nodes.node(name)?.units() {
                Ok(units) => rows.extend(units.into_iter().map(|status| Row { node: name.clone(), status })),
                // The other nodes' units are of interest all the same.
                Err(error) => context.say(&format!("{name}: {error}")),
            }
        }
        rows.retain(|row| self.all || !row.status.record.state.is_final());
        context.print(&rows, || text(&rows))?;
        Ok(ExitCode::SUCCESS)
    }
}

fn text(rows: &[Row]) -> String {
    let mut lines =
        vec![["ID", "NODE", "STATE", "HOME", "CPU", "MEMORY", "PROGRAM"].map(str::to_owned).to_vec()];
    for Row { node, status } in rows {
        let spec = &status.record.spec;
        let program = [vec![spec.program.clone()], spec.args.clone()].concat().join(" ");
        lines.push(vec![
            spec.id.to_string(),
            node.clone(),
            status.record.state.to_string(),
            status.record.home.to_string(),
            format!("{:.1} s", status.cpu_ms as f64 / 1e3),
            bytes(status.resident),
            program.chars().take(60).collect(),
        ]);
    }
    table(&lines)
}
