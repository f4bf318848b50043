//! This machine as a host: its runtime, and how to have what runs there at safepoints.

use std::collections::BTreeSet;
use std::fs::File;
use std::mem::offset_of;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};
use tranship_abi::block::{
    MAGIC, MAX_THREADS, ProcessBlock, THREADS_OFFSET, ThreadBlock, ThreadState, phase,
};
use tranship_abi::host::Host;
use tranship_recode::{HostLayout, MappedFile, Target};

/// This machine as a host, with the runtime that `make blobs` builds.
pub(crate) fn this_host() -> Target {
    let runtime = Path::new(env!("CARGO_MANIFEST_DIR")).join("../dist/runtime-x86_64").canonicalize();
    let runtime = runtime.expect("`make blobs` builds the runtime");
    let path = runtime.to_str().unwrap().to_owned();
    Target::Host(HostLayout {
        machine: Host::X86_64,
        runtime: MappedFile::open(&runtime, path).unwrap(),
        objects: vec![],
        filter: None,
        kernel: None,
    })
}

/// An arm64 host, with the runtime that `make blobs` builds.
pub(crate) fn arm64_host() -> Target {
    let runtime = Path::new(env!("CARGO_MANIFEST_DIR")).join("../dist/runtime-aarch64");
    let runtime = MappedFile::open(&runtime, "/run/runtime".into()).unwrap();
    Target::Host(HostLayout { machine: Host::Aarch64, runtime, objects: vec![], filter: None, kernel: None })
}

/// A translated process, seen from outside.
pub(crate) struct Translated {
    pid: u32,
    memory: File,
    base: u64,
}

impl Translated {
    /// The process `pid`, which a runtime runs in.
    pub(crate) fn open(pid: u32) -> Translated {
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

    /// Instructions interpreted so far.
    pub(crate) fn interpreted(&self) -> u64 {
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
                let pending = block + offset_of!(ThreadBlock, pending) as u64;
                self.memory.write_all_at(&[1], pending).unwrap();
                let tid =
                    self.u32(block + (offset_of!(ThreadBlock, state) + offset_of!(ThreadState, tid)) as u64);
                // SAFETY: tgkill(2) takes three integers.
                unsafe { libc::syscall(libc::SYS_tgkill, self.pid, tid, 64) };
            }
        }
        parked
    }
}

/// Have every thread of these processes at a safepoint.
pub(crate) fn park_all(pids: &BTreeSet<u32>) {
    let start = Instant::now();
    let processes: Vec<Translated> = pids.iter().map(|pid| Translated::open(*pid)).collect();
    while processes.iter().filter(|process| !process.park()).count() > 0 {
        assert!(start.elapsed() < Duration::from_secs(20), "does not park");
        std::thread::sleep(Duration::from_millis(2));
    }
}
