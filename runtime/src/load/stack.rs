//! The stack that a guest program starts with (psABI 3.4.1): strings, auxiliary vector, pointers.

use super::elf::{File, Mapped};
use super::script::Script;
use crate::linux::{self, Errno, PAGE, prot};
use crate::memory::{GUEST_END, access, code, lock};
use core::ffi::CStr;
use tranship_abi::block::Range;
use tranship_abi::signal::RtSigFrame;
use tranship_abi::syscall::nr;
use tranship_abi::xsave;
use tranship_isa::x86_64::cpuid;

/// What a program is started with.
#[derive(Clone, Copy)]
pub struct Strings<'a> {
    /// Its arguments: a NULL-terminated array.
    pub args: *const *const core::ffi::c_char,
    /// Its environment: a NULL-terminated array.
    pub env: *const *const core::ffi::c_char,
    /// Its path, AT_EXECFN.
    pub path: &'a CStr,
    /// The script whose interpreter this is.
    pub script: Option<&'a Script<'a>>,
}

impl<'a> Strings<'a> {
    fn list(first: *const *const core::ffi::c_char) -> impl Iterator<Item = &'a CStr> + Clone {
        // SAFETY: as the kernel laid them out for us.
        let item = move |n| unsafe {
            let text = *first.add(n);
            (!text.is_null()).then(|| CStr::from_ptr(text))
        };
        (0..).map_while(item)
    }

    fn args(&self) -> impl Iterator<Item = &'a CStr> + Clone {
        let replaced = usize::from(self.script.is_some());
        Script::arguments(self.script).chain(Strings::list(self.args).skip(replaced))
    }

    fn env(&self) -> impl Iterator<Item = &'a CStr> + Clone {
        Strings::list(self.env)
    }
}

/// A finished stack.
pub struct Built {
    /// Where it starts.
    pub stack_pointer: u64,
    /// The auxiliary vector.
    pub auxv: Range,
    /// Argument strings.
    pub args: Range,
    /// Environment strings.
    pub env: Range,
}

/// Stack sizes that are used as they are asked for.
const SIZES: (u64, u64) = (1 << 20, 256 << 20);
/// Space that is left free above and between places that are tried.
const STEP: u64 = 1 << 30;

/// Map a stack of the size that the resource limit says, with this protection as the guest sees it.
fn map_stack(guest_prot: u32) -> Result<u64, Errno> {
    const RLIMIT_STACK: u64 = 3;
    let mut limit = [0_u64; 2];
    // SAFETY: the kernel fills the local.
    unsafe { linux::call(nr::getrlimit, [RLIMIT_STACK, limit.as_mut_ptr() as u64, 0, 0, 0, 0]) }?;
    let size = limit[0].clamp(SIZES.0, SIZES.1) / PAGE * PAGE;
    let mut last = Errno::ENOMEM;
    for n in 0..32 {
        match linux::map_anonymous(GUEST_END - STEP * n - PAGE - size, size) {
            Ok(bottom) => {
                code::set(&lock(), bottom, bottom + size, guest_prot)?;
                return Ok(bottom + size);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Writes downwards.
struct Writer {
    sp: u64,
}

impl Writer {
    fn bytes(&mut self, bytes: &[u8]) -> Result<u64, Errno> {
        self.sp -= bytes.len() as u64;
        access::write_bytes(self.sp, bytes)?;
        Ok(self.sp)
    }

    /// Strings, the first lowest; yields where they are.
    fn strings<'a>(&mut self, strings: impl Iterator<Item = &'a CStr> + Clone) -> Result<Range, Errno> {
        let end = self.sp;
        let bytes: u64 = strings.clone().map(|text| text.to_bytes_with_nul().len() as u64).sum();
        let start = end - bytes;
        let mut at = start;
        for text in strings {
            let text = text.to_bytes_with_nul();
            access::write_bytes(at, text)?;
            at += text.len() as u64;
        }
        self.sp = start;
        Ok(Range { start, end })
    }
}

/// Build the stack.
pub fn build(
    file: &File,
    program: &Mapped,
    interpreter: Option<&Mapped>,
    strings: &Strings<'_>,
) -> Result<Built, Errno> {
    let execute = if file.wants_executable_stack() { prot::EXEC } else { 0 };
    let mut writer = Writer { sp: map_stack(prot::READ | prot::WRITE | execute)? };
    writer.bytes(&[0; 8])?;
    let path = writer.bytes(strings.path.to_bytes_with_nul())?;
    let env = writer.strings(strings.env())?;
    let args = writer.strings(strings.args())?;
    let platform = writer.bytes(b"x86_64\0")?;
    let random = writer.bytes(&random_bytes()?)?;

    let auxv = auxiliary_vector(file, program, interpreter, [platform, random, path]);
    let (argc, envc) = (strings.args().count(), strings.env().count());
    let words = 1 + argc + 1 + envc + 1 + auxv.len() * 2;
    let stack_pointer = (writer.sp - 8 * words as u64) & !15;

    let mut at = stack_pointer;
    let mut put = |value: u64| {
        access::write(at, &value)?;
        at += 8;
        Ok::<u64, Errno>(at)
    };
    put(argc as u64)?;
    for (range, list) in [(args, argc), (env, envc)] {
        let mut text = range.start;
        for _ in 0..list {
            put(text)?;
            text += string_bytes(text);
        }
        put(0)?;
    }
    let mut auxv_range = Range { start: 0, end: 0 };
    for (kind, value) in auxv {
        let start = put(kind)? - 8;
        auxv_range.start = if auxv_range.start == 0 { start } else { auxv_range.start };
        auxv_range.end = put(value)?;
    }
    Ok(Built { stack_pointer, auxv: auxv_range, args, env })
}

/// Bytes of the string at `address`, which was written just now, with its NUL.
fn string_bytes(address: u64) -> u64 {
    // SAFETY: NUL-terminated, mapped.
    unsafe { CStr::from_ptr(address as *const _) }.to_bytes_with_nul().len() as u64
}

fn random_bytes() -> Result<[u8; 16], Errno> {
    let mut bytes = [0_u8; 16];
    // SAFETY: the kernel fills the local.
    unsafe { linux::call(nr::getrandom, [bytes.as_mut_ptr() as u64, 16, 0, 0, 0, 0]) }?;
    Ok(bytes)
}

/// Entries of the vector; the last one is AT_NULL.
const ENTRIES: usize = 20;

fn auxiliary_vector(
    file: &File,
    program: &Mapped,
    interpreter: Option<&Mapped>,
    [platform, random, path]: [u64; 3],
) -> [(u64, u64); ENTRIES] {
    // SAFETY: no memory is involved.
    let id = |number| unsafe { linux::call(number, [0; 6]) }.unwrap_or(0);
    // AT_HWCAP is what CPUID leaf 1 gives in edx.
    let features = (cpuid::query(1, 0) >> 96) as u64;
    let frame = size_of::<RtSigFrame>() + xsave::MAX_BYTES + xsave::FRAME_MAGIC2_BYTES + 128 + 64 + 16 + 8;
    [
        (51, frame.next_multiple_of(16) as u64),            // AT_MINSIGSTKSZ
        (16, features),                                     // AT_HWCAP
        (6, PAGE),                                          // AT_PAGESZ
        (17, 100),                                          // AT_CLKTCK
        (3, program.phdr),                                  // AT_PHDR
        (4, 56),                                            // AT_PHENT
        (5, file.header.phnum.into()),                      // AT_PHNUM
        (7, interpreter.map_or(0, |mapped| mapped.span.0)), // AT_BASE
        (8, 0),                                             // AT_FLAGS
        (9, program.entry),                                 // AT_ENTRY
        (11, id(nr::getuid)),                               // AT_UID
        (12, id(nr::geteuid)),                              // AT_EUID
        (13, id(nr::getgid)),                               // AT_GID
        (14, id(nr::getegid)),                              // AT_EGID
        (23, 0),                                            // AT_SECURE
        (25, random),                                       // AT_RANDOM
        (26, 0),                                            // AT_HWCAP2
        (31, path),                                         // AT_EXECFN
        (15, platform),                                     // AT_PLATFORM
        (0, 0),                                             // AT_NULL
    ]
}
