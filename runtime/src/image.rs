//! The blob as data: relocating itself, moving into the hole, and becoming a file again for execve. And that other image
//! of an ELF file that is just there, the host's vDSO.

use crate::host;
use crate::linux::{self, Errno, PAGE, prot};
use core::ffi::CStr;
use tranship_abi::block::BLOB_BYTES;

/// An image's ELF header, as far as it is read.
#[repr(C)]
struct ElfHeader {
    before: [u8; 32],
    phoff: u64,
    between: [u8; 14],
    phentsize: u16,
    phnum: u16,
}

/// A program header.
#[repr(C)]
#[derive(Clone, Copy)]
struct Segment {
    kind: u32,
    flags: u32,
    offset: u64,
    address: u64,
    physical: u64,
    file_size: u64,
    memory_size: u64,
    align: u64,
}

const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const DT_STRTAB: u64 = 5;
const DT_SYMTAB: u64 = 6;
const DT_RELA: u64 = 7;
const DT_RELASZ: u64 = 8;

/// The segments of the image whose ELF header is at `base`. No relocated data is touched.
fn segments(base: u64) -> impl Iterator<Item = Segment> {
    // SAFETY: linker and kernel map the ELF header and the program headers at the image's start.
    let (phoff, count) = unsafe {
        let header = base as *const ElfHeader;
        ((*header).phoff, (*header).phnum)
    };
    let first = (base + phoff) as *const Segment;
    // SAFETY: as above.
    (0..usize::from(count)).map(move |n| unsafe { *first.add(n) })
}

/// Bytes from the ELF header to the end of `.bss`.
fn memory_bytes(base: u64) -> u64 {
    let loads = segments(base).filter(|segment| segment.kind == PT_LOAD);
    loads.fold(0, |end, segment| end.max(segment.address + segment.memory_size)).next_multiple_of(PAGE)
}

/// The dynamic section of the image at `base`: tags and values. No relocated data is touched.
fn dynamic(base: u64) -> impl Iterator<Item = [u64; 2]> {
    let section = segments(base).find(|segment| segment.kind == PT_DYNAMIC);
    let first = section.map(|section| (base + section.address) as *const [u64; 2]);
    // SAFETY: it ends with DT_NULL, where the iterator ends, too.
    let entries = (0..).map_while(move |n| first.map(|first| unsafe { *first.add(n) }));
    entries.take_while(|&[tag, _]| tag != 0)
}

/// Apply the relocations of the blob at `base`. All are relative (the linker is told to see to that), so
/// this may run on any copy, any number of times. Runs before any relocated data may be used.
///
/// # Safety
/// `base` is an image of this blob whose data is writable.
pub unsafe fn relocate(base: u64) {
    let (mut table, mut bytes) = (0, 0);
    for [tag, value] in dynamic(base) {
        match tag {
            DT_RELA => table = base + value,
            DT_RELASZ => bytes = value,
            _ => {}
        }
    }
    let mut relocation = table as *const [u64; 3];
    let end = (table + bytes) as *const [u64; 3];
    // SAFETY: the table is where the section says.
    unsafe {
        while relocation < end {
            let [offset, info, addend] = *relocation;
            if info == host::RELOC_RELATIVE {
                *((base + offset) as *mut u64) = base.wrapping_add(addend);
            }
            relocation = relocation.add(1);
        }
    }
}

/// A symbol of ELF64.
#[repr(C)]
struct Symbol {
    name: u32,
    kind: [u8; 4],
    value: u64,
    size: u64,
}

/// Where a function is that the vDSO at `base` exports.
///
/// # Safety
/// It is one that the kernel has mapped: names come right behind the symbols that have them.
pub unsafe fn exported(base: u64, name: &CStr) -> Option<u64> {
    let at = |wanted| dynamic(base).find(|&[tag, _]| tag == wanted).map(|[_, offset]| base + offset);
    let (symbols, names) = (at(DT_SYMTAB)?, at(DT_STRTAB)?);
    let count = names.checked_sub(symbols)? as usize / size_of::<Symbol>();
    // SAFETY: by contract.
    let symbols = unsafe { core::slice::from_raw_parts(symbols as *const Symbol, count) };
    // SAFETY: likewise, and each name ends with a zero.
    let is_named = |symbol: &&Symbol| unsafe {
        CStr::from_ptr((names + u64::from(symbol.name)) as *const core::ffi::c_char) == name
    };
    symbols.iter().find(is_named).map(|symbol| base + symbol.value)
}

/// Copy the running blob to `to`, relocated and protected, with `.bss` zero.
pub fn copy_to(to: u64) -> Result<(), Errno> {
    let from = host::image_base();
    let bytes = memory_bytes(from);
    if bytes > BLOB_BYTES {
        return Err(Errno::ENOMEM);
    }
    linux::map_anonymous(to, bytes)?;
    for segment in segments(from).filter(|segment| segment.kind == PT_LOAD) {
        let (source, target) = ((from + segment.address) as *const u8, (to + segment.address) as *mut u8);
        // SAFETY: the source is mapped, the target was mapped just now.
        unsafe { core::ptr::copy_nonoverlapping(source, target, segment.file_size as usize) };
    }
    // SAFETY: a whole image, writable.
    unsafe { relocate(to) };
    for segment in segments(from).filter(|segment| segment.kind == PT_LOAD) {
        let start = (to + segment.address) / PAGE * PAGE;
        let len = (to + segment.address + segment.memory_size).next_multiple_of(PAGE) - start;
        // SAFETY: as the linker asks for it; nothing runs there yet.
        unsafe { linux::mprotect(start, len, protection(segment.flags)) }?;
    }
    Ok(())
}

/// PF_* flags as PROT_* flags.
pub fn protection(flags: u32) -> u32 {
    let right = |bit: u32, right: u32| if flags & bit != 0 { right } else { 0 };
    right(4, prot::READ) | right(2, prot::WRITE) | right(1, prot::EXEC)
}

/// Write the blob as a file to `fd`. Data that was relocated here is relocated anew wherever it is loaded,
/// and there is no other initialised data, so that memory is as good as the original file.
pub fn write_to(fd: i32) -> Result<(), Errno> {
    let base = host::image_base();
    let mut written = 0;
    for segment in segments(base).filter(|segment| segment.kind == PT_LOAD) {
        write_zeros(fd, segment.offset - written)?;
        // SAFETY: mapped and readable for the process's life.
        let bytes = unsafe {
            core::slice::from_raw_parts((base + segment.address) as *const u8, segment.file_size as usize)
        };
        linux::write(fd, bytes)?;
        written = segment.offset + segment.file_size;
    }
    Ok(())
}

fn write_zeros(fd: i32, mut count: u64) -> Result<(), Errno> {
    let zeros = [0; 512];
    while count > 0 {
        let n = count.min(zeros.len() as u64);
        linux::write(fd, &zeros[..n as usize])?;
        count -= n;
    }
    Ok(())
}
