//! A run of cases in random states on the CPU and other executors, and what it found.

use std::collections::{BTreeMap, BTreeSet};
use tranship_tests::differential::{
    Case, Difference, Executor, Hidden, Interpreter, NativeCpu, Outcome, Random, State, cases, differences,
    random_state, text,
};

/// How much a run does.
#[derive(Clone, Copy)]
pub(crate) struct Size {
    /// Encodings tried per example, besides its own.
    pub(crate) variations: usize,
    /// States per encoding.
    pub(crate) states: usize,
    /// States that a run goes through at least.
    pub(crate) enough: u64,
}

impl Size {
    pub(crate) const LARGE: Size = Size { variations: 12, states: 24, enough: 200_000 };
    /// For a look at what no run had before.
    pub(crate) const MEDIUM: Size = Size { variations: 6, states: 8, enough: 40_000 };
    /// Where compiling or executing is slow.
    pub(crate) const SMALL: Size = Size { variations: 3, states: 8, enough: 20_000 };
}

/// The caller's, or one that no run had before.
pub(crate) fn seed() -> u64 {
    given_seed().unwrap_or_else(Random::fresh_seed)
}

/// The caller's, or `fixed`.
pub(crate) fn seed_or(fixed: u64) -> u64 {
    given_seed().unwrap_or(fixed)
}

fn given_seed() -> Option<u64> {
    std::env::var("TRANSHIP_SEED").ok().and_then(|seed| u64::from_str_radix(&seed, 16).ok())
}

/// The extensions that the caller's environment restricts the run to.
pub(crate) fn only() -> Option<String> {
    std::env::var("TRANSHIP_ONLY").ok()
}

/// Put random states of every case through the CPU and all `executors`; of some extensions' cases if `only`
/// names them. What the CPU does not have is judged by the interpreter.
pub(crate) fn compare_cases(
    mut native: NativeCpu,
    seed: u64,
    only: Option<String>,
    size: Size,
    executors: &mut [&mut dyn Executor],
) -> Run {
    println!("seed {seed:x} (set TRANSHIP_SEED to repeat)");
    let mut random = Random::new(seed);
    let mut cases = cases(&mut random, size.variations);
    if let Some(only) = &only {
        cases.retain(|case| only.split(',').any(|name| name == case.extension));
    }
    let codes: Vec<&[u8]> = cases.iter().map(|case| &case.code[..]).collect();
    for executor in executors.iter_mut() {
        executor.prepare(&codes);
    }
    let mut run = Run::default();
    let mut before = State::new();
    for case in &cases {
        for _ in 0..size.states {
            random_state(&mut random, &[case.insn], &mut before);
            let oracle: &mut dyn Executor =
                if native.has(&case.insn) { &mut native } else { &mut Interpreter };
            oracle.adapt(&mut before);
            executors.iter().for_each(|executor| executor.adapt(&mut before));
            run.compare_one(case, &before, oracle, executors);
        }
    }
    run.tested = cases.iter().map(name).collect();
    run.enough = if only.is_some() { 1 } else { size.enough };
    run
}

#[derive(Default)]
pub(crate) struct Run {
    pub(crate) states: u64,
    /// States that the CPU completed the instruction in; the others saw a fault or trap.
    pub(crate) completed: u64,
    /// How many states there must be.
    enough: u64,
    /// What was not compared of each executor: reasons and how often.
    hidden: BTreeMap<&'static str, BTreeMap<&'static str, u64>>,
    /// Mnemonics that there were cases of, and those of them of which results were compared.
    tested: BTreeSet<String>,
    compared: BTreeSet<String>,
    /// First failure of each mnemonic, and how many there are.
    pub(crate) failures: BTreeMap<String, (u64, String)>,
}

impl Run {
    fn compare_one(
        &mut self,
        case: &Case,
        before: &State,
        oracle: &mut dyn Executor,
        executors: &mut [&mut dyn Executor],
    ) {
        let mut expected = before.clone();
        let expected_outcome = oracle.run(&mut expected, &case.code);
        self.states += 1;
        self.completed += u64::from(expected_outcome == Outcome::Completed);
        for executor in executors {
            let mut found = before.clone();
            let outcome = executor.run(&mut found, &case.code);
            match executor.hidden(&case.insn, before, expected_outcome, outcome) {
                Some(Hidden::State(why)) if expected_outcome == outcome => self.hide(executor.name(), why),
                Some(Hidden::Everything(why)) => self.hide(executor.name(), why),
                _ => {
                    executor.forgive(&case.insn, &expected, &mut found);
                    let (expected, found) = ((expected_outcome, &expected), (outcome, &found));
                    let list = differences(&case.insn, before, expected, found);
                    let heading =
                        || format!("{} ({:02x?}) by {}", text(&case.insn), case.code, executor.name());
                    self.note(&name(case), &list, before, heading);
                    self.compared.insert(name(case));
                }
            }
        }
    }

    fn hide(&mut self, executor: &'static str, why: &'static str) {
        *self.hidden.entry(executor).or_default().entry(why).or_default() += 1;
    }

    /// Keep the first `list` of differences that `key` has, if there are any, under `heading`.
    pub(crate) fn note(
        &mut self,
        key: &str,
        list: &[Difference],
        before: &State,
        heading: impl FnOnce() -> String,
    ) {
        if list.is_empty() {
            return;
        }
        let lines: String = list.iter().map(|difference| format!("    {difference}\n")).collect();
        let first = || (0, format!("{}\n{lines}    before: {}\n", heading(), registers(before)));
        self.failures.entry(key.to_owned()).or_insert_with(first).0 += 1;
    }

    pub(crate) fn finish(self) {
        println!("{} states, {} completed", self.states, self.completed);
        for (executor, reasons) in &self.hidden {
            for (why, count) in reasons {
                println!("{count} not compared of {executor}: {why}");
            }
        }
        let report: String =
            self.failures.values().map(|(count, first)| format!("{count} times: {first}")).collect();
        assert!(self.failures.is_empty(), "{} differ\n{report}", self.failures.len());
        assert!(self.states >= self.enough, "too few states: {}", self.states);
        for (executor, reasons) in &self.hidden {
            let hidden: u64 = reasons.values().sum();
            let all = self.states;
            assert!(hidden * 20 <= all, "too little of {executor} can be compared: {hidden} of {all}");
        }
        let missed: Vec<&String> = self.tested.difference(&self.compared).collect();
        assert!(missed.is_empty(), "no result was compared of {missed:?}");
    }
}

fn name(case: &Case) -> String {
    format!("{:?}", case.insn.mnemonic())
}

fn registers(state: &State) -> String {
    let gpr: Vec<String> = state.cpu.gpr.iter().map(|value| format!("{value:x}")).collect();
    format!("gpr {} rflags {:x} mxcsr {:x}", gpr.join(" "), state.cpu.rflags(), state.cpu.mxcsr)
}
