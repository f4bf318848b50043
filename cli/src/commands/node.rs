//! `tranship node`: nodes of one's own.

use super::lab::{HEADING, columns};
use crate::error::{CliError, Result};
use crate::output::{Context, bytes, table};
use clap::{Args, Subcommand};
use serde::Serialize;
use std::process::ExitCode;
use std::thread;
use tranship_node::protocol::NodeInfo;
use tranship_node::trust::JoinToken;

/// Nodes that have joined: machines with an agent of which this user is the operator.
#[derive(Args, Debug)]
pub(crate) struct Node {
    #[command(subcommand)]
    command: NodeCommand,
}

#[derive(Subcommand, Debug)]
enum NodeCommand {
    /// Have a node join.
    #[command(after_help = "Examples:\n  tranship node add pi pi.example.org:7700 --token 2f…e1.9c…07\n  \
tranship node add pi 192.0.2.7:7700\n\n\
The agent prints its token when it starts, and `tranship-node token` does on the node. Other nodes use the same address. \
Without a token the node has to have joined already: to have it back under its name after the list was lost.")]
    Add {
        /// What to call it: small letters, digits and `-`.
        name: String,
        /// Where its agent listens.
        #[arg(value_name = "HOST:PORT")]
        address: String,
        /// Its token, good for joining once.
        #[arg(long, env = "TRANSHIP_TOKEN", hide_env_values = true)]
        token: Option<JoinToken>,
    },
    /// List nodes that have joined, with what they say of themselves.
    #[command(after_help = "Examples:\n  tranship node ls\n  tranship node ls --json")]
    Ls,
    /// Show one node, of the lab too.
    #[command(after_help = "Example:\n  tranship node inspect pi --json")]
    Inspect {
        /// Which.
        name: String,
    },
    /// Have a node leave, and forget it. Its units run on.
    #[command(after_help = "Example:\n  tranship node rm pi\n\n\
Prints the token with which the node can join again, with a new key. A node that does not answer is forgotten only here: \
it still believes the authority, and its certificate is good (docs/nodes.md).")]
    Rm {
        /// Which.
        name: String,
    },
}

/// A node in JSON.
#[derive(Serialize)]
struct Row {
    name: String,
    address: String,
    state: State,
    #[serde(flatten)]
    info: Option<NodeInfo>,
    /// Units that have not ended there.
    units: Option<usize>,
    error: Option<String>,
}

#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "kebab-case")]
enum State {
    /// It answers.
    Up,
    /// It does not, or not as it should.
    Down,
}

/// What `node rm` prints.
#[derive(Serialize)]
struct Removed {
    name: String,
    /// To join again with.
    token: Option<JoinToken>,
    /// Why it could not be told to leave.
    error: Option<String>,
}

impl Node {
    pub(crate) fn run(self, context: &Context) -> Result<ExitCode> {
        match self.command {
            NodeCommand::Add { name, address, token } => {
                if tranship_lab::is_lab_name(&name) {
                    return Err(CliError::LabName { name });
                }
                context.operator.add(&name, &address, token.as_ref())?;
                let row = row(&name, context.nodes()?.node(&name)?);
                context.print(&row, || text(std::slice::from_ref(&row)))?;
            }
            NodeCommand::Ls => ls(context)?,
            NodeCommand::Inspect { name } => {
                let row = row(&name, context.nodes()?.node(&name)?);
                context.print(&row, || details(&row))?;
            }
            NodeCommand::Rm { name } => {
                let (token, error) = match context.operator.remove(&name)? {
                    Ok(token) => (Some(token), None),
                    Err(error) => (None, Some(error.to_string())),
                };
                let removed = Removed { name, token, error };
                context.print(&removed, || removed_text(&removed))?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// All nodes are asked at once: one that is gone takes its time.
fn ls(context: &Context) -> Result<()> {
    let nodes = context.nodes()?;
    let names: Vec<String> = nodes.registry.nodes.keys().cloned().collect();
    let asked = names.iter().map(|name| Ok((name, nodes.node(name)?))).collect::<Result<Vec<_>>>()?;
    let rows: Vec<Row> = thread::scope(|scope| {
        let asking: Vec<_> =
            asked.into_iter().map(|(name, node)| scope.spawn(move || row(name, node))).collect();
        asking.into_iter().filter_map(|row| row.join().ok()).collect()
    });
    context.print(&rows, || match rows.is_empty() {
        true => "no node has joined; see `tranship node add --help`".to_owned(),
        false => text(&rows),
    })
}

fn row(name: &str, node: tranship_node::client::Node) -> Row {
    let address = node.peer.address.clone();
    let units = |node: &tranship_node::client::Node| {
        let units = node.units().ok()?;
        Some(units.iter().filter(|unit| !unit.record.state.is_final()).count())
    };
    let (state, info, units, error) = match node.info() {
        Ok(info) => (State::Up, Some(info), units(&node), None),
        Err(error) => (State::Down, None, None, Some(error.to_string())),
    };
    Row { name: name.to_owned(), address, state, info, units, error }
}

impl Row {
    /// The cells that every list of nodes has; in their place, why there are none.
    fn cells(&self) -> Vec<String> {
        match &self.info {
            Some(info) => columns(info),
            None => vec![self.error.clone().unwrap_or_default()],
        }
    }

    fn state(&self) -> &'static str {
        match self.state {
            State::Up => "up",
            State::Down => "down",
        }
    }
}

fn text(rows: &[Row]) -> String {
    let heading = [&["NODE", "ADDRESS", "STATE"][..], &HEADING].concat();
    let mut lines: Vec<Vec<String>> = vec![heading.into_iter().map(str::to_owned).collect()];
    for row in rows {
        let line = vec![row.name.clone(), row.address.clone(), row.state().to_owned()];
        lines.push([line, row.cells()].concat());
    }
    table(&lines)
}

fn details(row: &Row) -> String {
    let mut lines =
        vec![("name", row.name.clone()), ("address", row.address.clone()), ("state", row.state().to_owned())];
    if let Some(info) = &row.info {
        lines.extend([
            ("machine", info.isa.to_string()),
            ("CPU", info.cpu.to_string()),
            ("processors", info.processors.to_string()),
            ("kernel", info.kernel.clone()),
            ("CRIU", info.criu.clone()),
            ("runtime", if info.runtime { "yes" } else { "no" }.to_owned()),
            ("free", bytes(info.disk_free)),
        ]);
    }
    lines.extend(row.units.map(|units| ("units", units.to_string())));
    lines.extend(row.error.clone().map(|error| ("error", error)));
    table(&lines.into_iter().map(|(what, value)| vec![what.to_owned(), value]).collect::<Vec<_>>())
}

fn removed_text(removed: &Removed) -> String {
    match (&removed.token, &removed.error) {
        (Some(token), _) => format!("{} has left; its new token is {token}", removed.name),
        (None, Some(error)) => {
            format!("{} is forgotten, but still believes this authority: {error}", removed.name)
        }
        (None, None) => removed.name.clone(),
    }
}
