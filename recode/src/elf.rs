//! The little of ELF that mapping the runtime and its objects takes: loadable segments, and addresses of exported
//! symbols (System V gABI, chapters 4 and 5; little-endian ELF64 only). Only what is asked for is read: objects are large.

use crate::error::{RecodeError, Result};
use crate::image::Source;
use tranship_abi::host::Host;

/// A loadable segment. Addresses are as linked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    /// First address.
    pub(crate) address: u64,
    /// Offset of its bytes in the file.
    pub(crate) offset: u64,
    /// How many of its bytes are in the file.
    pub(crate) file_bytes: u64,
    /// Bytes in memory; those past the file's are zero.
    pub(crate) memory_bytes: u64,
    /// PROT_* bits.
    pub(crate) protection: u32,
}

/// An ELF file.
pub(crate) struct Elf<'f> {
    path: &'f str,
    file: &'f dyn Source,
    header: Vec<u8>,
}

/// A header, table entry or symbol in an ELF file.
struct Record<'b> {
    path: &'b str,
    bytes: &'b [u8],
}

/// Records of the same size, one after the other.
struct Table<'f> {
    path: &'f str,
    bytes: Vec<u8>,
    size: usize,
}

/// A symbol table.
pub(crate) struct Symbols<'f> {
    table: Table<'f>,
    names: Vec<u8>,
}

const PT_LOAD: u32 = 1;
const SHT_SYMTAB: u32 = 2;
const SHT_DYNSYM: u32 = 11;
const SHN_UNDEF: u16 = 0;
const HEADER_BYTES: u64 = 64;
const PROGRAM_HEADER_BYTES: usize = 56;
const SECTION_HEADER_BYTES: usize = 64;
const SYMBOL_BYTES: usize = 24;

impl<'f> Elf<'f> {
    /// The ELF64 file `file`; `path` is what errors call it.
    pub(crate) fn new(path: &'f str, file: &'f dyn Source) -> Result<Elf<'f>> {
        let mut elf = Elf { path, file, header: vec![] };
        elf.header = elf.file_range(0, file.length().min(HEADER_BYTES))?;
        let ident = elf.header.first_chunk::<6>();
        if ident != Some(&[0x7f, b'E', b'L', b'F', 2, 1]) || file.length() < HEADER_BYTES {
            return Err(elf.bad("is no little-endian ELF64 file"));
        }
        Ok(elf)
    }

    /// The same, for a known machine.
    pub(crate) fn of(machine: Host, path: &'f str, file: &'f dyn Source) -> Result<Elf<'f>> {
        let elf = Elf::new(path, file)?;
        let found = u32::from(elf.header().u16(18)?);
        if found != machine.machine_id() {
            return Err(elf.bad(format!("is for ELF machine {found}, not for {}", machine.name())));
        }
        Ok(elf)
    }

    fn header(&self) -> Record<'_> {
        Record { path: self.path, bytes: &self.header }
    }

    /// Its length in bytes.
    pub(crate) fn length(&self) -> u64 {
        self.file.length()
    }

    /// An error about this file.
    pub(crate) fn bad(&self, what: impl Into<String>) -> RecodeError {
        bad(self.path, what)
    }

    /// Loadable segments, by rising address, not overlapping.
    pub(crate) fn segments(&self) -> Result<Vec<Segment>> {
        let header = self.header();
        let table = self.table(header.u64(32)?, header.u16(54)?, header.u16(56)?, PROGRAM_HEADER_BYTES)?;
        let mut segments = Vec::new();
        for entry in table.records() {
            if entry.u32(0)? == PT_LOAD {
                segments.push(self.segment(&entry)?);
            }
        }
        let end = |s: &Segment| s.address.checked_add(s.memory_bytes);
        let ordered = segments.windows(2).all(|pair| end(&pair[0]).is_some_and(|end| end <= pair[1].address));
        if segments.is_empty() || !ordered {
            return Err(self.bad("has no loadable segments in order"));
        }
        Ok(segments)
    }

    fn segment(&self, entry: &Record) -> Result<Segment> {
        let flags = entry.u32(4)?;
        let segment = Segment {
            offset: entry.u64(8)?,
            address: entry.u64(16)?,
            file_bytes: entry.u64(32)?,
            memory_bytes: entry.u64(40)?,
            // PF_X, PF_W, PF_R are 1, 2, 4; PROT_READ, PROT_WRITE, PROT_EXEC the other way round.
            protection: flags >> 2 & 1 | flags & 2 | (flags & 1) << 2,
        };
        let in_file = segment.offset.checked_add(segment.file_bytes);
        let sound = in_file.is_some_and(|end| end <= self.length())
            && segment.file_bytes <= segment.memory_bytes
            && segment.address.checked_add(segment.memory_bytes).is_some_and(|end| end < 1 << 47);
        if sound { Ok(segment) } else { Err(self.bad("has a segment that is not in the file")) }
    }

    /// The file's bytes of a range that one of its headers names.
    pub(crate) fn file_range(&self, offset: u64, bytes: u64) -> Result<Vec<u8>> {
        if offset.checked_add(bytes).is_none_or(|end| end > self.length()) {
            return Err(self.bad("ends early"));
        }
        let mut read = vec![0; bytes as usize];
        self.file.read_at(offset, &mut read).map_err(|why| self.bad(format!("cannot be read: {why}")))?;
        Ok(read)
    }

    /// Address, as linked, of an exported symbol.
    pub(crate) fn symbol(&self, name: &str) -> Result<u64> {
        for symbols in self.symbols()? {
            for symbol in symbols?.defined() {
                match symbol? {
                    (found, address) if found == name.as_bytes() => return Ok(address),
                    _ => {}
                }
            }
        }
        Err(self.bad(format!("does not define {name}")))
    }

    /// The symbol tables. Each is read when it is asked for: the one of what is exported, which is small, comes first.
    pub(crate) fn symbols(&self) -> Result<impl Iterator<Item = Result<Symbols<'f>>>> {
        let header = self.header();
        let sections = self.table(header.u64(40)?, header.u16(58)?, header.u16(60)?, SECTION_HEADER_BYTES)?;
        let mut found = Vec::new();
        for section in sections.records() {
            if [SHT_DYNSYM, SHT_SYMTAB].contains(&section.u32(4)?) {
                let names = sections.records().nth(section.u32(40)? as usize);
                let names = names.ok_or_else(|| self.bad("lacks symbol names"))?;
                found.push([section.range()?, names.range()?]);
            }
        }
        Ok(found.into_iter().map(|[symbols, names]| {
            let table = self.records(symbols, SYMBOL_BYTES)?;
            Ok(Symbols { table, names: self.file_range(names.0, names.1)? })
        }))
    }

    fn table(&self, at: u64, size: u16, count: u16, least: usize) -> Result<Table<'f>> {
        let size = usize::from(size);
        if size < least && count > 0 {
            return Err(self.bad("has headers that are too short"));
        }
        self.records((at, size as u64 * u64::from(count)), size.max(1))
    }

    /// The bytes of a range, offset and length, as records of `size` bytes each.
    fn records(&self, (at, bytes): (u64, u64), size: usize) -> Result<Table<'f>> {
        Ok(Table { path: self.path, bytes: self.file_range(at, bytes)?, size })
    }
}

impl Table<'_> {
    fn records(&self) -> impl Iterator<Item = Record<'_>> {
        self.bytes.chunks_exact(self.size).map(|bytes| Record { path: self.path, bytes })
    }
}

impl Symbols<'_> {
    /// Names and addresses of those that are defined here.
    pub(crate) fn defined(&self) -> impl Iterator<Item = Result<(&[u8], u64)>> {
        let name = |at: u32| {
            let name = self.names.get(at as usize..).unwrap_or_default();
            name.split(|byte| *byte == 0).next().unwrap_or_default()
        };
        let symbols = self.table.records().filter(|symbol| !matches!(symbol.u16(6), Ok(SHN_UNDEF)));
        symbols.map(move |symbol| Ok((name(symbol.u32(0)?), symbol.u64(8)?)))
    }
}

impl Record<'_> {
    fn array<const N: usize>(&self, offset: usize) -> Result<[u8; N]> {
        let bytes = self.bytes.get(offset..).and_then(|bytes| bytes.first_chunk::<N>());
        bytes.copied().ok_or_else(|| bad(self.path, "ends early"))
    }

    /// Offset and length of what a section header is about.
    fn range(&self) -> Result<(u64, u64)> {
        Ok((self.u64(24)?, self.u64(32)?))
    }

    fn u16(&self, offset: usize) -> Result<u16> {
        Ok(u16::from_le_bytes(self.array(offset)?))
    }

    fn u32(&self, offset: usize) -> Result<u32> {
        Ok(u32::from_le_bytes(self.array(offset)?))
    }

    fn u64(&self, offset: usize) -> Result<u64> {
        Ok(u64::from_le_bytes(self.array(offset)?))
    }
}

fn bad(path: &str, what: impl Into<String>) -> RecodeError {
    RecodeError::Elf { path: path.to_owned(), what: what.into() }
}
