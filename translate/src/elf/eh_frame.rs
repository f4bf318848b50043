//! Code ranges from the unwind table (`.eh_frame`): its frame descriptions (FDEs) say where each function, or
//! part of one, starts and ends. Sources: LSB core 10.6, DWARF 5 section 6.4.

use super::GuestElf;
use super::header::{PT_GNU_EH_FRAME, ProgramHeader, SectionHeader};
use std::collections::BTreeMap;
use std::ops::Range;

/// Frame ranges by start. The table is found by its section or, without section headers, by
/// PT_GNU_EH_FRAME; reading stops where it makes no sense.
pub(super) fn ranges(
    elf: &GuestElf,
    program: &[ProgramHeader],
    sections: &[SectionHeader],
) -> Vec<Range<u64>> {
    let by_section = sections.iter().find(|s| s.is_loaded() && s.name == ".eh_frame").map(|s| s.address);
    let by_header = || by_header(elf, program.iter().find(|p| p.kind == PT_GNU_EH_FRAME)?.address);
    let Some(start) = by_section.or_else(by_header) else { return Vec::new() };
    let mut ranges = frames(elf, start);
    ranges.retain(|r| r.start < r.end && r.end - r.start <= elf.code_at(r.start).len() as u64);
    ranges.sort_by_key(|r| (r.start, r.end));
    ranges.dedup_by_key(|r| r.start);
    ranges
}

/// The table's address by `.eh_frame_hdr`.
fn by_header(elf: &GuestElf, address: u64) -> Option<u64> {
    let mut header = Reader::new(elf, address);
    let (version, encoding) = (header.u8()?, header.u8()?);
    header.skip(2)?;
    if version == 1 { header.pointer(Encoding(encoding)) } else { None }
}

/// The frames of the table at `start`.
fn frames(elf: &GuestElf, start: u64) -> Vec<Range<u64>> {
    let mut ranges = Vec::new();
    let mut cies = BTreeMap::new();
    let mut table = Reader::new(elf, start);
    while let Some(mut record) = table.record() {
        let id_at = record.address;
        let Some(id) = record.u32() else { break };
        if id == 0 {
            continue;
        }
        let cie_at = id_at.wrapping_sub(id.into());
        let cie = *cies.entry(cie_at).or_insert_with(|| Cie::at(elf, cie_at));
        let range = cie.and_then(|cie| {
            let start = record.pointer(cie.encoding)?;
            let end = start.checked_add(record.pointer(cie.encoding.size_only())?)?;
            // Unwinders look up return addresses less one, so these frames start one byte early.
            Some(start + u64::from(cie.is_signal_frame)..end)
        });
        ranges.extend(range);
    }
    ranges
}

/// What matters here of a common information entry.
#[derive(Clone, Copy)]
struct Cie {
    /// How code pointers are written.
    encoding: Encoding,
    /// It is for the code that a signal handler returns to.
    is_signal_frame: bool,
}

impl Cie {
    fn at(elf: &GuestElf, address: u64) -> Option<Cie> {
        let mut record = Reader::new(elf, address).record()?;
        if record.u32()? != 0 {
            return None;
        }
        let version = record.u8()?;
        let augmentation = record.string()?;
        record.leb128()?;
        record.leb128()?;
        if version == 1 {
            record.skip(1)?
        } else {
            record.leb128().map(|_| ())?
        };
        let mut cie = Cie { encoding: Encoding(0), is_signal_frame: false };
        let Some((b'z', letters)) = augmentation.split_first() else { return Some(cie) };
        record.leb128()?;
        for letter in letters {
            match letter {
                b'R' => cie.encoding = Encoding(record.u8()?),
                b'P' => {
                    let encoding = Encoding(record.u8()?);
                    record.pointer(encoding)?;
                }
                b'L' => record.skip(1)?,
                b'S' => cie.is_signal_frame = true,
                b'B' => {}
                _ => return None,
            }
        }
        Some(cie)
    }
}

/// A DW_EH_PE byte: low four bits the format, the next three what it is relative to.
#[derive(Clone, Copy)]
struct Encoding(u8);

impl Encoding {
    /// The same format, relative to nothing, unsigned where it has a sign: for sizes.
    fn size_only(self) -> Encoding {
        Encoding(self.0 & 7)
    }
}

/// Reads the file's bytes at guest addresses.
struct Reader<'a> {
    address: u64,
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    fn new(elf: &'a GuestElf, address: u64) -> Reader<'a> {
        Reader { address, bytes: elf.bytes_at(address) }
    }

    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (head, tail) = self.bytes.split_at_checked(count)?;
        self.bytes = tail;
        self.address += count as u64;
        Some(head)
    }

    fn skip(&mut self, count: usize) -> Option<()> {
        self.take(count).map(|_| ())
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.first_chunk().copied()
    }

    fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[b]| b)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// The contents of the length-prefixed record here, and on to the next one. A zero length ends the table.
    fn record(&mut self) -> Option<Reader<'a>> {
        let length = match self.u32()? {
            0 => return None,
            u32::MAX => self.u64()?,
            length => length.into(),
        };
        let address = self.address;
        Some(Reader { address, bytes: self.take(usize::try_from(length).ok()?)? })
    }

    /// A zero-terminated string; those here have a handful of characters.
    fn string(&mut self) -> Option<&'a [u8]> {
        let length = self.bytes.iter().take(16).position(|&b| b == 0)?;
        let string = self.take(length)?;
        self.skip(1)?;
        Some(string)
    }

    /// An unsigned LEB128 number, modulo 2^64.
    fn leb128(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..70).step_by(7) {
            let byte = self.u8()?;
            value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    /// A pointer; only absolute and PC-relative ones occur for code.
    fn pointer(&mut self, encoding: Encoding) -> Option<u64> {
        let here = self.address;
        let value = match encoding.0 & 15 {
            0 | 4 | 12 => self.u64()?,
            1 => self.leb128()?,
            2 => u16::from_le_bytes(self.array()?).into(),
            3 => self.u32()?.into(),
            10 => i16::from_le_bytes(self.array()?) as u64,
            11 => self.u32()? as i32 as u64,
            _ => return None,
        };
        match encoding.0 & 0x70 {
            0x00 => Some(value),
            0x10 => Some(here.wrapping_add(value)),
            _ => None,
        }
    }
}
