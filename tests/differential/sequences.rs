//! Short random sequences: what the CPU completes, the interpreter and compiled code complete with the same result.

use crate::run::{Run, seed};
use tranship_tests::differential::{
    Compiled, Executor, Interpreter, NativeCpu, Outcome, Random, Sequence, State, cases, random_state,
    sequences, state_differences, text,
};

/// Variations of each example to choose from.
const VARIATIONS: usize = 3;
/// Sequences of a run.
const SEQUENCES: usize = 1500;
/// States for each.
const STATES: usize = 24;
/// States that the CPU must complete.
const ENOUGH: u64 = 15_000;

#[test]
fn sequences_agree_with_the_cpu_on_a_fixed_seed() {
    compare_sequences(0x5e90_e4ce);
}

#[test]
fn sequences_agree_with_the_cpu_on_a_fresh_seed() {
    compare_sequences(seed());
}

fn compare_sequences(seed: u64) {
    println!("seed {seed:x} (set TRANSHIP_SEED to repeat)");
    let mut random = Random::new(seed);
    let mut native = NativeCpu::new();
    let mut cases = cases(&mut random, VARIATIONS);
    cases.retain(|case| native.has(&case.insn));
    let sequences = sequences(&mut random, &cases, SEQUENCES);
    let codes: Vec<&[u8]> = sequences.iter().map(|sequence| &sequence.code[..]).collect();
    let mut compiled = Compiled::new();
    compiled.prepare(&codes);
    let mut run = Run::default();
    let mut before = State::new();
    for sequence in &sequences {
        for _ in 0..STATES {
            random_state(&mut random, &sequence.insns, &mut before);
            compare_one(&mut run, sequence, &before, &mut native, &mut [&mut Interpreter, &mut compiled]);
        }
    }
    assert!(run.completed >= ENOUGH, "only {} of {} states completed", run.completed, run.states);
    run.finish();
}

/// Where a sequence ends by a trap or fault, compiled code has no exact registers, nor a known order of effects.
fn compare_one(
    run: &mut Run,
    sequence: &Sequence,
    before: &State,
    native: &mut NativeCpu,
    executors: &mut [&mut dyn Executor],
) {
    let mut expected = before.clone();
    let outcome = native.run(&mut expected, &sequence.code);
    run.states += 1;
    if outcome != Outcome::Completed {
        return;
    }
    run.completed += 1;
    sequence.clear_undefined(&mut expected);
    for executor in executors {
        let mut found = before.clone();
        let found_outcome = executor.run(&mut found, &sequence.code);
        sequence.clear_undefined(&mut found);
        forgive_lost_exceptions(&expected, &mut found);
        let list = state_differences((outcome, &expected), (found_outcome, &found), 0);
        let texts = || sequence.insns.iter().map(text).collect::<Vec<_>>().join("; ");
        run.note(&format!("{:02x?}", sequence.code), &list, before, || {
            format!("{} by {}", texts(), executor.name())
        });
    }
}

/// An instruction whose result is overwritten unread may be left out, and with it the exceptions it raised in MXCSR.
fn forgive_lost_exceptions(expected: &State, found: &mut State) {
    const EXCEPTIONS: u32 = 0x3f;
    if found.cpu.mxcsr & !expected.cpu.mxcsr == 0 {
        found.cpu.mxcsr |= expected.cpu.mxcsr & EXCEPTIONS;
    }
}
