//! Files that are not what they should be.

use crate::guest::{assemble, compile};
use std::time::{Duration, Instant};
use tranship_translate::discover::discover;
use tranship_translate::elf::{ElfError, GuestElf};

const TINY: &str = ".globl _start\n.type _start, @function\n_start: ret\n.size _start, . - _start";

fn with(bytes: &[u8], at: usize, value: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[at..at + value.len()].copy_from_slice(value);
    bytes
}

#[test]
fn errors_name_what_is_wrong() {
    let good = assemble("tiny", TINY);
    let error = |bytes: Vec<u8>| GuestElf::parse(bytes).unwrap_err();
    assert_eq!(error(Vec::new()), ElfError::NotElf);
    assert_eq!(error(b"#!/bin/sh\n".to_vec()), ElfError::NotElf);
    assert_eq!(error(with(&good, 4, &[1])), ElfError::WrongClass { class: 1 });
    assert_eq!(error(with(&good, 5, &[2])), ElfError::WrongByteOrder { data: 2 });
    assert_eq!(error(with(&good, 18, &[183, 0])), ElfError::WrongMachine { machine: 183 });
    assert_eq!(error(with(&good, 16, &[1, 0])), ElfError::NotExecutable { kind: 1 });
    assert_eq!(error(with(&good, 56, &[0, 0])), ElfError::NothingToLoad);
    let entry = 0xdead_0000u64;
    assert_eq!(error(with(&good, 24, &entry.to_le_bytes())), ElfError::EntryOutside { entry });
    assert!(matches!(
        error(with(&good, 54, &[8, 0])),
        ElfError::Malformed { part: "program header table", .. }
    ));
}

#[test]
fn every_truncation_is_an_error_that_says_so() {
    let good = assemble("truncated", TINY);
    for length in 0..good.len() {
        match GuestElf::parse(good[..length].to_vec()) {
            Err(ElfError::Truncated { end, file_size, .. }) => {
                assert_eq!(file_size, length as u64);
                assert!(end > file_size);
            }
            Err(ElfError::NotElf) if length < 4 => {}
            other => panic!("{length} bytes: {other:?}"),
        }
    }
}

/// Wherever a byte changes, parsing and discovery end soon and say something.
#[test]
fn mutated_files_neither_panic_nor_hang() {
    let source = "
        #include <stdio.h>
        static int f(int x) { switch (x) { case 0: return 3; case 1: return 7; case 2: return puts(\"a\");
            case 3: return 12; case 4: return 99; case 5: return printf(\"%d\", x); } return 0; }
        int main(int argc, char **argv) { return f(argc); }";
    let good = compile("mutated", "c", source, &["-O2"]);
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for round in 0..400 {
        let mut bytes = good.clone();
        for _ in 0..1 + random.below(4) {
            // Half of the changes hit headers and tables, where they matter most.
            let place = match random.below(2) {
                0 => random.below(0x800),
                _ => random.below(bytes.len()),
            };
            bytes[place] = [0, 0xff, 0x7f, random.next() as u8][random.below(4)];
        }
        let start = Instant::now();
        if let Ok(elf) = GuestElf::parse(bytes) {
            let found = discover(&elf);
            assert!(found.report.covered_bytes <= found.report.text_bytes);
        }
        assert!(start.elapsed() < Duration::from_secs(20), "round {round} takes {:?}", start.elapsed());
    }
}

/// Code in which everything is an entry and reaches everything else: regions must not repeat it all.
#[test]
fn hostile_code_costs_no_more_than_its_size() {
    let mut source = String::from(".globl _start\n.type _start, @function\n.cfi_startproc\n_start:\n");
    for i in 0..20_000 {
        source += &format!("f{i}: jz f{}\n call f{}\n", (i * 7919) % 20_000, (i * 104_729) % 20_000);
    }
    source += "ret\n.cfi_endproc\n.size _start, . - _start\n";
    let elf = GuestElf::parse(assemble("hostile", &source)).unwrap();
    let found = discover(&elf);
    assert!(found.report.dropped_entries > 0);
    assert!(found.report.blocks < 1_000_000, "{}", found.report.blocks);
}

/// xorshift64*.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }
}
