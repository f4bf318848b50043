//! What runs: `lab.json` in the lab's state directory.

use crate::error::{LabError, Result};
use crate::process::Recorded;
use crate::vm::Machine;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use tranship_node::trust::Authority;

/// A node's log or console, in its directory.
pub(crate) const CONSOLE: &str = "console.log";

/// Kinds of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// This kernel, with a root of its own.
    Local,
    /// A virtual machine.
    Vm,
}

impl Kind {
    /// Of the node called `name`.
    pub(crate) fn of(name: &str) -> Result<Kind> {
        match name {
            "x86" | "x86b" => Ok(Kind::Local),
            _ if Machine::of(name).is_some() => Ok(Kind::Vm),
            _ => Err(LabError::UnknownNode { name: name.to_owned() }),
        }
    }
}

/// A node that was started.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NodeEntry {
    /// What it is.
    pub kind: Kind,
    /// Port on this machine's loopback at which its agent answers.
    pub port: u16,
    /// The process that is the node.
    pub process: Recorded,
}

/// All nodes that were started.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LabFile {
    /// Whom nodes and clients of this lab believe.
    authority: Authority,
    /// By name.
    pub nodes: BTreeMap<String, NodeEntry>,
    /// The local network that they are on.
    pub switch: Option<Recorded>,
    /// The registry on it.
    pub registry: Option<Recorded>,
}

impl LabFile {
    /// A lab without nodes and with an authority of its own.
    pub(crate) fn new() -> Result<LabFile> {
        Ok(LabFile { authority: Authority::new()?, nodes: BTreeMap::new(), switch: None, registry: None })
    }

    /// Whom its nodes and clients believe.
    pub(crate) fn authority(&self) -> &Authority {
        &self.authority
    }

    /// The lab in `state`, if there is one.
    pub(crate) fn load(state: &Path) -> Result<Option<LabFile>> {
        let path = state.join("lab.json");
        match fs::read(&path) {
            Ok(text) => serde_json::from_slice(&text).map(Some).map_err(LabError::at("reading", &path)),
            Err(why) if why.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(why) => Err(LabError::at("reading", &path)(why)),
        }
    }

    /// Replace it.
    pub(crate) fn save(&self, state: &Path) -> Result<()> {
        let path = state.join("lab.json");
        let next = state.join("lab.json.next");
        let write = || {
            fs::write(&next, serde_json::to_vec_pretty(self)?)?;
            // It has the authority's key.
            fs::set_permissions(&next, fs::Permissions::from_mode(0o600))?;
            fs::rename(&next, &path)
        };
        write().map_err(LabError::at("writing", &path))
    }
}

/// Held while the lab, or what is built for all labs, is changed.
pub(crate) struct Lock(#[allow(dead_code)] File);

impl Lock {
    /// The lab in `state`, unless another command has it.
    pub(crate) fn take(state: &Path) -> Result<Lock> {
        let path = state.join("lock");
        let file = File::create(&path).map_err(LabError::at("making", &path))?;
        flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|_| LabError::Busy)?;
        Ok(Lock(file))
    }

    /// The file `path`, when nobody else has it.
    pub(crate) fn wait_for(path: &Path) -> Result<Lock> {
        let file = File::create(path).map_err(LabError::at("making", path))?;
        flock(&file, FlockOperation::LockExclusive).map_err(LabError::at("locking", path))?;
        Ok(Lock(file))
    }
}
