//! `tranship lab`: nodes on this machine.

use crate::error::{CliError, Result};
use crate::output::{Context, bytes, table};
use clap::{Args, Subcommand};
use serde::Serialize;
use std::io::{Write, stderr, stdin, stdout};
use std::os::unix::process::CommandExt;
use std::process::ExitCode;
use tranship_lab::{NETWORK, NodeStatus};
use tranship_node::protocol::{NodeInfo, Output};

/// Nodes on this machine: `x86`, `x86b` (this kernel), `arm64` and `x86vm` (virtual machines).
#[derive(Args, Debug)]
pub(crate) struct Lab {
    #[command(subcommand)]
    command: LabCommand,
}

#[derive(Subcommand, Debug)]
enum LabCommand {
    /// Start nodes; builds what they need the first time (root; takes a minute).
    #[command(
        after_help = "Examples:\n  tranship lab up\n  tranship lab up --nodes x86,x86b\n  tranship lab up --nodes x86vm,arm64"
    )]
    Up {
        /// Which nodes.
        #[arg(long, value_delimiter = ',', default_value = "x86,arm64")]
        nodes: Vec<String>,
    },
    /// Build what nodes start from, without starting them (root; once).
    #[command(after_help = "Example:\n  tranship lab build --nodes x86")]
    Build {
        /// For which nodes.
        #[arg(long, value_delimiter = ',', default_value = "x86,arm64")]
        nodes: Vec<String>,
    },
    /// Stop nodes, and everything that runs on them.
    #[command(after_help = "Examples:\n  tranship lab down\n  tranship lab down --nodes arm64")]
    Down {
        /// Which nodes [default: all].
        #[arg(long, value_delimiter = ',')]
        nodes: Vec<String>,
    },
    /// Execute a command on a node, or on `lan`: outside the nodes, where their local network is.
    #[command(after_help = "Examples:\n  tranship lab exec x86 -- podman ps\n  \
tar -C image -c . | tranship lab exec x86 -- podman import - box\n  \
tranship lab exec lan -- ping -c 1 10.77.0.100")]
    Exec {
        /// Which node, or `lan`.
        node: String,
        /// The command.
        #[arg(last = true, required = true)]
        words: Vec<String>,
    },
    /// Show nodes.
    #[command(after_help = "Example:\n  tranship lab status --json")]
    Status,
}

/// A node in JSON.
#[derive(Serialize)]
struct Row {
    name: String,
    pid: u32,
    port: u16,
    #[serde(flatten)]
    info: Option<NodeInfo>,
    error: Option<String>,
}

impl Lab {
    pub(crate) fn run(self, context: &Context) -> Result<ExitCode> {
        match self.command {
            LabCommand::Up { nodes } => {
                context.lab.up(&nodes, &mut |step| context.say(step))?;
                show(context)
            }
            LabCommand::Build { nodes } => {
                context.lab.build(&nodes, &mut |step| context.say(step))?;
                Ok(ExitCode::SUCCESS)
            }
            LabCommand::Down { nodes } => {
                context.lab.down(&nodes, &mut |step| context.say(step))?;
                Ok(ExitCode::SUCCESS)
            }
            LabCommand::Exec { node, words } => execute(context, &node, &words),
            LabCommand::Status => show(context),
        }
    }
}

fn execute(context: &Context, node: &str, words: &[String]) -> Result<ExitCode> {
    if node == NETWORK {
        let (program, arguments) = words.split_first().ok_or_else(|| CliError::io("executing", "nothing"))?;
        // In the place of this process, so that signals reach it.
        let why = context.lab.on_lan(program)?.args(arguments).exec();
        return Err(CliError::io("executing nsenter", why));
    }
    let node = context.lab.load()?.node(node)?;
    // Who reads the output may have had enough.
    let status = node.execute(words, stdin(), |which, bytes| {
        let _ = match which {
            Output::Stdout => stdout().write_all(bytes).and_then(|()| stdout().flush()),
            Output::Stderr => stderr().write_all(bytes),
        };
    })?;
    Ok(ExitCode::from(u8::try_from(status.shell_code()).unwrap_or(1)))
}

fn show(context: &Context) -> Result<ExitCode> {
    let rows: Vec<Row> = context.lab.status()?.into_iter().map(row).collect();
    context.print(&rows, || match rows.is_empty() {
        true => "no nodes are up".to_owned(),
        false => text(&rows),
    })?;
    Ok(ExitCode::SUCCESS)
}

fn row(status: NodeStatus) -> Row {
    let (info, error) = match status.info {
        Ok(info) => (Some(info), None),
        Err(error) => (None, Some(error)),
    };
    Row { name: status.name, pid: status.entry.process.pid, port: status.entry.port, info, error }
}

/// What is above [`columns`].
pub(super) const HEADING: [&str; 5] = ["CPU", "KERNEL", "CRIU", "RUNTIME", "FREE"];

/// What every list of nodes shows.
pub(super) fn columns(info: &NodeInfo) -> Vec<String> {
    let runtime = if info.runtime { "yes" } else { "no" }.to_owned();
    vec![info.cpu.to_string(), info.kernel.clone(), info.criu.clone(), runtime, bytes(info.disk_free)]
}

fn text(rows: &[Row]) -> String {
    let heading = [&["NODE"][..], &HEADING, &["PID", "PORT"]].concat();
    let mut lines: Vec<Vec<String>> = vec![heading.into_iter().map(str::to_owned).collect()];
    for row in rows {
        let mut line = vec![row.name.clone()];
        match &row.info {
            Some(info) => line.extend(columns(info)),
            None => line.push(row.error.clone().unwrap_or_default()),
        }
        line.extend([row.pid.to_string(), row.port.to_string()]);
        lines.push(line);
    }
    table(&lines)
}
