//! What can go wrong while suites run.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use tranship_translate::cache::CacheError;
use tranship_translate::elf::ElfError;

/// Why there is no comparison.
#[derive(Debug)]
pub(crate) enum Error {
    /// `--only` names no suite.
    UnknownSuite { name: String },
    /// A file cannot be read or written.
    File { path: PathBuf, source: io::Error },
    /// A suite's programs cannot be made.
    Prepare { suite: &'static str, log: PathBuf },
    /// A program cannot be read as a guest.
    Guest { program: PathBuf, why: ElfError },
    /// A program cannot be translated.
    Translate { program: PathBuf, why: CacheError },
    /// A suite says nothing.
    NoCases { suite: &'static str, log: PathBuf },
    /// The file of expectations is not in its form.
    Expectation { path: PathBuf, line: usize },
}

impl Error {
    /// What happened to `path`.
    pub(crate) fn file(path: &Path) -> impl FnOnce(io::Error) -> Error {
        let path = path.to_owned();
        move |source| Error::File { path, source }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::UnknownSuite { name } => {
                let known: Vec<&str> = crate::suite::SUITES.iter().map(|suite| suite.name).collect();
                write!(f, "no suite is called {name}; there are {}", known.join(", "))
            }
            Error::File { path, source } => write!(f, "{}: {source}", path.display()),
            Error::Prepare { suite, log } => write!(f, "{suite} cannot be made, see {}", log.display()),
            Error::Guest { program, why } => write!(f, "{}: {why}", program.display()),
            Error::Translate { program, why } => write!(f, "translating {}: {why}", program.display()),
            Error::NoCases { suite, log } => write!(f, "{suite} names no case, see {}", log.display()),
            Error::Expectation { path, line } => {
                write!(f, "{}:{line}: a case is `  SUITE CASE`, below its reason", path.display())
            }
        }
    }
}

impl std::error::Error for Error {}
