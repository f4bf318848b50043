//! What the guest finds in /proc about itself and its machine: some files would show the runtime and the host. They are
//! known by where they lie, however they are named, and replaced by files in memory as soon as they are opened.

mod cpuinfo;
mod maps;
mod text;

use crate::linux::{self, AT_FDCWD, Errno, O_RDONLY_CLOEXEC};
use crate::load::program;
use core::fmt::Write;
use text::{Output, Path};
use tranship_abi::open_flags::GuestOpenFlags;
use tranship_abi::syscall::nr;

/// A file of /proc that is the guest's own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum File {
    /// Its program, where the kernel does not know that.
    Exe,
    /// Its mappings.
    Maps,
    /// Its mappings with their sizes.
    Smaps,
    /// Its machine.
    CpuInfo,
}

const FILES: [(&[u8], File); 4] =
    [(b"exe", File::Exe), (b"maps", File::Maps), (b"smaps", File::Smaps), (b"cpuinfo", File::CpuInfo)];

/// O_PATH | O_DIRECTORY | O_CLOEXEC.
const DIRECTORY: GuestOpenFlags = GuestOpenFlags(0o12_200_000);
/// O_CLOEXEC.
const CLOEXEC: u32 = 0o2_000_000;
/// Longest path looked at.
const MAX_PATH: usize = 256;

/// The file that `path` (NUL-terminated) below `dir` names, if it is one of these.
pub fn identify(dir: i32, path: &[u8]) -> Option<File> {
    let path = path.strip_suffix(b"\0").unwrap_or(path);
    let at = path.iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1);
    let (parent, name) = path.split_at(at);
    let &(_, file) = FILES.iter().find(|(known, _)| *known == name)?;
    if file == File::Exe && program::path().is_empty() {
        return None;
    }
    let mut buffer = Path::new();
    buffer.push(if parent.is_empty() { b"./" } else { parent })?;
    let parent = linux::openat(dir, buffer.terminated(), DIRECTORY).ok()?;
    let found = lies_in(parent, file);
    linux::close(parent);
    found.then_some(file)
}

/// Is `dir` the directory of /proc in which `file` lies, of this process where it is about one?
fn lies_in(dir: i32, file: File) -> bool {
    const PROC_SUPER_MAGIC: u64 = 0x9fa0;
    let mut statfs = [0_u64; 15];
    // SAFETY: the kernel fills the local, which is as large as its structure.
    let known = unsafe { linux::call(nr::fstatfs, [dir as u64, statfs.as_mut_ptr() as u64, 0, 0, 0, 0]) };
    if known.is_err() || statfs[0] != PROC_SUPER_MAGIC {
        return false;
    }
    let mut own = Path::new();
    let mut place = Path::new();
    if write!(own, "/proc/self/fd/{dir}").is_err() || place.read_link(own.terminated()).is_err() {
        return false;
    }
    match (file, split_process(place.bytes())) {
        (File::CpuInfo, found) => found.is_none() && exists(dir, b"self\0"),
        (_, Some((mount, process))) => {
            let mut link = Path::new();
            let mut number = Path::new();
            link.push(mount).and_then(|()| link.push(b"/self")).is_some()
                && number.read_link(link.terminated()).is_ok()
                && number.bytes() == process
        }
        (_, None) => false,
    }
}

/// `MOUNT/PID` or `MOUNT/PID/task/TID` as MOUNT and PID.
fn split_process(place: &[u8]) -> Option<(&[u8], &[u8])> {
    let split = |path| -> Option<(&[u8], &[u8])> {
        let path: &[u8] = path;
        let slash = path.iter().rposition(|&byte| byte == b'/')?;
        let name = &path[slash + 1..];
        (!name.is_empty() && name.iter().all(u8::is_ascii_digit)).then_some((&path[..slash], name))
    };
    let (rest, name) = split(place)?;
    match rest.strip_suffix(b"/task").and_then(split) {
        Some(process) => Some(process),
        None => Some((rest, name)),
    }
}

fn exists(dir: i32, name: &[u8]) -> bool {
    // SAFETY: `name` is terminated.
    unsafe { linux::call(nr::faccessat, [dir as u64, name.as_ptr() as u64, 0, 0, 0, 0]) }.is_ok()
}

/// Give descriptor `fd`, which is open for the kernel's `file`, the guest's contents instead.
pub fn replace(fd: i32, file: File, flags: u64) -> Result<(), Errno> {
    const MFD_CLOEXEC: u64 = 1;
    let name = c"proc".as_ptr() as u64;
    // SAFETY: the kernel reads the name.
    let made = unsafe { linux::call(nr::memfd_create, [name, MFD_CLOEXEC, 0, 0, 0, 0]) }? as i32;
    let result = fill(made, fd, file).and_then(|()| {
        // Opened once more, so that it is at its start and cannot be written to.
        let mut own = Path::new();
        let _ = write!(own, "/proc/self/fd/{made}");
        let readable = linux::openat(AT_FDCWD, own.terminated(), O_RDONLY_CLOEXEC)?;
        let cloexec = GuestOpenFlags(flags as u32 & CLOEXEC).to_host(crate::host::HOST).0;
        // SAFETY: no memory is involved.
        let result = unsafe { linux::call(nr::dup3, [readable as u64, fd as u64, cloexec.into(), 0, 0, 0]) };
        linux::close(readable);
        result.map(drop)
    });
    linux::close(made);
    result
}

fn fill(into: i32, kernel: i32, file: File) -> Result<(), Errno> {
    let mut output = Output::new(into);
    let written = match file {
        File::Maps => maps::write(&mut output, kernel, false),
        File::Smaps => maps::write(&mut output, kernel, true),
        File::CpuInfo => cpuinfo::write(&mut output, kernel),
        File::Exe => Ok(()),
    };
    written.map_err(|_| Errno::ENOMEM)?;
    output.flush()
}

#[cfg(test)]
mod tests {
    use super::split_process;

    #[test]
    fn processes_are_found_in_places() {
        let split = |place: &'static str| {
            split_process(place.as_bytes())
                .map(|(a, b)| (core::str::from_utf8(a).unwrap(), core::str::from_utf8(b).unwrap()))
        };
        assert_eq!(split("/proc/12"), Some(("/proc", "12")));
        assert_eq!(split("/mnt/p/12/task/13"), Some(("/mnt/p", "12")));
        assert_eq!(split("/proc"), None);
        assert_eq!(split("/proc/12/fd"), None);
    }
}
