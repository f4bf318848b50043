//! Jump tables: what an indirect jump computes, found by executing the straight line of code before it
//! with symbols for what is unknown.
//!
//! Compilers give tables three shapes: addresses (`jmp [table+8*i]`), offsets from the table
//! (`movsxd r,[table+4*i]; add r,table; jmp r`) and, without optimisation, either of these in small
//! steps through the stack. Symbolic execution sees through all of them, and through the copies and
//! extensions of the index between its comparison and its use.

use super::super::code::{Code, Table};
use super::evaluate::{Evaluation, TableRead};
use super::path::{Path, constant_at};
use crate::region::JumpTable;

/// Most entries that a bounded table can have.
const MOST_ENTRIES: u64 = 1 << 16;
/// Most entries that are taken from a table whose end is unknown.
const MOST_UNBOUNDED: u64 = 1 << 10;

/// The table that the indirect jump at `jump` goes through, if it is one.
pub(in crate::discover) fn resolve(code: &Code, jump: u64) -> Option<Table> {
    let Found { read, path, certain } = find(code, jump)?;
    let targets = targets(code, jump, &read);
    if targets.len() < 2 {
        // One plausible word is no evidence of a table.
        return None;
    }
    let place = read.table..read.table + read.entry_size * targets.len() as u64;
    let complete = read.count == Some(targets.len() as u64);
    let constant = code.elf.is_constant(place.start) && code.elf.is_constant(place.end - 1);
    let proven = certain && complete && constant && !read.reread;
    let way = path.after(read.at);
    Some(Table { jump: JumpTable { at: read.at, index: read.index, targets, proven }, place, way })
}

/// How a jump reads its target.
struct Found {
    read: TableRead,
    /// The path on which it does so.
    path: Path,
    /// Whether that is so on every way to it.
    certain: bool,
}

fn find(code: &Code, jump: u64) -> Option<Found> {
    let path = Path::to(code, jump);
    let near = Evaluation::new([None; 16]).run(&path);
    if let Some(read) = near.filter(|r| r.count.is_some()) {
        return Some(Found { read, path, certain: true });
    }
    // That a call leaves registers and stack slots as they are is only convention.
    let path = Path::over_calls_to(code, jump);
    let mut evaluation = Evaluation::new([None; 16]);
    let mut far = evaluation.run(&path);
    if far.is_none() && evaluation.unknown_bases() != 0 {
        // The table's address was loaded before the path begins, e.g. before a loop.
        let constants = std::array::from_fn(|r| {
            let wanted = evaluation.unknown_bases() >> r & 1 != 0;
            wanted.then(|| constant_at(code, path.start(), r as u8)).flatten()
        });
        far = Evaluation::new(constants).run(&path);
    }
    far.map(|read| Found { read, path, certain: false })
}

/// The table's entries as far as they are plausible.
fn targets(code: &Code, jump: u64, read: &TableRead) -> Vec<u64> {
    let count = read.count.map_or(MOST_UNBOUNDED, |c| c.min(MOST_ENTRIES));
    let bounded = read.compared && read.count.is_some_and(|c| c <= MOST_ENTRIES);
    let entry = |i: u64| {
        let place = read.table.checked_add(i * read.entry_size)?;
        if !bounded && i > 0 && code.references.contains(&place) {
            return None;
        }
        let target = match (read.entry_size, read.base) {
            (8, None) => code.elf.pointer_at(place)?,
            (4, base) => {
                let entry = code.elf.half_at(place)?;
                let offset = if read.signed { entry as i32 as u64 } else { entry.into() };
                base.unwrap_or(0).wrapping_add(offset)
            }
            _ => return None,
        };
        is_plausible(code, jump, target, bounded).then_some(target)
    };
    (0..count).map_while(entry).collect()
}

fn is_plausible(code: &Code, jump: u64, target: u64, bounded: bool) -> bool {
    let starts = code.length(target).is_some() || !code.is_inside(target);
    code.contains(target) && starts && (bounded || code.elf.frame_at(jump) == code.elf.frame_at(target))
}
