//! What each stage shows of a function.

use crate::{program, scratch};
use tranship_translate::compile::{Host, Options};
use tranship_translate::discover::discover;
use tranship_translate::dump::{Stage, dump, region};

fn text(name: &str, function: &str, stage: Stage, host: &Host) -> String {
    let elf = program(&scratch(name));
    let found = discover(&elf);
    let region = region(&found, function).unwrap();
    let mut out = vec![];
    dump(stage, &elf, &found, &[region], host, &Options::default(), &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn regions_are_found_by_symbol_and_by_address() {
    let elf = program(&scratch("by-name"));
    let found = discover(&elf);
    let twice = region(&found, "twice").unwrap();
    assert_eq!(region(&found, &format!("{:#x}", twice.entry)).map(|r| r.entry), Some(twice.entry));
    for missing in ["thrice", "0x1", "twic", ""] {
        assert!(region(&found, missing).is_none(), "{missing}");
    }
}

#[test]
fn the_graph_has_the_functions_blocks() {
    let text = text("cfg", "twice", Stage::Cfg, &Host::x86_64());
    assert!(text.starts_with("region 0x") && text.contains("twice") && text.contains("return"), "{text}");
    assert!(!text.contains("_start"), "{text}");
}

#[test]
fn lifted_code_is_neutral_and_optimised_code_is_not() {
    let lifted = text("lift", "twice", Stage::Lift, &Host::x86_64());
    assert!(lifted.contains("define fastcc i64 @r_") && !lifted.contains("target triple"), "{lifted}");
    let optimised = text("opt", "twice", Stage::Opt, &Host::x86_64());
    assert!(optimised.contains("x86_regcallcc") && optimised.contains("x86_64"), "{optimised}");
}

#[test]
fn assembly_is_the_hosts() {
    let here = text("asm-x86", "twice", Stage::Asm, &Host::x86_64());
    assert!(here.contains("retq"), "{here}");
    let there = text("asm-arm", "twice", Stage::Asm, &Host::aarch64());
    assert!(there.contains("\tret\n") && !there.contains("retq"), "{there}");
}

#[test]
fn a_sum_stays_in_its_vector() {
    for (name, host) in [("sum", Host::x86_64()), ("sum-v3", Host::x86_64_v3())] {
        let text = text(name, "add_up", Stage::Asm, &host);
        assert!(text.contains("addsd\t"), "{text}");
        assert!(!text.contains("blend") && !text.contains("movsd\t%xmm"), "{text}");
    }
}
