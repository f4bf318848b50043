//! Which parts of a guest ELF file are code, and how they fall into regions.
//!
//! Nothing here is trusted with correctness: what is missed is interpreted at run time, and what is
//! taken for code but is none is compiled in vain.

mod assemble;
mod blocks;
mod code;
mod flag_liveness;
mod loops;
mod register_summary;
mod returning;
mod seeds;
mod x86_64;
mod zones;

pub(crate) use x86_64::linkage_slot;

use crate::elf::GuestElf;
use crate::region::{Discovery, Faults, Region, Report};
use assemble::Assembler;
use code::Code;
use std::collections::{BTreeMap, HashSet};
use zones::Zones;

/// Find the regions of `elf`.
pub fn discover(elf: &GuestElf) -> Discovery {
    divide(&reach(elf))
}

/// Find those regions of `elf` that direct transfers from `entries` lead to.
pub fn discover_at(elf: &GuestElf, entries: impl IntoIterator<Item = u64>) -> Discovery {
    let mut code = Code::new(elf);
    seeds::enter_given(&mut code, entries);
    code.resolve_tables();
    divide(&code)
}

/// Divide what was reached into regions.
fn divide(code: &Code) -> Discovery {
    let zones = Zones::new(code);
    let lines = blocks::lines(code);
    let returning = returning::solve(code, &lines);
    let mut assembler = Assembler::new(code, &zones, &lines, &returning);
    let mut regions = assembler.regions();
    let liveness = flag_liveness::solve(code, &lines, &returning);
    for block in regions.values_mut().flat_map(|r| r.blocks.values_mut()) {
        if let Some(&live) = liveness.blocks.get(&block.start) {
            (block.flags_live_in, block.flags_live_out) = live;
        }
    }
    register_summary::summarise(code, &lines, &mut regions);
    Discovery {
        address_taken: code.entries.iter().filter(|(_, o)| o.address_taken).map(|(&a, _)| a).collect(),
        flags_live_at_entries: liveness.at_entries,
        flags_live_after_calls: liveness.after_calls,
        report: Report { dropped_entries: assembler.dropped, ..report(code, &regions) },
        regions: regions.into_values().collect(),
        faults: Faults::default(),
    }
}

/// Decode everything that can be found: from what is declared, then what addresses are taken of, then, in the
/// rest, what looks like code.
fn reach(elf: &GuestElf) -> Code<'_> {
    let mut code = Code::new(elf);
    let mut tried = HashSet::new();
    seeds::enter_declared(&mut code);
    code.resolve_tables();
    loop {
        while seeds::enter_address_taken(&mut code, &mut tried) {
            code.resolve_tables();
        }
        if !seeds::enter_gaps(&mut code) {
            break;
        }
        code.resolve_tables();
    }
    seeds::drop_table_entries(&mut code);
    code
}

fn report(code: &Code, regions: &BTreeMap<u64, Region>) -> Report {
    let is_stub = |jump: &u64| x86_64::fixed_slot(code.bytes(*jump), *jump).is_some();
    let unresolved = code.indirect_jumps.iter().filter(|j| !code.tables.contains_key(j) && !is_stub(j));
    let (covered_bytes, padding_bytes) = code.coverage();
    Report {
        text_bytes: code.ranges().map(|r| r.end - r.start).sum(),
        covered_bytes,
        padding_bytes,
        blocks: regions.values().map(|r| r.blocks.len()).sum(),
        jump_tables: code.tables.len(),
        unresolved_jumps: unresolved.copied().collect(),
        undecodable: code.undecodable.iter().copied().collect(),
        ..Report::default()
    }
}
