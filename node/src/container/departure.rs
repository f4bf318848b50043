//! A container that leaves. Podman's checkpoint stops it, and keeps what it needs to have it go on here: until its new node says
//! that it has it, that is what becomes of it whatever ends the move.

use super::engine;
use super::record::{MoveDir, MoveId, MoveRecord, Stage};
use crate::client::{answer_to_transfer, open};
use crate::error::{NodeError, Result};
use crate::progress::Progress;
use crate::protocol::{
    Cargo, CargoKind, Channel, Container, DepartReport, DepartRequest, Outcome, Peer, Received, Request,
};
use crate::serve::{answer, answer_long};
use crate::trust::Membership;
use std::fs::File;
use std::thread;
use std::time::{Duration, Instant};

/// How often the new node is asked what has become of the container.
const ASK: Duration = Duration::from_secs(1);
/// Attempts to have it go on here.
const ATTEMPTS: u32 = 15;

/// A container's departure, as one client conducts it.
pub struct Departure {
    directory: MoveDir,
    record: MoveRecord,
    container: Container,
    /// It is gone, or goes on here, whether the client has heard that or not.
    is_settled: bool,
}

impl Departure {
    /// Begin it.
    pub fn of(of: MoveId, container: &str) -> Result<Departure> {
        let container = engine::container(container)?;
        if !container.runs() {
            return Err(NodeError::NotRunning { container: container.name, state: container.state });
        }
        let record = MoveRecord { of, container: container.id.clone(), stage: Stage::Leaving };
        Ok(Departure { directory: MoveDir::begin(&record)?, record, container, is_settled: false })
    }

    /// The container, as it was then.
    pub fn container(&self) -> &Container {
        &self.container
    }

    /// Do what the client asks, until it is decided where the container goes on.
    pub fn serve(mut self, client: &mut Channel) -> Result<()> {
        let served = self.requests(client);
        match &self.record.stage {
            _ if self.is_settled => {}
            Stage::Leaving | Stage::Coming => stay(&self.directory, &self.record),
            Stage::Held(peer) => {
                let (directory, record, peer) = (self.directory.clone(), self.record.clone(), peer.clone());
                thread::spawn(move || ask(&directory, &record, &peer));
            }
        }
        served
    }

    /// Returns when there is nothing more to be asked; then the stage says what is to be done.
    fn requests(&mut self, client: &mut Channel) -> Result<()> {
        loop {
            client.wait_for_frames(None)?;
            let Some(frame) = client.receive_or_end::<DepartRequest>()? else { return Ok(()) };
            match frame.message {
                DepartRequest::SendImage(peer) => {
                    answer_long(client, |progress| self.send_image(&peer, progress))?;
                }
                DepartRequest::Checkpoint { volumes } => {
                    answer_long(client, |progress| {
                        progress.enter("checkpointing", 0);
                        self.checkpoint(volumes)
                    })?;
                }
                DepartRequest::SendCheckpoint(peer) => {
                    answer_long(client, |progress| self.send(&peer, CargoKind::Checkpoint, progress))?;
                }
                DepartRequest::Hold(peer) => {
                    let held = MoveRecord { stage: Stage::Held(peer), ..self.record.clone() };
                    let saved = self.directory.save(&held);
                    if saved.is_ok() {
                        self.record = held;
                    }
                    answer(client, saved)?;
                }
                DepartRequest::Commit => {
                    return answer_long(client, |_| {
                        let left = leave(&self.directory, &self.record);
                        self.is_settled = left.is_ok();
                        left
                    });
                }
                DepartRequest::Abort => {
                    self.record.stage = Stage::Leaving;
                    self.directory.save(&self.record)?;
                    return answer_long(client, |_| {
                        let stayed = remain(&self.directory, &self.record);
                        self.is_settled = stayed.is_ok();
                        stayed
                    });
                }
            }
        }
    }

    fn send_image(&self, peer: &Peer, progress: &Progress) -> Result<Received> {
        progress.enter("writing the image", 0);
        engine::save_image(&self.container, &self.directory.file(CargoKind::Image.file()))?;
        let sent = self.send(peer, CargoKind::Image, progress);
        let _ = std::fs::remove_file(self.directory.file(CargoKind::Image.file()));
        sent
    }

    fn send(&self, peer: &Peer, kind: CargoKind, progress: &Progress) -> Result<Received> {
        let path = self.directory.file(kind.file());
        let mut file = File::open(&path).map_err(NodeError::at("opening", &path))?;
        let length = file.metadata().map_err(NodeError::at("opening", &path))?.len();
        progress.enter(if kind == CargoKind::Image { "image" } else { "checkpoint" }, length);
        let mut channel = open(peer, &Membership::identity()?)?;
        let cargo = Request::Cargo(Cargo { of: self.record.of.clone(), kind });
        let sent = channel.send_with_stream(&cargo, length, &mut file, progress).map(drop);
        answer_to_transfer(channel, sent)
    }

    fn checkpoint(&self, volumes: bool) -> Result<DepartReport> {
        let start = Instant::now();
        let export = format!("--export={}", self.directory.file(CargoKind::Checkpoint.file()).display());
        let mut words = vec!["container", "checkpoint", "--keep", "--tcp-established", "--file-locks"];
        words.extend(["--compress=none", &export]);
        words.extend((!volumes).then_some("--ignore-volumes"));
        words.push(&self.record.container);
        engine::run(&words)?;
        let checkpoint_us = start.elapsed().as_micros() as u64;
        let log = engine::log(&self.record.container, "dump.log").unwrap_or_default();
        let [quiesce_us, recode_us] = ["parked", "recoded"].map(|what| micros(&log, what));
        Ok(DepartReport { quiesce_us, checkpoint_us, recode_us })
    }
}

/// What CRIU's relay has written of the time that it took for something, in microseconds.
fn micros(log: &str, what: &str) -> u64 {
    let said = log.lines().filter_map(|line| line.strip_prefix("tranship: ")?.strip_prefix(what));
    let times = said.filter_map(|rest| rest.strip_prefix(" in ")?.strip_suffix(" ms")?.parse::<f64>().ok());
    (times.sum::<f64>() * 1e3) as u64
}

/// The move is given up: the container goes on here.
pub(super) fn stay(directory: &MoveDir, record: &MoveRecord) {
    // The next agent tries again; the checkpoint is kept.
    if let Err(error) = remain(directory, record) {
        eprintln!("container {}: {error}", record.container);
    }
}

/// The container goes on here: nothing of the move stays.
fn remain(directory: &MoveDir, record: &MoveRecord) -> Result<()> {
    go_on(&record.container)?;
    directory.end();
    Ok(())
}

/// Have a container go on that may have been stopped by a checkpoint.
fn go_on(id: &str) -> Result<()> {
    let mut last = None;
    for _ in 0..ATTEMPTS {
        // The engine answers when a checkpoint that is under way is done.
        if engine::container(id)?.runs() {
            return Ok(());
        }
        match engine::run(&["container", "restore", "--tcp-established", "--file-locks", id]) {
            Ok(_) => return Ok(()),
            Err(error) => last = Some(error),
        }
        thread::sleep(ASK);
    }
    last.map_or(Ok(()), Err)
}

/// The container goes on elsewhere: nothing of it stays here.
fn leave(directory: &MoveDir, record: &MoveRecord) -> Result<()> {
    engine::run(&["container", "rm", "--force", "--volumes", &record.container])?;
    directory.end();
    Ok(())
}

/// Ask the new node until it says whether it has the container, and do as it says.
pub(super) fn ask(directory: &MoveDir, record: &MoveRecord, peer: &Peer) {
    loop {
        if directory.load().is_some_and(|record| record.stage == Stage::Leaving) {
            return stay(directory, record);
        }
        match peer_outcome(peer, &record.of) {
            Ok(Outcome::Went) => {
                if let Err(error) = leave(directory, record) {
                    eprintln!("container {}: {error}", record.container);
                }
                return;
            }
            Ok(Outcome::Refused) => return stay(directory, record),
            Ok(Outcome::Undecided) | Err(_) => thread::sleep(ASK),
        }
    }
}

fn peer_outcome(peer: &Peer, of: &MoveId) -> Result<Outcome> {
    let mut channel = open(peer, &Membership::identity()?)?;
    channel.send(&Request::Outcome(of.clone()))?;
    channel.answer(&mut |_| ())
}
