//! What is known of a unit: its specification, its state, and how it ended. Kept as `unit.json` in the unit's
//! directory, replaced atomically by its supervisor, read by the agent.

use crate::error::{NodeError, Result};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;
use tranship_abi::host::Host;

/// A machine, as people and files write it: `x86_64`, `aarch64`, `riscv64`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Isa(pub Host);

impl Isa {
    /// This machine, by uname(2).
    pub fn here() -> Result<Isa> {
        rustix::system::uname().machine().to_string_lossy().parse()
    }

    /// Of an ELF file with these first bytes; `None` if they are no 64-bit little-endian ELF header of a machine
    /// we know.
    pub fn of_elf(head: &[u8]) -> Option<Isa> {
        let machine = u16::from_le_bytes([*head.get(18)?, *head.get(19)?]);
        let class_and_order = head.starts_with(b"\x7fELF\x02\x01");
        class_and_order.then(|| Host::from_machine_id(machine.into()).map(Isa)).flatten()
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name())
    }
}

impl FromStr for Isa {
    type Err = NodeError;

    fn from_str(name: &str) -> Result<Isa> {
        let known = Host::from_name(name).map(Isa);
        known.ok_or_else(|| NodeError::Malformed { what: format!("{name:?} is no machine that we know") })
    }
}

impl Serialize for Isa {
    fn serialize<S: Serializer>(&self, to: S) -> std::result::Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Isa {
    fn deserialize<D: Deserializer<'de>>(from: D) -> std::result::Result<Isa, D::Error> {
        String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
    }
}

/// A unit's id: also the name of its directory, so only letters, digits, `-`, `_` and, not first, `.`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub struct UnitId(String);

impl UnitId {
    /// Longest id in bytes.
    pub const MAX: usize = 64;

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for UnitId {
    type Err = NodeError;

    fn from_str(text: &str) -> Result<UnitId> {
        let fine = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if text.is_empty() || text.len() > UnitId::MAX || text.starts_with('.') || !text.chars().all(fine) {
            let what = format!(
                "{text:?} is no unit id (letters, digits, '-', '_', '.'; at most {} of them)",
                UnitId::MAX
            );
            return Err(NodeError::Malformed { what });
        }
        Ok(UnitId(text.to_owned()))
    }
}

impl<'de> Deserialize<'de> for UnitId {
    fn deserialize<D: Deserializer<'de>>(from: D) -> std::result::Result<UnitId, D::Error> {
        String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
    }
}

impl fmt::Display for UnitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a unit is: fixed when it is made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnitSpec {
    /// Its id.
    pub id: UnitId,
    /// Program, looked up in the root by its `PATH`.
    pub program: String,
    /// Arguments, without the program.
    pub args: Vec<String>,
    /// Environment, `NAME=value`.
    pub env: Vec<String>,
    /// Working directory in the root.
    pub directory: String,
}

/// How a unit runs on its present node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Unmodified, on its home machine.
    Native,
    /// Translated.
    Translated,
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExitStatus {
    /// It exited with this code.
    Code(i32),
    /// This signal killed it.
    Signal(i32),
}

impl ExitStatus {
    /// As a shell has it in `$?`.
    pub fn shell_code(self) -> i32 {
        match self {
            ExitStatus::Code(code) => code,
            ExitStatus::Signal(signal) => 128 + signal,
        }
    }
}

impl fmt::Display for ExitStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExitStatus::Code(code) => write!(f, "exited {code}"),
            ExitStatus::Signal(signal) => write!(f, "killed by signal {signal}"),
        }
    }
}

/// What a unit is doing on a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum UnitState {
    /// Made, but not started: its root may still be filled.
    Created,
    /// Running.
    Running {
        /// Its first process, as the node counts.
        pid: u32,
        /// How.
        mode: Mode,
    },
    /// Stopped for a migration; its supervisor lets it go on if that fails.
    Frozen {
        /// Its first process, as the node counts.
        pid: u32,
        /// How it ran.
        mode: Mode,
    },
    /// Stopped, and the new node was told to go on but has not confirmed it.
    Held {
        /// Its first process, as the node counts.
        pid: u32,
        /// How it ran.
        mode: Mode,
    },
    /// On its way in from another node.
    Incoming,
    /// It ended here.
    Exited {
        /// How.
        status: ExitStatus,
    },
    /// It went to another node, which has it now.
    Moved {
        /// That node's name.
        to: String,
    },
    /// Its supervisor died.
    Lost,
}

impl fmt::Display for UnitState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UnitState::Created => f.write_str("created"),
            UnitState::Running { mode: Mode::Native, .. } => f.write_str("running"),
            UnitState::Running { mode: Mode::Translated, .. } => f.write_str("running translated"),
            UnitState::Frozen { .. } => f.write_str("frozen"),
            UnitState::Held { .. } => f.write_str("held"),
            UnitState::Incoming => f.write_str("incoming"),
            UnitState::Exited { status } => status.fmt(f),
            UnitState::Moved { to } => write!(f, "moved to {to}"),
            UnitState::Lost => f.write_str("lost"),
        }
    }
}

impl UnitState {
    /// Whether the unit has a process on this node.
    pub fn pid(&self) -> Option<u32> {
        match self {
            UnitState::Running { pid, .. } | UnitState::Frozen { pid, .. } | UnitState::Held { pid, .. } => {
                Some(*pid)
            }
            _ => None,
        }
    }

    /// Whether the unit will do nothing more on this node.
    pub fn is_final(&self) -> bool {
        matches!(self, UnitState::Exited { .. } | UnitState::Moved { .. } | UnitState::Lost)
    }
}

/// All that a node knows of a unit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnitRecord {
    /// What it is.
    pub spec: UnitSpec,
    /// Its home.
    pub home: Isa,
    /// What it is doing.
    #[serde(flatten)]
    pub state: UnitState,
    /// Standard output and error as the checkpoint names them, `pipe:[inode]`.
    pub pipes: [String; 2],
    /// Crossings so far.
    pub crossings: u32,
}
