//! The guest program: found by its path, mapped with its interpreter, bound to its compiled code.

use super::elf::{ElfError, File, Mapped};
use super::stack::{self, Strings};
use crate::digest::Sha256;
use crate::hole;
use crate::linux::{self, AT_FDCWD, Errno, O_RDONLY_CLOEXEC, PAGE};
use crate::object;
use core::cell::UnsafeCell;
use core::ffi::CStr;
use core::fmt;
use tranship_abi::block::ObjectHeader;
use tranship_abi::syscall::nr;

/// Where position-independent programs go: ELF_ET_DYN_BASE of x86-64.
const DYN_BASE: u64 = 0x5555_5555_4000;
const MAX_PATH: usize = 4096;
/// BINPRM_BUF_SIZE: as much of a script's first line counts.
const MAX_SCRIPT_LINE: usize = 256;

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
    /// A script's first line names no interpreter, or one that is a script, and so on.
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

/// Remember the program's path.
fn set_path(given: &CStr) {
    // SAFETY: the only thread, and nobody holds a reference yet.
    let (bytes, length) = unsafe { &mut *OWN_PATH.0.get() };
    let given = given.to_bytes_with_nul();
    let mut start = 0;
    if !given.starts_with(b"/") {
        // SAFETY: the kernel writes into the buffer. It yields the length with the NUL.
        let cwd =
            unsafe { linux::call(nr::getcwd, [bytes.as_mut_ptr() as u64, bytes.len() as u64, 0, 0, 0, 0]) };
        start = cwd.unwrap_or(0) as usize;
        match start.checked_sub(1).and_then(|slash| bytes.get_mut(slash)) {
            Some(slash) => *slash = b'/',
            None => return,
        }
    }
    if let Some(room) = bytes.get_mut(start..start + given.len()) {
        room.copy_from_slice(given);
        *length = start + given.len();
    }
}

/// A program that is ready to run.
pub struct Loaded {
    /// First instruction.
    pub entry: u64,
    /// Stack pointer.
    pub stack_pointer: u64,
}

/// Load the program at `path` with these strings, and tell the kernel what it is.
pub fn load(
    path: &CStr,
    strings: &Strings<'_>,
    objects: &[&'static ObjectHeader],
) -> Result<Loaded, LoadError> {
    let fd = open(path).map_err(LoadError::Open)?;
    let mut line = [0; MAX_SCRIPT_LINE];
    let got = linux::pread(fd, &mut line, 0).map_err(LoadError::Open)?;
    if line.starts_with(b"#!") {
        linux::close(fd);
        // The last byte is no part of the line, so that there is a NUL in any case.
        return load_script(&mut line, got.min(MAX_SCRIPT_LINE - 1), path, strings, objects);
    }
    set_path(path);
    let file = File::open(fd)?;
    let program = file.map(Some(DYN_BASE))?;
    bind(&file, &program, objects);
    let interpreter = load_interpreter(&file, objects)?;
    let state = &mut hole::process().state;
    state.brk_start = program.span.1.next_multiple_of(PAGE);
    state.brk = state.brk_start;
    let built = stack::build(&file, &program, interpreter.as_ref(), strings).map_err(LoadError::Stack)?;
    state.auxv = built.auxv;
    tell_kernel(fd, &program, &built, path);
    linux::close(fd);
    Ok(Loaded { entry: interpreter.map_or(program.entry, |it| it.entry), stack_pointer: built.stack_pointer })
}

fn open(path: &CStr) -> Result<i32, Errno> {
    linux::openat(AT_FDCWD, path.to_bytes_with_nul(), O_RDONLY_CLOEXEC)
}

/// `#! interpreter [argument]`: run the interpreter with the script as its argument.
fn load_script(
    line: &mut [u8; MAX_SCRIPT_LINE],
    got: usize,
    path: &CStr,
    strings: &Strings<'_>,
    objects: &[&'static ObjectHeader],
) -> Result<Loaded, LoadError> {
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let end = line[..got].iter().position(|&byte| byte == b'\n').unwrap_or(got);
    line[end..].fill(0);
    let start = 2 + line[2..end].iter().take_while(|byte| blank(byte)).count();
    let name_end = start + line[start..end].iter().take_while(|byte| !blank(byte)).count();
    let argument_start = name_end + line[name_end..end].iter().take_while(|byte| blank(byte)).count();
    line[name_end] = 0;
    let trailing = line[argument_start..end].iter().rev().take_while(|byte| blank(byte)).count();
    line[end - trailing..].fill(0);
    let text = |from: usize| CStr::from_bytes_until_nul(&line[from..]).map_err(|_| LoadError::Script);
    let (interpreter, argument) = (text(start)?, text(argument_start)?);
    if interpreter.is_empty() || strings.script.is_some() {
        return Err(LoadError::Script);
    }
    let argument = (!argument.is_empty()).then_some(argument);
    load(interpreter, &Strings { script: Some((interpreter, argument, path)), ..*strings }, objects)
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

/// Have the kernel show the guest's program, arguments and environment in /proc, and its name. What it
/// refuses for want of a capability is not essential: /proc/self/exe is then answered by us.
fn tell_kernel(fd: i32, program: &Mapped, built: &stack::Built, path: &CStr) {
    const PR_SET_NAME: u64 = 15;
    const PR_SET_MM: u64 = 35;
    const PR_SET_MM_MAP: u64 = 14;
    let name = path.to_bytes().rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    let mut short = [0; 16];
    let used = name.len().min(15);
    short[..used].copy_from_slice(&name[..used]);
    // SAFETY: the kernel reads the local.
    let _ = unsafe { linux::call(nr::prctl, [PR_SET_NAME, short.as_ptr() as u64, 0, 0, 0, 0]) };

    let brk = hole::process().state.brk_start;
    let auxv_size = built.auxv.end - built.auxv.start;
    // struct prctl_mm_map.
    let mut map = [
        program.code.0,
        program.code.1,
        program.code.1,
        program.span.1,
        brk,
        brk,
        built.stack_pointer,
        built.args.start,
        built.args.end,
        built.env.start,
        built.env.end,
        built.auxv.start,
        auxv_size | (fd as u64) << 32,
    ];
    let mut set = || {
        let args = [PR_SET_MM, PR_SET_MM_MAP, map.as_ptr() as u64, size_of_val(&map) as u64, 0, 0];
        // SAFETY: the kernel reads the local.
        let done = unsafe { linux::call(nr::prctl, args) };
        // Without the program, should that be what it minds.
        map[12] = auxv_size | u64::from(u32::MAX) << 32;
        done
    };
    if set().is_ok() {
        // SAFETY: as in `set_path`.
        unsafe { (*OWN_PATH.0.get()).1 = 0 };
    } else {
        let _ = set();
    }
}
