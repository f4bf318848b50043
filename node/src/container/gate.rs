//! The gate of a container that is restored: its processes are there, and none has run yet. `tranship-runc` connects to a socket
//! in [`gate`]'s place, if there is one, says in a line the number of the first process and how many microseconds recoding took, and waits until it
//! hears [`GO`]; if the socket closes before, the restore has failed. When the processes do go on it closes its end. A gate that is
//! given up stays in its place, closed, as long as a runtime may still come to it: without one it would let the processes run.

use crate::error::{NodeError, Result};
use crate::unit::proc;
use std::fs;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// Directory of gates on a node.
const GATES: &str = "/run/tranship/gates";
/// What is said when the processes may go on.
pub const GO: &[u8] = b"go";
/// How long they may take to do so, and a runtime to find its gate closed.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often it is looked whether it has.
const LOOK: Duration = Duration::from_millis(20);

/// Where the gate of the container `id` is.
pub fn gate(id: &str) -> PathBuf {
    Path::new(GATES).join(id)
}

/// A gate that nobody waits at yet. Dropped, it is closed.
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

    /// The one runtime that it was for has come.
    pub(super) fn take_down(self) -> Result<()> {
        fs::remove_file(&self.path).map_err(NodeError::at("removing", &self.path))
    }
}

/// Take the closed gate of the container `id` down, if there is one, when nothing can come to it any more: an engine that is killed
/// leaves its runtime at work, or about to begin. False if there still is something, which then finds it closed.
pub(super) fn take_down_closed(id: &str) -> bool {
    let path = gate(id);
    let deadline = Instant::now() + PATIENCE;
    while path.exists() {
        if !is_worked_on(id) {
            let _ = fs::remove_file(&path);
        } else if Instant::now() > deadline {
            return false;
        } else {
            thread::sleep(LOOK);
        }
    }
    true
}

/// Whether a runtime, or the monitor that starts it, works on the container: both are told its name.
fn is_worked_on(id: &str) -> bool {
    let names = |pid: u32| proc::command_line(pid).iter().any(|word| word == id);
    proc::all().is_ok_and(|pids| pids.into_iter().any(|pid| names(pid) && proc::is_alive(pid)))
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
