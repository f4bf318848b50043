//! Moving a unit from one node to another, as the client conducts it. Two tunnels hold the two ends: as long as neither
//! has been told otherwise, the original goes on when the tunnel to it closes, and the copy is removed when its own
//! does. So whatever dies before the commit, client included, the unit goes on where it was.

use crate::client::{Node, Tunnel};
use crate::error::{NodeError, Result};
use crate::progress::ProgressReport;
use crate::protocol::{
    CheckpointReport, GuestProgram, NodeInfo, Peer, RestoreReport, Translation, UnitStatus,
};
use crate::record::{UnitId, UnitRecord, UnitState};
use serde::{Deserialize, Serialize};
use std::thread;
use std::time::{Duration, Instant};

/// A unit goes on by itself if this client has decided nothing after so many seconds.
const LEASE_SECONDS: u64 = 300;
/// Passes that bring the root up to date before the freeze.
const PASSES: u32 = 3;
/// A pass that moved less than this is the last.
const SMALL_PASS: u64 = 4 << 20;
/// Times that the dump is repeated if a thread was where it cannot be recoded.
const DUMP_ATTEMPTS: u32 = 20;
/// Pause before that, in which the thread moves on.
const DUMP_PAUSE: Duration = Duration::from_millis(2);
/// How often the new node is asked again if it did not confirm.
pub(crate) const CONFIRMATIONS: u32 = 5;
/// Pause before that.
pub(crate) const CONFIRMATION_PAUSE: Duration = Duration::from_secs(1);

/// A migration.
#[derive(Debug)]
pub struct Migration<'a> {
    /// Which unit.
    pub unit: &'a UnitId,
    /// Where it is.
    pub from: &'a Node,
    /// Where it is to go.
    pub to: &'a Node,
    /// The new node, as seen from the old one.
    pub to_from_there: &'a Peer,
    /// Translate even where the unit could run natively.
    pub translated: bool,
}

/// What a migration needs and reports to.
pub trait Conductor {
    /// Have objects for these programs, paths in the unit's root, in the store of the new node, whose machine
    /// `to` says.
    fn objects(&mut self, programs: &[String], to: &NodeInfo) -> Result<Vec<GuestProgram>>;
    /// See how far it is.
    fn watch(&mut self, report: &ProgressReport);
}

/// Times in microseconds and bytes of a crossing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Crossing {
    /// The unit.
    pub unit: UnitId,
    /// Name of the old node.
    pub from: String,
    /// Name of the new node.
    pub to: String,
    /// Bringing the root up to date, compiling and sending objects, while the unit ran.
    pub prepare_us: u64,
    /// Until all threads were parked.
    pub quiesce_us: u64,
    /// CRIU's dump.
    pub dump_us: u64,
    /// To the canonical form and from it.
    pub recode_us: u64,
    /// Checkpoint and last changes of the root over the wire.
    pub transfer_us: u64,
    /// CRIU's restore.
    pub restore_us: u64,
    /// From the freeze to going on.
    pub downtime_us: u64,
    /// Bytes moved while the unit was frozen.
    pub bytes: u64,
    /// Bytes of the root that moved before.
    pub prepared_bytes: u64,
}

/// Move the unit. After an error it is where it was, and runs; [`NodeError::InDoubt`] alone says otherwise.
pub fn migrate(migration: &Migration<'_>, conductor: &mut dyn Conductor) -> Result<(UnitRecord, Crossing)> {
    attempt(migration, conductor).map_err(|error| unless_ended(migration, error))
}

fn attempt(migration: &Migration<'_>, conductor: &mut dyn Conductor) -> Result<(UnitRecord, Crossing)> {
    let (record, to) = preflight(migration)?;
    let mut source = migration.from.attach(migration.unit)?;
    let mut target = migration.to.expect(&record)?;

    let start = Instant::now();
    let how = translation(migration, &record, &to, &mut source, conductor)?;
    let prepared_bytes = send_root_ahead(migration, &mut source, conductor)?;
    let prepare_us = micros(start);

    let mut attempts = DUMP_ATTEMPTS;
    let (mut times, bytes) = loop {
        match cross(migration, &how, &mut source, &mut target, conductor) {
            Err(NodeError::DumpAgain { .. }) if attempts > 0 => attempts -= 1,
            crossed => break crossed?,
        }
        source.abort()?;
        thread::sleep(DUMP_PAUSE);
    };
    times.prepare_us = prepare_us;
    source.hold()?;
    let moved = go(migration, &mut source, target)?;
    let downtime_us = times.checkpoint.frozen_us + micros(times.frozen);
    commit(migration, &mut source)?;
    times.downtime_us = downtime_us;
    Ok((moved, crossing(migration, &times, bytes, prepared_bytes)))
}

struct Times {
    prepare_us: u64,
    checkpoint: CheckpointReport,
    /// When the checkpoint was reported.
    frozen: Instant,
    transfer_us: u64,
    restore: RestoreReport,
    downtime_us: u64,
}

/// From the freeze to the copy's being ready to go on; also the bytes that moved.
fn cross(
    migration: &Migration<'_>,
    how: &Translation,
    source: &mut Tunnel,
    target: &mut Tunnel,
    conductor: &mut dyn Conductor,
) -> Result<(Times, u64)> {
    let checkpoint = source.checkpoint(LEASE_SECONDS, &mut |report| conductor.watch(report))?;
    let frozen = Instant::now();
    let bytes = send_checkpoint(migration, source, conductor)?;
    let transfer_us = micros(frozen);
    let restore = target.restore(how, &mut |report| conductor.watch(report))?;
    Ok((Times { prepare_us: 0, checkpoint, frozen, transfer_us, restore, downtime_us: 0 }, bytes))
}

fn crossing(migration: &Migration<'_>, times: &Times, bytes: u64, prepared_bytes: u64) -> Crossing {
    Crossing {
        unit: migration.unit.clone(),
        from: migration.from.peer.name.clone(),
        to: migration.to.peer.name.clone(),
        prepare_us: times.prepare_us,
        quiesce_us: times.checkpoint.quiesce_us,
        dump_us: times.checkpoint.dump_us,
        recode_us: times.checkpoint.recode_us + times.restore.recode_us,
        transfer_us: times.transfer_us,
        restore_us: times.restore.restore_us,
        downtime_us: times.downtime_us,
        bytes,
        prepared_bytes,
    }
}

/// Everything that can be known to fail is found before anything is touched.
fn preflight(migration: &Migration<'_>) -> Result<(UnitRecord, NodeInfo)> {
    let status = migration.from.status(migration.unit)?;
    let record = status.record;
    if migration.from.peer.name == migration.to.peer.name || record.state.pid().is_none() {
        let state = format!("{} on {}", record.state, migration.from.peer.name);
        let wanted = "running on another node than the one to go to".to_owned();
        return Err(NodeError::WrongState { unit: record.spec.id, state, wanted });
    }
    let to = migration.to.info()?;
    let name = &migration.to.peer.name;
    if to.criu == "none" {
        let what = format!("criu on {name}");
        return Err(NodeError::Missing { what, remedy: "install CRIU 4.2 or newer there".to_owned() });
    }
    if is_translated(migration, &record, &to) && !to.runtime {
        let what = format!("the runtime for translated units on {name}");
        let remedy = "build it with `make blobs` and start the lab again".to_owned();
        return Err(NodeError::Missing { what, remedy });
    }
    let needed = 2 * status.resident;
    if to.disk_free < needed {
        return Err(NodeError::NoSpace { needed, free: to.disk_free });
    }
    Ok((record, to))
}

/// A unit that ends takes its supervisor along: that explains a connection that broke.
fn unless_ended(migration: &Migration<'_>, error: NodeError) -> NodeError {
    if !may_have_gone(&error) {
        return error;
    }
    match migration.from.status(migration.unit) {
        Ok(UnitStatus { record, .. }) if matches!(record.state, UnitState::Exited { .. }) => {
            let state = format!("{} on {}", record.state, migration.from.peer.name);
            let wanted = "running until it has moved".to_owned();
            NodeError::WrongState { unit: record.spec.id, state, wanted }
        }
        _ => error,
    }
}

fn is_translated(migration: &Migration<'_>, record: &UnitRecord, to: &NodeInfo) -> bool {
    migration.translated || record.home != to.isa
}

fn translation(
    migration: &Migration<'_>,
    record: &UnitRecord,
    to: &NodeInfo,
    source: &mut Tunnel,
    conductor: &mut dyn Conductor,
) -> Result<Translation> {
    if !is_translated(migration, record, to) {
        return Ok(Translation::Native);
    }
    let programs = source.programs()?;
    Ok(Translation::Objects(conductor.objects(&programs, to)?))
}

/// Bring the new node's copy of the root up to date while the unit runs; returns the bytes that took.
fn send_root_ahead(
    migration: &Migration<'_>,
    source: &mut Tunnel,
    conductor: &mut dyn Conductor,
) -> Result<u64> {
    let mut bytes = 0;
    for _ in 0..PASSES {
        let sent = source.send_tree(migration.to_from_there, &mut |report| conductor.watch(report))?.bytes;
        bytes += sent;
        if sent < SMALL_PASS {
            break;
        }
    }
    Ok(bytes)
}

fn send_checkpoint(
    migration: &Migration<'_>,
    source: &mut Tunnel,
    conductor: &mut dyn Conductor,
) -> Result<u64> {
    let peer = migration.to_from_there;
    let root = source.send_tree(peer, &mut |report| conductor.watch(report))?;
    let images = source.send_images(peer, &mut |report| conductor.watch(report))?;
    Ok(root.bytes + images.bytes)
}

/// Have the copy go on. If the new node says no, the original does; if it says nothing, it is asked again, since from
/// here on there might be two.
fn go(migration: &Migration<'_>, source: &mut Tunnel, mut target: Tunnel) -> Result<UnitRecord> {
    let refused = match target.go() {
        Ok(record) => return Ok(record),
        Err(refused) => refused,
    };
    drop(target);
    if !may_have_gone(&refused) {
        source.abort()?;
        return Err(refused);
    }
    for _ in 0..CONFIRMATIONS {
        thread::sleep(CONFIRMATION_PAUSE);
        match migration.to.status(migration.unit) {
            Ok(UnitStatus { record, .. }) => match record.state {
                UnitState::Incoming | UnitState::Created => {}
                UnitState::Lost => break,
                _ => return Ok(record),
            },
            // The node lives and the copy does not.
            Err(NodeError::NoUnit { .. }) => {
                source.abort()?;
                return Err(refused);
            }
            Err(_) => {}
        }
    }
    Err(NodeError::InDoubt { unit: migration.unit.clone(), why: refused.to_string() })
}

/// End the original. Its supervisor never lets it run again by itself, also if this fails.
fn commit(migration: &Migration<'_>, source: &mut Tunnel) -> Result<()> {
    let to = &migration.to.peer.name;
    source.commit(to).or_else(|_| migration.from.attach(migration.unit)?.commit(to))
}

/// Whether the copy may be running although no one said so.
fn may_have_gone(error: &NodeError) -> bool {
    matches!(
        error,
        NodeError::Closed { .. }
            | NodeError::Silent { .. }
            | NodeError::Io { .. }
            | NodeError::Unreachable { .. }
    )
}

pub(crate) fn micros(since: Instant) -> u64 {
    since.elapsed().as_micros() as u64
}
