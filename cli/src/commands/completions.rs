//! `tranship completions`: for shells.

use crate::Cli;
use crate::error::Result;
use crate::output::Context;
use clap::{Args, CommandFactory};
use clap_complete::{Shell, generate};
use std::process::ExitCode;

/// Print a completion script for a shell.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  tranship completions bash > /etc/bash_completion.d/tranship")]
pub(crate) struct Completions {
    /// Which shell.
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(self, _: &Context) -> Result<ExitCode> {
        generate(self.shell, &mut Cli::command(), "tranship", &mut std::io::stdout());
        Ok(ExitCode::SUCCESS)
    }
}
