//! `tranship`: the command line. One file per subcommand in `commands`; what they do is in the other crates.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::panic))]

mod commands;
mod error;
mod find;
mod journal;
mod nodes;
mod objects;
mod output;

use clap::Parser;
use commands::Command;
use std::path::PathBuf;
use std::process::ExitCode;

/// Moves running, unmodified Linux programs between machines of different instruction sets.
#[derive(Parser, Debug)]
#[command(name = "tranship", version, propagate_version = true, infer_subcommands = false)]
pub(crate) struct Cli {
    /// Print results as JSON.
    #[arg(long, global = true)]
    json: bool,
    /// Directory of the lab's running state [default: in the user's cache directory].
    #[arg(long, global = true, value_name = "DIR", env = "TRANSHIP_STATE")]
    state: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return output::usage(&error),
    };
    let outside = cli.command.failure_code();
    let context = output::Context::new(cli.json, cli.state);
    match cli.command.run(&context) {
        Ok(code) => code,
        Err(error) => {
            context.fail(&error);
            ExitCode::from(outside)
        }
    }
}
