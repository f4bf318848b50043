//! The real thing on one machine: native → translated → native, again and again, with the real runtime. Without
//! translated objects everything abroad is interpreted.

use crate::abroad::{Translated, arm64_host, park_all, this_host};
use crate::support::{Criu, Program, Scratch, compile};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tranship_abi::host::Host;
use tranship_recode::proto::pstree::Pstree_entry;
use tranship_recode::{Home, ImageSet, Target, inspect, recode};

/// A native program's way to the host and back; it works there for `abroad`. Returns instructions interpreted there.
fn cross(criu: &Criu, scratch: &Scratch, program: &Program, round: usize, abroad: Duration) -> u64 {
    let [home, host, parked, back] =
        ["home", "host", "parked", "back"].map(|name| -> PathBuf { scratch.path(format!("{name}-{round}")) });
    criu.dump(program.pid, &home);
    let tree: Vec<Pstree_entry> = ImageSet::open(&home).unwrap().messages("pstree.img").unwrap();
    recode(&home, &host, &this_host()).unwrap();
    criu.restore(&host);
    std::thread::sleep(abroad);
    let pids = tree.iter().map(Pstree_entry::pid).collect();
    park_all(&pids);
    let interpreted = pids.iter().map(|pid| Translated::open(*pid).interpreted()).sum();
    criu.dump(program.pid, &parked);
    recode(&parked, &back, &Target::Canonical(Home::default())).unwrap();
    criu.restore(&back);
    for images in [home, host, parked, back] {
        std::fs::remove_dir_all(images).unwrap();
    }
    interpreted
}

fn survives(test: &str, source: &str, arguments: &[&str], crossings: usize) {
    let scratch = Scratch::new(test);
    let binary = compile(&scratch, source, &["-static", "-pthread"]);
    let criu = Criu::get();
    let undisturbed = Program::start(&scratch, &binary, arguments).finish();
    let program = Program::start(&scratch, &binary, arguments);
    for round in 0..crossings {
        let lines = program.output().lines().count();
        program.wait_for_lines(lines + 7);
        assert!(
            cross(&criu, &scratch, &program, round, Duration::from_millis(200)) > 0,
            "nothing was executed abroad"
        );
    }
    assert!(program.output().lines().count() < undisturbed.lines().count(), "moved too late");
    assert_eq!(program.finish(), undisturbed);
}

#[test]
fn counter_works_abroad() {
    survives("counter_works_abroad", "counter.c", &["1500"], 3);
}

#[test]
fn threads_work_abroad() {
    survives("threads_work_abroad", "threads.c", &["1500"], 3);
}

#[test]
fn events_work_abroad() {
    survives("events_work_abroad", "events.c", &["1500"], 3);
}

/// What a guest forbids itself abroad is forbidden at home, and abroad again.
#[test]
fn filters_go_along() {
    let scratch = Scratch::new("filters_go_along");
    let binary = compile(&scratch, "filtered.c", &["-static"]);
    let criu = Criu::get();
    let program = Program::start(&scratch, &binary, &[]);
    program.wait_for_lines(2);
    let [home, host] = ["home", "host"].map(|name| scratch.path(name));
    criu.dump(program.pid, &home);
    recode(&home, &host, &this_host()).unwrap();
    criu.restore(&host);
    // SAFETY: the program's own process.
    assert_eq!(unsafe { libc::kill(program.pid as i32, libc::SIGUSR1) }, 0);
    while !program.output().contains("filtered") {
        std::thread::sleep(Duration::from_millis(10));
    }
    let (parked, back) = (scratch.path("parked"), scratch.path("back"));
    park_all(&[program.pid].into());
    criu.dump(program.pid, &parked);
    recode(&parked, &back, &Target::Canonical(Home::default())).unwrap();
    criu.restore(&back);
    for round in 0..2 {
        program.wait_for_lines(program.output().lines().count() + 5);
        cross(&criu, &scratch, &program, round, Duration::from_millis(200));
    }
    program.wait_for_lines(program.output().lines().count() + 5);
    let output = program.output();
    let (_, since) = output.split_once("filtered\n").unwrap();
    assert!(since.lines().count() > 20 && since.lines().all(|line| line == "refused"), "{since}");
}

/// Debian's own busybox, in the middle of a large file.
#[test]
fn busybox_sha256sum_works_abroad() {
    let scratch = Scratch::new("busybox_sha256sum_works_abroad");
    let criu = Criu::get();
    let (binary, file) = (Path::new("/bin/busybox"), scratch.path("file"));
    File::create(&file).unwrap().set_len(256 << 20).unwrap();
    let arguments = ["sha256sum", file.to_str().unwrap()];
    let undisturbed = Program::start(&scratch, binary, &arguments).finish();
    let program = Program::start(&scratch, binary, &arguments);
    for round in 0..2 {
        std::thread::sleep(Duration::from_millis(100));
        let interpreted = cross(&criu, &scratch, &program, round, Duration::from_millis(500));
        assert!(interpreted > 1_000_000, "only {interpreted} instructions abroad");
    }
    assert!(program.output().is_empty(), "moved too late");
    assert_eq!(program.finish(), undisturbed);
}

/// What an arm64 node is given: its own registers and flags, nothing that only x86-64 has, all of ours above the guest.
#[test]
fn a_set_for_arm64_is_arm64s() {
    let scratch = Scratch::new("a_set_for_arm64_is_arm64s");
    let binary = compile(&scratch, "counter.c", &["-static"]);
    let criu = Criu::get();
    let program = Program::start(&scratch, &binary, &["100000"]);
    program.wait_for_lines(3);
    let (home, host) = (scratch.path("home"), scratch.path("host"));
    criu.dump(program.pid, &home);
    std::mem::forget(program);
    recode(&home, &host, &arm64_host()).unwrap();
    let summary = inspect(&host).unwrap();
    assert_eq!((summary.machine, summary.canonical), (Host::Aarch64, false));
    assert!(summary.guest_code().iter().any(|path| path.ends_with("/counter")));
    for mapping in &summary.processes[0].mappings {
        let ours = mapping.start >= 1 << 47;
        assert!(ours || mapping.protection & 4 == 0, "guest code is executable: {mapping:?}");
        assert!(mapping.end <= 1 << 48, "out of reach: {mapping:?}");
    }
}
