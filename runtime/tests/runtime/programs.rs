//! Small C programs that each look at one side of the system.

use crate::run::{HOSTS, On, compare_in, compile, scratch};

const NO_ARGS: &[&str] = &[];

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
fn interruptions() {
    let program = compile("interrupted");
    for (on, args) in [(On::X86_64, &["."][..]), (On::Aarch64, &[".", "emulated"])] {
        compare_in(on, &scratch(&format!("interruptions-{on:?}")), &program, args, b"");
    }
}

#[test]
fn memory() {
    same_everywhere("memory", &[]);
}

#[test]
fn executable_stack() {
    same_everywhere("trampoline", &[]);
}

#[test]
fn system_calls() {
    same_everywhere("calls", &["."]);
}

#[test]
fn threads() {
    same_everywhere("threads", &[]);
}

#[test]
fn processes() {
    let program = compile("spawn");
    compare_in(On::X86_64, &scratch("processes"), &program, NO_ARGS, b"");
    compare_in(On::Aarch64, &scratch("processes-emulated"), &program, &["emulated"], b"");
}

#[test]
fn own_files_of_proc() {
    let program = compile("proc");
    compare_in(On::X86_64, &scratch("proc-x86"), &program, NO_ARGS, b"");
    compare_in(On::Aarch64, &scratch("proc-arm"), &program, &["emulated"], b"");
}

#[test]
fn own_filters() {
    let program = compile("filters");
    compare_in(On::X86_64, &scratch("filters-x86"), &program, NO_ARGS, b"");
    compare_in(On::Aarch64, &scratch("filters-arm"), &program, &["emulated"], b"");
}

/// Emulated kernels have no such calls.
#[test]
fn asynchronous_io() {
    compare_in(On::X86_64, &scratch("asynchronous"), &compile("aio"), NO_ARGS, b"");
}
