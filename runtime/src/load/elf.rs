//! Guest ELF files: headers, checked, and mapping of segments.

use crate::image::protection;
use crate::linux::{self, Errno, PAGE, map, prot};
use crate::memory::map::host_protection;
use crate::memory::{GUEST_END, code, lock, place};
use core::fmt;
use tranship_abi::block::machine_id;

/// Bytes of the ELF header.
const HEADER_BYTES: usize = 64;
/// Bytes of a program header.
const SEGMENT_BYTES: usize = 56;
/// Program headers that a file may have: a page of them, as the kernel has it.
const MAX_SEGMENTS: usize = 4096 / SEGMENT_BYTES;

const ET_EXEC: u16 = 2;
const ET_DYN: u16 = 3;
const PT_LOAD: u32 = 1;
const PT_INTERP: u32 = 3;
const PT_GNU_STACK: u32 = 0x6474_e551;
/// Segment flag: executable.
const PF_X: u32 = 1;

/// Why a file cannot be executed as a guest program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElfError {
    /// A system call on it failed.
    Io(Errno),
    /// It does not begin as an ELF file.
    NotElf,
    /// ELF, but not 64-bit little-endian.
    WrongClass,
    /// ELF for this other machine.
    WrongMachine(u16),
    /// Neither an executable nor a shared object.
    NotExecutable(u16),
    /// It ends before what its headers promise.
    Truncated,
    /// A segment lies where none can, at this address.
    BadSegment(u64),
    /// This address is in use.
    Occupied(u64),
}

impl fmt::Display for ElfError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ElfError::Io(error) => write!(f, "{error}"),
            ElfError::NotElf => write!(f, "not an ELF file"),
            ElfError::WrongClass => write!(f, "not a 64-bit little-endian ELF file"),
            ElfError::WrongMachine(machine) => write!(f, "for ELF machine {machine}, not x86-64 (62)"),
            ElfError::NotExecutable(kind) => write!(f, "ELF type {kind}, not a program"),
            ElfError::Truncated => write!(f, "file ends before what its headers promise"),
            ElfError::BadSegment(at) => write!(f, "segment at {at:#x} cannot be mapped"),
            ElfError::Occupied(at) => write!(f, "its address {at:#x} is in use: give another --hole"),
        }
    }
}

impl From<Errno> for ElfError {
    fn from(error: Errno) -> Self {
        ElfError::Io(error)
    }
}

fn bytes_at<const N: usize>(bytes: &[u8], at: usize) -> Result<[u8; N], ElfError> {
    bytes.get(at..at + N).and_then(|bytes| bytes.try_into().ok()).ok_or(ElfError::Truncated)
}

/// What is read of an ELF header.
#[derive(Clone, Copy, Debug)]
pub struct Header {
    /// e_type.
    pub kind: u16,
    /// e_entry.
    pub entry: u64,
    /// e_phoff.
    pub phoff: u64,
    /// e_phnum.
    pub phnum: u16,
}

impl Header {
    /// Read and check the header that a file begins with.
    pub fn parse(bytes: &[u8]) -> Result<Header, ElfError> {
        let u16_at = |at| bytes_at(bytes, at).map(u16::from_le_bytes);
        let u64_at = |at| bytes_at(bytes, at).map(u64::from_le_bytes);
        if !bytes.starts_with(b"\x7fELF") {
            return Err(ElfError::NotElf);
        }
        if bytes_at(bytes, 4)? != [2, 1] {
            return Err(ElfError::WrongClass);
        }
        let (kind, machine) = (u16_at(16)?, u16_at(18)?);
        if u32::from(machine) != machine_id::X86_64 {
            return Err(ElfError::WrongMachine(machine));
        }
        if kind != ET_EXEC && kind != ET_DYN {
            return Err(ElfError::NotExecutable(kind));
        }
        let header = Header { kind, entry: u64_at(24)?, phoff: u64_at(32)?, phnum: u16_at(56)? };
        let segment_bytes = usize::from(u16_at(54)?);
        if segment_bytes != SEGMENT_BYTES || header.phnum == 0 || usize::from(header.phnum) > MAX_SEGMENTS {
            return Err(ElfError::Truncated);
        }
        Ok(header)
    }
}

/// A program header.
#[derive(Clone, Copy, Debug, Default)]
struct Segment {
    kind: u32,
    flags: u32,
    offset: u64,
    address: u64,
    file_size: u64,
    memory_size: u64,
}

impl Segment {
    fn parse(bytes: &[u8]) -> Result<Segment, ElfError> {
        let u32_at = |at| bytes_at(bytes, at).map(u32::from_le_bytes);
        let u64_at = |at| bytes_at(bytes, at).map(u64::from_le_bytes);
        Ok(Segment {
            kind: u32_at(0)?,
            flags: u32_at(4)?,
            offset: u64_at(8)?,
            address: u64_at(16)?,
            file_size: u64_at(32)?,
            memory_size: u64_at(40)?,
        })
    }

    fn end(&self) -> Result<u64, ElfError> {
        let end = self.address.checked_add(self.memory_size).filter(|&end| end <= GUEST_END);
        end.ok_or(ElfError::BadSegment(self.address))
    }
}

/// A guest ELF file, open.
pub struct File {
    /// Descriptor.
    pub fd: i32,
    /// Its header.
    pub header: Header,
    segments: [Segment; MAX_SEGMENTS],
}

/// Where a file was mapped.
#[derive(Clone, Copy, Debug)]
pub struct Mapped {
    /// Run-time minus link-time address.
    pub bias: u64,
    /// Entry point.
    pub entry: u64,
    /// Address of the program headers.
    pub phdr: u64,
    /// Lowest and highest address.
    pub span: (u64, u64),
    /// Lowest and highest address of the first executable segment.
    pub code: (u64, u64),
}

impl File {
    /// Read and check the headers of the file `fd`.
    pub fn open(fd: i32) -> Result<File, ElfError> {
        let mut bytes = [0; HEADER_BYTES];
        let got = linux::pread(fd, &mut bytes, 0)?;
        let header = Header::parse(&bytes[..got])?;
        let mut table = [0; MAX_SEGMENTS * SEGMENT_BYTES];
        let table = &mut table[..usize::from(header.phnum) * SEGMENT_BYTES];
        if linux::pread(fd, table, header.phoff)? < table.len() {
            return Err(ElfError::Truncated);
        }
        let mut segments = [Segment::default(); MAX_SEGMENTS];
        for (segment, bytes) in segments.iter_mut().zip(table.chunks_exact(SEGMENT_BYTES)) {
            *segment = Segment::parse(bytes)?;
        }
        let file = File { fd, header, segments };
        file.check_size()?;
        Ok(file)
    }

    /// Bytes that a segment promises must be there, or the guest would get SIGBUS for them much later.
    fn check_size(&self) -> Result<(), ElfError> {
        for segment in self.loads().filter(|segment| segment.file_size > 0) {
            let last = segment.offset.checked_add(segment.file_size - 1).ok_or(ElfError::Truncated)?;
            if linux::pread(self.fd, &mut [0], last)? == 0 || segment.file_size > segment.memory_size {
                return Err(ElfError::Truncated);
            }
        }
        Ok(())
    }

    fn loads(&self) -> impl Iterator<Item = &Segment> {
        self.segments.iter().filter(|segment| segment.kind == PT_LOAD)
    }

    /// Read the path of the program interpreter with its NUL, if there is one.
    pub fn interpreter<'a>(&self, into: &'a mut [u8]) -> Result<Option<&'a [u8]>, ElfError> {
        let Some(segment) = self.segments.iter().find(|segment| segment.kind == PT_INTERP) else {
            return Ok(None);
        };
        let path = into.get_mut(..segment.file_size as usize).ok_or(ElfError::Truncated)?;
        let whole = linux::pread(self.fd, path, segment.offset)? == path.len();
        if whole && path.last() == Some(&0) { Ok(Some(path)) } else { Err(ElfError::Truncated) }
    }

    /// Does it want a stack that it may execute? A file that does not say gets none, as from Linux 5.8 on.
    pub fn wants_executable_stack(&self) -> bool {
        self.segments.iter().any(|segment| segment.kind == PT_GNU_STACK && segment.flags & PF_X != 0)
    }

    /// Map all segments: at their own addresses, or if the file is position-independent at `wanted` if that is
    /// free, or at a place of our choice.
    pub fn map(&self, wanted: Option<u64>) -> Result<Mapped, ElfError> {
        let low = self.loads().map(|segment| segment.address / PAGE * PAGE).min().ok_or(ElfError::NotElf)?;
        let mut high = 0;
        for segment in self.loads() {
            high = high.max(segment.end()?.next_multiple_of(PAGE));
        }
        let start = self.find_room(low, high - low, wanted)?;
        let bias = start.wrapping_sub(low);
        for segment in self.loads() {
            self.map_segment(segment, bias)?;
        }
        let at = |address: u64| address.wrapping_add(bias);
        let holds_headers = |s: &&Segment| (s.offset..s.offset + s.file_size).contains(&self.header.phoff);
        let phdr =
            self.loads().find(holds_headers).map_or(0, |s| at(s.address + self.header.phoff - s.offset));
        let executable = self.loads().find(|s| s.flags & PF_X != 0).copied().unwrap_or_default();
        Ok(Mapped {
            bias,
            entry: at(self.header.entry),
            phdr,
            span: (at(low), at(high)),
            code: (at(executable.address), at(executable.address + executable.memory_size)),
        })
    }

    /// Make sure that `len` bytes are free where the file goes; yields where that is.
    fn find_room(&self, low: u64, len: u64, wanted: Option<u64>) -> Result<u64, ElfError> {
        let start = if self.header.kind == ET_EXEC {
            linux::map_anonymous(low, len).map_err(|_| ElfError::Occupied(low))?
        } else {
            let preferred = wanted.and_then(|at| linux::map_anonymous(at, len).ok());
            let anywhere = || place::find(len, PAGE, false, |at| linux::map_anonymous(at, len));
            preferred.map_or_else(anywhere, Ok)?
        };
        // SAFETY: mapped just now.
        unsafe { linux::munmap(start, len) }?;
        Ok(start)
    }

    fn map_segment(&self, segment: &Segment, bias: u64) -> Result<(), ElfError> {
        let address = segment.address.wrapping_add(bias);
        let skew = address % PAGE;
        if segment.offset % PAGE != skew {
            return Err(ElfError::BadSegment(segment.address));
        }
        let guest_prot = protection(segment.flags);
        let prot = host_protection(guest_prot);
        let flags = map::PRIVATE | map::FIXED;
        let (start, file_end) = (address - skew, address + segment.file_size);
        let end = (address + segment.memory_size).next_multiple_of(PAGE);
        let mut zero_from = start;
        if segment.file_size > 0 {
            // SAFETY: room was made for the whole file.
            unsafe {
                linux::mmap(start, segment.file_size + skew, prot, flags, self.fd, segment.offset - skew)
            }?;
            zero_from = file_end.next_multiple_of(PAGE);
        }
        if end > zero_from {
            // SAFETY: as above.
            unsafe { linux::mmap(zero_from, end - zero_from, prot, flags | map::ANONYMOUS, -1, 0) }?;
        }
        if segment.memory_size > segment.file_size && prot & prot::WRITE != 0 && segment.file_size > 0 {
            // SAFETY: the rest of the last page, private and writable.
            unsafe { core::ptr::write_bytes(file_end as *mut u8, 0, (zero_from - file_end) as usize) };
        }
        code::set(&lock(), start, end, guest_prot)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
        (bytes[16], bytes[18], bytes[54], bytes[56]) = (2, 62, 56, 1);
        bytes
    }

    #[test]
    fn bad_headers_are_named() {
        assert!(Header::parse(&header()).is_ok());
        assert_eq!(Header::parse(b"#!/bin/sh").unwrap_err(), ElfError::NotElf);
        assert_eq!(Header::parse(&header()[..40]).unwrap_err(), ElfError::Truncated);
        let mut other = header();
        other[4] = 1;
        assert_eq!(Header::parse(&other).unwrap_err(), ElfError::WrongClass);
        let mut other = header();
        other[18] = 183;
        assert_eq!(Header::parse(&other).unwrap_err(), ElfError::WrongMachine(183));
        let mut other = header();
        other[16] = 1;
        assert_eq!(Header::parse(&other).unwrap_err(), ElfError::NotExecutable(1));
    }
}
