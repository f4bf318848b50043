//! The subcommands, a file each.

mod check;
mod compile;
mod completions;
mod forward;
mod history;
mod interrupted;
mod isa;
mod lab;
mod lift;
mod logs;
mod migrate;
mod node;
mod ps;
mod recode;
mod resume;
mod rm;
mod run;
mod serve;
mod signal;
mod wait;

use crate::error::Result;
use crate::output::Context;
use clap::Subcommand;
use std::process::ExitCode;

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    Lab(lab::Lab),
    Node(node::Node),
    Run(run::Run),
    Serve(serve::Serve),
    Ps(ps::Ps),
    Logs(logs::Logs),
    Wait(wait::Wait),
    Signal(signal::Signal),
    Forward(forward::Forward),
    Check(check::Check),
    Migrate(migrate::Migrate),
    History(history::History),
    Resume(resume::Resume),
    Rm(rm::Rm),
    Recode(recode::Recode),
    Lift(lift::Lift),
    Compile(compile::Compile),
    Isa(isa::Isa),
    Completions(completions::Completions),
}

impl Command {
    pub(crate) fn run(self, context: &Context) -> Result<ExitCode> {
        match self {
            Command::Lab(command) => command.run(context),
            Command::Node(command) => command.run(context),
            Command::Run(command) => command.run(context),
            Command::Serve(command) => command.run(context),
            Command::Ps(command) => command.run(context),
            Command::Logs(command) => command.run(context),
            Command::Wait(command) => command.run(context),
            Command::Signal(command) => command.run(context),
            Command::Forward(command) => command.run(context),
            Command::Check(command) => command.run(context),
            Command::Migrate(command) => command.run(context),
            Command::History(command) => command.run(context),
            Command::Resume(command) => command.run(context),
            Command::Rm(command) => command.run(context),
            Command::Recode(command) => command.run(context),
            Command::Lift(command) => command.run(context),
            Command::Compile(command) => command.run(context),
            Command::Isa(command) => command.run(context),
            Command::Completions(command) => command.run(context),
        }
    }

    /// Exit code of a failure of ours. Where the code is else the program's, one that programs hardly use.
    pub(crate) fn failure_code(&self) -> u8 {
        match self {
            Command::Run(_) | Command::Wait(_) | Command::Logs(_) => 125,
            _ => 1,
        }
    }
}
