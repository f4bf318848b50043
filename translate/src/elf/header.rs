//! ELF header, program headers, section headers and the dynamic section.

use super::{ElfError, GuestElf, GuestMachine, Placement, Segment};
use std::ops::Range;

pub(super) const PT_LOAD: u32 = 1;
pub(super) const PT_DYNAMIC: u32 = 2;
pub(super) const PT_INTERP: u32 = 3;
pub(super) const PT_GNU_EH_FRAME: u32 = 0x6474_e550;
pub(super) const PT_GNU_RELRO: u32 = 0x6474_e552;

pub(super) const SHT_SYMTAB: u32 = 2;
pub(super) const SHT_RELA: u32 = 4;
const SHT_NOBITS: u32 = 8;
pub(super) const SHT_DYNSYM: u32 = 11;
const SHT_INIT_ARRAY: u32 = 14;
const SHT_PREINIT_ARRAY: u32 = 16;
const SHF_ALLOC: u64 = 2;
const SHF_EXECINSTR: u64 = 4;

/// Little-endian fields at byte offsets of one record; a field outside of it reads as zero, so the
/// record's size is checked before.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn bytes<const N: usize>(&self, offset: usize) -> [u8; N] {
        self.0.get(offset..).and_then(|b| b.first_chunk()).copied().unwrap_or([0; N])
    }
    fn u16(&self, offset: usize) -> u16 {
        u16::from_le_bytes(self.bytes(offset))
    }
    fn u32(&self, offset: usize) -> u32 {
        u32::from_le_bytes(self.bytes(offset))
    }
    fn u64(&self, offset: usize) -> u64 {
        u64::from_le_bytes(self.bytes(offset))
    }
}

/// The bytes of the file that `part` occupies.
pub(super) fn file_range(
    bytes: &[u8],
    part: &'static str,
    offset: u64,
    size: u64,
) -> Result<Range<usize>, ElfError> {
    let file_size = bytes.len() as u64;
    let end = offset.saturating_add(size);
    if end > file_size {
        return Err(ElfError::Truncated { part, end, file_size });
    }
    Ok(offset as usize..end as usize)
}

/// The fields of the ELF header that matter here.
pub(super) struct Header {
    pub(super) machine: GuestMachine,
    pub(super) placement: Placement,
    pub(super) entry: u64,
    program: Table,
    sections: Table,
    section_names: usize,
}

/// A table of records in the file.
struct Table {
    offset: u64,
    entry_size: u16,
    count: u64,
}

impl Table {
    /// Its records, each at least `minimum` bytes.
    fn records<'a>(
        &self,
        bytes: &'a [u8],
        part: &'static str,
        minimum: u16,
    ) -> Result<impl Iterator<Item = Fields<'a>> + use<'a>, ElfError> {
        if self.count > 0 && self.entry_size < minimum {
            return Err(ElfError::Malformed { part, value: self.entry_size.into() });
        }
        let size = self.count.saturating_mul(self.entry_size.into());
        let range = file_range(bytes, part, self.offset, size)?;
        Ok(bytes.get(range).unwrap_or(&[]).chunks_exact(self.entry_size.max(1).into()).map(Fields))
    }
}

impl Header {
    const SIZE: u64 = 64;

    pub(super) fn parse(bytes: &[u8]) -> Result<Header, ElfError> {
        if !bytes.starts_with(b"\x7fELF") {
            return Err(ElfError::NotElf);
        }
        let ident = Fields(bytes);
        let [class, data] = ident.bytes(4);
        if bytes.len() > 5 && class != 2 {
            return Err(ElfError::WrongClass { class });
        }
        if bytes.len() > 5 && data != 1 {
            return Err(ElfError::WrongByteOrder { data });
        }
        let h = Fields(bytes.get(file_range(bytes, "ELF header", 0, Header::SIZE)?).unwrap_or(&[]));
        let placement = match h.u16(16) {
            2 => Placement::Fixed,
            3 => Placement::PositionIndependent,
            kind => return Err(ElfError::NotExecutable { kind }),
        };
        let machine = match h.u16(18) {
            62 => GuestMachine::X86_64,
            machine => return Err(ElfError::WrongMachine { machine }),
        };
        let offset = h.u64(40);
        Ok(Header {
            machine,
            placement,
            entry: h.u64(24),
            program: Table { offset: h.u64(32), entry_size: h.u16(54), count: h.u16(56).into() },
            // Without an offset there are none, whatever the count says.
            sections: Table {
                offset,
                entry_size: h.u16(58),
                count: if offset == 0 { 0 } else { h.u16(60).into() },
            },
            section_names: h.u16(62).into(),
        })
    }
}

/// A program header whose file range is inside the file.
pub(super) struct ProgramHeader {
    pub(super) kind: u32,
    flags: u32,
    pub(super) file: Range<usize>,
    pub(super) address: u64,
    memory_size: u64,
}

impl ProgramHeader {
    pub(super) fn table(bytes: &[u8], header: &Header) -> Result<Vec<ProgramHeader>, ElfError> {
        header
            .program
            .records(bytes, "program header table", 56)?
            .map(|p| {
                let kind = p.u32(0);
                let part = if kind == PT_LOAD { "loadable segment" } else { "segment" };
                Ok(ProgramHeader {
                    kind,
                    flags: p.u32(4),
                    file: file_range(bytes, part, p.u64(8), p.u64(32))?,
                    address: p.u64(16),
                    memory_size: p.u64(40),
                })
            })
            .collect()
    }
}

/// A section header whose file range is inside the file.
pub(super) struct SectionHeader {
    pub(super) name: String,
    pub(super) kind: u32,
    flags: u64,
    pub(super) address: u64,
    size: u64,
    pub(super) file: Range<usize>,
    pub(super) link: usize,
}

impl SectionHeader {
    pub(super) fn table(bytes: &[u8], header: &Header) -> Result<Vec<SectionHeader>, ElfError> {
        const PART: &str = "section header table";
        let names = header.sections.records(bytes, PART, 64)?.nth(header.section_names);
        let names = names.map_or(&[][..], |s| bytes.get(s.u64(24) as usize..).unwrap_or(&[]));
        header
            .sections
            .records(bytes, PART, 64)?
            .map(|s| {
                let kind = s.u32(4);
                let in_file = kind != SHT_NOBITS && s.u64(32) > 0;
                Ok(SectionHeader {
                    name: section_name(names, s.u32(0)),
                    kind,
                    flags: s.u64(8),
                    address: s.u64(16),
                    size: s.u64(32),
                    file: if in_file { file_range(bytes, "section", s.u64(24), s.u64(32))? } else { 0..0 },
                    link: s.u32(40) as usize,
                })
            })
            .collect()
    }

    /// Whether it is part of memory at run time.
    pub(super) fn is_loaded(&self) -> bool {
        self.flags & SHF_ALLOC != 0
    }
}

/// The zero-terminated name at `offset`; the names that matter here are short.
fn section_name(names: &[u8], offset: u32) -> String {
    let name = names.get(offset as usize..).unwrap_or(&[]).iter().take(32).take_while(|&&b| b != 0);
    name.map(|&b| char::from(b)).collect()
}

/// One past the last address that a guest program can have: 47 bits on x86-64.
const ADDRESS_LIMIT: u64 = 1 << 47;

/// The PT_LOAD segments by address.
pub(super) fn segments(program: &[ProgramHeader], file_size: u64) -> Result<Vec<Segment>, ElfError> {
    let mut segments = Vec::new();
    for p in program.iter().filter(|p| p.kind == PT_LOAD && p.memory_size > 0) {
        if p.file.len() as u64 > p.memory_size {
            return Err(ElfError::Malformed { part: "segment memory size", value: p.memory_size });
        }
        if p.address.saturating_add(p.memory_size) > ADDRESS_LIMIT {
            return Err(ElfError::Malformed { part: "segment address", value: p.address });
        }
        segments.push(Segment {
            address: p.address,
            memory_size: p.memory_size,
            file: p.file.clone(),
            readable: p.flags & 4 != 0,
            writable: p.flags & 2 != 0,
            executable: p.flags & 1 != 0,
        });
    }
    // Each byte of a file belongs in one segment, two at the seams; more would only inflate our work.
    let total: u64 = segments.iter().map(|s| s.file.len() as u64).sum();
    if total > 4 * file_size {
        return Err(ElfError::Malformed { part: "sum of segment file sizes", value: total });
    }
    segments.sort_by_key(|s| s.address);
    for pair in segments.windows(2) {
        if let [a, b] = pair
            && a.address + a.memory_size > b.address
        {
            return Err(ElfError::Overlap { address: b.address });
        }
    }
    if segments.is_empty() { Err(ElfError::NothingToLoad) } else { Ok(segments) }
}

/// The dynamic linker that PT_INTERP names.
pub(super) fn interpreter(bytes: &[u8], program: &[ProgramHeader]) -> Option<String> {
    let path = bytes.get(program.iter().find(|p| p.kind == PT_INTERP)?.file.clone())?;
    let path = path.split(|&b| b == 0).next()?;
    Some(String::from_utf8_lossy(path).into_owned())
}

/// The PT_GNU_RELRO ranges.
pub(super) fn relro(program: &[ProgramHeader]) -> Vec<Range<u64>> {
    let relro = program.iter().filter(|p| p.kind == PT_GNU_RELRO);
    relro.map(|p| p.address..p.address.saturating_add(p.memory_size)).collect()
}

/// The executable sections by address, joined where they overlap.
pub(super) fn code_sections(sections: &[SectionHeader]) -> Vec<Range<u64>> {
    let code =
        sections.iter().filter(|s| s.is_loaded() && s.flags & SHF_EXECINSTR != 0 && !s.file.is_empty());
    let mut sorted: Vec<_> = code.map(|s| s.address..s.address.saturating_add(s.size)).collect();
    sorted.sort_by_key(|r| r.start);
    let mut joined: Vec<Range<u64>> = Vec::new();
    for range in sorted {
        match joined.last_mut() {
            Some(last) if range.start < last.end => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    joined
}

/// What the dynamic section says; absent entries are zero.
#[derive(Default)]
pub(super) struct Dynamic {
    pub(super) needs_others: bool,
    pub(super) symbols: u64,
    pub(super) strings: u64,
    pub(super) strings_size: u64,
    /// DT_RELA and DT_JMPREL: address and bytes.
    pub(super) rela: [(u64, u64); 2],
    /// DT_RELR: address and bytes.
    pub(super) relr: (u64, u64),
    init: u64,
    fini: u64,
    /// DT_PREINIT_ARRAY, DT_INIT_ARRAY, DT_FINI_ARRAY: address and bytes.
    arrays: [(u64, u64); 3],
}

impl Dynamic {
    pub(super) fn parse(bytes: &[u8], program: &[ProgramHeader]) -> Dynamic {
        let mut d = Dynamic::default();
        let Some(header) = program.iter().find(|p| p.kind == PT_DYNAMIC) else { return d };
        for entry in bytes.get(header.file.clone()).unwrap_or(&[]).chunks_exact(16) {
            let value = Fields(entry).u64(8);
            match Fields(entry).u64(0) {
                0 => break,
                1 => d.needs_others = true,
                2 => d.rela[1].1 = value,
                5 => d.strings = value,
                6 => d.symbols = value,
                7 => d.rela[0].0 = value,
                8 => d.rela[0].1 = value,
                10 => d.strings_size = value,
                12 => d.init = value,
                13 => d.fini = value,
                23 => d.rela[1].0 = value,
                25 => d.arrays[1].0 = value,
                26 => d.arrays[2].0 = value,
                27 => d.arrays[1].1 = value,
                28 => d.arrays[2].1 = value,
                32 => d.arrays[0].0 = value,
                33 => d.arrays[0].1 = value,
                35 => d.relr.1 = value,
                36 => d.relr.0 = value,
                _ => {}
            }
        }
        d
    }

    /// The functions that run at start and exit, by the dynamic section or (in static programs) by
    /// sections of the array types.
    pub(super) fn initializers(&self, elf: &GuestElf, sections: &[SectionHeader]) -> Vec<u64> {
        let by_section = sections.iter().filter(|s| (SHT_INIT_ARRAY..=SHT_PREINIT_ARRAY).contains(&s.kind));
        let arrays = self.arrays.iter().copied().chain(by_section.map(|s| (s.address, s.size)));
        let mut functions = vec![self.init, self.fini];
        for (start, size) in arrays {
            // An array cannot be longer than the file, whatever its size says.
            let end = start.saturating_add(size.min(elf.bytes_at(start).len() as u64));
            if functions.len() > elf.bytes.len() / 8 {
                break;
            }
            functions.extend((start..end).step_by(8).filter_map(|place| elf.pointer_at(place)));
        }
        functions.retain(|&f| elf.is_code(f));
        functions.sort_unstable();
        functions.dedup();
        functions
    }
}
