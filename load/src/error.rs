//! Why there is no load, no record or no picture.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// What went wrong.
#[derive(Debug)]
pub enum LoadError {
    /// The server cannot be reached, or a connection broke.
    Connection(io::Error),
    /// The server closed a connection.
    Closed,
    /// The server answers something that makes no sense here.
    Answer(String),
    /// A file cannot be read or written.
    File {
        /// Which one.
        path: PathBuf,
        /// What the system said.
        why: io::Error,
    },
    /// A line of a record is none.
    Record {
        /// Its number.
        line: usize,
        /// What is wrong with it.
        why: serde_json::Error,
    },
    /// There is nothing in a record that could be drawn.
    Empty,
    /// The font of pictures cannot be used.
    Font(PathBuf),
    /// A picture cannot be drawn.
    Picture(String),
}

/// Result of everything here.
pub type Result<T> = std::result::Result<T, LoadError>;

impl LoadError {
    pub(crate) fn at(path: &Path) -> impl Fn(io::Error) -> LoadError {
        move |why| LoadError::File { path: path.to_owned(), why }
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::Connection(why) => write!(f, "a connection broke: {why}"),
            LoadError::Closed => write!(f, "the server closed a connection"),
            LoadError::Answer(answer) => write!(f, "the server answers {answer:?}"),
            LoadError::File { path, why } => write!(f, "{}: {why}", path.display()),
            LoadError::Record { line, why } => write!(f, "line {line} of the record: {why}"),
            LoadError::Empty => write!(f, "the record has no two points in time"),
            LoadError::Font(path) => {
                write!(
                    f,
                    "{} is no font; run `make setup` or `apt-get install fonts-dejavu-core`",
                    path.display()
                )
            }
            LoadError::Picture(why) => write!(f, "drawing: {why}"),
        }
    }
}

impl std::error::Error for LoadError {}

impl From<io::Error> for LoadError {
    fn from(why: io::Error) -> LoadError {
        LoadError::Connection(why)
    }
}
