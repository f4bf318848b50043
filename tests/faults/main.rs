//! Faults in translated programs: their handlers are to see and to do what they do natively, whoever executes.
#![cfg(target_arch = "x86_64")]
#![allow(clippy::unwrap_used, clippy::panic)]

use std::path::Path;
use tranship_tests::guest::{HOSTS, On, Program};

fn program(name: &str) -> Program {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("faults/programs").join(name).with_extension("c");
    Program::build(&source, Path::new(env!("CARGO_TARGET_TMPDIR")), &["-O1", "-lm", "-lpthread"])
}

#[test]
fn handlers_see_exact_state() {
    let program = program("faults");
    for on in HOSTS {
        let arguments: &[&str] = if on == On::Aarch64 { &["canonical"] } else { &[] };
        let translated = program.translate(on).run(arguments);
        translated.must_be(&program.run_natively(arguments), &format!("on {on:?}"));
        assert!(translated.entered > 0, "compiled code ran on {on:?}");
    }
}
