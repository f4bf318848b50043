//! Words of memory that hold code or data addresses once the program is loaded.

use super::header::{Dynamic, SHT_RELA, SectionHeader};
use super::{GuestElf, Placement, symbol};

/// A relocated word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pointer {
    /// Address of the word.
    pub place: u64,
    /// The address in this file that it leads to, as linked.
    pub target: u64,
    /// How it leads there.
    pub kind: PointerKind,
}

/// How a relocated word gets its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PointerKind {
    /// `target` plus the load bias (RELATIVE, RELR).
    Relative,
    /// What the function at `target` returns (IRELATIVE).
    Resolver,
    /// A symbol that this file defines at `target` but another file may override.
    Symbol,
}

/// A word that the dynamic linker sets to the address of another file's function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Import {
    /// Address of the word.
    pub place: u64,
    /// The symbol's name, without version.
    pub name: String,
}

const R_X86_64_64: u32 = 1;
const R_X86_64_GLOB_DAT: u32 = 6;
const R_X86_64_JUMP_SLOT: u32 = 7;
const R_X86_64_RELATIVE: u32 = 8;
const R_X86_64_IRELATIVE: u32 = 37;

/// All relocated words by place, each place once.
pub(super) fn pointers(elf: &GuestElf, sections: &[SectionHeader], dynamic: &Dynamic) -> Vec<Pointer> {
    let mut pointers: Vec<Pointer> =
        records(elf, sections, dynamic).filter_map(|r| r.pointer(elf, dynamic)).collect();
    if elf.placement == Placement::PositionIndependent {
        relr(elf, dynamic.relr, &mut pointers);
    }
    pointers.retain(|p| !elf.bytes_at(p.place).is_empty());
    pointers.sort_by_key(|p| (p.place, p.kind));
    pointers.dedup_by_key(|p| p.place);
    pointers
}

/// Function addresses that come from other files, by place.
pub(super) fn imports(elf: &GuestElf, sections: &[SectionHeader], dynamic: &Dynamic) -> Vec<Import> {
    let mut imports: Vec<Import> =
        records(elf, sections, dynamic).filter_map(|r| r.import(elf, dynamic)).collect();
    imports.sort_by_key(|i| i.place);
    imports
}

/// The RELA records, of the dynamic section's tables and of sections: static programs have IRELATIVE
/// relocations but no dynamic section.
fn records<'a>(
    elf: &'a GuestElf,
    sections: &'a [SectionHeader],
    dynamic: &Dynamic,
) -> impl Iterator<Item = Rela> + use<'a> {
    let by_dynamic = dynamic.rela.map(|(address, size)| elf.file_range(address, size));
    let by_section = sections.iter().filter(|s| s.kind == SHT_RELA && s.is_loaded()).map(|s| s.file.clone());
    // A file has two of these; more of them, or more records than words in the file, would be no more than work.
    let tables = by_dynamic.into_iter().chain(by_section.take(4));
    let records = tables.flat_map(|range| elf.bytes.get(range).unwrap_or(&[]).as_chunks::<24>().0);
    records.map(Rela::new).take(elf.bytes.len() / 8)
}

/// An `Elf64_Rela` record.
struct Rela {
    place: u64,
    kind: u32,
    symbol: u32,
    addend: u64,
}

impl Rela {
    fn new(record: &[u8; 24]) -> Rela {
        let word = |i: usize| record[8 * i..].first_chunk().map_or(0, |&b| u64::from_le_bytes(b));
        Rela { place: word(0), kind: word(1) as u32, symbol: (word(1) >> 32) as u32, addend: word(2) }
    }

    fn pointer(&self, elf: &GuestElf, dynamic: &Dynamic) -> Option<Pointer> {
        let defined = || symbol::value(elf, dynamic, self.symbol);
        let (target, kind) = match self.kind {
            R_X86_64_RELATIVE => (self.addend, PointerKind::Relative),
            R_X86_64_IRELATIVE => (self.addend, PointerKind::Resolver),
            R_X86_64_64 => (defined()?.wrapping_add(self.addend), PointerKind::Symbol),
            R_X86_64_GLOB_DAT | R_X86_64_JUMP_SLOT => (defined()?, PointerKind::Symbol),
            _ => return None,
        };
        Some(Pointer { place: self.place, target, kind })
    }

    fn import(&self, elf: &GuestElf, dynamic: &Dynamic) -> Option<Import> {
        let function = matches!(self.kind, R_X86_64_GLOB_DAT | R_X86_64_JUMP_SLOT);
        let undefined = function && symbol::value(elf, dynamic, self.symbol).is_none();
        undefined
            .then(|| Some(Import { place: self.place, name: symbol::name(elf, dynamic, self.symbol)? }))?
    }
}

/// The DT_RELR table: an even word is a place; an odd word is a bitmap of which of the 63 words behind the last
/// place are places too. The words hold their targets.
fn relr(elf: &GuestElf, (address, size): (u64, u64), pointers: &mut Vec<Pointer>) {
    let limit = pointers.len() + elf.bytes.len() / 8;
    let mut next = 0u64;
    for entry in elf.bytes.get(elf.file_range(address, size)).unwrap_or(&[]).as_chunks::<8>().0 {
        let entry = u64::from_le_bytes(*entry);
        let (base, places, advance) = if entry & 1 == 0 { (entry, 1, 1) } else { (next, entry >> 1, 63) };
        for bit in (0..63).filter(|bit| places >> bit & 1 != 0) {
            let place = base.wrapping_add(8 * bit);
            if let Some(&word) = elf.bytes_at(place).first_chunk() {
                let target = u64::from_le_bytes(word);
                pointers.push(Pointer { place, target, kind: PointerKind::Relative });
            }
        }
        if pointers.len() > limit {
            return;
        }
        next = base.wrapping_add(8 * advance);
    }
}
