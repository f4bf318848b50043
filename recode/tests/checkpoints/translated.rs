//! The real thing on one machine: native → translated → native, again and again, with the real runtime. Without
//! translated objects everything abroad is interpreted.

use crate::support::{Criu, Program, Scratch, compile};
use std::collections::BTreeSet;
use std::fs::File;
use std::mem::offset_of;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tranship_abi::block::{
    MAGIC, MAX_THREADS, ProcessBlock, THREADS_OFFSET, ThreadBlock, ThreadState, phase,
};
use tranship_abi::host::Host;
use tranship_recode::proto::pstree::Pstree_entry;
use tranship_recode::{HostLayout, ImageSet, MappedFile, Target, inspect, recode};

/// This machine as a host, with the runtime that `make blobs` builds.
fn this_host() -> Target {
    let runtime =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../dist/runtime-x86_64").canonicalize().unwrap();
    let elf = std::fs::read(&runtime).unwrap();
    let path = runtime.to_str().unwrap().to_owned();
    Target::Host(HostLayout { machine: Host::X86_64, runtime: MappedFile { path, elf }, objects: vec![] })
}

/// A translated process, seen from outside.
struct Translated {
    pid: u32,
    memory: File,
    base: u64,
}

impl Translated {
    fn open(pid: u32) -> Translated {
        let memory = File::options().read(true).write(true).open(format!("/proc/{pid}/mem")).unwrap();
        let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
        let starts =
            maps.lines().map(|line| u64::from_str_radix(line.split('-').next().unwrap(), 16).unwrap());
        let is_state = |start: &u64| {
            let mut magic = [0; MAGIC.len()];
            memory.read_exact_at(&mut magic, *start).is_ok() && magic == MAGIC
        };
        let base = starts.into_iter().find(is_state).unwrap();
        Translated { pid, memory, base }
    }

    fn u32(&self, address: u64) -> u32 {
        let mut word = [0; 4];
        self.memory.read_exact_at(&mut word, address).unwrap();
        u32::from_le_bytes(word)
    }

    fn set_u32(&self, address: u64, value: u32) {
        self.memory.write_all_at(&value.to_le_bytes(), address).unwrap();
    }

    fn interpreted(&self) -> u64 {
        let mut word = [0; 8];
        let at = self.base + offset_of!(ProcessBlock, interpreted) as u64;
        self.memory.read_exact_at(&mut word, at).unwrap();
        u64::from_le_bytes(word)
    }

    /// Ask all threads to park; true if they all have.
    fn park(&self) -> bool {
        self.set_u32(self.base + offset_of!(ProcessBlock, quiesce) as u64, 1);
        let mut parked = true;
        for slot in 0..MAX_THREADS {
            let block = self.base + THREADS_OFFSET + (slot * size_of::<ThreadBlock>()) as u64;
            let phase = self.u32(block + offset_of!(ThreadBlock, phase) as u64);
            if phase == phase::RUNNING {
                parked = false;
                self.set_u32(block + offset_of!(ThreadBlock, pending) as u64, 1);
                let tid =
                    self.u32(block + (offset_of!(ThreadBlock, state) + offset_of!(ThreadState, tid)) as u64);
                // SAFETY: tgkill(2) takes three integers.
                unsafe { libc::syscall(libc::SYS_tgkill, self.pid, tid, 64) };
            }
        }
        parked
    }
}

fn park_all(pids: &BTreeSet<u32>) {
    let start = Instant::now();
    let processes: Vec<Translated> = pids.iter().map(|pid| Translated::open(*pid)).collect();
    while processes.iter().filter(|process| !process.park()).count() > 0 {
        assert!(start.elapsed() < Duration::from_secs(20), "does not park");
        std::thread::sleep(Duration::from_millis(2));
    }
}

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
    recode(&parked, &back, &Target::Canonical).unwrap();
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
#[cfg_attr(not(all(criu, runtime)), ignore = "needs CRIU 4.2 (TRANSHIP_CRIU) and the runtime (make blobs)")]
fn counter_works_abroad() {
    survives("counter_works_abroad", "counter.c", &["1500"], 3);
}

#[test]
#[cfg_attr(not(all(criu, runtime)), ignore = "needs CRIU 4.2 (TRANSHIP_CRIU) and the runtime (make blobs)")]
fn threads_work_abroad() {
    survives("threads_work_abroad", "threads.c", &["1500"], 3);
}

#[test]
#[cfg_attr(not(all(criu, runtime)), ignore = "needs CRIU 4.2 (TRANSHIP_CRIU) and the runtime (make blobs)")]
fn events_work_abroad() {
    survives("events_work_abroad", "events.c", &["1500"], 3);
}

/// Debian's own busybox, in the middle of a large file.
#[test]
#[cfg_attr(not(all(criu, runtime)), ignore = "needs CRIU 4.2 (TRANSHIP_CRIU) and the runtime (make blobs)")]
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
#[cfg_attr(not(all(criu, runtime)), ignore = "needs CRIU 4.2 (TRANSHIP_CRIU) and the runtime (make blobs)")]
fn a_set_for_arm64_is_arm64s() {
    let scratch = Scratch::new("a_set_for_arm64_is_arm64s");
    let binary = compile(&scratch, "counter.c", &["-static"]);
    let criu = Criu::get();
    let program = Program::start(&scratch, &binary, &["100000"]);
    program.wait_for_lines(3);
    let (home, host) = (scratch.path("home"), scratch.path("host"));
    criu.dump(program.pid, &home);
    std::mem::forget(program);
    let runtime = Path::new(env!("CARGO_MANIFEST_DIR")).join("../dist/runtime-aarch64");
    let runtime = MappedFile { path: "/run/runtime".into(), elf: std::fs::read(runtime).unwrap() };
    let layout = HostLayout { machine: Host::Aarch64, runtime, objects: vec![] };
    recode(&home, &host, &Target::Host(layout)).unwrap();
    let summary = inspect(&host).unwrap();
    assert_eq!((summary.machine, summary.canonical), (Host::Aarch64, false));
    assert!(summary.guest_code().iter().any(|path| path.ends_with("/counter")));
    for mapping in &summary.processes[0].mappings {
        let ours = mapping.start >= 1 << 47;
        assert!(ours || mapping.protection & 4 == 0, "guest code is executable: {mapping:?}");
        assert!(mapping.end <= 1 << 48, "out of reach: {mapping:?}");
    }
}
