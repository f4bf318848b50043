//! Why the lab could not be built, started or stopped.

use std::fmt;
use std::path::{Path, PathBuf};
use tranship_node::NodeError;

/// What went wrong.
#[derive(Debug)]
pub enum LabError {
    /// A file operation failed.
    Io {
        /// What was done, to what.
        doing: String,
        /// What the system said.
        why: String,
    },
    /// A program that the lab needs is not installed.
    NoTool {
        /// Its name.
        tool: &'static str,
        /// Debian package that has it.
        package: &'static str,
    },
    /// A step of building failed.
    Build {
        /// The step.
        step: String,
        /// Its log.
        log: PathBuf,
    },
    /// apt has no source for this machine's own release.
    NoMirror,
    /// Our own programs for nodes are not there.
    NoCompanions {
        /// Where they were looked for.
        tried: Vec<PathBuf>,
    },
    /// A kind of node that the lab does not have.
    UnknownNode {
        /// As asked for.
        name: String,
    },
    /// A node did not come up.
    NotReady {
        /// The node.
        name: String,
        /// What was seen of it last.
        why: String,
        /// Its console or log.
        log: PathBuf,
    },
    /// The lab is not up, or has no such node.
    NotUp {
        /// The node.
        name: String,
    },
    /// Another `lab` command is at work.
    Busy,
    /// An agent said no.
    Node(NodeError),
}

/// Result of everything here.
pub type Result<T> = std::result::Result<T, LabError>;

impl LabError {
    pub(crate) fn at<E: fmt::Display>(doing: &str, path: &Path) -> impl FnOnce(E) -> LabError {
        let doing = format!("{doing} {}", path.display());
        move |why| LabError::Io { doing, why: why.to_string() }
    }
}

impl fmt::Display for LabError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LabError::Io { doing, why } => write!(f, "{doing}: {why}"),
            LabError::NoTool { tool, package } => {
                write!(f, "{tool} is not installed; run `make setup` or `apt-get install {package}`")
            }
            LabError::Build { step, log } => write!(f, "{step} failed; see {}", log.display()),
            LabError::NoMirror => write!(
                f,
                "apt has no source for this machine's own Debian release, from which the mirror is taken; see \
                 /etc/apt/sources.list.d"
            ),
            LabError::NoCompanions { tried } => {
                let tried: Vec<_> = tried.iter().map(|path| path.display().to_string()).collect();
                write!(
                    f,
                    "the node programs are not in {}; run `make build`, or say in TRANSHIP_LIB where they are",
                    tried.join(" or ")
                )
            }
            LabError::UnknownNode { name } => {
                write!(f, "no kind of node is called {name:?}; there are x86, x86b, arm64 and x86vm")
            }
            LabError::NotReady { name, why, log } => {
                write!(f, "node {name} did not come up ({why}); its console log is {}", log.display())
            }
            LabError::NotUp { name } => {
                write!(f, "node {name} is not up; start it with `tranship lab up --nodes {name}`")
            }
            LabError::Busy => write!(f, "another `tranship lab` command is at work; wait for it"),
            LabError::Node(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for LabError {}

impl From<NodeError> for LabError {
    fn from(error: NodeError) -> LabError {
        LabError::Node(error)
    }
}
