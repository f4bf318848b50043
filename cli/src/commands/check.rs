//! `tranship check`: what would be in the way of a container's move.

use super::migrate::{How, check};
use crate::error::Result;
use crate::find;
use crate::output::Context;
use clap::Args;
use std::process::ExitCode;

/// Look whether a container can go to another node, without moving it.
///
/// Looked at are its image, the machines, CRIU and kernels, the engine, names, networks, ports, mounts, volumes, memory and
/// disk. The exit code is 0 if nothing is in the way.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  tranship check cache --to arm64\n  tranship check cache --to arm64 --keep-address --json"
)]
pub(crate) struct Check {
    /// The container.
    container: String,
    /// The node that it would go to.
    #[arg(long, value_name = "NODE")]
    to: String,
    /// How it would move.
    #[command(flatten)]
    how: How,
}

impl Check {
    pub(crate) fn run(self, context: &Context) -> Result<ExitCode> {
        let place = find::container(&context.nodes()?, &self.container)?;
        check(context, &place, &self.to, self.how)
    }
}
