//! Processes that outlive this one: recorded by id and start time, so that only what we started is ever ended.

use crate::error::{LabError, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Command, Stdio};

/// A process, told apart from a later one of the same id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recorded {
    /// Its id.
    pub pid: u32,
    /// When it started, in clock ticks since boot.
    start: u64,
}

impl Recorded {
    fn of(pid: u32) -> Option<Recorded> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (_, rest) = stat.rsplit_once(") ")?;
        let mut fields = rest.split(' ');
        if fields.next() == Some("Z") {
            return None;
        }
        // proc_pid_stat(5): field 22; the state just read was field 3.
        Some(Recorded { pid, start: fields.nth(18)?.parse().ok()? })
    }

    /// A handle, if it still runs.
    fn handle(&self) -> Option<OwnedFd> {
        let handle = pidfd_open(Pid::from_raw(self.pid as i32)?, PidfdFlags::empty()).ok()?;
        // Looked at after it was opened, so that the handle is of what was looked at.
        (Recorded::of(self.pid).as_ref() == Some(self)).then_some(handle)
    }

    /// Whether it still runs.
    pub fn lives(&self) -> bool {
        self.handle().is_some()
    }

    /// End it, and wait until it is gone.
    pub(crate) fn end(&self) {
        let Some(handle) = self.handle() else { return };
        // Failing means that it ended by itself.
        let _ = pidfd_send_signal(&handle, Signal::KILL);
        let limit = Timespec { tv_sec: 10, tv_nsec: 0 };
        let _ = poll(&mut [PollFd::new(&handle, PollFlags::IN)], Some(&limit));
    }
}

/// Start a command that outlives this process: in a session of its own, its output in `log`.
pub(crate) fn detached<S: AsRef<OsStr>>(
    line: &[S],
    environment: &[(&str, &str)],
    log: &Path,
) -> Result<Recorded> {
    let failed = LabError::at("making", log);
    let output = File::create(log).map_err(failed)?;
    let errors = output.try_clone().map_err(LabError::at("opening", log))?;
    // util-linux's setsid becomes the command in its place, so the id is the command's.
    let mut command = Command::new("setsid");
    command.args(line).envs(environment.iter().copied());
    command.stdin(Stdio::null()).stdout(output).stderr(errors);
    let child = command
        .spawn()
        .map_err(|why| LabError::Io { doing: "starting a node".to_owned(), why: why.to_string() })?;
    Recorded::of(child.id()).ok_or_else(|| LabError::Io {
        doing: "starting a node".to_owned(),
        why: format!("it ended at once; see {}", log.display()),
    })
}
