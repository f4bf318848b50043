//! Code compiled for another host as an executor: it runs in a process of its own, under qemu-user.

use super::compiled::{hidden, outcome, places, translate};
use super::{Executor, Hidden, Interpreter, Outcome, SANDBOX, SANDBOX_BYTES, State, approximate};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use tranship_isa::x86_64::Insn;
use tranship_tests_process::{Ended, exchange};
use tranship_translate::compile::Host;
use tranship_translate::region::Faults;

/// Code compiled for arm64, emulated.
#[derive(Default)]
pub struct Emulated {
    faults: Faults,
    /// The CPU has instructions for AES.
    has_aes: bool,
    process: Option<Child>,
    object: Option<PathBuf>,
    places: HashMap<Vec<u8>, u64>,
    faulted: bool,
}

impl Emulated {
    /// Code that can say the exact state at a fault.
    pub fn exact() -> Emulated {
        let mut emulated = Emulated::default();
        emulated.faults = Faults::Exact;
        emulated
    }

    /// Code for a CPU with instructions for AES.
    pub fn with_aes() -> Emulated {
        let mut emulated = Emulated::default();
        emulated.has_aes = true;
        emulated
    }
}

/// The program that runs it, built from the sources as they are.
fn executor() -> PathBuf {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let status = Command::new(top.join("tests/process/build-executor")).arg("--locked").status().unwrap();
    assert!(status.success(), "tests/process/build-executor: {status}");
    top.join("target/aarch64-unknown-linux-gnu/release/tranship-tests-process")
}

impl Executor for Emulated {
    fn name(&self) -> &'static str {
        "code compiled for arm64"
    }

    fn prepare(&mut self, codes: &[&[u8]]) {
        self.places = places(codes);
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = (std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let object = std::env::temp_dir().join(format!("tranship-differential-{}-{}", name.0, name.1));
        let host = if self.has_aes { Host::aarch64().with_aes() } else { Host::aarch64() };
        std::fs::write(&object, translate(codes, &host, self.faults)).unwrap();
        let process = Command::new("qemu-aarch64-static")
            .arg(executor())
            .arg(&object)
            .args([format!("{SANDBOX:x}"), format!("{SANDBOX_BYTES:x}")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        self.object = Some(object);
        self.process = Some(process.unwrap());
    }

    fn run(&mut self, state: &mut State, code: &[u8]) -> Outcome {
        let process = self.process.as_mut().unwrap();
        let (to, from) = (process.stdin.as_mut().unwrap(), process.stdout.as_mut().unwrap());
        let ended =
            exchange::request(self.places[code], code, &mut state.cpu, &mut state.memory[..], to, from);
        let ended = ended.unwrap_or_else(|error| panic!("{code:02x?}: {error}"));
        self.faulted = matches!(ended, Ended::Faulted(_));
        match (ended, self.faults) {
            (Ended::Faulted(_), Faults::Exact) => Interpreter.run(state, code),
            _ => outcome(ended),
        }
    }

    /// arm64 flushes operands and results together, and results before they are rounded.
    fn adapt(&self, state: &mut State) {
        const FLUSH: u32 = 1 << 15 | 1 << 6;
        state.cpu.mxcsr &= !FLUSH;
    }

    fn forgive(&self, insn: &Insn, expected: &State, found: &mut State) {
        approximate::forgive_idle_comparison(insn, &expected.cpu, &mut found.cpu);
        approximate::forgive_arm_status(insn, &expected.cpu, &mut found.cpu);
    }

    fn hidden(&self, insn: &Insn, before: &State, expected: Outcome, found: Outcome) -> Option<Hidden> {
        hidden(insn, before, expected, found, self.faulted)
    }
}

impl Drop for Emulated {
    fn drop(&mut self) {
        if let Some(mut process) = self.process.take() {
            drop(process.stdin.take());
            let _ = process.wait();
        }
        self.object.take().map(std::fs::remove_file);
    }
}
