//! The gate of a container that is restored: its processes are there, and none has run yet. `tranship-runc` connects to a socket
//! in [`gate`]'s place, if there is one, says in a line the number of the first process and how many microseconds recoding took, and waits until it
//! hears [`GO`]; if the socket closes before, the restore has failed. When the processes do go on it closes its end.

use crate::error::{NodeError, Result};
use std::fs;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Directory of gates on a node.
const GATES: &str = "/run/tranship/gates";
/// What is said when the processes may go on.
pub const GO: &[u8] = b"go";
/// How long they may take to do so.
const PATIENCE: Duration = Duration::from_secs(60);

/// Where the gate of the container `id` is.
pub fn gate(id: &str) -> PathBuf {
    Path::new(GATES).join(id)
}

/// A gate that nobody waits at yet.
pub(super) struct Gate {
    path: PathBuf,
    listener: UnixListener,
}

/// A gate with a container.
pub(super) struct Waiting {
    stream: BufReader<UnixStream>,
    /// Its first process.
    pub(super) pid: u32,
    /// What recoding it took, in microseconds.
    pub(super) recode_us: u64,
}

impl Gate {
    /// For the container `id`.
    pub(super) fn new(id: &str) -> Result<Gate> {
        let path = gate(id);
        fs::create_dir_all(GATES).map_err(NodeError::at("making", Path::new(GATES)))?;
        // What an agent that died has left.
        let _ = fs::remove_file(&path);
        let listener = UnixListener::bind(&path).map_err(NodeError::at("making", &path))?;
        listener.set_nonblocking(true).map_err(NodeError::at("setting up", &path))?;
        Ok(Gate { path, listener })
    }

    /// The container, if it is there.
    pub(super) fn arrived(&self) -> Result<Option<Waiting>> {
        match self.listener.accept() {
            Ok((stream, _)) => Waiting::of(stream).map(Some).map_err(NodeError::at("waiting at", &self.path)),
            Err(why) if why.kind() == ErrorKind::WouldBlock => Ok(None),
            Err(why) => Err(NodeError::at("waiting at", &self.path)(why)),
        }
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

impl Waiting {
    fn of(stream: UnixStream) -> io::Result<Waiting> {
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut stream = BufReader::new(stream);
        let mut line = String::new();
        stream.read_line(&mut line)?;
        let mut words = line.trim_end().split(' ').map(str::parse::<u64>);
        match (words.next(), words.next()) {
            (Some(Ok(pid)), Some(Ok(recode_us))) => Ok(Waiting { stream, pid: pid as u32, recode_us }),
            _ => Err(io::Error::other(format!("{line:?} does not say which process waits"))),
        }
    }

    /// Let it go on, and wait until it does. Whether it could is for its engine to say.
    pub(super) fn open(mut self) -> Result<()> {
        let failed = |why| NodeError::io("opening the gate of a container", why);
        self.stream.get_mut().write_all(GO).map_err(failed)?;
        self.stream.read_to_end(&mut Vec::new()).map(drop).map_err(failed)
    }
}
