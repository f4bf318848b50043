//! Why the runtime, or what it adds to CRIU, cannot do what it was asked for.

use std::fmt;
use std::path::Path;
use tranship_node::{Isa, NodeError};
use tranship_recode::RecodeError;

/// What went wrong.
#[derive(Debug)]
pub(crate) enum OciError {
    /// A file operation or system call failed.
    Io {
        /// What was done, to what.
        doing: String,
        /// What the system said.
        why: String,
    },
    /// A program that is needed is nowhere in the search path.
    NoProgram {
        /// Its name.
        name: String,
        /// How to get it.
        remedy: &'static str,
    },
    /// Programs of that machine cannot be translated.
    NoGuest {
        /// Their machine.
        home: Isa,
        /// This machine.
        here: Isa,
    },
    /// The container's seccomp profile cannot be taken to another machine.
    Seccomp(String),
    /// The container is not to go on here after all.
    TurnedAway,
    /// CRIU or its client said something that makes no sense.
    Protocol(String),
    /// The container's processes cannot be brought to a stop, or be looked at.
    Node(NodeError),
    /// The checkpoint cannot be recoded.
    Recode(RecodeError),
}

/// Result of what can fail here.
pub(crate) type Result<T> = std::result::Result<T, OciError>;

impl OciError {
    pub(crate) fn io(doing: impl Into<String>, why: impl fmt::Display) -> OciError {
        OciError::Io { doing: doing.into(), why: why.to_string() }
    }

    /// For `map_err`: what was done to which file.
    pub(crate) fn at<E: fmt::Display>(doing: &str, path: &Path) -> impl FnOnce(E) -> OciError {
        let doing = format!("{doing} {}", path.display());
        move |why| OciError::io(doing, why)
    }
}

impl fmt::Display for OciError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OciError::Io { doing, why } => write!(f, "{doing}: {why}"),
            OciError::NoProgram { name, remedy } => write!(f, "there is no {name} in PATH; {remedy}"),
            OciError::NoGuest { home, here } => write!(
                f,
                "this machine is {here}, the container's program is for {home}; only programs for x86_64 can run abroad so far: \
                 use a node or an image of the same machine"
            ),
            OciError::TurnedAway => write!(f, "the container's move to this machine was given up"),
            OciError::Seccomp(what) => {
                write!(f, "the container's seccomp profile: {what}; use another one, or none")
            }
            OciError::Protocol(what) => write!(f, "unexpected message between CRIU and its client: {what}"),
            OciError::Node(why) => why.fmt(f),
            OciError::Recode(why) => why.fmt(f),
        }
    }
}

impl std::error::Error for OciError {}

impl From<NodeError> for OciError {
    fn from(why: NodeError) -> OciError {
        OciError::Node(why)
    }
}

impl From<RecodeError> for OciError {
    fn from(why: RecodeError) -> OciError {
        OciError::Recode(why)
    }
}
