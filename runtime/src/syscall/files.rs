//! Files: flags and directory entries that differ, legacy calls without a modern equivalent of the same
//! arguments.

use super::{Call, Outcome, attempt, read_extensible};
use crate::host::HOST;
use crate::linux::{AT_FDCWD, Errno};
use crate::load::program;
use crate::memory::access;
use crate::procfs;
use tranship_abi::open_flags::{GuestOpenFlags, HostOpenFlags};
use tranship_abi::syscall::nr;

/// AT_SYMLINK_NOFOLLOW.
const NOFOLLOW: u64 = 0x100;
/// fcntl(2) commands.
const F_GETFD: u64 = 1;
const F_GETFL: i32 = 3;
const F_SETFL: i32 = 4;

fn host_flags(guest: u64) -> u64 {
    GuestOpenFlags(guest as u32).to_host(HOST).0.into()
}

/// Longest path that is looked at: those of /proc are short.
const MAX_PATH: usize = 256;

/// The file of /proc at the path `address` below `dir` that is the guest's own.
fn own_proc_file(dir: u64, address: u64) -> Option<procfs::File> {
    let mut buffer = [0; MAX_PATH];
    let path = access::read_string(address, &mut buffer).ok()?;
    procfs::identify(dir as i32, path)
}

/// The path in place of `address` that names the same file for the kernel.
fn kernel_path(dir: u64, address: u64) -> u64 {
    match own_proc_file(dir, address) {
        Some(procfs::File::Exe) => program::path().as_ptr() as u64,
        _ => address,
    }
}

pub(super) fn openat(call: &Call) -> Outcome {
    let [dir, path, flags, mode, ..] = call.args;
    open_with(call, dir, path, flags, |path| {
        call.make(nr::openat, [dir, path, host_flags(flags), mode, 0, 0])
    })
}

/// Open the file that `open` opens by its path, or what it is for the guest.
fn open_with(call: &Call, dir: u64, path: u64, flags: u64, open: impl Fn(u64) -> Outcome) -> Outcome {
    const O_PATH: u64 = 0o10_000_000;
    let outcome = match own_proc_file(dir, path) {
        None => return open(path),
        Some(procfs::File::Exe) => return open(program::path().as_ptr() as u64),
        Some(file) => (file, open(path)),
    };
    if let (file, Outcome::Done(fd @ 0..)) = outcome
        && flags & O_PATH == 0
        && let Err(error) = procfs::replace(fd as i32, file, flags)
    {
        let _ = call.make(nr::close, [fd as u64, 0, 0, 0, 0, 0]);
        return error.into();
    }
    outcome.1
}

/// stat(2) and its kin follow /proc/PID/exe to the guest's program.
pub(super) fn newfstatat(call: &Call) -> Outcome {
    let [dir, path, buffer, flags, ..] = call.args;
    let path = if flags & NOFOLLOW == 0 { kernel_path(dir, path) } else { path };
    Call { thread: call.thread, args: [dir, path, buffer, flags, 0, 0] }.pass_number(nr::newfstatat)
}

pub(super) fn statx(call: &Call) -> Outcome {
    let [dir, path, flags, mask, buffer, _] = call.args;
    let path = if flags & NOFOLLOW == 0 { kernel_path(dir, path) } else { path };
    call.make(nr::statx, [dir, path, flags, mask, buffer, 0])
}

/// `struct open_how` may grow: only its first version is known, as to an older kernel.
pub(super) fn openat2(call: &Call) -> Outcome {
    const FIRST_VERSION: u64 = 24;
    let [dir, path, how, size, ..] = call.args;
    let mut how: [u64; 3] = attempt!(read_extensible(how, size, FIRST_VERSION));
    let flags = how[0];
    how[0] = host_flags(flags) | flags & !u64::from(u32::MAX);
    open_with(call, dir, path, flags, |path| {
        call.make(nr::openat2, [dir, path, how.as_ptr() as u64, FIRST_VERSION, 0, 0])
    })
}

pub(super) fn readlinkat(call: &Call) -> Outcome {
    let [dir, path, buffer, size, ..] = call.args;
    if size > 0 && own_proc_file(dir, path) == Some(procfs::File::Exe) {
        let target = program::path().strip_suffix(b"\0").unwrap_or_default();
        let target = &target[..target.len().min(size as usize)];
        return access::write_bytes(buffer, target).map(|()| target.len() as u64).map_err(Errno::from).into();
    }
    call.make(nr::readlinkat, call.args)
}

pub(super) fn fcntl(call: &Call) -> Outcome {
    let [fd, command, argument, ..] = call.args;
    match command as i32 {
        F_SETFL => call.make(nr::fcntl, [fd, command, host_flags(argument), 0, 0, 0]),
        F_GETFL => match call.make(nr::fcntl, call.args) {
            Outcome::Done(flags) if flags >= 0 => {
                Outcome::Done(HostOpenFlags(flags as u32).to_guest(HOST).0.into())
            }
            other => other,
        },
        _ => call.make(nr::fcntl, call.args),
    }
}

/// dup3(2) refuses equal descriptors, dup2(2) yields them.
pub(super) fn dup2(call: &Call) -> Outcome {
    let [old, new, ..] = call.args;
    if call.int(0) != call.int(1) {
        return call.make(nr::dup3, [old, new, 0, 0, 0, 0]);
    }
    match call.make(nr::fcntl, [old, F_GETFD, 0, 0, 0, 0]) {
        Outcome::Done(0..) => Outcome::Done(call.int(1).into()),
        other => other,
    }
}

/// `struct linux_dirent64` is as long as `struct linux_dirent`, which has the type in its last byte.
pub(super) fn getdents(call: &Call) -> Outcome {
    const LENGTH: u64 = 16;
    const TYPE: u64 = 18;
    const NAME: u64 = 19;
    let start = call.args[1];
    let outcome = call.make(nr::getdents64, call.args);
    let Outcome::Done(bytes @ 1..) = outcome else { return outcome };
    let end = start + bytes as u64;
    let mut entry = start;
    while entry < end {
        let length = u64::from(attempt!(access::read::<u16>(entry + LENGTH)));
        let kind: u8 = attempt!(access::read(entry + TYPE));
        for at in entry + NAME..entry + length {
            let byte: u8 = attempt!(access::read(at));
            attempt!(access::write(at - 1, &byte));
        }
        attempt!(access::write(entry + length - 1, &kind));
        entry += length.max(1);
    }
    outcome
}

/// Set times with utimensat(2); `times` are (seconds, nanoseconds).
fn set_times(call: &Call, dir: u64, path: u64, times: Option<[[i64; 2]; 2]>) -> Outcome {
    let pointer = times.as_ref().map_or(0, |times| times.as_ptr() as u64);
    call.make(nr::utimensat, [dir, path, pointer, 0, 0, 0])
}

pub(super) fn utime(call: &Call) -> Outcome {
    let seconds: Option<[i64; 2]> = attempt!(access::read_optional(call.args[1]));
    set_times(call, AT_FDCWD as u64, call.args[0], seconds.map(|[access, change]| [[access, 0], [change, 0]]))
}

fn set_times_in_microseconds(call: &Call, dir: u64, path: u64, address: u64) -> Outcome {
    let times: Option<[[i64; 2]; 2]> = attempt!(access::read_optional(address));
    if times.is_some_and(|times| times.iter().any(|[_, micros]| !(0..1_000_000).contains(micros))) {
        return Errno::EINVAL.into();
    }
    set_times(call, dir, path, times.map(|times| times.map(|[seconds, micros]| [seconds, micros * 1000])))
}

pub(super) fn utimes(call: &Call) -> Outcome {
    set_times_in_microseconds(call, AT_FDCWD as u64, call.args[0], call.args[1])
}

pub(super) fn futimesat(call: &Call) -> Outcome {
    set_times_in_microseconds(call, call.args[0], call.args[1], call.args[2])
}
