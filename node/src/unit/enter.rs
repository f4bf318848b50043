//! The last steps before a unit's program: a session and a root directory of its own, nothing inherited. Runs as the
//! first process of the unit's PID namespace and becomes the program, so nothing of ours stays in it.

use crate::error::{NodeError, Result};
use clap::Args;
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::{FdFlags, fcntl_setfd};
use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What to become.
#[derive(Args, Clone, Debug)]
pub struct Enter {
    /// Directory that becomes the root.
    #[arg(long)]
    pub root: PathBuf,
    /// Working directory in the root.
    #[arg(long, default_value = "/")]
    pub directory: PathBuf,
    /// Translated: the runtime that runs the program.
    #[arg(long)]
    pub runtime: Option<PathBuf>,
    /// Translated: objects for it.
    #[arg(long)]
    pub object: Vec<PathBuf>,
    /// The program's file in the root.
    #[arg(long)]
    pub program: PathBuf,
    /// Descriptor to which to write why it cannot be done.
    #[arg(long)]
    pub complain: RawFd,
    /// Argument 0 and the rest.
    #[arg(last = true, required = true)]
    pub args: Vec<OsString>,
}

impl Enter {
    /// The command line that makes `tranship-node` do this.
    pub fn command_line(&self) -> Vec<OsString> {
        let mut line: Vec<OsString> =
            vec!["enter".into(), "--complain".into(), self.complain.to_string().into()];
        let mut option = |name: &str, value: &Path| line.extend([name.into(), value.into()]);
        option("--root", &self.root);
        option("--directory", &self.directory);
        option("--program", &self.program);
        if let Some(runtime) = &self.runtime {
            option("--runtime", runtime);
        }
        self.object.iter().for_each(|object| option("--object", object));
        line.push("--".into());
        line.extend(self.args.iter().cloned());
        line
    }

    /// Become the program. Returns only if that fails.
    pub fn enter(&self) -> NodeError {
        let error = match self.command() {
            Ok(mut command) => {
                let why = command.exec();
                NodeError::io(format!("executing {}", self.program.display()), why)
            }
            Err(error) => error,
        };
        // SAFETY: who started this process left the descriptor open for this; nothing else here uses it.
        let mut complain = File::from(unsafe { OwnedFd::from_raw_fd(self.complain) });
        // Whoever is gone needs no answer.
        let _ = complain.write_all(&serde_json::to_vec(&error).unwrap_or_default());
        error
    }

    fn command(&self) -> Result<Command> {
        rustix::process::setsid().map_err(|why| NodeError::io("making a session", why))?;
        close_on_exec_from_3();
        match &self.runtime {
            None => self.native(),
            Some(runtime) => self.translated(runtime),
        }
    }

    fn native(&self) -> Result<Command> {
        rustix::process::chroot(&self.root).map_err(NodeError::at("changing the root to", &self.root))?;
        std::env::set_current_dir(&self.directory).map_err(NodeError::at("changing to", &self.directory))?;
        let mut command = Command::new(&self.program);
        if let Some((name, rest)) = self.args.split_first() {
            command.arg0(name).args(rest);
        }
        Ok(command)
    }

    fn translated(&self, runtime: &Path) -> Result<Command> {
        let mut command = Command::new(runtime);
        let root = inherited(&self.root)?;
        command.arg("--root-fd").arg(root.as_raw_fd().to_string());
        // Open until exec, by which the runtime gets them.
        std::mem::forget(root);
        for object in &self.object {
            let object = inherited(object)?;
            command.arg("--object").arg(object.as_raw_fd().to_string());
            std::mem::forget(object);
        }
        command.arg("--program").arg(&self.program).arg("--").args(&self.args);
        std::env::set_current_dir(&self.root).map_err(NodeError::at("changing to", &self.root))?;
        Ok(command)
    }
}

/// What a process that was to become a program complains of at the other end of this pipe: nothing if it became it.
pub fn complaint(pipe: OwnedFd) -> Option<NodeError> {
    let mut text = Vec::new();
    let read = File::from(pipe).read_to_end(&mut text);
    let failed = |why: &dyn std::fmt::Display| NodeError::io("hearing from the unit's first process", why);
    match read {
        Ok(0) => None,
        Ok(_) => Some(serde_json::from_slice(&text).unwrap_or_else(|why| failed(&why))),
        Err(why) => Some(failed(&why)),
    }
}

/// Whatever else this process was given stays behind.
fn close_on_exec_from_3() {
    // SAFETY: sets a flag of descriptors; none is closed while this program runs.
    unsafe { libc::close_range(3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC as libc::c_int) };
}

/// Open a file or directory so that an exec keeps it open.
fn inherited(path: &Path) -> Result<OwnedFd> {
    let fd = openat(CWD, path, OFlags::RDONLY, Mode::empty()).map_err(NodeError::at("opening", path))?;
    fcntl_setfd(&fd, FdFlags::empty()).map_err(NodeError::at("opening", path))?;
    Ok(fd)
}
