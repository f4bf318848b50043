//! C programs: what is found in a stripped file against the symbols of the unstripped one.

use crate::guest::{compile, strip};
use std::collections::BTreeSet;
use tranship_translate::discover::discover;
use tranship_translate::elf::GuestElf;
use tranship_translate::region::{Discovery, Edge, Exit};

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

/// Without section headers the program headers must do.
#[test]
fn program_without_sections() {
    for flags in [&["-O2", "-static-pie"][..], &["-O2"]] {
        let program = compile("sectionless", "c", include_str!("program.c"), flags);
        let mut bytes = strip("sectionless", &program);
        bytes[40..48].fill(0);
        let (truth, bare) = (GuestElf::parse(program).unwrap(), GuestElf::parse(bytes).unwrap());
        assert!(bare.code_sections.is_empty());
        assert_eq!(truth.frames, bare.frames);
        assert_eq!(truth.pointers, bare.pointers);
        assert!(recall(&truth, &discover(&bare)) >= 0.99);
    }
}

#[test]
fn packed_relocations_say_the_same_as_plain_ones() {
    let functions_held = |name: &str, flags: &[&str]| {
        let elf = GuestElf::parse(compile(name, "c", include_str!("program.c"), flags)).unwrap();
        let name_of = |address: u64| {
            let symbol = elf.symbols.iter().find(|s| s.address == address)?;
            Some(symbol.name(&elf).into_owned())
        };
        let mut names: Vec<String> = elf.pointers.iter().filter_map(|p| name_of(p.target)).collect();
        names.sort();
        names
    };
    let plain = functions_held("plain", &["-O2"]);
    let packed = functions_held("packed", &["-O2", "-Wl,-z,pack-relative-relocs"]);
    assert!(["first", "second", "third"].iter().all(|f| plain.iter().any(|p| p == f)), "{plain:?}");
    assert_eq!(plain, packed);
}

/// The code that handlers of signals return to: its frame starts one byte early.
#[test]
fn signal_returns_are_entries() {
    let elf = GuestElf::parse(std::fs::read("/lib/x86_64-linux-gnu/libc.so.6").unwrap()).unwrap();
    let found = discover(&elf);
    // `mov $15,%rax; syscall`: rt_sigreturn.
    let code: &[u8] = &[0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05];
    assert!(found.regions.iter().any(|r| elf.code_at(r.entry).starts_with(code)));
}

/// A function behind whose calls other code lies, since it never returns.
#[test]
fn functions_that_never_return_are_known() {
    let program = compile("never", "c", include_str!("program.c"), &["-O2", "-fno-inline"]);
    let found = discover(&GuestElf::parse(program).unwrap());
    let region = |name: &str| found.regions.iter().find(|r| r.name.as_deref() == Some(name)).unwrap();
    let fail = region("fail").entry;
    let calls = found.regions.iter().flat_map(|r| r.blocks.values()).filter_map(|b| match b.exit {
        Exit::Call { target, next } if target == Some(fail) => Some(next),
        _ => None,
    });
    let calls: Vec<Edge> = calls.collect();
    assert!(!calls.is_empty() && calls.iter().all(|next| matches!(next, Edge::Region(_))), "{calls:?}");
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
