//! CRIU, by its command line. Its `post-dump` and `post-restore` hooks are our *gate*: there, with the processes
//! stopped under CRIU's hands, it waits for a verdict. So a dumped original resumes exactly as it was unless it is
//! told to end, also when we die; and a restored copy has not run an instruction before it is told to go on.

use super::network;
use super::paths::UnitDir;
use crate::error::{NodeError, Result};
use rustix::io::{FdFlags, fcntl_setfd};
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Name under which our program acts as CRIU's hook.
pub const GATE_NAME: &str = "tranship-gate";
/// Environment variable with the path of the gate's socket.
const GATE_SOCKET: &str = "TRANSHIP_GATE";
/// What opens the gate.
const OPEN: &[u8] = b"o";
/// How long CRIU may take to its gate.
const PATIENCE: Duration = Duration::from_secs(300);
/// How long CRIU may take from its gate to its end.
const ENDING: Duration = Duration::from_secs(60);

/// CRIU, waiting at its gate.
#[derive(Debug)]
pub struct Gated {
    criu: Child,
    gate: UnixStream,
    action: &'static str,
    log: PathBuf,
}

/// Dump the tree of `pid` into `images`, up to the gate.
pub fn dump(unit: &UnitDir, pid: u32, pipes: &[String; 2], images: &Path) -> Result<Gated> {
    let mut command = criu("dump", images);
    command.arg("--tree").arg(pid.to_string());
    for pipe in pipes {
        command.arg("--external").arg(pipe);
    }
    gated(unit, command, "dump", images)
}

/// Restore `images` up to the gate. `pipes` are the names of standard output and error in the images, `writers` what
/// they are now. The first process's id will be in [`restored_pid`].
pub fn restore(unit: &UnitDir, images: &Path, pipes: &[String; 2], writers: [OwnedFd; 2]) -> Result<Gated> {
    let mut command = criu("restore", images);
    let _ = fs::remove_file(unit.restored_pid());
    command.arg("--restore-detached").arg("--pidfile").arg(unit.restored_pid());
    for (pipe, writer) in pipes.iter().zip(&writers) {
        fcntl_setfd(writer, FdFlags::empty()).map_err(|why| NodeError::io("passing a pipe to criu", why))?;
        command.arg("--inherit-fd").arg(format!("fd[{}]:{pipe}", writer.as_raw_fd()));
    }
    gated(unit, command, "restore", images)
}

/// The first process of what was restored.
pub fn restored_pid(unit: &UnitDir) -> Result<u32> {
    let path = unit.restored_pid();
    let text = fs::read_to_string(&path).map_err(NodeError::at("reading", &path))?;
    text.trim().parse().map_err(NodeError::at("reading", &path))
}

fn criu(action: &str, images: &Path) -> Command {
    let mut command = Command::new("criu");
    command.arg(action).arg("--images-dir").arg(images);
    command.arg("--log-file").arg(log_name(action)).arg("-v2");
    // Cgroups are the node's business.
    command.arg("--manage-cgroups=ignore");
    // Whoever is connected from elsewhere has to connect again, until addresses move too.
    command.arg("--tcp-close").arg("--skip-in-flight");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn log_name(action: &str) -> String {
    format!("{action}.log")
}

fn gated(unit: &UnitDir, mut command: Command, action: &'static str, images: &Path) -> Result<Gated> {
    let socket = unit.gate();
    let _ = fs::remove_file(&socket);
    let listener = UnixListener::bind(&socket).map_err(NodeError::at("listening at", &socket))?;
    listener.set_nonblocking(true).map_err(NodeError::at("listening at", &socket))?;
    command.env(GATE_SOCKET, &socket).arg("--action-script").arg(gate_program(unit)?);
    let mut criu = network::inside(|| command.spawn()).map_err(|why| match why.kind() {
        ErrorKind::NotFound => NodeError::Missing {
            what: "criu".to_owned(),
            remedy: "install CRIU 4.2 or newer in the node's root".to_owned(),
        },
        _ => NodeError::io("starting criu", why),
    })?;
    let log = images.join(log_name(action));
    match await_gate(&listener, &mut criu, action, &log) {
        Ok(gate) => Ok(Gated { criu, gate, action, log }),
        Err(error) => {
            let _ = criu.kill();
            let _ = criu.wait();
            Err(error)
        }
    }
}

/// Our program under the name that makes it the hook: not what is at its path by now, should it have been upgraded.
fn gate_program(unit: &UnitDir) -> Result<PathBuf> {
    let link = unit.path().join(GATE_NAME);
    let program = format!("/proc/{}/exe", std::process::id());
    let _ = fs::remove_file(&link);
    std::os::unix::fs::symlink(program, &link).map_err(NodeError::at("making", &link))?;
    Ok(link)
}

fn await_gate(listener: &UnixListener, criu: &mut Child, action: &str, log: &Path) -> Result<UnixStream> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match listener.accept() {
            Ok((gate, _)) => {
                gate.set_nonblocking(false).map_err(|why| NodeError::io("opening the gate", why))?;
                return Ok(gate);
            }
            Err(why) if why.kind() == ErrorKind::WouldBlock => {}
            Err(why) => return Err(NodeError::io("waiting for criu", why)),
        }
        let ended = criu.try_wait().map_err(|why| NodeError::io("waiting for criu", why))?;
        if ended.is_some() || Instant::now() > deadline {
            return Err(failure(action, log));
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// What CRIU's log says went wrong.
fn failure(action: &str, log: &Path) -> NodeError {
    let text = fs::read_to_string(log).unwrap_or_default();
    // Where root lacks CAP_SYS_RESOURCE, CRIU always says this; it matters not.
    let errors = text.lines().filter(|line| line.contains("Error") && !line.contains("RLIMIT_NOFILE"));
    let messages: Vec<&str> =
        errors.map(|line| line.rsplit_once("): ").map_or(line, |(_, rest)| rest)).collect();
    let errors = match messages.is_empty() {
        true => format!("it says nothing more; its log is {}", log.display()),
        false => messages.join("; "),
    };
    NodeError::Criu { action: action.to_owned(), errors }
}

impl Gated {
    /// Let CRIU do what it waits to do: end the dumped processes, or let the restored ones go.
    pub fn open(mut self) -> Result<()> {
        self.gate.write_all(OPEN).map_err(|why| NodeError::io("opening the gate", why))?;
        let status = self.wait()?;
        if status.success() { Ok(()) } else { Err(failure(self.action, &self.log)) }
    }

    /// Have CRIU undo it: let the dumped processes go on, or end the restored ones.
    pub fn shut(mut self) -> Result<()> {
        // A gate that is closed without a word is shut.
        let _ = self.gate.shutdown(std::net::Shutdown::Both);
        self.wait().map(drop)
    }

    fn wait(&mut self) -> Result<std::process::ExitStatus> {
        let failed = |why| NodeError::io("waiting for criu", why);
        let deadline = Instant::now() + ENDING;
        while Instant::now() < deadline {
            if let Some(status) = self.criu.try_wait().map_err(failed)? {
                return Ok(status);
            }
            thread::sleep(Duration::from_micros(500));
        }
        let _ = self.criu.kill();
        self.criu.wait().map_err(failed)
    }
}

/// Our program as CRIU's hook: at the two gates, ask the supervisor and wait. Only its word opens.
pub fn gate() -> ExitCode {
    let action = std::env::var("CRTOOLS_SCRIPT_ACTION").unwrap_or_default();
    if action != "post-dump" && action != "post-restore" {
        return ExitCode::SUCCESS;
    }
    let Some(socket) = std::env::var_os(GATE_SOCKET) else { return ExitCode::FAILURE };
    let Ok(supervisor) = UnixStream::connect(socket) else { return ExitCode::FAILURE };
    let mut verdict = Vec::new();
    match supervisor.take(OPEN.len() as u64).read_to_end(&mut verdict) {
        Ok(_) if verdict == OPEN => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}
