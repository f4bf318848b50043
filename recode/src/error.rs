//! Everything that can go wrong, each naming the file, process or address it is about.

use std::fmt;
use std::path::{Path, PathBuf};

/// Why an image set could not be read, recoded or written.
#[derive(Debug)]
pub enum RecodeError {
    /// A file operation failed.
    Io {
        /// What was done, as in "reading".
        doing: &'static str,
        /// To which file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// An image ends in mid-entry or has bytes that are no message of its type.
    Damaged {
        /// Image file.
        file: String,
        /// Offset of the entry at which reading stopped, in bytes.
        offset: u64,
        /// What is wrong there.
        what: String,
    },
    /// A file that is no image type of CRIU 4.2.
    UnknownImage {
        /// Its name.
        file: String,
    },
    /// An image that does not start as its name promises.
    WrongMagic {
        /// Image file.
        file: String,
        /// What it starts with.
        found: u32,
        /// What it should start with.
        expected: u32,
    },
    /// A message that has to be understood has a field that CRIU 4.2 does not have.
    UnknownField {
        /// Image file.
        file: String,
        /// Field number in the message, or in a message inside it.
        field: u32,
        /// Offset of the entry, in bytes.
        offset: u64,
    },
    /// An image file that every such set has is not there.
    Missing {
        /// Its name.
        file: String,
    },
    /// The image set holds something that cannot cross.
    Refused {
        /// Image file or process that has it.
        what: String,
        /// What it has, and the way out where there is one.
        why: String,
    },
    /// A thread was dumped where its machine's kernel alone can go on with it. A moment later it is elsewhere.
    Passing {
        /// Image file or process that has it.
        what: String,
        /// Where the thread is.
        why: String,
    },
    /// The set is of another machine than asked for.
    WrongMachine {
        /// Image file that says so.
        file: String,
        /// Machine it is of.
        found: String,
        /// Machine it should be of.
        expected: String,
    },
    /// A process in a host checkpoint has no readable state area.
    State {
        /// Process id.
        pid: u32,
        /// What is wrong with it.
        what: String,
    },
    /// A thread was dumped while its durable state was not exact.
    NotParked {
        /// Process id.
        pid: u32,
        /// Thread id.
        tid: u32,
        /// Its phase, see [`tranship_abi::block::phase`].
        phase: u32,
    },
    /// The address space has no free range for the hole.
    NoRoom {
        /// Process id.
        pid: u32,
        /// Bytes needed.
        bytes: u64,
    },
    /// The runtime or an object is not an ELF file that can be mapped.
    Elf {
        /// Its path on the node.
        path: String,
        /// What is wrong with it.
        what: String,
    },
}

impl RecodeError {
    pub(crate) fn io(doing: &'static str, path: &Path, source: std::io::Error) -> Self {
        RecodeError::Io { doing, path: path.to_owned(), source }
    }

    pub(crate) fn damaged(file: &str, offset: u64, what: impl Into<String>) -> Self {
        RecodeError::Damaged { file: file.to_owned(), offset, what: what.into() }
    }

    pub(crate) fn refused(what: impl Into<String>, why: impl Into<String>) -> Self {
        RecodeError::Refused { what: what.into(), why: why.into() }
    }

    pub(crate) fn passing(what: impl Into<String>, why: impl Into<String>) -> Self {
        RecodeError::Passing { what: what.into(), why: why.into() }
    }

    pub(crate) fn state(pid: u32, what: impl Into<String>) -> Self {
        RecodeError::State { pid, what: what.into() }
    }
}

impl fmt::Display for RecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecodeError::Io { doing, path, source } => write!(f, "{doing} {}: {source}", path.display()),
            RecodeError::Damaged { file, offset, what } => {
                write!(f, "{file} is damaged at offset {offset}: {what}; dump again")
            }
            RecodeError::UnknownImage { file } => {
                write!(f, "{file} is no image file of CRIU 4.2; remove it, or teach the catalogue about it")
            }
            RecodeError::WrongMagic { file, found, expected } => {
                write!(f, "{file} starts with {found:#010x}, not with its type's magic {expected:#010x}")
            }
            RecodeError::UnknownField { file, field, offset } => write!(
                f,
                "{file}: the entry at offset {offset} has field {field}, which CRIU 4.2 does not know; dump with CRIU 4.2"
            ),
            RecodeError::Missing { file } => write!(f, "{file} is missing from the image set"),
            RecodeError::Refused { what, why } => write!(f, "{what}: {why}"),
            RecodeError::Passing { what, why } => write!(f, "{what}: {why}; dump again"),
            RecodeError::WrongMachine { file, found, expected } => {
                write!(f, "{file} is of a {found} process, expected {expected}")
            }
            RecodeError::State { pid, what } => write!(f, "process {pid}: state area: {what}"),
            RecodeError::NotParked { pid, tid, phase } => {
                write!(
                    f,
                    "process {pid}: thread {tid} was not parked (phase {phase}); quiesce before the dump"
                )
            }
            RecodeError::NoRoom { pid, bytes } => {
                write!(f, "process {pid}: no free range of {bytes} bytes for the runtime")
            }
            RecodeError::Elf { path, what } => write!(f, "{path}: {what}"),
        }
    }
}

impl std::error::Error for RecodeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            RecodeError::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// Result of everything here.
pub type Result<T> = std::result::Result<T, RecodeError>;
