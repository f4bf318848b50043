//! execve(2): the runtime writes itself into a memfd and executes that, with the guest's program as its
//! argument. No descriptor has to stay open for it, and the kernel does all that an exec does.

use super::{Call, Outcome, attempt};
use crate::image;
use crate::linux::{self, AT_FDCWD, Errno, O_RDONLY, O_RDONLY_CLOEXEC, PAGE, map, prot};
use crate::load::elf::{self, ElfError};
use crate::load::program;
use crate::load::script::{self, Line};
use crate::memory::{access, map as mapping};
use crate::procfs;
use crate::seccomp;
use crate::signal::{self, action};
use crate::thread::Thread;
use core::iter;
use tranship_abi::block::Range;
use tranship_abi::open_flags::GuestOpenFlags;
use tranship_abi::signal::number::{INTERRUPT, SIGBUS, SIGSEGV};
use tranship_abi::signal::{SIG_IGN, bit};
use tranship_abi::syscall::nr;

const AT_EMPTY_PATH: u64 = 0x1000;
const MAX_PATH: usize = 4096;
const OWN_PROGRAM: &[u8] = b"/proc/self/exe\0";
/// Arguments that come before the guest's, at most.
const OWN_ARGS: usize = 10;

pub(super) fn execve(call: &Call) -> Outcome {
    let [path, argv, envp, ..] = call.args;
    let mut buffer = [0; MAX_PATH];
    let path = attempt!(access::read_string(path, &mut buffer));
    exec(call.thread, path, Opened::Later, argv, envp)
}

/// execveat(2): a path below a directory descriptor, or a descriptor itself, by way of /proc.
pub(super) fn execveat(call: &Call) -> Outcome {
    let [_, path, argv, envp, flags, _] = call.args;
    let mut given = [0; MAX_PATH];
    let given = attempt!(access::read_string(path, &mut given));
    let dir = call.int(0);
    if given.first() == Some(&b'/') || (dir == AT_FDCWD && given.len() > 1) {
        return exec(call.thread, given, Opened::Later, argv, envp);
    }
    if given.len() == 1 && flags & AT_EMPTY_PATH == 0 {
        return Errno::ENOENT.into();
    }
    let opened = if attempt!(closes_on_exec(dir)) { Opened::Now } else { Opened::Later };
    let mut path = attempt!(Path::of_descriptor(dir));
    if given.len() > 1 {
        attempt!(path.push(b"/"));
    }
    attempt!(path.push(given));
    exec(call.thread, path.bytes(), opened, argv, envp)
}

/// When the file of the guest's new program is opened that it is loaded from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Opened {
    /// Before the exec: its path goes through a descriptor that is closed by it.
    Now,
    /// By the new process.
    Later,
}

/// EBADF if there is no such descriptor.
fn closes_on_exec(fd: i32) -> Result<bool, Errno> {
    const F_GETFD: u64 = 1;
    const FD_CLOEXEC: u64 = 1;
    // SAFETY: no memory is involved.
    let flags = unsafe { linux::call(nr::fcntl, [fd as u64, F_GETFD, 0, 0, 0, 0]) }?;
    Ok(flags & FD_CLOEXEC != 0)
}

/// A path being put together.
struct Path {
    bytes: [u8; MAX_PATH],
    used: usize,
}

impl Path {
    fn new() -> Path {
        Path { bytes: [0; MAX_PATH], used: 0 }
    }

    /// The name of an open file in /proc; a NUL follows it.
    fn of_descriptor(fd: i32) -> Result<Path, Errno> {
        let mut path = Path::new();
        path.push(b"/proc/self/fd/")?;
        path.push_number(fd)?;
        Ok(path)
    }

    fn push(&mut self, part: &[u8]) -> Result<(), Errno> {
        let room = self.bytes.get_mut(self.used..self.used + part.len()).ok_or(Errno::ENAMETOOLONG)?;
        room.copy_from_slice(part);
        self.used += part.len();
        Ok(())
    }

    fn push_number(&mut self, number: i32) -> Result<(), Errno> {
        let mut digits = [0; 10];
        let (mut rest, mut first) = (number.unsigned_abs(), digits.len());
        loop {
            first -= 1;
            digits[first] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                return self.push(&digits[first..]);
            }
        }
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.used]
    }

    /// With its NUL.
    fn terminated(&self) -> &[u8] {
        &self.bytes[..(self.used + 1).min(MAX_PATH)]
    }
}

/// Execute the file `name` (NUL-terminated) with the guest's `argv` and `envp`. Returns only on errors.
fn exec(thread: Thread, name: &[u8], opened: Opened, argv: u64, envp: u64) -> Outcome {
    let mut own = [0; MAX_PATH];
    let is_own = name == OWN_PROGRAM || procfs::identify(AT_FDCWD, name) == Some(procfs::File::Exe);
    let path = if is_own { attempt!(own_program(&mut own)) } else { name };
    let program = attempt!(check_executable(path, opened));
    let error = exec_checked(thread, [name, path], program, argv, envp);
    if let Some(fd) = program {
        linux::close(fd);
    }
    error.into()
}

/// With the program's file, if it is open already.
fn exec_checked(thread: Thread, names: [&[u8]; 2], program: Option<i32>, argv: u64, envp: u64) -> Errno {
    let count = match count_pointers(argv) {
        Ok(count) => count,
        Err(error) => return error,
    };
    let bytes = ((count.max(1) + OWN_ARGS + 1) * 8) as u64;
    let flags = map::PRIVATE | map::ANONYMOUS;
    let list = match mapping::mmap(0, bytes.next_multiple_of(PAGE), prot::READ | prot::WRITE, flags, -1, 0) {
        Ok(list) => list,
        Err(error) => return error,
    };
    // Memory that is shared with a maker who waits stays there after the exec.
    thread.private().left_by_exec = Range { start: list, end: list + bytes };
    let error = exec_with(thread, list, names, program, (argv, count), envp);
    thread.private().left_by_exec = Range { start: 0, end: 0 };
    let _ = mapping::munmap(list, bytes);
    error
}

/// With `list` for the arguments, of which the runtime's own come first: name, path, the program's file, the guest's
/// filters.
fn exec_with(
    thread: Thread,
    list: u64,
    [name, path]: [&[u8]; 2],
    program: Option<i32>,
    argv: (u64, usize),
    envp: u64,
) -> Errno {
    let filters = match seccomp::hand_over(thread) {
        Ok(filters) => filters,
        Err(error) => return error,
    };
    let [mut program_number, mut filters_number] = [Path::new(), Path::new()];
    let named = program
        .map_or(Ok(()), |fd| program_number.push_number(fd))
        .and_then(|()| filters.map_or(Ok(()), |fd| filters_number.push_number(fd)));
    let options: [(&[u8], Option<&[u8]>); 4] = [
        (b"--name\0", Some(name)),
        (b"--program\0", Some(path)),
        (b"--program-fd\0", program.map(|_| program_number.terminated())),
        (b"--seccomp-fd\0", filters.map(|_| filters_number.terminated())),
    ];
    let given = options.iter().filter_map(|&(option, value)| Some([option, value?])).flatten();
    let own = iter::once(&b"tranship-runtime\0"[..]).chain(given).chain(iter::once(&b"--\0"[..]));
    let error = match named.and_then(|()| write_arguments(list, own, argv.0, argv.1)) {
        Ok(()) => become_runtime(thread, list, envp),
        Err(error) => error,
    };
    if let Some(fd) = filters {
        linux::close(fd);
    }
    error
}

/// The path of the guest's program: /proc/self/exe will be the runtime's own file when it is opened.
fn own_program(into: &mut [u8; MAX_PATH]) -> Result<&[u8], Errno> {
    if !program::path().is_empty() {
        return Ok(program::path());
    }
    let room = (into.as_mut_ptr() as u64, into.len() as u64 - 1);
    // SAFETY: the kernel reads the name and writes into the buffer, without a NUL.
    let got = unsafe {
        linux::call(nr::readlinkat, [AT_FDCWD as u64, OWN_PROGRAM.as_ptr() as u64, room.0, room.1, 0, 0])
    }?;
    Ok(&into[..=got as usize])
}

/// As far as the kernel would look before the point of no return; yields the file if it is to be open in the new process.
fn check_executable(path: &[u8], opened: Opened) -> Result<Option<i32>, Errno> {
    let flags = if opened == Opened::Now { O_RDONLY } else { O_RDONLY_CLOEXEC };
    let fd = open_executable(path, flags)?;
    let checked = check_format(fd, opened, 0);
    if checked.is_ok() && opened == Opened::Now {
        return Ok(Some(fd));
    }
    linux::close(fd);
    checked.map(|()| None)
}

/// What is no regular file is not even opened: at a FIFO that would wait for a writer.
fn open_executable(path: &[u8], flags: GuestOpenFlags) -> Result<i32, Errno> {
    const X_OK: u64 = 1;
    // SAFETY: `path` is terminated.
    unsafe { linux::call(nr::faccessat, [AT_FDCWD as u64, path.as_ptr() as u64, X_OK, 0, 0, 0]) }?;
    if !linux::is_regular(path)? {
        return Err(Errno::EACCES);
    }
    linux::openat(AT_FDCWD, path, flags)
}

/// A program for x86-64, or a script whose interpreter is one, or a script again, at the `depth` of that.
fn check_format(fd: i32, opened: Opened, depth: usize) -> Result<(), Errno> {
    let mut start = [0; script::LINE_BYTES];
    let got = linux::pread(fd, &mut start, 0)?;
    let Some(line) = Line::parse(&start[..got])? else {
        return check_elf(fd);
    };
    if opened == Opened::Now {
        // Its interpreter would not find it.
        return Err(Errno::ENOENT);
    }
    let interpreter = open_executable(line.interpreter().to_bytes_with_nul(), O_RDONLY_CLOEXEC)?;
    let next = depth + 1;
    let checked =
        if next > script::MAX_DEPTH { Err(Errno::ELOOP) } else { check_format(interpreter, opened, next) };
    linux::close(interpreter);
    checked
}

/// A program for x86-64 whose own interpreter, if it has one, can be executed.
fn check_elf(fd: i32) -> Result<(), Errno> {
    let errno = |error| match error {
        ElfError::Io(errno) => errno,
        _ => Errno::ENOEXEC,
    };
    let mut path = [0; MAX_PATH];
    let file = elf::File::open(fd).map_err(errno)?;
    if let Some(path) = file.interpreter(&mut path).map_err(errno)? {
        linux::close(open_executable(path, O_RDONLY_CLOEXEC)?);
    }
    Ok(())
}

fn count_pointers(list: u64) -> Result<usize, Errno> {
    let mut count = 0;
    while list != 0 && access::read::<u64>(list + 8 * count as u64)? != 0 {
        count += 1;
    }
    Ok(count)
}

/// The runtime's own arguments (NUL-terminated), then the guest's, then NULL.
fn write_arguments<'a>(
    list: u64,
    own: impl Iterator<Item = &'a [u8]>,
    argv: u64,
    count: usize,
) -> Result<(), Errno> {
    let mut at = list;
    for text in own {
        access::write(at, &(text.as_ptr() as u64))?;
        at += 8;
    }
    if count == 0 {
        // As Linux has it since 5.18.
        access::write(at, &(c"".as_ptr() as u64))?;
        at += 8;
    }
    for n in 0..count as u64 {
        access::write(at, &access::read::<u64>(argv + 8 * n)?)?;
        at += 8;
    }
    access::write(at, &0_u64)
}

fn become_runtime(thread: Thread, argv: u64, envp: u64) -> Errno {
    const MFD_CLOEXEC: u64 = 1;
    // SAFETY: the kernel reads the name.
    let fd = match unsafe {
        linux::call(nr::memfd_create, [c"tranship-runtime".as_ptr() as u64, MFD_CLOEXEC, 0, 0, 0, 0])
    } {
        Ok(fd) => fd,
        Err(error) => return error,
    };
    let error = image::write_to(fd as i32).and_then(|()| {
        keep_ignored(SIGSEGV);
        keep_ignored(SIGBUS);
        // It would end the new program as long as that has no handler for it.
        linux::set_signal_mask(thread.state().signal_mask | bit(INTERRUPT));
        execute(fd as i32, argv, envp)
    });
    linux::close(fd as i32);
    signal::apply_mask(thread);
    for signal in [SIGSEGV, SIGBUS] {
        let _ = action::install(signal, &action::of(signal));
    }
    error.err().unwrap_or(Errno::ENOEXEC)
}

/// Execute an open file. Returns only on errors.
fn execute(fd: i32, argv: u64, envp: u64) -> Result<u64, Errno> {
    let args = [fd as u64, c"".as_ptr() as u64, argv, envp, AT_EMPTY_PATH, 0];
    // SAFETY: the process becomes another one, or the call fails.
    match unsafe { linux::call(nr::execveat, args) } {
        // Emulators of a user's side of Linux may know only the older call.
        Err(Errno::ENOSYS) => {
            let path = Path::of_descriptor(fd)?;
            let args = [path.bytes().as_ptr() as u64, argv, envp, 0, 0, 0];
            // SAFETY: as above; the path is terminated.
            unsafe { linux::call(nr::execve, args) }
        }
        result => result,
    }
}

/// Signals that the guest ignores but the runtime handles are to be ignored after the exec.
fn keep_ignored(signal: u32) {
    if action::of(signal).handler == SIG_IGN {
        action::install_ignore(signal);
    }
}
