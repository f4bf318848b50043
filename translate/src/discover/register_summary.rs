//! Which registers a region and everything that it calls may read and write.

use super::blocks::Line;
use super::code::Code;
use super::x86_64::{self as guest, effects};
use crate::region::{Edge, Exit, Region, RegisterSet, RegisterUse};
use std::collections::BTreeMap;

const EVERYTHING: RegisterUse = RegisterUse { reads: RegisterSet::ALL, writes: RegisterSet::ALL };

/// Fill in [`Region::registers`] of all `regions`.
pub(super) fn summarise(code: &Code, lines: &BTreeMap<u64, Line>, regions: &mut BTreeMap<u64, Region>) {
    let own = block_uses(code, lines);
    let mut callers: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    let mut uses: BTreeMap<u64, RegisterUse> = BTreeMap::new();
    for (&entry, region) in regions.iter() {
        let mut used = RegisterUse::default();
        for block in region.blocks.values() {
            used = used.union(own.get(&block.start).copied().unwrap_or_default());
            for target in leaves_for(&block.exit) {
                match target.filter(|t| regions.contains_key(t)) {
                    Some(callee) => callers.entry(callee).or_default().push(entry),
                    None => used = EVERYTHING,
                }
            }
        }
        uses.insert(entry, used);
    }
    let mut work: Vec<u64> = uses.keys().copied().collect();
    while let Some(callee) = work.pop() {
        let used = uses.get(&callee).copied().unwrap_or_default();
        for caller in callers.get(&callee).into_iter().flatten() {
            if let Some(slot) = uses.get_mut(caller)
                && slot.union(used) != *slot
            {
                *slot = slot.union(used);
                work.push(*caller);
            }
        }
    }
    for (entry, region) in regions {
        region.registers = uses.get(entry).copied().unwrap_or_default();
    }
}

/// Where control leaves the region for, returns aside; `None` for an unknown place.
fn leaves_for(exit: &Exit) -> Vec<Option<u64>> {
    let outside = |edge: &Edge| match edge {
        Edge::Region(target) => Some(Some(*target)),
        Edge::Block(_) => None,
    };
    match exit {
        Exit::Next(edge) | Exit::Jump(edge) => outside(edge).into_iter().collect(),
        Exit::Branch { taken, next } => [taken, next].into_iter().filter_map(outside).collect(),
        Exit::Call { target, next } => outside(next).into_iter().chain([*target]).collect(),
        Exit::IndirectJump | Exit::Undecodable => vec![None],
        Exit::Switch(table) if !table.proven => vec![None],
        Exit::Switch(_) | Exit::Return | Exit::Trap => Vec::new(),
    }
}

/// What each block's instructions themselves use.
fn block_uses(code: &Code, lines: &BTreeMap<u64, Line>) -> BTreeMap<u64, RegisterUse> {
    let mut factory = effects::factory();
    let mut uses = BTreeMap::new();
    for (&start, line) in lines {
        let mut used = RegisterUse::default();
        for address in line.instructions(code, start) {
            if let Some(i) = guest::insn(code.bytes(address), address) {
                used = used.union(effects::registers(&mut factory, &i));
            }
        }
        uses.insert(start, used);
    }
    uses
}
