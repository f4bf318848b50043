//! `tranship ps`: units and containers on all nodes.

use crate::error::Result;
use crate::output::{Context, bytes, table};
use clap::Args;
use serde::Serialize;
use std::process::ExitCode;
use tranship_node::protocol::{Container, UnitStatus};

/// List units and containers on all nodes.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  tranship ps\n  tranship ps --all --json")]
pub(crate) struct Ps {
    /// Also those that ended or moved away.
    #[arg(long, short)]
    all: bool,
}

/// What runs on a node.
#[derive(Serialize)]
struct Row {
    node: String,
    #[serde(flatten)]
    what: What,
}

#[derive(Serialize)]
#[serde(untagged)]
enum What {
    Unit(Box<UnitStatus>),
    Container { container: Box<Container> },
}

impl Ps {
    pub(crate) fn run(self, context: &Context) -> Result<ExitCode> {
        let nodes = context.nodes()?;
        let mut rows = Vec::new();
        for name in nodes.names() {
            let node = nodes.node(name)?;
            let found = node.units().and_then(|units| Ok((units, node.containers()?)));
            match found {
                Ok((units, containers)) => {
                    let units = units.into_iter().map(|status| What::Unit(Box::new(status)));
                    let containers = containers.into_iter();
                    let containers =
                        containers.map(|container| What::Container { container: Box::new(container) });
                    rows.extend(units.chain(containers).map(|what| Row { node: name.clone(), what }));
                }
                // What is on the other nodes is of interest all the same.
                Err(error) => context.say(&format!("{name}: {error}")),
            }
        }
        rows.retain(|row| self.all || !row.what.is_over());
        context.print(&rows, || text(&rows))?;
        Ok(ExitCode::SUCCESS)
    }
}

impl What {
    /// Whether it has ended or moved away.
    fn is_over(&self) -> bool {
        match self {
            What::Unit(status) => status.record.state.is_final(),
            What::Container { container } => container.pid == 0,
        }
    }

    fn line(&self, node: &str) -> Vec<String> {
        match self {
            What::Unit(status) => {
                let spec = &status.record.spec;
                vec![
                    spec.id.to_string(),
                    node.to_owned(),
                    status.record.state.to_string(),
                    status.record.home.to_string(),
                    format!("{:.1} s", status.cpu_ms as f64 / 1e3),
                    bytes(status.resident),
                    shortened([vec![spec.program.clone()], spec.args.clone()].concat().join(" ")),
                ]
            }
            What::Container { container } => {
                let translated = if container.translated { ", translated" } else { "" };
                vec![
                    container.name.clone(),
                    node.to_owned(),
                    format!("{}{translated}", container.state),
                    container.isa.map_or_else(|| "unknown".to_owned(), |isa| isa.to_string()),
                    format!("{:.1} s", container.cpu_ms as f64 / 1e3),
                    bytes(container.memory),
                    shortened(format!("container of {}", container.image_name)),
                ]
            }
        }
    }
}

fn shortened(text: String) -> String {
    text.chars().take(60).collect()
}

fn text(rows: &[Row]) -> String {
    let mut lines =
        vec![["ID", "NODE", "STATE", "HOME", "CPU", "MEMORY", "PROGRAM"].map(str::to_owned).to_vec()];
    lines.extend(rows.iter().map(|row| row.what.line(&row.node)));
    table(&lines)
}
