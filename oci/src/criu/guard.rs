//! Who lets the processes of a container go on when the relay has died in the middle of a dump: a process that does nothing
//! else. The relay may be ended by whoever ended the runtime; processes that are parked would wait for ever.

use crate::error::{OciError, Result};
use rustix::pipe::{PipeFlags, pipe_with};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use tranship_node::unit::quiesce;

/// What a guard hears before the end if there is nothing to do for it.
const DISMISSED: &[u8] = b"d";

/// The relay's connection to it.
pub(super) struct Guard(File);

impl Guard {
    /// Guard the processes that `pid` is the first of.
    pub(super) fn of(pid: u32) -> Result<Guard> {
        let failed = |why: &dyn std::fmt::Display| OciError::io("starting the guard of a dump", why);
        let (hear, say) = pipe_with(PipeFlags::CLOEXEC).map_err(|why| failed(&why))?;
        // SAFETY: this process has one thread.
        match unsafe { libc::fork() } {
            -1 => Err(failed(&std::io::Error::last_os_error())),
            0 => {
                drop(say);
                watch(hear, pid);
                std::process::exit(0);
            }
            _ => Ok(Guard(File::from(say))),
        }
    }

    /// The processes are nobody's to let go any more, or have been.
    pub(super) fn dismiss(mut self) {
        // One that has died has nothing to be told.
        let _ = self.0.write_all(DISMISSED);
    }
}

fn watch(hear: OwnedFd, pid: u32) {
    // What ends a session or a terminal's job is not meant for the guard.
    let _ = rustix::process::setsid();
    let mut heard = Vec::new();
    let read = File::from(hear).read_to_end(&mut heard);
    if read.is_err() || heard != DISMISSED {
        // They may have ended, too.
        let _ = quiesce::release(pid);
    }
}
