//! Programs of another machine: where the in-process runtime is that they run in, and how it gets into a container.

use crate::error::{OciError, Result};
use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::File;
use std::os::fd::{AsRawFd, IntoRawFd};
use std::path::{Path, PathBuf};
use tranship_abi::host::Host;
use tranship_node::{Isa, NodeError};

/// Environment variable that has programs translated on their home machine, too, if it is `always`.
const TRANSLATE: &str = "TRANSHIP_TRANSLATE";
/// Environment variable with the directory of the in-process runtimes.
const LIBRARY: &str = "TRANSHIP_LIB";
/// The machine whose programs can be translated.
pub(crate) const GUEST: Isa = Isa(Host::X86_64);

/// Whether programs of machine `home` run translated on machine `here`.
pub(crate) fn is_foreign(home: Isa, here: Isa) -> Result<bool> {
    let is_forced = std::env::var_os(TRANSLATE).is_some_and(|value| value == "always");
    match home == here && !is_forced {
        true => Ok(false),
        false if home == GUEST => Ok(true),
        false => Err(OciError::NoGuest { home, here }),
    }
}

/// The in-process runtime for machine `isa`.
pub(crate) fn runtime(isa: Isa) -> Result<PathBuf> {
    let own = std::env::current_exe().ok();
    let beside = own.as_ref().and_then(|path| path.parent());
    let installed = beside.map(|path| path.join("../lib/tranship"));
    let library = std::env::var_os(LIBRARY).map(PathBuf::from);
    let tried: Vec<PathBuf> =
        library.into_iter().chain(installed).chain(beside.map(Path::to_owned)).collect();
    let found = tried.iter().map(|path| path.join(format!("runtime-{isa}"))).find(|path| path.exists());
    found.ok_or_else(|| {
        OciError::Node(NodeError::Missing {
            what: format!("runtime-{isa} (looked in {tried:?})"),
            remedy: format!("name its directory in ${LIBRARY}"),
        })
    })
}

/// Put the in-process runtime for machine `isa` where descriptor `number` is, for the container to be started with.
pub(crate) fn lend_runtime(isa: Isa, number: i32) -> Result<()> {
    let path = runtime(isa)?;
    let failed = |why: &dyn std::fmt::Display| OciError::at("passing on", &path)(why);
    let memory = memfd_create(c"tranship-runtime", MemfdFlags::CLOEXEC).map_err(|why| failed(&why))?;
    let mut memory = File::from(memory);
    let mut from = File::open(&path).map_err(OciError::at("opening", &path))?;
    std::io::copy(&mut from, &mut memory).map_err(|why| failed(&why))?;
    open_as(memory, number).map_err(|why| failed(&why))
}

/// Have `file` under that number, for a program that this process becomes.
pub(crate) fn open_as(file: File, number: i32) -> std::io::Result<()> {
    if file.as_raw_fd() == number {
        keep_open(&file)?;
        let _ = file.into_raw_fd();
        return Ok(());
    }
    // SAFETY: dup2(2) takes numbers only. What was there was to be passed on to nobody: the engine counts what is.
    match unsafe { libc::dup2(file.as_raw_fd(), number) } {
        -1 => Err(std::io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Have programs that this process executes get `file`.
pub(crate) fn keep_open(file: &File) -> std::io::Result<()> {
    Ok(rustix::io::fcntl_setfd(file, rustix::io::FdFlags::empty())?)
}

/// The command line by which a container executes the runtime, which is descriptor `number`, with a program of its own.
pub(crate) fn command_line(number: i32, program: &str, words: &[String]) -> Vec<String> {
    let own =
        [&format!("/proc/self/fd/{number}"), "--own-fd", &number.to_string(), "--program", program, "--"];
    own.into_iter().map(str::to_owned).chain(words.iter().cloned()).collect()
}
