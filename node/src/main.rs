//! `tranship-node`: the agent of a node, and the processes that it starts itself as.

use clap::{Parser, Subcommand};
use std::path::Path;
use std::process::ExitCode;
use tranship_node::boot::{self, AgentArgs, Boot};
use tranship_node::trust::Membership;
use tranship_node::unit::criu::{GATE_NAME, gate};
use tranship_node::unit::enter::Enter;
use tranship_node::unit::supervisor::supervise;
use tranship_node::{NodeError, Result, UnitId, agent};

/// The agent of a Tranship node.
#[derive(Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Be a node on this machine: a root, a mount namespace and a PID namespace of its own.
    Boot(Boot),
    /// The first process in it.
    #[command(hide = true)]
    BootInside(Boot),
    /// Be the first process of a machine that is a node.
    Init(AgentArgs),
    /// Listen for clients and other agents.
    Agent(AgentArgs),
    /// Print the token with which an operator can have this node join.
    Token,
    /// Leave the authority that this node has joined, and print a token for another.
    Leave,
    /// Supervise one unit.
    #[command(hide = true)]
    Supervise { unit: UnitId },
    /// Become a unit's program.
    #[command(hide = true)]
    Enter(Enter),
}

fn main() -> ExitCode {
    let name = std::env::args_os().next().unwrap_or_default();
    if Path::new(&name).file_name().is_some_and(|name| name == GATE_NAME) {
        return gate();
    }
    match run(Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tranship-node: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<()> {
    match command {
        Command::Boot(args) => boot::boot(&args),
        Command::BootInside(args) => boot::boot_inside(&args),
        Command::Init(args) => boot::init(&args),
        Command::Agent(args) => agent::serve(&args),
        Command::Token => agent::print_token(),
        Command::Leave => Membership::leave().map(|token| println!("{token}")),
        Command::Supervise { unit } => supervise(&unit),
        Command::Enter(args) => Err::<(), NodeError>(args.enter()),
    }
}
