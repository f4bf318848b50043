//! Where things lie: a node's state directory and, in it, one directory per unit. The same on every node, because
//! checkpoints name these paths.

use crate::error::{NodeError, Result};
use crate::protocol::Output;
use crate::record::{Isa, UnitId, UnitRecord};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

/// A node's state directory.
pub const STATE: &str = "/var/lib/tranship";
/// Where a node has the programs and runtime blobs that come with us.
pub const INSTALLED: &str = "/opt/tranship";

/// Directory of all units.
pub fn units() -> PathBuf {
    Path::new(STATE).join("units")
}

/// Directory of the object store.
pub fn objects() -> PathBuf {
    Path::new(STATE).join("objects")
}

/// This program, on a node of machine `isa`.
pub fn program(isa: Isa) -> PathBuf {
    Path::new(INSTALLED).join(format!("node-{isa}"))
}

/// The runtime for translated units on machine `isa`.
pub fn runtime(isa: Isa) -> PathBuf {
    Path::new(INSTALLED).join(format!("runtime-{isa}"))
}

/// The directory of one unit.
#[derive(Clone, Debug)]
pub struct UnitDir(PathBuf);

impl UnitDir {
    /// Of the unit `id`, whether or not it exists.
    pub fn of(id: &UnitId) -> UnitDir {
        UnitDir(units().join(id.as_str()))
    }

    /// The directory itself.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The unit's root directory.
    pub fn root(&self) -> PathBuf {
        self.0.join("root")
    }

    /// The socket at which its supervisor listens.
    pub fn control(&self) -> PathBuf {
        self.0.join("control.sock")
    }

    /// The socket at which CRIU's hook asks whether to go on.
    pub fn gate(&self) -> PathBuf {
        self.0.join("gate.sock")
    }

    /// Where CRIU writes which process it restored.
    pub fn restored_pid(&self) -> PathBuf {
        self.0.join("restored.pid")
    }

    /// Locked by its supervisor as long as that lives.
    pub fn lock(&self) -> PathBuf {
        self.0.join("lock")
    }

    /// What the supervisor has to complain about.
    pub fn supervisor_log(&self) -> PathBuf {
        self.0.join("supervisor.log")
    }

    /// Log of an output stream.
    pub fn output(&self, output: Output) -> PathBuf {
        self.0.join(output.log())
    }

    /// An image set: `dump`, `canonical`, `received` or `host`.
    pub fn images(&self, set: &str) -> PathBuf {
        self.0.join("images").join(set)
    }

    /// Remove all image sets.
    pub fn clear_images(&self) -> Result<()> {
        let images = self.0.join("images");
        match fs::remove_dir_all(&images) {
            Err(why) if why.kind() != std::io::ErrorKind::NotFound => {
                Err(NodeError::at("removing", &images)(why))
            }
            _ => Ok(()),
        }
    }

    /// Make an empty directory for an image set.
    pub fn fresh_images(&self, set: &str) -> Result<PathBuf> {
        let path = self.images(set);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).map_err(NodeError::at("making", &path))?;
        Ok(path)
    }

    /// Remove it with everything in it.
    pub fn remove(&self) -> Result<()> {
        fs::remove_dir_all(&self.0).map_err(NodeError::at("removing", &self.0))
    }

    /// Read the unit's record.
    pub fn load(&self) -> Result<UnitRecord> {
        let path = self.0.join("unit.json");
        let text = fs::read(&path).map_err(NodeError::at("reading", &path))?;
        serde_json::from_slice(&text).map_err(NodeError::at("reading", &path))
    }

    /// Names of the pipes in a checkpoint that arrived, which its supervisor reads before it restores.
    pub fn save_pipes(&self, pipes: &[String; 2]) -> Result<()> {
        let path = self.0.join("pipes.json");
        let text = serde_json::to_vec(pipes).map_err(NodeError::at("writing", &path))?;
        fs::write(&path, text).map_err(NodeError::at("writing", &path))
    }

    /// What [`UnitDir::save_pipes`] saved.
    pub fn load_pipes(&self) -> Result<[String; 2]> {
        let path = self.0.join("pipes.json");
        let text = fs::read(&path).map_err(NodeError::at("reading", &path))?;
        serde_json::from_slice(&text).map_err(NodeError::at("reading", &path))
    }

    /// Replace the unit's record.
    pub fn save(&self, record: &UnitRecord) -> Result<()> {
        let path = self.0.join("unit.json");
        let next = self.0.join("unit.json.next");
        let text = serde_json::to_vec_pretty(record).map_err(NodeError::at("writing", &path))?;
        let write = || {
            let mut file = fs::File::create(&next)?;
            file.write_all(&text)?;
            fs::rename(&next, &path)
        };
        write().map_err(NodeError::at("writing", &path))
    }
}
