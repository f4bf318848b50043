//! Native → canonical → host → canonical → native, with a real CRIU at each end. The host's part is a stand-in that
//! parks at once: what the guest had must come back as it went.

use crate::support::{Criu, Program, Scratch, compile};
use std::mem::offset_of;
use std::path::PathBuf;
use tranship_abi::block::{ThreadBlock, phase};
use tranship_abi::host::Host;
use tranship_recode::{HostLayout, MappedFile, Target, compare, recode};

/// A host on this machine whose runtime is `programs/park.S`.
fn parking_host(scratch: &Scratch) -> Target {
    let phase_at = format!("-DPHASE={}", offset_of!(ThreadBlock, phase));
    let parked = format!("-DPARKED={}", phase::PARKED);
    let runtime = compile(scratch, "park.S", &["-shared", "-nostdlib", &phase_at, &parked]);
    let elf = std::fs::read(&runtime).unwrap();
    let path = runtime.to_str().unwrap().to_owned();
    Target::Host(HostLayout { machine: Host::X86_64, runtime: MappedFile { path, elf }, objects: vec![] })
}

/// Move `program` to the host and home again. Returns the canonical images at its departure and its arrival.
fn there_and_back(criu: &Criu, scratch: &Scratch, program: &Program) -> (PathBuf, PathBuf) {
    let [home, host, parked, back] = ["home", "host", "parked", "back"].map(|name| scratch.path(name));
    criu.dump(program.pid, &home);
    recode(&home, &host, &parking_host(scratch)).unwrap();
    criu.restore(&host);
    std::thread::sleep(std::time::Duration::from_millis(50));
    criu.dump(program.pid, &parked);
    recode(&parked, &back, &Target::Canonical).unwrap();
    criu.restore(&back);
    (home, back)
}

fn survives(test: &str, source: &str, arguments: &[&str], lines: usize) {
    let scratch = Scratch::new(test);
    let binary = compile(&scratch, source, &["-static", "-pthread"]);
    let criu = Criu::get();
    let undisturbed = Program::start(&scratch, &binary, arguments).finish();
    let program = Program::start(&scratch, &binary, arguments);
    program.wait_for_lines(lines);
    let (departure, arrival) = there_and_back(&criu, &scratch, &program);
    let differences = compare(&departure, &arrival).unwrap();
    assert!(differences.is_empty(), "{}", differences.iter().map(|d| format!("{d}\n")).collect::<String>());
    assert!(program.output().lines().count() < undisturbed.lines().count(), "moved too late");
    assert_eq!(program.finish(), undisturbed);
}

#[test]
#[cfg_attr(not(criu), ignore = "needs CRIU 4.2: set TRANSHIP_CRIU")]
fn counter_survives() {
    survives("counter_survives", "counter.c", &["600"], 30);
}

#[test]
#[cfg_attr(not(criu), ignore = "needs CRIU 4.2: set TRANSHIP_CRIU")]
fn threads_survive() {
    survives("threads_survive", "threads.c", &["600"], 30);
}

#[test]
#[cfg_attr(not(criu), ignore = "needs CRIU 4.2: set TRANSHIP_CRIU")]
fn events_survive() {
    survives("events_survive", "events.c", &["600"], 30);
}
