//! Moving a container, as the client conducts it. Two connections hold the two ends: until the old node is told to hold the
//! container for good, the container goes on there when its connection closes, and the new node forgets it when its own does.
//! From then on the new node decides, and the old one asks it; so whatever dies, client included, the container goes on, and
//! on one of them.

use super::MoveId;
use super::preflight::{Finding, Verdict, findings};
use crate::client::{Coming, Leaving, Node, Watch};
use crate::error::{NodeError, Result};
use crate::migrate::{CONFIRMATION_PAUSE, CONFIRMATIONS, Crossing, micros};
use crate::protocol::{ArriveReport, Container, DepartReport, Outcome, Peer, Survey};
use serde::{Deserialize, Serialize};
use std::thread;
use std::time::Instant;

/// A container's move.
#[derive(Debug)]
pub struct Migration<'a> {
    /// Name or id of the container.
    pub container: &'a str,
    /// Where it is.
    pub from: &'a Node,
    /// Where it is to go.
    pub to: &'a Node,
    /// The new node, as seen from the old one.
    pub to_from_there: &'a Peer,
    /// What it is to take with it.
    pub how: How,
}

/// What a container takes with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct How {
    /// Its addresses and the connections to them.
    pub keep_address: bool,
    /// The contents of its volumes; else the new node sees the same ones.
    pub copy_volumes: bool,
}

/// What would be in the way.
pub fn check(migration: &Migration<'_>) -> Result<(Container, Vec<Finding>)> {
    let (container, _, findings) = look(migration)?;
    Ok((container, findings))
}

fn look(migration: &Migration<'_>) -> Result<(Container, Survey, Vec<Finding>)> {
    let container = find(migration.from, migration.container)?;
    let survey = migration.to.survey(&container)?;
    let found = findings(&container, &migration.from.info()?, &migration.to.info()?, &survey, migration.how);
    Ok((container, survey, found))
}

/// The container of this name or id on a node.
fn find(node: &Node, name: &str) -> Result<Container> {
    let mut containers = node.containers()?.into_iter();
    let found = containers.find(|container| container.name == name || container.id == name);
    found.ok_or_else(|| NodeError::NoContainer { container: name.to_owned() })
}

/// Move the container. After an error it is where it was, and runs; [`NodeError::MoveInDoubt`] alone says otherwise.
pub fn migrate(migration: &Migration<'_>, watch: Watch<'_>) -> Result<(Container, Crossing)> {
    let (container, survey, found) = look(migration)?;
    if let Some(blocking) = found.into_iter().find(|finding| finding.verdict == Verdict::Blocking) {
        return Err(NodeError::InTheWay { container: container.name, what: blocking.to_string() });
    }
    let of = MoveId::random()?;
    let start = Instant::now();
    let (mut leaving, container) = migration.from.depart(&of, &container.id)?;
    let mut coming = migration.to.arrive(&of, &container)?;
    let mut prepared_bytes = 0;
    if !survey.image {
        prepared_bytes = leaving.send_image(migration.to_from_there, watch)?.bytes;
        coming.load_image(watch)?;
    }
    let prepare_us = micros(start);
    let crossed = cross(migration, &mut leaving, &mut coming, watch);
    let (times, bytes, stopped) = match crossed {
        Ok(crossed) => crossed,
        Err(error) => {
            // It goes on, or the old node says why not; the connection's end would have it do the same, unseen.
            drop(coming);
            leaving.abort(watch)?;
            return Err(error);
        }
    };
    let arrived = go(migration, &of, leaving, coming, watch)?;
    let downtime_us = micros(stopped);
    Ok((
        arrived,
        crossing(migration, &container, &times, Totals { prepare_us, downtime_us, bytes, prepared_bytes })?,
    ))
}

struct Times {
    depart: DepartReport,
    transfer_us: u64,
    arrive: ArriveReport,
}

struct Totals {
    prepare_us: u64,
    downtime_us: u64,
    bytes: u64,
    prepared_bytes: u64,
}

/// Bring the container to the gate. Also returns how many bytes moved and when it was stopped.
fn cross(
    migration: &Migration<'_>,
    leaving: &mut Leaving,
    coming: &mut Coming,
    watch: Watch<'_>,
) -> Result<(Times, u64, Instant)> {
    let How { keep_address, copy_volumes } = migration.how;
    let stopped = Instant::now();
    let depart = leaving.checkpoint(copy_volumes, watch)?;
    let start = Instant::now();
    let sent = leaving.send_checkpoint(migration.to_from_there, watch)?;
    let transfer_us = micros(start);
    let arrive = coming.restore(copy_volumes, keep_address, watch)?;
    Ok((Times { depart, transfer_us, arrive }, sent.bytes, stopped))
}

/// Let it through, for good.
fn go(
    migration: &Migration<'_>,
    of: &MoveId,
    mut leaving: Leaving,
    mut coming: Coming,
    watch: Watch<'_>,
) -> Result<Container> {
    leaving.hold(migration.to_from_there)?;
    let error = match coming.go(watch) {
        Ok(container) => {
            // If it does not hear that, it asks.
            let _ = leaving.commit(watch);
            return Ok(container);
        }
        Err(error) => error,
    };
    drop(coming);
    for _ in 0..CONFIRMATIONS {
        match migration.to.outcome(of) {
            Ok(Outcome::Went) => {
                let _ = leaving.commit(watch);
                return find(migration.to, migration.container).or(Err(error));
            }
            Ok(Outcome::Refused) => {
                leaving.abort(watch)?;
                return Err(error);
            }
            Ok(Outcome::Undecided) | Err(_) => thread::sleep(CONFIRMATION_PAUSE),
        }
    }
    Err(NodeError::MoveInDoubt { container: migration.container.to_owned(), why: error.to_string() })
}

fn crossing(
    migration: &Migration<'_>,
    container: &Container,
    times: &Times,
    totals: Totals,
) -> Result<Crossing> {
    let Times { depart, transfer_us, arrive } = times;
    Ok(Crossing {
        unit: container.name.parse()?,
        from: migration.from.peer.name.clone(),
        to: migration.to.peer.name.clone(),
        prepare_us: totals.prepare_us,
        quiesce_us: depart.quiesce_us,
        dump_us: depart.checkpoint_us.saturating_sub(depart.quiesce_us + depart.recode_us),
        recode_us: depart.recode_us + arrive.recode_us,
        transfer_us: *transfer_us,
        restore_us: arrive.restore_us.saturating_sub(arrive.recode_us),
        downtime_us: totals.downtime_us,
        bytes: totals.bytes,
        prepared_bytes: totals.prepared_bytes,
    })
}
