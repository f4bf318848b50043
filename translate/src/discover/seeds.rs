//! Where discovery starts: what the file declares, then addresses that data and code hold, then what is left
//! between functions.

use super::code::{Code, Flow, Origin};
use super::x86_64::{self as guest, effects};

use crate::elf::{GuestElf, Placement, PointerKind};
use crate::region::FlagSet;
use std::collections::{BTreeSet, HashSet};
use std::ops::Range;
use tranship_isa::x86_64::Flag;

/// Most instructions that are looked at to judge whether an address is code.
const TRIAL_LIMIT: usize = 200;

/// Most instructions that are looked at for reads of flags.
const WANTS_LIMIT: usize = 24;

const DECLARED: Origin = Origin { declared: true, called: false, address_taken: false };
const CALLED: Origin = Origin { declared: true, called: true, address_taken: false };
const EXPORTED: Origin = Origin { declared: true, called: true, address_taken: true };
const ADDRESS_TAKEN: Origin = Origin { declared: false, called: false, address_taken: true };
const FOUND: Origin = Origin { declared: false, called: false, address_taken: false };

/// Enter what the file says is code: entry point, symbols, unwind table, initialisers, resolvers.
pub(super) fn enter_declared(code: &mut Code) {
    let elf = code.elf;
    for entry in elf.entry.iter().chain(&elf.initializers) {
        code.enter(*entry, EXPORTED);
    }
    for symbol in &elf.symbols {
        // GCC splits the unlikely part off a function and gives it a symbol that nobody calls.
        let part = symbol.name(elf).contains(".cold");
        let origin = if part { DECLARED } else { CALLED };
        code.enter(symbol.address, if symbol.exported { EXPORTED } else { origin });
    }
    for frame in &elf.frames {
        code.enter(frame.start, DECLARED);
    }
    for pointer in &elf.pointers {
        match pointer.kind {
            PointerKind::Resolver => code.enter(pointer.target, CALLED),
            PointerKind::Symbol => code.enter(pointer.target, EXPORTED),
            PointerKind::Relative => {}
        }
    }
}

/// Enter code at `entries`, which is executed there.
pub(super) fn enter_given(code: &mut Code, entries: impl IntoIterator<Item = u64>) {
    for entry in entries {
        code.enter(entry, EXPORTED);
    }
}

/// Enter plausible code whose address data or code holds. Returns whether anything was new.
pub(super) fn enter_address_taken(code: &mut Code, tried: &mut HashSet<u64>) -> bool {
    let mut changed = false;
    for target in held_addresses(code) {
        if tried.insert(target) && is_target(code, target) {
            changed |= code.length(target).is_none();
            code.enter(target, ADDRESS_TAKEN);
        }
    }
    changed
}

/// Forget that addresses are taken where only jump tables hold them.
pub(super) fn drop_table_entries(code: &mut Code) {
    let held = held_addresses(code);
    code.entries.retain(|address, origin| *origin != ADDRESS_TAKEN || held.contains(address));
}

/// Addresses in executable ranges that words of data hold, jump tables aside, or instructions mention.
fn held_addresses(code: &Code) -> BTreeSet<u64> {
    let elf = code.elf;
    let tables = code.table_ranges();
    let in_table = |place: u64| {
        let after = tables.partition_point(|t| t.start <= place);
        after.checked_sub(1).and_then(|i| tables.get(i)).is_some_and(|t| t.contains(&place))
    };
    let words: Box<dyn Iterator<Item = (u64, u64)>> = match elf.placement {
        Placement::PositionIndependent => Box::new(elf.pointers.iter().map(|p| (p.place, p.target))),
        // Words that are written at start (PLT slots) lead nowhere yet.
        Placement::Fixed => Box::new(data_words(elf).filter(|&(place, _)| elf.pointer_at(place).is_some())),
    };
    let in_data = words.filter(|&(place, target)| code.contains(target) && !in_table(place)).map(|(_, t)| t);
    let in_code = code.references.iter().copied().filter(|&r| code.contains(r));
    in_data.chain(in_code).collect()
}

/// The aligned words outside of executable sections: place and value.
fn data_words(elf: &GuestElf) -> impl Iterator<Item = (u64, u64)> {
    let sections = &elf.code_sections;
    let in_code = move |place: u64| {
        let after = sections.partition_point(|r| r.start <= place);
        after.checked_sub(1).and_then(|i| sections.get(i)).is_some_and(|r| r.contains(&place))
    };
    elf.segments.iter().flat_map(move |segment| {
        let start = segment.address.next_multiple_of(8);
        let words = elf.bytes_at(start).as_chunks::<8>().0.iter();
        let words = words.zip((start..).step_by(8)).map(|(w, place)| (place, u64::from_le_bytes(*w)));
        words.filter(move |&(place, _)| !segment.executable || !in_code(place))
    })
}

/// Whether an address that something holds is one where code is entered.
fn is_target(code: &Code, address: u64) -> bool {
    if code.length(address).is_none() && (code.is_inside(address) || !is_plausible(code, address)) {
        return false;
    }
    !wants_flags(code, address)
}

/// Whether the code at `address` starts by reading flags: then it is not entered from elsewhere, and whatever holds
/// the address is some other number.
fn wants_flags(code: &Code, mut address: u64) -> bool {
    let mut unknown = FlagSet::ALL.minus(FlagSet::EMPTY.with(Flag::Df));
    for _ in 0..WANTS_LIMIT {
        let Some(i) = guest::insn(code.bytes(address), address) else { break };
        let flags = effects::flags(&i);
        if !flags.reads.intersection(unknown).is_empty() {
            return true;
        }
        unknown = unknown.minus(flags.writes);
        address = match guest::step(code.bytes(address), address) {
            Some(step) if step.flow == Flow::Next && !unknown.is_empty() => address + u64::from(step.length),
            _ => break,
        };
    }
    false
}

/// Enter plausible code in the gaps between what was found. Returns whether there was any.
pub(super) fn enter_gaps(code: &mut Code) -> bool {
    let mut changed = false;
    for range in code.ranges().collect::<Vec<_>>() {
        let mut address = range.start;
        while address < range.end {
            address = skip_known(code, address, range.end);
            let bytes = code.bytes(address);
            let gap = bytes.get(..gap_length(code, address, range.end)).unwrap_or(bytes);
            let candidate = address + guest::padding(gap, address) as u64;
            if candidate >= address + gap.len() as u64 {
                address = candidate;
            } else if is_plausible(code, candidate) {
                code.enter(candidate, FOUND);
                changed = true;
            } else {
                address = (candidate + 1).next_multiple_of(16).min(address + gap.len() as u64);
            }
        }
    }
    changed
}

fn is_known(code: &Code, address: u64) -> bool {
    code.length(address).is_some() || code.is_inside(address)
}

fn skip_known(code: &Code, from: u64, end: u64) -> u64 {
    (from..end).find(|&a| !is_known(code, a)).unwrap_or(end)
}

fn gap_length(code: &Code, from: u64, end: u64) -> usize {
    ((from..end).find(|&a| is_known(code, a)).unwrap_or(end) - from) as usize
}

/// Whether what is executed from `address` on looks like code: every instruction decodes, is of the kind that
/// compilers emit, and agrees with the instructions that are known.
fn is_plausible(code: &Code, address: u64) -> bool {
    let mut seen = BTreeSet::new();
    let mut work = vec![address];
    while let Some(address) = work.pop() {
        if code.length(address).is_some() || !seen.insert(address) {
            continue;
        }
        if seen.len() > TRIAL_LIMIT {
            return true;
        }
        let bytes = code.bytes(address);
        let Some(step) = guest::step(bytes, address) else { return false };
        if code.is_inside(address) || guest::is_suspicious(bytes, address) {
            return false;
        }
        match step.flow {
            Flow::Jump(t) | Flow::Branch(t) | Flow::Call(t) if !may_enter(code, t) => return false,
            Flow::Jump(t) | Flow::Branch(t) => work.push(t),
            _ => {}
        }
        let next = address + u64::from(step.length);
        if matches!(step.flow, Flow::Next | Flow::Branch(_)) || step.flow.is_call() && code.contains(next) {
            work.push(next);
        }
    }
    true
}

fn may_enter(code: &Code, target: u64) -> bool {
    code.contains(target) && (code.length(target).is_some() || !code.is_inside(target))
}

impl Code<'_> {
    /// The places of all jump tables, by address.
    fn table_ranges(&self) -> Vec<Range<u64>> {
        let mut ranges: Vec<Range<u64>> = self.tables.values().map(|t| t.place.clone()).collect();
        ranges.sort_by_key(|r| (r.start, r.end));
        // Tables that overlap are joined, so that one search finds them.
        ranges.dedup_by(|b, a| {
            let overlap = b.start <= a.end;
            if overlap {
                a.end = a.end.max(b.end);
            }
            overlap
        });
        ranges
    }
}
