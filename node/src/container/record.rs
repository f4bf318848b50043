//! What a node has on disk of a container's move, so that an agent that died can be followed by one that knows what to do: a
//! directory per container that is on its way, and a file per move that has succeeded.

use super::{arrival, departure};
use crate::error::{NodeError, Result};
use crate::protocol::{Outcome, Peer};
use crate::trust::{hex, random};
use crate::unit::paths::STATE;
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// A move of a container, told apart from all others: 32 hexadecimal digits that its client has chosen at random.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MoveId(String);

impl MoveId {
    /// Another one.
    pub fn random() -> Result<MoveId> {
        random().map(|bytes| MoveId(hex(&bytes)))
    }
}

impl FromStr for MoveId {
    type Err = NodeError;

    fn from_str(text: &str) -> Result<MoveId> {
        let fine = text.len() == 32 && text.bytes().all(|digit| digit.is_ascii_hexdigit());
        let malformed = || NodeError::Malformed { what: format!("{text:?} is no move's id") };
        if fine { Ok(MoveId(text.to_owned())) } else { Err(malformed()) }
    }
}

impl<'de> Deserialize<'de> for MoveId {
    fn deserialize<D: Deserializer<'de>>(from: D) -> std::result::Result<MoveId, D::Error> {
        String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
    }
}

impl fmt::Display for MoveId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// How far a move is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Stage {
    /// The container leaves; it is this node's still.
    Leaving,
    /// The container leaves, and the peer decides.
    Held(Peer),
    /// The container comes.
    Coming,
}

/// What is recorded of a move.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct MoveRecord {
    /// Which.
    pub(super) of: MoveId,
    /// The container's id.
    pub(super) container: String,
    /// How far it is.
    pub(super) stage: Stage,
}

/// The directory of a container's move. One at a time.
#[derive(Clone, Debug)]
pub(super) struct MoveDir(PathBuf);

impl MoveDir {
    fn all() -> PathBuf {
        Path::new(STATE).join("moves")
    }

    fn of(container: &str) -> Result<MoveDir> {
        let fine = container.len() == 64 && container.bytes().all(|digit| digit.is_ascii_hexdigit());
        match fine {
            true => Ok(MoveDir(MoveDir::all().join(container))),
            false => Err(NodeError::Malformed { what: format!("{container:?} is no container's id") }),
        }
    }

    /// Begin a move.
    pub(super) fn begin(record: &MoveRecord) -> Result<MoveDir> {
        let directory = MoveDir::of(&record.container)?;
        fs::create_dir_all(MoveDir::all()).map_err(NodeError::at("making", &MoveDir::all()))?;
        match fs::create_dir(&directory.0) {
            Err(why) if why.kind() == ErrorKind::AlreadyExists => {
                return Err(NodeError::OnItsWay { container: record.container.clone() });
            }
            made => made.map_err(NodeError::at("making", &directory.0))?,
        }
        directory.save(record)?;
        Ok(directory)
    }

    /// How far it is.
    pub(super) fn load(&self) -> Option<MoveRecord> {
        serde_json::from_slice(&fs::read(self.file("move.json")).ok()?).ok()
    }

    /// Write down how far it is. It is on disk when this returns.
    pub(super) fn save(&self, record: &MoveRecord) -> Result<()> {
        let text = serde_json::to_vec(record).map_err(NodeError::at("writing", &self.0))?;
        write(&self.file("move.json"), &text)
    }

    /// A file of the move.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// It is over.
    pub(super) fn end(&self) {
        // What is left of it the next agent removes.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Replace a file by one that is on disk when this returns.
fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let next = path.with_extension("next");
    let written = File::create(&next).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&next, path)?;
        File::open(path.parent().unwrap_or(path))?.sync_all()
    });
    written.map_err(NodeError::at("writing", path))
}

fn outcome_file(of: &MoveId) -> PathBuf {
    Path::new(STATE).join("arrived").join(of.to_string())
}

/// Note, for whoever asks, that the container goes on here.
pub(super) fn note_arrival(of: &MoveId) -> Result<()> {
    let path = outcome_file(of);
    let directory = path.parent().unwrap_or(&path);
    fs::create_dir_all(directory).map_err(NodeError::at("making", directory))?;
    write(&path, b"")
}

/// Take that back: it could not.
pub(super) fn forget_arrival(of: &MoveId) -> Result<()> {
    let path = outcome_file(of);
    fs::remove_file(&path).map_err(NodeError::at("removing", &path))
}

fn records() -> Vec<(MoveDir, MoveRecord)> {
    let entries = fs::read_dir(MoveDir::all()).into_iter().flatten().flatten();
    let directories = entries.map(|entry| MoveDir(entry.path()));
    directories.filter_map(|directory| directory.load().map(|record| (directory, record))).collect()
}

/// What has become of a move to this node.
pub fn outcome(of: &MoveId) -> Outcome {
    let is_under_way =
        |(_, record): &(MoveDir, MoveRecord)| record.of == *of && record.stage == Stage::Coming;
    // In this order: a move is noted before its directory goes.
    match (records().iter().any(is_under_way), outcome_file(of).exists()) {
        (true, _) => Outcome::Undecided,
        (false, true) => Outcome::Went,
        (false, false) => Outcome::Refused,
    }
}

/// The directory of a move to this node that is under way.
pub(super) fn coming(of: &MoveId) -> Result<MoveDir> {
    let found = records().into_iter().find(|(_, record)| record.of == *of && record.stage == Stage::Coming);
    found.map(|(directory, _)| directory).ok_or_else(|| NodeError::NoMove { of: of.to_string() })
}

/// Let a container go on here that is held for a node which is dead.
pub fn resume(container: &str) -> Result<()> {
    let is_held = |(_, record): &(MoveDir, MoveRecord)| {
        record.container == container && matches!(record.stage, Stage::Held(_))
    };
    let held = records().into_iter().find(is_held);
    let (directory, record) = held.ok_or_else(|| NodeError::NotHeld { container: container.to_owned() })?;
    // Whoever asks the other node sees that, and does it.
    directory.save(&MoveRecord { stage: Stage::Leaving, ..record })
}

/// Bring to an end what an agent before this one has left unfinished.
pub fn recover() {
    // A directory without a record was just begun.
    for entry in fs::read_dir(MoveDir::all()).into_iter().flatten().flatten() {
        if !entry.path().join("move.json").exists() {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
    for (directory, record) in records() {
        let went = outcome_file(&record.of).exists();
        std::thread::spawn(move || match record.stage.clone() {
            Stage::Leaving => departure::stay(&directory, &record),
            Stage::Held(peer) => departure::ask(&directory, &record, &peer),
            Stage::Coming => arrival::recover(&directory, &record, went),
        });
    }
}
