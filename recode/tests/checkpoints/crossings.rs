//! Native → canonical → host → canonical → native, with a real CRIU at each end. The host's part is a stand-in that
//! parks at once: what the guest had must come back as it went.

use crate::support::{Criu, Program, Scratch, compile};
use std::fs::File;
use std::mem::offset_of;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tranship_abi::block::{ThreadBlock, phase};
use tranship_abi::host::Host;
use tranship_recode::{Home, HostLayout, MappedFile, Piece, Report, Target, compare, flatten, recode};

/// A host on this machine whose runtime is `programs/park.S`.
pub(crate) fn parking_host(scratch: &Scratch) -> Target {
    let phase_at = format!("-DPHASE={}", offset_of!(ThreadBlock, phase));
    let parked = format!("-DPARKED={}", phase::PARKED);
    let runtime = compile(scratch, "park.S", &["-shared", "-nostdlib", &phase_at, &parked]);
    let path = runtime.to_str().unwrap().to_owned();
    Target::Host(HostLayout {
        machine: Host::X86_64,
        runtime: MappedFile::open(&runtime, path).unwrap(),
        objects: vec![],
        filter: None,
        kernel: None,
    })
}

/// Move `program` to the host and home again. Returns the canonical images at its departure and its arrival.
fn there_and_back(criu: &Criu, scratch: &Scratch, program: &Program) -> (PathBuf, PathBuf) {
    let [home, host, parked, back] = ["home", "host", "parked", "back"].map(|name| scratch.path(name));
    criu.dump(program.pid, &home);
    recode(&home, &host, &parking_host(scratch)).unwrap();
    criu.restore(&host);
    std::thread::sleep(Duration::from_millis(50));
    criu.dump(program.pid, &parked);
    recode(&parked, &back, &Target::Canonical(Home::default())).unwrap();
    let flat = scratch.path("flat");
    write_flat(&back, &flat);
    criu.restore(&flat);
    (home, back)
}

/// What a receiver of a flattened set has: files, and no parent.
fn write_flat(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for file in flatten(from).unwrap() {
        let bytes = file.pieces.iter().flat_map(|piece| match piece {
            Piece::Bytes(bytes) => bytes.clone(),
            Piece::FileRange { path, offset, length } => {
                let mut bytes = vec![0; *length as usize];
                File::open(path).unwrap().read_exact_at(&mut bytes, *offset).unwrap();
                bytes
            }
        });
        let bytes: Vec<u8> = bytes.collect();
        assert_eq!(bytes.len() as u64, file.length());
        std::fs::write(to.join(&file.name), bytes).unwrap();
    }
    assert!(compare(from, to).unwrap().is_empty());
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
fn counter_survives() {
    survives("counter_survives", "counter.c", &["600"], 30);
}

#[test]
fn threads_survive() {
    survives("threads_survive", "threads.c", &["600"], 30);
}

#[test]
fn events_survive() {
    survives("events_survive", "events.c", &["600"], 30);
}

#[test]
fn registers_survive() {
    let scratch = Scratch::new("registers_survive");
    let binary = compile(&scratch, "registers.c", &["-static"]);
    let criu = Criu::get();
    let program = Program::start(&scratch, &binary, &[]);
    program.wait_for_lines(1);
    program.wait_for_work(Duration::from_millis(5));
    let (departure, arrival) = there_and_back(&criu, &scratch, &program);
    let differences = compare(&departure, &arrival).unwrap();
    assert!(differences.is_empty(), "{differences:?}");
    // Arrived for good: the kernel has the same registers again.
    let again = scratch.path("again");
    criu.dump(program.pid, &again);
    std::mem::forget(program);
    let differences = compare(&departure, &again).unwrap();
    assert!(!differences.iter().any(|difference| difference.what.contains("registers")), "{differences:?}");
}

/// Bytes that a recoding of a process with so much heap reads and writes, and the time it takes.
fn cost(bytes: &str) -> (Report, Duration) {
    let scratch = Scratch::new(&format!("cost_{bytes}"));
    let binary = compile(&scratch, "heap.c", &["-static"]);
    let (criu, host) = (Criu::get(), parking_host(&scratch));
    let program = Program::start(&scratch, &binary, &[bytes]);
    program.wait_for_lines(1);
    let (home, to) = (scratch.path("home"), scratch.path("host"));
    criu.dump(program.pid, &home);
    std::mem::forget(program);
    let start = Instant::now();
    let report = recode(&home, &to, &host).unwrap();
    (report, start.elapsed())
}

#[test]
fn cost_does_not_depend_on_memory() {
    let ((small, small_time), (large, large_time)) = (cost("10000000"), cost("500000000"));
    for (heap, report, time) in [(10, small, small_time), (500, large, large_time)] {
        println!(
            "{heap} MB of heap: {} bytes read, {} written, {time:?}",
            report.bytes_read, report.bytes_written
        );
    }
    // The pagemap has an entry for each piece in which CRIU wrote the heap.
    assert!(large.bytes_read.abs_diff(small.bytes_read) < 20_000, "{small:?} {large:?}");
    assert!(large.bytes_written.abs_diff(small.bytes_written) < 8192, "{small:?} {large:?}");
    assert_eq!((large.bytes_copied, large.files_written), (0, small.files_written));
}
