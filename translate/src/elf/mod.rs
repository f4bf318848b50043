//! A guest ELF file as the translator sees it: what the kernel would map, and every hint at where code is.
//!
//! What the kernel needs (ELF header, program headers) must be right, and what the file claims to hold must
//! be in it, else [`ElfError`] names the part. Hints (symbols, unwind tables, relocations) are taken as
//! far as they make sense: they never decide about correctness. Sources: System V gABI, x86-64 psABI,
//! LSB core (`.eh_frame`), gABI proposal for `SHT_RELR`.

mod eh_frame;
mod error;
mod header;
mod relocation;
mod symbol;

pub use error::ElfError;
pub use relocation::{Import, Pointer, PointerKind};
pub use symbol::Symbol;

use header::{Dynamic, Header, ProgramHeader, SectionHeader};
use sha2::{Digest, Sha256};
use std::ops::Range;

/// A machine that a guest program can be built for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuestMachine {
    /// EM_X86_64, 64-bit class.
    X86_64,
}

/// Whether the file's addresses are those it runs at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// ET_EXEC: mapped at its link-time addresses.
    Fixed,
    /// ET_DYN: a load bias is added to all addresses.
    PositionIndependent,
}

/// A PT_LOAD segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// First address, as linked.
    pub address: u64,
    /// Bytes in memory; those behind the file's bytes are zero.
    pub memory_size: u64,
    /// Which bytes of the file it holds.
    pub file: Range<usize>,
    /// PF_R.
    pub readable: bool,
    /// PF_W.
    pub writable: bool,
    /// PF_X.
    pub executable: bool,
}

impl Segment {
    /// The addresses whose bytes are in the file.
    pub fn file_backed(&self) -> Range<u64> {
        self.address..self.address + self.file.len() as u64
    }
}

/// A parsed guest ELF file; owns the file's bytes.
#[derive(Clone, Debug)]
pub struct GuestElf {
    /// SHA-256 of the file.
    pub digest: [u8; 32],
    /// What it is built for.
    pub machine: GuestMachine,
    /// Fixed or position-independent.
    pub placement: Placement,
    /// Entry point; `None` in a shared library without one.
    pub entry: Option<u64>,
    /// PT_INTERP: the dynamic linker it asks for.
    pub interpreter: Option<String>,
    /// Whether other files' code runs in its process as the file itself says (PT_INTERP, DT_NEEDED) or can
    /// call it (it is a shared library).
    pub linked_with_others: bool,
    /// Whether calls and returns between it and other code leave only those flags in use that the psABI says: so with
    /// files, but generated code has its own ways.
    pub keeps_to_psabi: bool,
    /// PT_LOAD segments by address; they do not overlap.
    pub segments: Vec<Segment>,
    /// Executable sections by address; empty where there are no section headers.
    pub code_sections: Vec<Range<u64>>,
    /// Defined symbols at executable addresses, of both symbol tables, by address.
    pub symbols: Vec<Symbol>,
    /// Code ranges that the unwind table describes, by start: functions and parts of functions.
    pub frames: Vec<Range<u64>>,
    /// Words that are relocated by the load bias or a resolver, by place.
    pub pointers: Vec<Pointer>,
    /// Words that hold the addresses of other files' functions, by place.
    pub imports: Vec<Import>,
    /// Functions that run at start and exit: DT_INIT, DT_INIT_ARRAY, ….
    pub initializers: Vec<u64>,
    read_only_after_relocation: Vec<Range<u64>>,
    bytes: Vec<u8>,
}

impl GuestElf {
    /// Parse the file whose contents are `bytes`.
    pub fn parse(bytes: Vec<u8>) -> Result<GuestElf, ElfError> {
        let header = Header::parse(&bytes)?;
        let program = ProgramHeader::table(&bytes, &header)?;
        let sections = SectionHeader::table(&bytes, &header)?;
        let segments = header::segments(&program, bytes.len() as u64)?;
        let dynamic = Dynamic::parse(&bytes, &program);
        let mut elf = GuestElf {
            digest: Sha256::digest(&bytes).into(),
            machine: header.machine,
            placement: header.placement,
            entry: (header.entry != 0).then_some(header.entry),
            interpreter: header::interpreter(&bytes, &program),
            linked_with_others: dynamic.needs_others
                || program.iter().any(|p| p.kind == header::PT_INTERP)
                || header.entry == 0,
            keeps_to_psabi: true,
            segments,
            code_sections: header::code_sections(&sections),
            symbols: Vec::new(),
            frames: Vec::new(),
            pointers: Vec::new(),
            imports: Vec::new(),
            initializers: Vec::new(),
            read_only_after_relocation: header::relro(&program),
            bytes,
        };
        if let Some(entry) = elf.entry
            && !elf.is_code(entry)
        {
            return Err(ElfError::EntryOutside { entry });
        }
        elf.pointers = relocation::pointers(&elf, &sections, &dynamic);
        elf.imports = relocation::imports(&elf, &sections, &dynamic);
        elf.symbols = symbol::functions(&elf, &sections, &dynamic);
        elf.frames = eh_frame::ranges(&elf, &program, &sections);
        elf.initializers = dynamic.initializers(&elf, &sections);
        Ok(elf)
    }

    /// Code without a file: `bytes` that a process may execute at `address`.
    pub fn of_memory(address: u64, bytes: Vec<u8>) -> GuestElf {
        let segment = Segment {
            address,
            memory_size: bytes.len() as u64,
            file: 0..bytes.len(),
            readable: true,
            // Nothing in it is constant.
            writable: true,
            executable: true,
        };
        GuestElf {
            digest: Sha256::digest(&bytes).into(),
            machine: GuestMachine::X86_64,
            placement: Placement::Fixed,
            entry: None,
            interpreter: None,
            linked_with_others: true,
            keeps_to_psabi: false,
            segments: vec![segment],
            code_sections: Vec::new(),
            symbols: Vec::new(),
            frames: Vec::new(),
            pointers: Vec::new(),
            imports: Vec::new(),
            initializers: Vec::new(),
            read_only_after_relocation: Vec::new(),
            bytes,
        }
    }

    /// The whole file.
    pub fn file(&self) -> &[u8] {
        &self.bytes
    }

    /// The segment that `address` is in.
    pub fn segment_at(&self, address: u64) -> Option<&Segment> {
        let after = self.segments.partition_point(|s| s.address <= address);
        let segment = self.segments.get(after.checked_sub(1)?)?;
        (address - segment.address < segment.memory_size).then_some(segment)
    }

    /// The file's bytes from `address` to the end of its segment, before relocation; empty outside of any.
    pub fn bytes_at(&self, address: u64) -> &[u8] {
        self.segment_at(address)
            .and_then(|s| {
                let offset = usize::try_from(address - s.address).ok()?;
                self.bytes.get(s.file.clone())?.get(offset..)
            })
            .unwrap_or(&[])
    }

    /// The bytes from `address` to the end of its executable segment; empty if it is not executable.
    pub fn code_at(&self, address: u64) -> &[u8] {
        if self.segment_at(address).is_some_and(|s| s.executable) { self.bytes_at(address) } else { &[] }
    }

    /// Whether `address` has bytes that can be executed.
    pub fn is_code(&self, address: u64) -> bool {
        !self.code_at(address).is_empty()
    }

    /// Whether the program cannot change the byte at `address` once it runs: no PF_W, or PT_GNU_RELRO.
    pub fn is_constant(&self, address: u64) -> bool {
        self.segment_at(address).is_some_and(|s| !s.writable)
            || self.read_only_after_relocation.iter().any(|r| r.contains(&address))
    }

    /// The address of code or data, as linked, that the word at `place` holds once the program is loaded, if
    /// it is one: position-independent programs have it relocated by the load bias.
    pub fn pointer_at(&self, place: u64) -> Option<u64> {
        match self.pointers.binary_search_by_key(&place, |p| p.place) {
            Ok(i) => self.pointers.get(i).filter(|p| p.kind == PointerKind::Relative).map(|p| p.target),
            Err(_) if self.placement == Placement::PositionIndependent => None,
            Err(_) => self.bytes_at(place).first_chunk().map(|&b| u64::from_le_bytes(b)),
        }
    }

    /// The little-endian 32-bit word at `address`.
    pub fn half_at(&self, address: u64) -> Option<u32> {
        self.bytes_at(address).first_chunk().map(|&b| u32::from_le_bytes(b))
    }

    /// The name of the function of another file whose address the word at `place` holds.
    pub fn import_at(&self, place: u64) -> Option<&str> {
        let found = self.imports.binary_search_by_key(&place, |i| i.place).ok()?;
        self.imports.get(found).map(|i| i.name.as_str())
    }

    /// The frame that covers `address`.
    pub fn frame_at(&self, address: u64) -> Option<&Range<u64>> {
        let after = self.frames.partition_point(|f| f.start <= address);
        self.frames.get(after.checked_sub(1)?).filter(|f| f.contains(&address))
    }

    /// Where the file has the bytes at `address`, `size` of them or as many as the segment has.
    fn file_range(&self, address: u64, size: u64) -> Range<usize> {
        let Some(segment) = self.segment_at(address) else { return 0..0 };
        let offset = (address - segment.address).min(segment.file.len() as u64) as usize;
        let start = segment.file.start + offset;
        start..segment.file.end.min(start.saturating_add(usize::try_from(size).unwrap_or(usize::MAX)))
    }
}
