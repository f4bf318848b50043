//! The guest program: found by its path, mapped with its interpreter, bound to its compiled code.

use super::elf::{ElfError, File, Mapped};
use super::script::{self, Line, Script};
use super::stack::{self, Built, Strings};
use crate::digest::Sha256;
use crate::hole;
use crate::linux::{self, AT_FDCWD, Errno, O_RDONLY_CLOEXEC, PAGE};
use crate::object;
use core::cell::UnsafeCell;
use core::ffi::CStr;
use core::fmt::{self, Write};
use tranship_abi::block::ObjectHeader;
use tranship_abi::syscall::nr;

/// Where position-independent programs go: ELF_ET_DYN_BASE of x86-64.
const DYN_BASE: u64 = 0x5555_5555_4000;
const MAX_PATH: usize = 4096;

/// Why a program cannot be started.
#[derive(Debug)]
pub enum LoadError {
    /// Its file cannot be opened.
    Open(Errno),
    /// Its file cannot be executed.
    Elf(ElfError),
    /// Its interpreter cannot be opened or executed.
    Interpreter(ElfError),
    /// Its stack cannot be built.
    Stack(Errno),
    /// A script's first line names no interpreter, or one that is a script, and so on for too long.
    Script,
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::Open(error) => write!(f, "cannot be opened ({error})"),
            LoadError::Elf(error) => write!(f, "{error}"),
            LoadError::Interpreter(error) => write!(f, "its program interpreter: {error}"),
            LoadError::Stack(error) => write!(f, "no room for its stack and arguments ({error})"),
            LoadError::Script => write!(f, "script without a usable interpreter"),
        }
    }
}

impl From<ElfError> for LoadError {
    fn from(error: ElfError) -> Self {
        LoadError::Elf(error)
    }
}

/// The program's path with its NUL, if the kernel does not give it as /proc/self/exe.
struct OwnPath(UnsafeCell<([u8; MAX_PATH], usize)>);

// SAFETY: written once, before there is a second thread.
unsafe impl Sync for OwnPath {}

static OWN_PATH: OwnPath = OwnPath(UnsafeCell::new(([0; MAX_PATH], 0)));

/// The program's absolute path with its NUL, if the kernel does not know that it is the program; else
/// nothing.
pub fn path() -> &'static [u8] {
    // SAFETY: not written any more.
    let (bytes, length) = unsafe { &*OWN_PATH.0.get() };
    bytes.get(..*length).unwrap_or_default()
}

/// Remember the program's path: as the kernel names the open file, or as it was given.
fn set_path(fd: i32, given: &CStr) {
    // SAFETY: the only thread, and nobody holds a reference yet.
    let (bytes, length) = unsafe { &mut *OWN_PATH.0.get() };
    let mut link = [0; 32];
    let _ = write!(Text(&mut link, 0), "/proc/self/fd/{fd}");
    let room = (bytes.as_mut_ptr() as u64, bytes.len() as u64 - 1);
    // SAFETY: the kernel reads the link's name and writes into the buffer, without a NUL.
    let read =
        unsafe { linux::call(nr::readlinkat, [AT_FDCWD as u64, link.as_ptr() as u64, room.0, room.1, 0, 0]) };
    *length = match read {
        Ok(read) => read as usize + 1,
        Err(_) => {
            let given = given.to_bytes_with_nul();
            bytes[..given.len()].copy_from_slice(given);
            given.len()
        }
    };
}

/// Text into bytes that are zero behind it.
struct Text<'a>(&'a mut [u8; 32], usize);

impl Write for Text<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = self.0.get_mut(self.1..self.1 + text.len()).ok_or(fmt::Error)?;
        room.copy_from_slice(text.as_bytes());
        self.1 += text.len();
        Ok(())
    }
}

/// A program that is ready to run.
pub struct Loaded {
    /// First instruction.
    pub entry: u64,
    /// Its stack.
    pub stack: Built,
    fd: i32,
    program: Mapped,
}

/// Load the program at `path`, or the one that is open as `fd` and was found there, with these strings.
pub fn load(
    path: &CStr,
    fd: Option<i32>,
    strings: &Strings<'_>,
    objects: &[&'static ObjectHeader],
) -> Result<Loaded, LoadError> {
    let fd = fd.map_or_else(|| open(path), Ok).map_err(LoadError::Open)?;
    let mut start = [0; script::LINE_BYTES];
    let got = linux::pread(fd, &mut start, 0).map_err(LoadError::Open)?;
    if let Some(line) = Line::parse(&start[..got]).map_err(|_| LoadError::Script)? {
        linux::close(fd);
        if Script::chain(strings.script).count() == script::MAX_DEPTH {
            return Err(LoadError::Script);
        }
        let script = Script { path, line: &line, of: strings.script };
        return load(line.interpreter(), None, &Strings { script: Some(&script), ..*strings }, objects);
    }
    set_path(fd, path);
    let file = File::open(fd)?;
    let program = file.map(Some(DYN_BASE))?;
    bind(&file, &program, objects);
    let interpreter = load_interpreter(&file, objects)?;
    let state = &mut hole::process().state;
    state.brk_start = program.span.1.next_multiple_of(PAGE);
    state.brk = state.brk_start;
    let stack = stack::build(&file, &program, interpreter.as_ref(), strings).map_err(LoadError::Stack)?;
    state.auxv = stack.auxv;
    Ok(Loaded { entry: interpreter.map_or(program.entry, |it| it.entry), stack, fd, program })
}

fn open(path: &CStr) -> Result<i32, Errno> {
    linux::openat(AT_FDCWD, path.to_bytes_with_nul(), O_RDONLY_CLOEXEC)
}

fn load_interpreter(file: &File, objects: &[&'static ObjectHeader]) -> Result<Option<Mapped>, LoadError> {
    let mut buffer = [0; MAX_PATH];
    let Some(path) = file.interpreter(&mut buffer)? else { return Ok(None) };
    let fd = linux::openat(AT_FDCWD, path, O_RDONLY_CLOEXEC)
        .map_err(|error| LoadError::Interpreter(error.into()))?;
    let interpreter = File::open(fd).map_err(LoadError::Interpreter)?;
    let mapped = interpreter.map(None).map_err(LoadError::Interpreter)?;
    bind(&interpreter, &mapped, objects);
    linux::close(fd);
    Ok(Some(mapped))
}

/// Bind the objects that were made from this file.
fn bind(file: &File, mapped: &Mapped, objects: &[&'static ObjectHeader]) {
    if objects.is_empty() {
        return;
    }
    let Ok(digest) = digest_of(file.fd) else { return };
    for &object in objects.iter().filter(|object| object.guest_digest == digest) {
        if let Err(error) = object::bind(object, mapped.bias) {
            crate::report::complain(format_args!("translated object {error}"));
        }
    }
}

fn digest_of(fd: i32) -> Result<[u8; 32], Errno> {
    let (mut digest, mut offset, mut chunk) = (Sha256::new(), 0, [0; 16 << 10]);
    loop {
        match linux::pread(fd, &mut chunk, offset)? {
            0 => return Ok(digest.finish()),
            got => {
                digest.update(&chunk[..got]);
                offset += got as u64;
            }
        }
    }
}

/// Call the process by the last part of `path`, as an exec does.
pub fn set_name(path: &CStr) {
    const PR_SET_NAME: u64 = 15;
    let name = path.to_bytes().rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    let mut short = [0; 16];
    let used = name.len().min(15);
    short[..used].copy_from_slice(&name[..used]);
    // SAFETY: the kernel reads the local.
    let _ = unsafe { linux::call(nr::prctl, [PR_SET_NAME, short.as_ptr() as u64, 0, 0, 0, 0]) };
}

impl Loaded {
    /// Have the kernel show the guest's program, arguments and environment in /proc, once nothing of the
    /// exec is mapped any more. What it refuses for want of a capability is not essential: /proc/self/exe is
    /// then answered by us.
    pub fn tell_kernel(&self) {
        if self.set_mm_map(self.fd).is_ok() {
            // SAFETY: as in `set_path`.
            unsafe { (*OWN_PATH.0.get()).1 = 0 };
        } else {
            let _ = self.set_mm_map(-1);
        }
        linux::close(self.fd);
    }

    /// prctl(PR_SET_MM_MAP): all but the program's file may be set by anybody.
    fn set_mm_map(&self, program_fd: i32) -> Result<u64, Errno> {
        const PR_SET_MM: u64 = 35;
        const PR_SET_MM_MAP: u64 = 14;
        let (program, stack, brk) = (&self.program, &self.stack, hole::process().state.brk_start);
        let auxv_size = stack.auxv.end - stack.auxv.start;
        // struct prctl_mm_map: code, data, brk, stack, arguments, environment, auxv and its size, file.
        let map = [
            program.code.0,
            program.code.1,
            program.code.1,
            program.span.1,
            brk,
            brk,
            stack.stack_pointer,
            stack.args.start,
            stack.args.end,
            stack.env.start,
            stack.env.end,
            stack.auxv.start,
            auxv_size | u64::from(program_fd as u32) << 32,
        ];
        let args = [PR_SET_MM, PR_SET_MM_MAP, map.as_ptr() as u64, size_of_val(&map) as u64, 0, 0];
        // SAFETY: the kernel reads the local.
        unsafe { linux::call(nr::prctl, args) }
    }
}
