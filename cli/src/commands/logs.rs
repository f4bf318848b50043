//! `tranship logs`: what a unit writes; and following it, also across nodes, for `run` and `wait`.

use crate::error::{CliError, Result};
use crate::find;
use crate::output::Context;
use clap::Args;
use std::io::{Write, stderr, stdout};
use std::process::ExitCode;
use std::thread;
use std::time::Duration;
use tranship_node::{ExitStatus, NodeError, UnitId};

/// Print what a unit wrote so far.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  tranship logs sum\n  tranship logs --follow sum")]
pub(crate) struct Logs {
    /// The unit.
    unit: UnitId,
    /// Go on until it ends, wherever it moves.
    #[arg(long, short)]
    follow: bool,
}

impl Logs {
    pub(crate) fn run(self, context: &Context) -> Result<ExitCode> {
        let end = Follower { context, unit: &self.unit, print: true, seen: [0; 2] }.run(self.follow)?;
        Ok(end.filter(|_| self.follow).map_or(ExitCode::SUCCESS, exit_code))
    }
}

/// A unit's exit status as ours.
pub(crate) fn exit_code(status: ExitStatus) -> ExitCode {
    ExitCode::from(u8::try_from(status.shell_code()).unwrap_or(u8::MAX))
}

/// Follows a unit's output from node to node.
pub(crate) struct Follower<'a> {
    pub(crate) context: &'a Context,
    pub(crate) unit: &'a UnitId,
    /// Pass the output on.
    pub(crate) print: bool,
    /// Bytes seen of standard output and error.
    pub(crate) seen: [u64; 2],
}

impl Follower<'_> {
    /// Until the unit ends (its status), or, not to `follow`, until all there is has been seen.
    pub(crate) fn run(&mut self, follow: bool) -> Result<Option<ExitStatus>> {
        let nodes = self.context.nodes()?;
        let mut node = find::unit(&nodes, self.unit)?.node;
        loop {
            let (chunk, bytes) = nodes.node(&node)?.output(self.unit, self.seen)?;
            self.pass_on(&bytes, chunk.stdout as usize)?;
            if let Some(to) = chunk.moved {
                node = to;
            } else if let Some(status) = chunk.ended {
                return Ok(Some(status));
            } else if chunk.lost {
                return Err(NodeError::Lost { unit: self.unit.clone() }.into());
            } else if !follow && !chunk.more {
                return Ok(None);
            } else if bytes.is_empty() {
                // A node that is being started again is worth a moment.
                thread::sleep(Duration::from_millis(20));
            }
        }
    }

    fn pass_on(&mut self, bytes: &[u8], stdout_length: usize) -> Result<()> {
        let (out, err) = bytes.split_at_checked(stdout_length).unwrap_or((bytes, &[]));
        self.seen[0] += out.len() as u64;
        self.seen[1] += err.len() as u64;
        if !self.print {
            return Ok(());
        }
        let write = || {
            stdout().write_all(out)?;
            stdout().flush()?;
            stderr().write_all(err)
        };
        write().map_err(|why: std::io::Error| CliError::io("writing the unit's output", why))
    }
}
