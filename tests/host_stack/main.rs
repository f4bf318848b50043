//! Compiled code and the end of the host stack: a program may have more frames than there is room for, and gets on.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::path::Path;
use tranship_tests::guest::{HOSTS, Program, Ran};
use tranship_translate::region::Faults;

/// Times that `jumps` goes out of compiled code and back.
const JUMPS: u64 = 100_000;

fn program(name: &str) -> Program {
    let source =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("host_stack/programs").join(name).with_extension("c");
    let options = ["-O2", "-mavx2", "-nostdlib", "-fno-stack-protector", "-fcf-protection=none"];
    Program::build(&source, Path::new(env!("CARGO_TARGET_TMPDIR")), &options)
}

/// What became of a program on each host: the same as natively.
fn run(name: &str) -> [Ran; HOSTS.len()] {
    let program = program(name);
    let native = program.run_natively(&[]);
    HOSTS.map(|on| {
        let ours = program.translate(on, Faults::Fatal).run(&[]);
        ours.must_be(&native, &format!("{name} on {on:?}"));
        ours
    })
}

/// Small frames come as near to the end as can be, and then a function has one that does not fit.
#[test]
fn a_function_with_a_large_frame_is_called_at_its_end() {
    run("deep");
}

/// Each jump goes to code that is interpreted, which jumps back: that leaves nothing on the host stack.
#[test]
fn jumps_to_interpreted_code_do_not_use_it_up() {
    for Ran { entered, .. } in run("jumps") {
        assert!((JUMPS..JUMPS + JUMPS / 20).contains(&entered), "compiled code was entered {entered} times");
    }
}
