//! Function symbols, from `.symtab` and `.dynsym`.

use super::GuestElf;
use super::header::{Dynamic, SHT_DYNSYM, SHT_SYMTAB, SectionHeader};
use std::borrow::Cow;
use std::ops::Range;

const STT_FUNC: u8 = 2;
const STT_GNU_IFUNC: u8 = 10;
/// Bytes of a symbol record.
const RECORD: u64 = 24;
/// Names are cut to this many bytes: they are for people.
const NAME_LIMIT: usize = 512;

/// A defined function symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// Its value.
    pub address: u64,
    /// Bytes of the function; 0 where unknown.
    pub size: u64,
    /// STT_GNU_IFUNC: not the function but what chooses it.
    pub resolver: bool,
    /// From `.dynsym`: other files can see it.
    pub exported: bool,
    /// Where the name starts in the file.
    name: usize,
}

impl Symbol {
    /// Its name in `elf`, the file that it came from.
    pub fn name<'a>(&self, elf: &'a GuestElf) -> Cow<'a, str> {
        name_in(elf.bytes.get(self.name..).unwrap_or(&[]))
    }
}

fn name_in(bytes: &[u8]) -> Cow<'_, str> {
    let bytes = bytes.get(..NAME_LIMIT).unwrap_or(bytes);
    String::from_utf8_lossy(bytes.split(|&b| b == 0).next().unwrap_or(&[]))
}

/// The record of dynamic symbol `index`.
fn dynamic_record<'a>(elf: &'a GuestElf, dynamic: &Dynamic, index: u32) -> Option<&'a [u8; RECORD as usize]> {
    elf.bytes_at(dynamic.symbols.checked_add(u64::from(index) * RECORD)?).first_chunk()
}

/// The value of dynamic symbol `index` if this file defines it.
pub(super) fn value(elf: &GuestElf, dynamic: &Dynamic, index: u32) -> Option<u64> {
    let record = dynamic_record(elf, dynamic, index)?;
    let defined = record[6..8] != [0, 0];
    defined.then(|| record[8..].first_chunk().map(|&b| u64::from_le_bytes(b)))?
}

/// The name of dynamic symbol `index`.
pub(super) fn name(elf: &GuestElf, dynamic: &Dynamic, index: u32) -> Option<String> {
    let record = dynamic_record(elf, dynamic, index)?;
    let offset = u32::from_le_bytes(*record.first_chunk()?);
    let name = name_in(elf.bytes_at(dynamic.strings.checked_add(offset.into())?));
    (!name.is_empty()).then(|| name.into_owned())
}

/// Defined function symbols at executable addresses, by address.
pub(super) fn functions(elf: &GuestElf, sections: &[SectionHeader], dynamic: &Dynamic) -> Vec<Symbol> {
    let mut symbols = Vec::new();
    // A file has one of each; more would be no more than work.
    let table = |kind| sections.iter().find(|s| s.kind == kind);
    for table in [table(SHT_SYMTAB), table(SHT_DYNSYM)].into_iter().flatten() {
        let strings = sections.get(table.link).map_or(0..0, |s| s.file.clone());
        let records = elf.bytes.get(table.file.clone()).unwrap_or(&[]);
        read(elf, records, strings, table.kind == SHT_DYNSYM, &mut symbols);
    }
    if table(SHT_DYNSYM).is_none() {
        // The dynamic section does not say how many symbols there are, but linkers put the names next.
        let size = dynamic.strings.saturating_sub(dynamic.symbols) as usize;
        let records = elf.bytes_at(dynamic.symbols);
        let strings = elf.file_range(dynamic.strings, dynamic.strings_size);
        read(elf, records.get(..size).unwrap_or(&[]), strings, true, &mut symbols);
    }
    symbols.sort_by_key(|s| (s.address, s.exported));
    symbols
}

fn read(elf: &GuestElf, records: &[u8], strings: Range<usize>, exported: bool, symbols: &mut Vec<Symbol>) {
    for record in records.chunks_exact(RECORD as usize) {
        let (Some(&name), Some(&address), Some(&size)) =
            (record.first_chunk(), record[8..].first_chunk(), record[16..].first_chunk())
        else {
            continue;
        };
        let (kind, section) = (record[4] & 15, u16::from_le_bytes([record[6], record[7]]));
        let address = u64::from_le_bytes(address);
        let name = strings.start + (u32::from_le_bytes(name) as usize).min(strings.len());
        let resolver = kind == STT_GNU_IFUNC;
        if (kind == STT_FUNC || resolver) && section != 0 && elf.is_code(address) {
            symbols.push(Symbol { address, size: u64::from_le_bytes(size), resolver, exported, name });
        }
    }
}
