//! Words of memory that hold code or data addresses once the program is loaded.

use super::header::{Dynamic, SHT_RELA, SectionHeader};
use super::symbol::RECORD as SYMBOL_RECORD;
use super::{GuestElf, Placement};

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

const R_X86_64_64: u32 = 1;
const R_X86_64_GLOB_DAT: u32 = 6;
const R_X86_64_JUMP_SLOT: u32 = 7;
const R_X86_64_RELATIVE: u32 = 8;
const R_X86_64_IRELATIVE: u32 = 37;

/// All relocated words by place, each place once.
pub(super) fn pointers(elf: &GuestElf, sections: &[SectionHeader], dynamic: &Dynamic) -> Vec<Pointer> {
    let mut pointers = Vec::new();
    // Static programs have IRELATIVE relocations but no dynamic section: there the section headers tell.
    let by_section = sections.iter().filter(|s| s.kind == SHT_RELA && s.is_loaded()).take(4);
    let by_section = by_section.map(|s| elf.bytes.get(s.file.clone()).unwrap_or(&[]));
    let by_dynamic = dynamic
        .rela
        .iter()
        .map(|&(address, size)| elf.bytes.get(elf.file_range(address, size)).unwrap_or(&[]));
    // Each place can be relocated once, so more of them than words in the file are an error in the table.
    let limit = elf.bytes.len() / 8;
    for table in by_dynamic.chain(by_section) {
        if pointers.len() > limit {
            break;
        }
        pointers.extend(table.as_chunks::<24>().0.iter().filter_map(|r| rela(elf, dynamic, r)));
    }
    if elf.placement == Placement::PositionIndependent {
        relr(elf, dynamic.relr, &mut pointers);
    }
    pointers.retain(|p| !elf.bytes_at(p.place).is_empty());
    pointers.sort_by_key(|p| (p.place, p.kind));
    pointers.dedup_by_key(|p| p.place);
    pointers
}

/// One `Elf64_Rela` record.
fn rela(elf: &GuestElf, dynamic: &Dynamic, record: &[u8; 24]) -> Option<Pointer> {
    let word = |i: usize| record[8 * i..].first_chunk().map_or(0, |&b| u64::from_le_bytes(b));
    let (place, info, addend) = (word(0), word(1), word(2));
    let (target, kind) = match info as u32 {
        R_X86_64_RELATIVE => (addend, PointerKind::Relative),
        R_X86_64_IRELATIVE => (addend, PointerKind::Resolver),
        R_X86_64_64 => (defined(elf, dynamic, info >> 32)?.wrapping_add(addend), PointerKind::Symbol),
        R_X86_64_GLOB_DAT | R_X86_64_JUMP_SLOT => (defined(elf, dynamic, info >> 32)?, PointerKind::Symbol),
        _ => return None,
    };
    Some(Pointer { place, target, kind })
}

/// The value of dynamic symbol `index` if this file defines it.
fn defined(elf: &GuestElf, dynamic: &Dynamic, index: u64) -> Option<u64> {
    let record = dynamic.symbols.checked_add(index * SYMBOL_RECORD)?;
    let section = elf.bytes_at(record).get(6..8)?;
    (section != [0, 0]).then(|| elf.bytes_at(record + 8).first_chunk().map(|&b| u64::from_le_bytes(b)))?
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
