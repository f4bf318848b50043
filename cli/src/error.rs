//! Why a command failed.

use std::fmt;
use std::path::PathBuf;
use tranship_lab::LabError;
use tranship_node::{NodeError, UnitId};

/// What went wrong.
#[derive(Debug)]
pub(crate) enum CliError {
    /// Something about the lab.
    Lab(LabError),
    /// Something about a node or a unit.
    Node(NodeError),
    /// A file operation failed.
    Io {
        /// What was done, to what.
        doing: String,
        /// What the system said.
        why: String,
    },
    /// No node has the unit.
    NoUnit {
        /// As asked for.
        unit: UnitId,
        /// Nodes that were asked.
        nodes: Vec<String>,
    },
    /// No node has a unit or container of this name.
    NoSuchThing {
        /// As asked for.
        name: String,
        /// Nodes that were asked.
        nodes: Vec<String>,
    },
    /// No command has begun a move of it whose end is not known.
    NoMove {
        /// The container, as asked for.
        name: String,
    },
    /// No node of that name.
    NoNode {
        /// As asked for.
        name: String,
    },
    /// A name that nodes of the lab have.
    LabName {
        /// As asked for.
        name: String,
    },
    /// Two nodes that do not believe each other: one of the lab, and one that has joined.
    Strangers {
        /// The one.
        from: String,
        /// The other.
        to: String,
    },
    /// No such program on this machine.
    NoProgram {
        /// As asked for.
        program: String,
    },
    /// An ELF file cannot be translated, or an object not be made.
    Translate {
        /// The file.
        file: PathBuf,
        /// Why.
        why: String,
    },
    /// An image set cannot be recoded.
    Recode(String),
}

/// Result of every command.
pub(crate) type Result<T> = std::result::Result<T, CliError>;

impl CliError {
    pub(crate) fn io(doing: impl Into<String>, why: impl fmt::Display) -> CliError {
        CliError::Io { doing: doing.into(), why: why.to_string() }
    }

    /// A short name for programs that read our output.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            CliError::Lab(_) => "lab",
            CliError::Node(_) => "node",
            CliError::Io { .. } => "io",
            CliError::NoUnit { .. } => "no-unit",
            CliError::NoSuchThing { .. } => "no-unit",
            CliError::NoMove { .. } => "no-move",
            CliError::NoNode { .. } => "no-node",
            CliError::LabName { .. } => "lab-name",
            CliError::Strangers { .. } => "strangers",
            CliError::NoProgram { .. } => "no-program",
            CliError::Translate { .. } => "translate",
            CliError::Recode(_) => "recode",
        }
    }
}

impl fmt::Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CliError::Lab(error) => error.fmt(f),
            CliError::Node(error) => error.fmt(f),
            CliError::Io { doing, why } => write!(f, "{doing}: {why}"),
            CliError::NoUnit { unit, nodes } if nodes.is_empty() => {
                write!(
                    f,
                    "no unit {unit}: no node is up; start some with `tranship lab up`, or have some join with `tranship node add`"
                )
            }
            CliError::NoUnit { unit, nodes } => {
                write!(f, "no unit {unit} on {}; `tranship ps` lists what there is", nodes.join(", "))
            }
            CliError::NoMove { name } => {
                write!(f, "no move of {name} was interrupted here; `tranship ps` says where it runs")
            }
            CliError::NoSuchThing { name, nodes } if nodes.is_empty() => {
                write!(f, "no unit or container {name}: no node is up; start some with `tranship lab up`")
            }
            CliError::NoSuchThing { name, nodes } => {
                let nodes = nodes.join(", ");
                write!(f, "no unit or container {name} on {nodes}; `tranship ps` lists what there is")
            }
            CliError::NoNode { name } => write!(
                f,
                "no node {name}: `tranship node ls` lists those that have joined, `tranship lab status` those on this machine"
            ),
            CliError::LabName { name } => {
                write!(f, "{name} is the name of a node of the lab; choose another one")
            }
            CliError::Strangers { from, to } => write!(
                f,
                "{from} and {to} do not believe each other: nodes of the lab have an authority of their own"
            ),
            CliError::NoProgram { program } => {
                write!(
                    f,
                    "no program {program} on this machine; give its path, or a root that has it with --root"
                )
            }
            CliError::Translate { file, why } => write!(f, "{}: {why}", file.display()),
            CliError::Recode(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for CliError {}

impl From<LabError> for CliError {
    fn from(error: LabError) -> CliError {
        CliError::Lab(error)
    }
}

impl From<NodeError> for CliError {
    fn from(error: NodeError) -> CliError {
        CliError::Node(error)
    }
}
