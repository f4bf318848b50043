//! A container that comes. Podman restores it up to a gate, behind which its processes would run; it is let through when its old
//! node holds it for good. From then on it is here, and what was sent is kept until it runs.

use super::gate::{Gate, Waiting, take_down_closed};
use super::neighbours::{Silence, announce};
use super::record::{MoveDir, MoveId, MoveRecord, Stage, coming, forget_arrival, note_arrival};
use super::{archive, engine};
use crate::error::{NodeError, Result};
use crate::progress::Progress;
use crate::protocol::{
    ArriveReport, ArriveRequest, Attachment, Cargo, CargoKind, Channel, Container, Received,
};
use crate::serve::answer_long;
use crate::unit::paths::STATE;
use std::fs::{self, File};
use std::path::Path;
use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};

/// How often it is looked whether the container is at the gate.
const LOOK: Duration = Duration::from_millis(2);

/// A container's arrival, as one client conducts it.
pub struct Arrival {
    directory: MoveDir,
    record: MoveRecord,
    name: String,
    attachments: Vec<Attachment>,
    restoring: Option<Restoring>,
    /// It goes on here, whether the client has heard that or not.
    has_arrived: bool,
}

/// A restore that is at the gate.
struct Restoring {
    engine: Child,
    words: Vec<String>,
    waiting: Waiting,
    silence: Option<Silence>,
}

impl Arrival {
    /// Begin it.
    pub fn of(of: MoveId, container: &Container) -> Result<Arrival> {
        if let Ok(here) = engine::container(&container.id) {
            return Err(NodeError::ContainerExists { container: here.name });
        }
        let record = MoveRecord { of, container: container.id.clone(), stage: Stage::Coming };
        Ok(Arrival {
            directory: MoveDir::begin(&record)?,
            record,
            name: container.name.clone(),
            attachments: container.attachments.clone(),
            restoring: None,
            has_arrived: false,
        })
    }

    /// Do what the client asks, until the container is here or is not to come.
    pub fn serve(mut self, client: &mut Channel) -> Result<()> {
        let served = self.requests(client);
        if let Some(Restoring { engine, words, waiting, .. }) = self.restoring.take() {
            // A gate that closes has the restore fail.
            drop(waiting);
            let _ = engine::finish(engine, &words);
        }
        if !self.has_arrived {
            recover(&self.directory, &self.record, false);
        }
        served
    }

    /// Returns when there is nothing more to be asked.
    fn requests(&mut self, client: &mut Channel) -> Result<()> {
        loop {
            client.wait_for_frames(None)?;
            let Some(frame) = client.receive_or_end::<ArriveRequest>()? else { return Ok(()) };
            match frame.message {
                ArriveRequest::LoadImage => {
                    let path = self.directory.file(CargoKind::Image.file());
                    answer_long(client, |progress| {
                        progress.enter("unpacking the image", 0);
                        engine::load_image(&path)
                    })?;
                    let _ = fs::remove_file(&path);
                }
                ArriveRequest::Restore { volumes, keep_address } => {
                    answer_long(client, |progress| self.restore(volumes, keep_address, progress))?;
                }
                ArriveRequest::Go => {
                    return answer_long(client, |progress| {
                        progress.enter("going on", 0);
                        self.go()
                    });
                }
            }
        }
    }

    fn restore(&mut self, volumes: bool, keep_address: bool, progress: &Progress) -> Result<ArriveReport> {
        let start = Instant::now();
        archive::inspect(&self.directory.file(CargoKind::Checkpoint.file()))?;
        progress.enter("restoring", 0);
        // Until it has gone through the gate the engine answers no question about the container.
        let gate = Gate::new(&self.record.container)?;
        let silence = if keep_address { self.silence()? } else { None };
        let words = restore_words(&self.directory, volumes, keep_address);
        let mut engine = engine::start(&words)?;
        let waiting = loop {
            if let Some(waiting) = gate.arrived()? {
                break waiting;
            }
            let ended = engine.try_wait().map_err(|why| NodeError::io("waiting for the engine", why))?;
            if ended.is_some() {
                engine::finish(engine, &words)?;
                return Err(NodeError::NoGate { container: self.name.clone() });
            }
            if let Err(cancelled) = progress.check() {
                // No gate, no container.
                drop(gate);
                let _ = engine::finish(engine, &words);
                return Err(cancelled);
            }
            thread::sleep(LOOK);
        };
        gate.take_down()?;
        let restore_us = start.elapsed().as_micros() as u64;
        let recode_us = waiting.recode_us;
        self.restoring = Some(Restoring { engine, words, waiting, silence });
        Ok(ArriveReport { recode_us, restore_us })
    }

    /// What is sent to the container's addresses is lost until it goes on.
    fn silence(&self) -> Result<Option<Silence>> {
        let bridged = self.attachments.iter().map(|attachment| {
            let bridge = engine::bridge(&attachment.network)?;
            Ok(bridge.map(|bridge| (bridge, attachment.clone())))
        });
        let bridged: Result<Vec<_>> = bridged.filter_map(Result::transpose).collect();
        Silence::around(&self.record.container, &bridged?)
    }

    /// Let it through. After an error it is not here.
    fn go(&mut self) -> Result<Container> {
        let Restoring { engine, words, waiting, silence } =
            self.restoring.take().ok_or_else(|| NodeError::protocol("nothing is restored"))?;
        // From here on it is this node's to have it go on: whoever asks is told so, even if this agent dies now.
        note_arrival(&self.record.of)?;
        let pid = waiting.pid;
        let opened = waiting.open();
        drop(silence);
        if opened.is_ok()
            && let Err(error) = announce(pid, &self.attachments)
        {
            // It is found in time all the same.
            eprintln!("container {}: {error}", self.record.container);
        }
        let restored = engine::finish(engine, &words).map(drop).and(opened);
        let container = engine::container(&self.record.container);
        // An engine that has failed with it, or was ended, may have let it go on.
        if let (Err(error), false) = (restored, container.as_ref().is_ok_and(Container::runs)) {
            forget_arrival(&self.record.of)?;
            return Err(error);
        }
        self.has_arrived = true;
        self.directory.end();
        container
    }
}

fn restore_words(directory: &MoveDir, volumes: bool, keep_address: bool) -> Vec<String> {
    let import = format!("--import={}", directory.file(CargoKind::Checkpoint.file()).display());
    let mut words = vec!["container", "restore", "--keep", "--file-locks", &import];
    words.extend((!volumes).then_some("--ignore-volumes"));
    match keep_address {
        true => words.push("--tcp-established"),
        // A connection is nothing without its address.
        false => words.extend(["--tcp-close", "--ignore-static-ip", "--ignore-static-mac"]),
    }
    words.into_iter().map(str::to_owned).collect()
}

/// Cargo for a container that is to come: the body of `length` bytes that follows.
pub fn unload(client: &mut Channel, cargo: &Cargo, length: u64) -> Result<Received> {
    let path = coming(&cargo.of)?.file(cargo.kind.file());
    let disk = rustix::fs::statvfs(STATE).map_err(NodeError::at("looking at", Path::new(STATE)))?;
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    if length > free {
        return Err(NodeError::NoSpace { needed: length, free });
    }
    let mut file = File::create(&path).map_err(NodeError::at("making", &path))?;
    client.copy_body(length, &mut file, &Progress::default())?;
    Ok(Received { entries: 1, bytes: length })
}

/// Bring a move to an end whose client or agent is gone: a container that `went` runs here, or did not go.
pub(super) fn recover(directory: &MoveDir, record: &MoveRecord, went: bool) {
    let is_here = engine::container(&record.container).is_ok_and(|container| container.runs());
    if went && !is_here {
        // Its gate closed when the agent died, in the moment in which it was opened.
        let again = engine::run(&["container", "rm", "--force", &record.container])
            .and_then(|_| engine::run(&restore_words(directory, true, true)));
        if let Err(error) = again {
            eprintln!("container {}: {error}", record.container);
            let _ = forget_arrival(&record.of);
        }
    }
    if !went {
        if !take_down_closed(&record.container) {
            eprintln!("container {}: a restore does not end; its gate stays closed", record.container);
        }
        let _ = engine::run(&["container", "rm", "--force", "--volumes", &record.container]);
    }
    directory.end();
}
