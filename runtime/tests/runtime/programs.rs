//! Small C programs that each look at one side of the system.

use crate::run::{HOSTS, compare_in, compile, scratch};

fn same_everywhere(name: &str, args: &[&str]) {
    let program = compile(name);
    for on in HOSTS {
        compare_in(on, &scratch(&format!("{name}-{on:?}")), &program, args, b"");
    }
}

#[test]
fn signals() {
    same_everywhere("signals", &[]);
}

#[test]
fn memory() {
    same_everywhere("memory", &[]);
}

#[test]
fn system_calls() {
    same_everywhere("calls", &["."]);
}

#[test]
fn threads() {
    same_everywhere("threads", &[]);
}
