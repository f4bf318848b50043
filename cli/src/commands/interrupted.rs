//! `tranship migrate --resume` and `--rollback`: moves of containers of which no command has seen the end. The nodes settle between
//! them where such a container goes on; this finds out, and goes on from there.

use super::migrate::{conduct, finish};
use crate::error::{CliError, Result};
use crate::find::Place;
use crate::journal::Begun;
use crate::output::Context;
use serde::Serialize;
use std::process::ExitCode;
use std::thread::sleep;
use std::time::{Duration, Instant};
use tranship_node::NodeError;

/// How long the nodes may take to settle it.
const PATIENCE: Duration = Duration::from_secs(60);
/// Between two questions.
const PAUSE: Duration = Duration::from_millis(200);

/// Where the container of a move is.
enum Now {
    /// It runs on this node.
    Runs(String),
    /// The old node has it and does not know whether the new one does, which does not answer.
    Held,
}

/// What is said of a container that need not be moved.
#[derive(Serialize)]
struct Settled<'a> {
    container: &'a str,
    node: &'a str,
}

/// Bring the move of this container to its end.
pub(super) fn resume(context: &Context, name: &str) -> Result<ExitCode> {
    bring(context, name, |begun| &begun.to)
}

/// Have the container run where it was before the move.
pub(super) fn roll_back(context: &Context, name: &str) -> Result<ExitCode> {
    bring(context, name, |begun| &begun.from)
}

/// Have it run on the node that `goal` is.
fn bring(context: &Context, name: &str, goal: impl Fn(&Begun) -> &String) -> Result<ExitCode> {
    let begun = begun(context, name)?;
    let goal = goal(&begun);
    match now(context, &begun)? {
        Now::Runs(node) if node == *goal => settled(context, &begun, &node),
        Now::Runs(node) => go(context, &begun, &node, goal),
        Now::Held => {
            let why = format!("{} does not answer", begun.to);
            Err(NodeError::MoveInDoubt { container: begun.name, why }.into())
        }
    }
}

fn begun(context: &Context, name: &str) -> Result<Begun> {
    let found = context.journal().find(name)?;
    found.ok_or_else(|| CliError::NoMove { name: name.to_owned() })
}

/// Ask both nodes until one of them runs it.
fn now(context: &Context, begun: &Begun) -> Result<Now> {
    let nodes = context.nodes()?;
    let deadline = Instant::now() + PATIENCE;
    loop {
        let mut errors = Vec::new();
        let mut is_here = false;
        for name in [&begun.from, &begun.to] {
            match nodes.node(name)?.containers() {
                Ok(containers) => {
                    let found = containers.into_iter().find(|container| container.id == begun.id);
                    if found.as_ref().is_some_and(|container| container.runs()) {
                        return Ok(Now::Runs(name.clone()));
                    }
                    is_here |= found.is_some() && *name == begun.from;
                }
                Err(error) => errors.push(error),
            }
        }
        if Instant::now() > deadline {
            return match errors.into_iter().next() {
                Some(_) if is_here => Ok(Now::Held),
                Some(error) => Err(error.into()),
                None => Err(NodeError::NoContainer { container: begun.name.clone() }.into()),
            };
        }
        sleep(PAUSE);
    }
}

/// It is where it should be.
fn settled(context: &Context, begun: &Begun, node: &str) -> Result<ExitCode> {
    context.journal().end(begun)?;
    let text = || format!("{} runs on {node}", begun.name);
    context.print(&Settled { container: &begun.name, node }, text)?;
    Ok(ExitCode::SUCCESS)
}

/// Move it as it was to move.
fn go(context: &Context, begun: &Begun, from: &str, to: &str) -> Result<ExitCode> {
    let place = Place { id: begun.id.clone(), node: from.to_owned() };
    finish(context, &begun.name, &conduct(context, &begun.name, &place, to, begun.how)?)
}
