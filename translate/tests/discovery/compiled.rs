//! C programs: what is found in a stripped file against the symbols of the unstripped one.

use crate::guest::{compile, strip};
use std::collections::BTreeSet;
use tranship_translate::discover::discover;
use tranship_translate::elf::GuestElf;
use tranship_translate::region::{Discovery, Exit};

/// Share of the symbols in `truth` that are starts of regions or blocks in `found`.
fn recall(truth: &GuestElf, found: &Discovery) -> f64 {
    let starts: BTreeSet<u64> = found.regions.iter().flat_map(|r| r.blocks.keys().copied()).collect();
    let functions: BTreeSet<u64> = truth.symbols.iter().filter(|s| s.size > 0).map(|s| s.address).collect();
    let missed: Vec<u64> = functions.difference(&starts).copied().collect();
    println!("{} functions, missed {missed:x?}", functions.len());
    1.0 - missed.len() as f64 / functions.len() as f64
}

fn stripped_recall(name: &str, flags: &[&str]) -> f64 {
    let program = compile(name, "c", include_str!("program.c"), flags);
    let found = discover(&GuestElf::parse(strip(name, &program)).unwrap());
    assert_eq!(found.report.dropped_entries, 0);
    recall(&GuestElf::parse(program).unwrap(), &found)
}

#[test]
fn static_program_without_symbols() {
    assert!(stripped_recall("static", &["-O2", "-static"]) >= 0.99);
}

#[test]
fn static_pie_without_symbols() {
    assert!(stripped_recall("static-pie", &["-O2", "-static-pie"]) >= 0.99);
}

#[test]
fn dynamic_pie_without_symbols() {
    assert!(stripped_recall("dynamic", &["-O2"]) >= 0.99);
}

#[test]
fn program_without_unwind_tables() {
    let flags = ["-Os", "-static", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables"];
    assert!(stripped_recall("no-unwind", &flags) >= 0.99);
}

/// Each of the ways in which `gcc` writes a switch, and a computed goto.
#[test]
fn switches_become_tables() {
    for (name, flags) in [
        ("switch-O0", &["-O0"][..]),
        ("switch-O2", &["-O2"]),
        ("switch-Os", &["-Os"]),
        ("switch-O2-fixed", &["-O2", "-no-pie", "-fno-pie"]),
        ("switch-O0-fixed", &["-O0", "-no-pie", "-fno-pie"]),
        ("switch-O2-cet", &["-O2", "-fcf-protection=full"]),
    ] {
        let elf = GuestElf::parse(compile(name, "c", include_str!("program.c"), flags)).unwrap();
        let found = discover(&elf);
        for (function, cases) in [("dense", 12), ("loop", 9), ("computed", 6)] {
            let region = found.regions.iter().find(|r| r.name.as_deref() == Some(function)).unwrap();
            let tables: Vec<_> = region
                .blocks
                .values()
                .filter_map(|b| match &b.exit {
                    Exit::Switch(table) => Some(table),
                    _ => None,
                })
                .collect();
            assert!(!tables.is_empty(), "{name}: no table in {region}");
            for table in tables {
                assert_eq!(table.targets.len(), cases, "{name}: {region}");
                assert!(table.targets.iter().all(|t| region.blocks.contains_key(t)));
            }
        }
    }
}
