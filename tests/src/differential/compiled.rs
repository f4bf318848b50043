//! Compiled code as an executor: all cases become one guest program, which is translated as any other, and what the
//! object's entries do to a state is seen in a [`Chamber`].

use super::{Executor, Hidden, Interpreter, Outcome, SANDBOX, SANDBOX_BYTES, State, approximate, program};
use iced_x86::CpuidFeature;
use std::collections::HashMap;
use tranship_isa::machine::Trap;
use tranship_isa::x86_64::Insn;
use tranship_tests_process::{Chamber, Ended, Fault};
use tranship_translate::bitcode::Bitcode;
use tranship_translate::compile::{Host, Options, compile};
use tranship_translate::discover::discover;
use tranship_translate::elf::GuestElf;
use tranship_translate::region::{Discovery, Faults};

/// Code compiled for this machine, run in this process.
pub struct Compiled {
    chamber: Option<Chamber>,
    /// Where the program has each case.
    places: HashMap<Vec<u8>, u64>,
    name: &'static str,
    host: Host,
    faults: Faults,
    /// The last run ended by a fault of the host's.
    faulted: bool,
}

impl Compiled {
    /// Nothing is compiled yet.
    pub fn new() -> Compiled {
        let (name, host) = ("compiled code", Host::x86_64());
        Compiled { chamber: None, places: HashMap::new(), name, host, faults: Faults::Fatal, faulted: false }
    }

    /// The same for as new a CPU as this one is.
    pub fn newest() -> Compiled {
        use std::arch::is_x86_feature_detected as has;
        let mut host = if is_v3() { Host::x86_64_v3() } else { Host::x86_64() };
        if has!("aes") && has!("pclmulqdq") {
            host = host.with_aes();
        }
        if has!("sha") {
            host = host.with_sha();
        }
        Compiled { name: "compiled code for this CPU", host, ..Compiled::new() }
    }

    /// The same, but code that can say the exact state at a fault.
    #[must_use]
    pub fn exact(self) -> Compiled {
        Compiled { faults: Faults::Exact, ..self }
    }
}

fn is_v3() -> bool {
    use std::arch::is_x86_feature_detected as has;
    has!("avx2")
        && has!("bmi1")
        && has!("bmi2")
        && has!("f16c")
        && has!("fma")
        && has!("lzcnt")
        && has!("movbe")
}

impl Default for Compiled {
    fn default() -> Compiled {
        Compiled::new()
    }
}

/// The object for `host` of a program that consists of `codes`.
pub(super) fn translate(codes: &[&[u8]], host: &Host, faults: Faults) -> Vec<u8> {
    let elf = GuestElf::parse(program::elf(codes)).unwrap();
    let options = Options::default();
    let found = Discovery { faults, ..discover(&elf) };
    let bitcode = Bitcode::lift(&elf, &found, options.jobs, &());
    compile(&bitcode, host, &options, &()).unwrap()
}

pub(super) fn places(codes: &[&[u8]]) -> HashMap<Vec<u8>, u64> {
    codes.iter().enumerate().map(|(n, code)| (code.to_vec(), program::address(n))).collect()
}

impl Executor for Compiled {
    fn name(&self) -> &'static str {
        self.name
    }

    fn prepare(&mut self, codes: &[&[u8]]) {
        self.places = places(codes);
        self.chamber = Some(Chamber::new(&translate(codes, &self.host, self.faults)));
    }

    fn run(&mut self, state: &mut State, code: &[u8]) -> Outcome {
        let chamber = self.chamber.as_mut().unwrap();
        // SAFETY: the native CPU has mapped the sandbox, for good.
        unsafe { std::ptr::copy_nonoverlapping(state.memory.as_ptr(), SANDBOX as *mut u8, SANDBOX_BYTES) };
        let ended = chamber.run(self.places[code], code, &mut state.cpu);
        // SAFETY: as above.
        unsafe {
            std::ptr::copy_nonoverlapping(SANDBOX as *const u8, state.memory.as_mut_ptr(), SANDBOX_BYTES)
        };
        self.faulted = matches!(ended, Ended::Faulted(_));
        match (ended, self.faults) {
            // The interpreter comes to the same fault, as the runtime has it.
            (Ended::Faulted(_), Faults::Exact) => Interpreter.run(state, code),
            _ => outcome(ended),
        }
    }

    fn forgive(&self, insn: &Insn, expected: &State, found: &mut State) {
        approximate::forgive_choice_of_nan(insn, &expected.cpu, &mut found.cpu);
        approximate::forgive_idle_comparison(insn, &expected.cpu, &mut found.cpu);
    }

    fn hidden(&self, insn: &Insn, before: &State, expected: Outcome, found: Outcome) -> Option<Hidden> {
        hidden(insn, before, expected, found, self.faulted)
    }
}

/// What compiled code does not show.
pub(super) fn hidden(
    insn: &Insn,
    _before: &State,
    expected: Outcome,
    found: Outcome,
    faulted: bool,
) -> Option<Hidden> {
    use Outcome::{Completed, MemoryFault, Trapped};
    let refused = |outcome| matches!(outcome, MemoryFault | Trapped(Trap::GeneralProtection));
    if let Some(hidden) = super::masked_at_an_edge(insn, expected, found) {
        return Some(hidden);
    }
    match (expected, found) {
        (Trapped(Trap::FloatingPoint), _) if is_sse(insn) => {
            Some(Hidden::Everything("SSE exceptions that MXCSR does not mask are not raised"))
        }
        (e, Completed) if refused(e) => {
            Some(Hidden::Everything("memory is not accessed where nothing depends on it"))
        }
        (e, f) if refused(e) && e != f => {
            Some(Hidden::Everything("accesses and traps are in no order, and not every host knows #GP"))
        }
        (e, _) if refused(e) && faulted => {
            Some(Hidden::State("at a fault, registers are where the host's compiler put them"))
        }
        _ => None,
    }
}

fn is_sse(insn: &Insn) -> bool {
    insn.cpuid_features().iter().all(|feature| !matches!(feature, CpuidFeature::FPU | CpuidFeature::MMX))
}

/// `si_code` of a signal for an exception that knows no address: #GP, or #SS if the host's code has the address in rsp
/// or rbp.
const SI_KERNEL: i32 = 0x80;

pub(super) fn outcome(ended: Ended) -> Outcome {
    match ended {
        Ended::Left => Outcome::Completed,
        Ended::Trapped(number) => Outcome::Trapped(Trap::ALL[number as usize]),
        Ended::Faulted(Fault { code: SI_KERNEL, .. }) => Outcome::Trapped(Trap::GeneralProtection),
        Ended::Faulted(_) => Outcome::MemoryFault,
    }
}
