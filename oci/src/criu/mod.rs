//! CRIU, as OCI runtimes call it: `criu swrk FD`, and requests over that descriptor, a socket. This program is between
//! the runtime and the real CRIU. It passes every message on and does its own part at two of them: when a
//! dump is asked for or done, and when a restore is asked for. So the runtime, the engine above it and CRIU do what they always
//! do, and a dump that cannot be recoded has failed before CRIU lets go of the processes: they run on.
//!
//! For a restore the process that the runtime started becomes the real CRIU, whose siblings the restored processes are, and a
//! second one, a child of nobody here, relays the messages. For a dump it relays itself, and the real CRIU is its child: it
//! may take more than one to dump. For all else it becomes the real CRIU.

mod container;
mod control_groups;
mod gate;
mod guard;
mod pause;
mod relay;
mod rpc;
mod socket;

use crate::delegate::{CRIU, REAL_CRIU};
use crate::error::{OciError, Result};
use crate::foreign::{self, keep_open, open_as};
use rpc::Type;
use socket::Socket;
use std::ffi::OsString;
use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitCode};
use tranship_node::Isa;

/// Be CRIU, with this command line.
pub(crate) fn run(words: &[OsString]) -> Result<ExitCode> {
    if let [action, fd] = words
        && action == "swrk"
    {
        let fd = fd.to_str().and_then(|fd| fd.parse().ok());
        let fd: RawFd = fd.ok_or_else(|| OciError::Protocol("swrk without a descriptor".to_owned()))?;
        // SAFETY: the client opened it for this program; nothing else here uses it.
        let client = Socket::from(unsafe { OwnedFd::from_raw_fd(fd) });
        match relay::first(&client)? {
            Some(Type::RESTORE) => interpose(client, fd)?,
            Some(_) => return relay::run(client),
            // It stays open for CRIU.
            None => {
                let _ = OwnedFd::from(client).into_raw_fd();
            }
        }
    }
    Err(OciError::io("executing CRIU", criu().args(words).exec()))
}

/// The real one.
fn criu() -> Command {
    Command::new(std::env::var_os(REAL_CRIU).unwrap_or_else(|| CRIU.into()))
}

/// Start it with this end of a socket.
fn start(end: Socket) -> Result<Child> {
    let failed = |why: std::io::Error| OciError::io("starting CRIU", why);
    let end = File::from(OwnedFd::from(end));
    let number = end.as_raw_fd();
    // It stays open for the child; here it is closed with this value.
    keep_open(&end).map_err(failed)?;
    criu().args(["swrk", &number.to_string()]).spawn().map_err(failed)
}

/// Open the file at `path` for this process and the program that it executes next.
fn lend(path: &Path) -> Result<RawFd> {
    let file = File::open(path).map_err(OciError::at("opening", path))?;
    keep_open(&file).map_err(OciError::at("passing on", path))?;
    Ok(file.into_raw_fd())
}

/// Put a relay between the client, which is at `fd`, and what this process executes next.
fn interpose(client: Socket, fd: RawFd) -> Result<()> {
    let failed = |why: std::io::Error| OciError::io("starting the relay to CRIU", why);
    let (ours, relays) = Socket::pair()?;
    // Open for CRIU, too, which this process becomes.
    let runtime = foreign::runtime(Isa::here()?).ok().map(|path| lend(&path)).transpose()?;
    // SAFETY: this process has one thread.
    match unsafe { libc::fork() } {
        -1 => return Err(failed(std::io::Error::last_os_error())),
        0 => {
            // A child of its own, whose parent ends: CRIU has no child that it does not know.
            // SAFETY: as above.
            let code = match unsafe { libc::fork() } {
                0 => relay::run_apart(client, &relays, runtime),
                pid => i32::from(pid < 0),
            };
            std::process::exit(code);
        }
        pid => {
            let mut status = 0;
            // SAFETY: waitpid(2) writes `status`.
            while unsafe { libc::waitpid(pid, &mut status, 0) } < 0 {
                let why = std::io::Error::last_os_error();
                if why.kind() != std::io::ErrorKind::Interrupted {
                    return Err(failed(why));
                }
            }
        }
    }
    drop((client, relays));
    let from_relay = ours.receive()?.and_then(|message| message.fd);
    let end = from_relay.ok_or_else(|| OciError::Protocol("the relay to CRIU did not start".to_owned()))?;
    open_as(end.into(), fd).map_err(failed)
}
