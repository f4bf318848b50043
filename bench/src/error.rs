//! What can go wrong while measuring.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;

/// Why there is no measurement.
#[derive(Debug)]
pub(crate) enum Error {
    /// `--only` names no program.
    UnknownProgram { name: String },
    /// A file cannot be read or written.
    File { path: PathBuf, source: io::Error },
    /// A tool cannot be started.
    Start { command: String, source: io::Error },
    /// A tool ended with an error.
    Tool { command: String, stderr: String },
    /// A program ended with an error.
    Exit { status: ExitStatus, stderr: String },
    /// A program printed something else than it does natively.
    OtherOutput { engine: &'static str },
    /// A server did not answer.
    Unserved,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::UnknownProgram { name } => {
                let known: Vec<&str> = crate::program::PROGRAMS.iter().map(|program| program.name).collect();
                write!(f, "no program is called {name}; there are {}", known.join(", "))
            }
            Error::File { path, source } => write!(f, "{}: {source}", path.display()),
            Error::Start { command, source } => {
                write!(f, "{command}: {source}; `make setup build` provides it")
            }
            Error::Tool { command, stderr } => write!(f, "`{command}` failed: {}", stderr.trim()),
            Error::Exit { status, stderr } => write!(f, "{status} {}", stderr.trim()),
            Error::Unserved => write!(f, "the server does not answer"),
            Error::OtherOutput { engine } => write!(f, "prints something else under {engine} than natively"),
        }
    }
}

impl std::error::Error for Error {}
