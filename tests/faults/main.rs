//! Faults in translated programs: their handlers are to see and to do what they do natively, whoever executes.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::path::Path;
use tranship_tests::guest::{HOSTS, On, Program};
use tranship_translate::region::Faults;

fn program(name: &str) -> Program {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("faults/programs").join(name).with_extension("c");
    Program::build(&source, Path::new(env!("CARGO_TARGET_TMPDIR")), &["-O1", "-lm", "-lpthread"])
}

fn handlers_see_exact_state(faults: Faults) {
    let program = program("faults");
    for on in HOSTS {
        let arguments: &[&str] = if on == On::Aarch64 { &["canonical"] } else { &[] };
        let translated = program.translate(on, faults).run(arguments);
        translated.must_be(&program.run_natively(arguments), &format!("{faults:?} on {on:?}"));
        assert!(translated.entered > 0, "compiled code ran on {on:?}");
        // The loop of `main` alone has more iterations than that.
        let is_interpreted = translated.interpreted > 100_000;
        assert_eq!(
            is_interpreted,
            faults == Faults::Fatal,
            "{} interpreted on {on:?}",
            translated.interpreted
        );
    }
}

#[test]
fn handlers_see_exact_state_where_objects_know_none() {
    handlers_see_exact_state(Faults::Fatal);
}

#[test]
fn handlers_see_exact_state_of_compiled_code() {
    handlers_see_exact_state(Faults::Exact);
}
