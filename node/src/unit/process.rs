//! Starting a unit's program, and waiting for the end of a unit's first process, however that was started.

use super::elf;
use super::enter::{self, Enter};
use super::network;
use super::paths::{UnitDir, objects, runtime};
use crate::baseline;
use crate::error::{NodeError, Result};
use crate::protocol::{Digest, Translation};
use crate::record::{ExitStatus, Isa, UnitSpec};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, pidfd_open, pidfd_send_signal, waitid,
};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

/// Where programs are looked for if the unit's environment does not say.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// How many scripts may run each other, and how much of one is looked at (execve(2)).
const SCRIPTS: usize = 5;
const SCRIPT_BYTES: usize = 256;

/// A program in a unit's root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Its path in the root.
    pub path: String,
    /// The machine it is for.
    pub isa: Isa,
}

/// Find the program of `spec` in `root` as exec would.
pub fn find_program(root: &Path, spec: &UnitSpec) -> Result<Program> {
    let (path, file) = locate(root, &spec.program, &spec.env, &spec.directory)?;
    let isa = elf::machine(&file).map_err(|why| no_program(&spec.program, &why))?;
    Ok(Program { path, isa })
}

/// The same where it may be a script: the machine is that of the program that runs it.
pub fn find_script(root: &Path, program: &str, env: &[String], directory: &str) -> Result<Program> {
    let (path, mut file) = locate(root, program, env, directory)?;
    let mut start = [0; SCRIPT_BYTES];
    for _ in 0..SCRIPTS {
        let read = file.read_at(&mut start, 0).map_err(|why| no_program(program, &why.to_string()))?;
        let Some(interpreter) = interpreter(&start[..read]) else { break };
        (_, file) = locate(root, interpreter, env, directory)?;
    }
    let isa = elf::machine(&file).map_err(|why| no_program(program, &why))?;
    Ok(Program { path, isa })
}

/// The interpreter that a script names that starts with these bytes (execve(2), "Interpreter scripts").
fn interpreter(start: &[u8]) -> Option<&str> {
    let line = start.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    std::str::from_utf8(line).ok()?.split_ascii_whitespace().next()
}

fn no_program(program: &str, why: &str) -> NodeError {
    NodeError::NoProgram { program: program.to_owned(), why: why.to_owned() }
}

/// The executable file `program` in `root`, looked up as exec would, and its path there.
fn locate(root: &Path, program: &str, env: &[String], directory: &str) -> Result<(String, File)> {
    let mut paths = candidates(program, env, directory).into_iter();
    let found = paths.find_map(|path| Some((open_in_root(root, &path)?, path)));
    let (file, path) = found.ok_or_else(|| {
        no_program(program, "its root has no such file, or not in PATH; give --root, or a path in the root")
    })?;
    let metadata = file.metadata().map_err(|why| no_program(program, &why.to_string()))?;
    if !metadata.is_file() || std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o111 == 0 {
        return Err(no_program(program, "it is no executable file"));
    }
    Ok((path, file))
}

/// Absolute paths to try.
fn candidates(program: &str, env: &[String], directory: &str) -> Vec<String> {
    if program.starts_with('/') {
        return vec![program.to_owned()];
    }
    if program.contains('/') {
        return vec![format!("{}/{program}", directory.trim_end_matches('/'))];
    }
    let path = env.iter().find_map(|line| line.strip_prefix("PATH=")).unwrap_or(DEFAULT_PATH);
    path.split(':').map(|directory| format!("{directory}/{program}")).collect()
}

/// Open a file for reading as a process with that root would.
pub fn open_in_root(root: &Path, path: &str) -> Option<File> {
    let flags = OFlags::CLOEXEC | OFlags::NONBLOCK;
    let root = openat(CWD, root, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    openat2(&root, path, flags, Mode::empty(), ResolveFlags::IN_ROOT).ok().map(File::from)
}

/// Start the unit's program with these as its standard output and error.
pub fn start(
    directory: &UnitDir,
    spec: &UnitSpec,
    program: &Program,
    how: &Translation,
    [stdout, stderr]: [OwnedFd; 2],
) -> Result<u32> {
    let (complaints, complain) = pipe_with(PipeFlags::CLOEXEC).map_err(failure_to_start)?;
    fcntl_setfd(&complain, FdFlags::empty()).map_err(failure_to_start)?;
    let enter = enter_command(directory, spec, program, how, complain.as_raw_fd())?;
    let mut command = Command::new("/proc/self/exe");
    command.args(enter.command_line());
    command.env_clear().envs(environment(spec, program.isa));
    command.stdin(Stdio::null()).stdout(stdout).stderr(stderr);
    let mut child = in_new_pid_namespace(move || command.spawn())?;
    drop(complain);
    match enter::complaint(complaints) {
        None => Ok(child.id()),
        Some(error) => {
            child.wait().map_err(failure_to_start)?;
            Err(error)
        }
    }
}

fn failure_to_start(why: impl std::fmt::Display) -> NodeError {
    NodeError::io("starting the unit's first process", why)
}

fn enter_command(
    directory: &UnitDir,
    spec: &UnitSpec,
    program: &Program,
    how: &Translation,
    complain: RawFd,
) -> Result<Enter> {
    let mut args = vec![spec.program.clone().into()];
    args.extend(spec.args.iter().map(Into::into));
    let (runtime, object) = match how {
        Translation::Native => (None, vec![]),
        Translation::Objects(programs) => {
            let digests: Vec<Digest> = programs.iter().map(|program| program.object.clone()).collect();
            (Some(present_runtime()?), present_objects(&digests)?)
        }
    };
    Ok(Enter {
        root: directory.root(),
        directory: PathBuf::from(&spec.directory),
        runtime,
        object,
        complain,
        program: PathBuf::from(&program.path),
        args,
    })
}

/// The unit's own settings, with the baseline of its home in force unless it has an opinion.
fn environment(spec: &UnitSpec, home: Isa) -> Vec<(String, String)> {
    let lines = baseline::environment(home).into_iter().chain(spec.env.iter().cloned());
    lines
        .filter_map(|line| line.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned())))
        .collect()
}

/// The runtime of this node.
pub fn present_runtime() -> Result<PathBuf> {
    let path = runtime(Isa::here()?);
    if path.exists() {
        return Ok(path);
    }
    Err(NodeError::Missing {
        what: format!("the runtime for translated units ({})", path.display()),
        remedy: "build it with `make blobs` and start the lab again".to_owned(),
    })
}

/// Objects of the store.
pub fn present_objects(digests: &[Digest]) -> Result<Vec<PathBuf>> {
    let present = |digest: &Digest| {
        let path = objects().join(digest);
        let missing = || NodeError::Missing {
            what: format!("object {digest}"),
            remedy: "send it with the unit".to_owned(),
        };
        if path.exists() { Ok(path) } else { Err(missing()) }
    };
    digests.iter().map(present).collect()
}

/// Run `spawn` so that its child is the first process of a new PID namespace. On a thread of its own, since the
/// namespace for children cannot be taken back.
fn in_new_pid_namespace(
    spawn: impl FnOnce() -> std::io::Result<std::process::Child> + Send,
) -> Result<std::process::Child> {
    let on_thread = move || {
        network::inside(|| {
            // SAFETY: only the namespace of this thread's future children changes, no descriptor table.
            unsafe { unshare_unsafe(UnshareFlags::NEWPID) }?;
            spawn()
        })
    };
    let outcome = thread::scope(|scope| scope.spawn(on_thread).join());
    outcome.map_err(|_| failure_to_start("the thread died"))?.map_err(failure_to_start)
}

/// A handle on a unit's first process, which is a child of this one.
#[derive(Debug)]
pub struct Watch {
    pidfd: OwnedFd,
}

impl Watch {
    /// Of the process `pid`.
    pub fn of(pid: u32) -> Result<Watch> {
        let failed = |why: &dyn std::fmt::Display| NodeError::io(format!("watching process {pid}"), why);
        let id = Pid::from_raw(pid as i32).ok_or_else(|| failed(&"no such process"))?;
        let pidfd = pidfd_open(id, PidfdFlags::empty()).map_err(|why| failed(&why))?;
        Ok(Watch { pidfd })
    }

    /// Wait for its end.
    pub fn wait(&self) -> Result<ExitStatus> {
        let failed = |why: &dyn std::fmt::Display| NodeError::io("waiting for the unit's end", why);
        let status = waitid(WaitId::PidFd(self.pidfd.as_fd()), WaitIdOptions::EXITED)
            .map_err(|why| failed(&why))?
            .ok_or_else(|| failed(&"no status"))?;
        Ok(match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => ExitStatus::Code(code),
            (None, signal) => ExitStatus::Signal(signal.unwrap_or(libc::SIGKILL)),
        })
    }

    /// Another handle on the same process.
    pub fn another(&self) -> Result<Watch> {
        let pidfd = self.pidfd.try_clone().map_err(|why| NodeError::io("watching a process", why))?;
        Ok(Watch { pidfd })
    }

    /// End it, and with it its PID namespace.
    pub fn kill(&self) {
        // It may have ended already; then there is nothing to do.
        let _ = pidfd_send_signal(&self.pidfd, Signal::KILL);
    }

    /// Send it a signal.
    pub fn signal(&self, number: i32) -> Result<()> {
        // SAFETY: pidfd_send_signal(2) with no siginfo reads nothing of ours.
        let sent = unsafe {
            libc::syscall(
                libc::SYS_pidfd_send_signal,
                self.pidfd.as_raw_fd(),
                number,
                std::ptr::null::<u8>(),
                0,
            )
        };
        match sent {
            0 => Ok(()),
            _ => Err(NodeError::io(format!("sending signal {number}"), std::io::Error::last_os_error())),
        }
    }
}
