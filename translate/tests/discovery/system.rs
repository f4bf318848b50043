//! The system's own programs.

use std::time::Instant;
use tranship_translate::discover::discover;
use tranship_translate::elf::GuestElf;
use tranship_translate::region::{Edge, Exit};

/// Programs that every Debian system has: dynamic, position-independent, stripped.
const PROGRAMS: [&str; 3] = ["/bin/bash", "/usr/bin/perl", "/lib/x86_64-linux-gnu/libc.so.6"];

#[test]
fn nearly_all_text_is_covered() {
    for program in PROGRAMS {
        let elf = GuestElf::parse(std::fs::read(program).unwrap()).unwrap();
        let start = Instant::now();
        let found = discover(&elf);
        let report = &found.report;
        let share = (report.covered_bytes + report.padding_bytes) as f64 / report.text_bytes as f64;
        println!("{program}: {:.3} % in {:?}", 100.0 * share, start.elapsed());
        assert!(share > 0.999, "{program}: {share}");
        assert!(report.undecodable.len() < 10, "{program}: {:x?}", report.undecodable);
        assert_eq!(report.dropped_entries, 0);
    }
}

/// What the lifter relies on, for every region of a large program.
#[test]
fn regions_are_well_formed() {
    let elf = GuestElf::parse(std::fs::read("/bin/bash").unwrap()).unwrap();
    let found = discover(&elf);
    assert!(found.regions.is_sorted_by_key(|r| r.entry));
    for region in &found.regions {
        assert!(region.blocks.contains_key(&region.entry), "{region}");
        assert!(region.labels.iter().chain(&region.loop_headers).all(|b| region.blocks.contains_key(b)));
        for block in region.blocks.values() {
            assert!(block.exit.successors().all(|s| region.blocks.contains_key(&s)), "{block}");
            assert!(block.start < block.end || block.exit == Exit::Undecodable, "{block}");
            if let Exit::Next(Edge::Block(next)) = block.exit {
                assert_eq!(next, block.end);
            }
        }
    }
}
