//! Every implemented instruction, in random encodings and states: the interpreter and compiled code against the real
//! CPU.
//! `TRANSHIP_SEED` repeats a run, `TRANSHIP_ONLY` names extensions (`shift,bit`) to run alone.
#![cfg(target_arch = "x86_64")]
#![allow(clippy::unwrap_used, clippy::panic)]

mod estimates;
mod examples;
mod x87_pointers;

use std::collections::BTreeMap;
use tranship_isa::x86_64::{Flag, Mnemonic, decode};
use tranship_tests::differential::{
    CODE, Case, Compiled, Emulated, Executor, Hidden, Interpreter, NativeCpu, Outcome, Random, State, cases,
    differences, random_state, text,
};

/// How much a run does.
#[derive(Clone, Copy)]
struct Size {
    /// Encodings tried per example, besides its own.
    variations: usize,
    /// States per encoding.
    states: usize,
    /// States that a run goes through at least.
    enough: u64,
}

impl Size {
    const LARGE: Size = Size { variations: 24, states: 24, enough: 200_000 };
    /// Where compiling or executing is slow.
    const SMALL: Size = Size { variations: 3, states: 8, enough: 20_000 };
}

#[test]
fn all_agree_with_the_cpu_on_a_fixed_seed() {
    compare(0x7a4e_5419, only(), Size::LARGE, &mut [&mut Interpreter, &mut Compiled::new()]).finish();
}

#[test]
fn all_agree_with_the_cpu_on_a_fresh_seed() {
    compare(seed(), only(), Size::LARGE, &mut [&mut Interpreter, &mut Compiled::new()]).finish();
}

#[test]
fn code_for_arm64_agrees_with_the_cpu() {
    let seed = seed();
    compare(seed, only(), Size::SMALL, &mut [&mut Emulated::default()]).finish();
}

#[test]
fn a_wrong_flag_is_noticed() {
    /// The interpreter, but XOR sets CF.
    struct Wrong;
    impl Executor for Wrong {
        fn name(&self) -> &'static str {
            "wrong interpreter"
        }
        fn run(&mut self, state: &mut State, code: &[u8]) -> Outcome {
            let outcome = Interpreter.run(state, code);
            if decode(code, CODE).unwrap().mnemonic() == Mnemonic::Xor && outcome == Outcome::Completed {
                state.cpu.flags[Flag::Cf as usize] = 1;
            }
            outcome
        }
    }
    let run = compare(0x7a4e_5419, Some("logic".into()), Size::SMALL, &mut [&mut Wrong]);
    assert!(run.failures.contains_key("Xor"));
    assert!(!run.failures.contains_key("And"));
}

/// The caller's, or one that no run had before.
fn seed() -> u64 {
    let given = std::env::var("TRANSHIP_SEED").ok().and_then(|seed| u64::from_str_radix(&seed, 16).ok());
    given.unwrap_or_else(Random::fresh_seed)
}

/// The extensions that the caller's environment restricts the run to.
fn only() -> Option<String> {
    std::env::var("TRANSHIP_ONLY").ok()
}

/// Put random states of every case through the CPU and all `executors`; of some extensions' cases if `only`
/// names them.
fn compare(seed: u64, only: Option<String>, size: Size, executors: &mut [&mut dyn Executor]) -> Run {
    println!("seed {seed:x} (set TRANSHIP_SEED to repeat)");
    let mut random = Random::new(seed);
    let mut native = NativeCpu::new();
    let mut cases = cases(&mut random, size.variations);
    cases.retain(|case| native.has(&case.insn));
    if let Some(only) = &only {
        cases.retain(|case| only.split(',').any(|name| name == case.extension));
    }
    for executor in executors.iter_mut() {
        executor.prepare(&cases);
    }
    let mut run = Run::default();
    let mut before = State::new();
    for case in &cases {
        for _ in 0..size.states {
            random_state(&mut random, &case.insn, &mut before);
            executors.iter().for_each(|executor| executor.adapt(&mut before));
            run.compare_one(case, &before, &mut native, executors);
        }
    }
    run.enough = if only.is_some() { 1 } else { size.enough };
    run
}

#[derive(Default)]
struct Run {
    states: u64,
    /// States that the CPU completed the instruction in; the others saw a fault or trap.
    completed: u64,
    /// How many states there must be.
    enough: u64,
    /// What was not compared: reasons and how often.
    hidden: BTreeMap<&'static str, u64>,
    /// First failure of each mnemonic, and how many there are.
    failures: BTreeMap<String, (u64, String)>,
}

impl Run {
    fn compare_one(
        &mut self,
        case: &Case,
        before: &State,
        native: &mut NativeCpu,
        executors: &mut [&mut dyn Executor],
    ) {
        let mut expected = before.clone();
        let expected_outcome = native.run(&mut expected, &case.code);
        self.states += 1;
        self.completed += u64::from(expected_outcome == Outcome::Completed);
        for executor in executors {
            let mut found = before.clone();
            let outcome = executor.run(&mut found, &case.code);
            match executor.hidden(&case.insn, before, expected_outcome, outcome) {
                Some(Hidden::State(why)) if expected_outcome == outcome => {
                    *self.hidden.entry(why).or_default() += 1;
                    continue;
                }
                Some(Hidden::Everything(why)) => {
                    *self.hidden.entry(why).or_default() += 1;
                    continue;
                }
                _ => {}
            }
            executor.forgive(&case.insn, &expected, &mut found);
            let list = differences(&case.insn, before, (expected_outcome, &expected), (outcome, &found));
            if !list.is_empty() {
                let lines: String = list.iter().map(|difference| format!("    {difference}\n")).collect();
                let key = format!("{:?}", case.insn.mnemonic());
                let entry = self.failures.entry(key).or_insert_with(|| {
                    let heading = format!("{} ({:02x?}) by {}", text(&case.insn), case.code, executor.name());
                    (0, format!("{heading}\n{lines}    before: {}\n", registers(before)))
                });
                entry.0 += 1;
            }
        }
    }

    fn finish(self) {
        println!("{} states, {} completed", self.states, self.completed);
        for (why, count) in &self.hidden {
            println!("{count} not compared: {why}");
        }
        let report: String =
            self.failures.values().map(|(count, first)| format!("{count} times: {first}")).collect();
        assert!(self.failures.is_empty(), "{} mnemonics differ\n{report}", self.failures.len());
        assert!(self.states >= self.enough, "too few states: {}", self.states);
    }
}

fn registers(state: &State) -> String {
    let gpr: Vec<String> = state.cpu.gpr.iter().map(|value| format!("{value:x}")).collect();
    format!("gpr {} rflags {:x} mxcsr {:x}", gpr.join(" "), state.cpu.rflags(), state.cpu.mxcsr)
}
