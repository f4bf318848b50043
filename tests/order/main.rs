//! The guest's order of memory accesses: what threads see of each other in translated programs, and, as an emulated
//! arm64 on an x86-64 machine reorders nothing, the code that each class of access becomes.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::fmt::Write;
use std::path::{Path, PathBuf};
use tranship_tests::guest::{HOSTS, Program};
use tranship_translate::compile::{Host, Options};
use tranship_translate::discover::discover;
use tranship_translate::dump::{self, Stage};
use tranship_translate::elf::GuestElf;
use tranship_translate::region::{Discovery, Faults};

fn here(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("order").join(name)
}

fn build(name: &str, options: &[&str]) -> Program {
    Program::build(&here(name), Path::new(env!("CARGO_TARGET_TMPDIR")), options)
}

#[test]
fn threads_see_what_total_store_order_allows() {
    let program = build("programs/litmus.c", &["-O2", "-lpthread"]);
    for on in HOSTS {
        let translated = program.translate(on, Faults::Fatal).run(&["3000"]);
        translated.must_be(&program.run_natively(&["3000"]), &format!("on {on:?}"));
        assert!(translated.entered > 0, "compiled code ran on {on:?}");
    }
}

/// `accesses.txt` is written by `TRANSHIP_BLESS=1`; a change there is to be read line by line.
#[test]
fn accesses_become_what_was_agreed() {
    let program = build("accesses.s", &["-nostdlib"]);
    let elf = GuestElf::parse(std::fs::read(program.path()).unwrap()).unwrap();
    let mut text = String::new();
    for (name, host) in [("x86-64", Host::x86_64()), ("arm64", Host::aarch64())] {
        for (faults, with) in [(Faults::Fatal, ""), (Faults::Exact, " with exact faults")] {
            for function in functions() {
                let code = assembly(&elf, &function, &host, faults);
                write!(text, "== {function} on {name}{with}\n{code}").unwrap();
            }
        }
    }
    let golden = here("accesses.txt");
    if std::env::var_os("TRANSHIP_BLESS").is_some() {
        std::fs::write(&golden, &text).unwrap();
    }
    let agreed = std::fs::read_to_string(&golden).unwrap_or_default();
    assert!(
        text == agreed,
        "tests/order/accesses.txt is not what comes out: run with TRANSHIP_BLESS=1 and look"
    );
}

fn functions() -> Vec<String> {
    let source = std::fs::read_to_string(here("accesses.s")).unwrap();
    source.lines().filter_map(|line| line.strip_prefix("function ")).map(str::to_owned).collect()
}

/// The instructions that it becomes, without directives.
fn assembly(elf: &GuestElf, function: &str, host: &Host, faults: Faults) -> String {
    let program = Discovery { faults, ..discover(elf) };
    let region = dump::region(&program, function).unwrap();
    let mut text = Vec::new();
    dump::dump(Stage::Asm, elf, &program, &[region], host, &Options::default(), &mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    let is_code =
        |line: &&str| line.strip_prefix('\t').is_some_and(|rest| !rest.starts_with(['.', '#', '/']));
    let code = text.lines().filter(is_code);
    code.fold(String::new(), |all, line| all + &line.replace('\t', " ") + "\n")
}
