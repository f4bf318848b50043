//! Short random sequences: what the CPU completes, the interpreter and compiled code complete with the same result.

use crate::run::{Run, seed, seed_or};
use std::io::{Write, stderr};
use tranship_isa::machine::Trap;
use tranship_isa::x86_64::insn::{changes_modes, undefined_flags};
use tranship_isa::x86_64::{Insn, Mnemonic, OpKind};
use tranship_tests::differential::{
    Compiled, Emulated, Executor, Interpreter, NativeCpu, Outcome, Random, Sequence, State, cases,
    random_state, sequences, state_differences, text,
};

/// Variations of each example to choose from.
const VARIATIONS: usize = 3;
/// States for each sequence.
const STATES: usize = 24;

#[test]
fn sequences_agree_with_the_cpu_on_a_fixed_seed() {
    compare_sequences(
        0x5e90_e4ce,
        1500,
        &mut [&mut Interpreter, &mut Compiled::new(), &mut Compiled::newest()],
    );
}

/// What rounds as MXCSR says beside what brings its own rounding along.
#[test]
fn operations_keep_their_rounding_beside_embedded_rounding() {
    let mut executors: [&mut dyn Executor; 3] =
        [&mut Interpreter, &mut Compiled::new(), &mut Compiled::newest()];
    let is_fit = |i: &Insn| changes_modes(i) || rounds_to_integers(i);
    let native = native_with_avx512("operations_keep_their_rounding_beside_embedded_rounding");
    let choice = Choice { is_fit, ..Choice::default() };
    if let Some(native) = native {
        compare_chosen(native, seed_or(0x0d_0de5), 300, &mut executors, choice);
    }
}

/// Where no lane is accessed, memory need not be there.
#[test]
fn accesses_that_masks_leave_out_are_not_made() {
    let mut executors: [&mut dyn Executor; 3] =
        [&mut Interpreter, &mut Compiled::new(), &mut Compiled::newest()];
    let choice = Choice { is_fit: has_masked_memory, adapt: |state| state.cpu.opmask = [0; 8] };
    let native = native_with_avx512("accesses_that_masks_leave_out_are_not_made");
    if let Some(native) = native {
        compare_chosen(native, seed_or(0x3a5c_ed00), 200, &mut executors, choice);
    }
}

/// The CPU that `test` is about; if it lacks the instructions the test is skipped, and says so where no test's output
/// is held back.
fn native_with_avx512(test: &str) -> Option<NativeCpu> {
    let native = NativeCpu::new();
    if !native.has_avx512() {
        let _ = writeln!(stderr(), "skipped {test}: this CPU has no AVX-512");
    }
    Some(native).filter(NativeCpu::has_avx512)
}

fn has_masked_memory(i: &Insn) -> bool {
    i.has_op_mask() && (0..i.op_count()).any(|op| i.op_kind(op) == OpKind::Memory)
}

fn rounds_to_integers(i: &Insn) -> bool {
    use Mnemonic::{Cvtpd2dq, Cvtps2dq, Cvtsd2si, Cvtss2si, Vcvtpd2dq, Vcvtps2dq, Vcvtsd2si, Vcvtss2si};
    let legacy = matches!(i.mnemonic(), Cvtpd2dq | Cvtps2dq | Cvtsd2si | Cvtss2si);
    legacy || matches!(i.mnemonic(), Vcvtpd2dq | Vcvtps2dq | Vcvtsd2si | Vcvtss2si)
}

#[test]
fn sequences_agree_with_the_cpu_on_a_fresh_seed() {
    compare_sequences(seed(), 200, &mut [&mut Interpreter, &mut Compiled::newest()]);
}

#[test]
fn sequences_agree_with_a_cpu_that_has_no_avx512() {
    let native = NativeCpu::without_avx512();
    let seed = seed_or(0x0512_e4ce);
    compare_chosen(native, seed, 100, &mut [&mut Interpreter, &mut Compiled::new()], Choice::default());
}

#[test]
fn sequences_for_arm64_agree_with_the_cpu() {
    compare_sequences(seed_or(0xa64_e4ce), 400, &mut [&mut Emulated::default()]);
}

#[test]
fn faults_in_sequences_find_the_exact_state() {
    compare_faults(0xfa17_5eed, 1000, &mut Compiled::new().exact(), |i| stores_at_once(i, 16));
    compare_faults(seed(), 100, &mut Compiled::newest().exact(), |i| stores_at_once(i, 16));
}

#[test]
fn faults_in_sequences_for_arm64_find_the_exact_state() {
    compare_faults(seed_or(0xa64_fa17), 300, &mut Emulated::exact(), |i| stores_at_once(i, 8));
}

#[test]
fn a_wrong_state_at_a_fault_is_noticed() {
    let caught =
        std::panic::catch_unwind(|| compare_faults(0xfa17_5eed, 100, &mut Compiled::new(), |_| true));
    assert!(caught.is_err());
}

/// A vector that is wider may have been stored in part where it crosses into a page that is not there.
fn stores_at_once(i: &Insn, bytes: usize) -> bool {
    i.op0_kind() != OpKind::Memory || i.memory_size().size() <= bytes
}

/// `count` sequences of instructions that are fit, whose accesses are all to memory that is not there or at its edge: what they have done before they
/// fault, and nothing else, has been done.
fn compare_faults(seed: u64, count: usize, executor: &mut dyn Executor, is_fit: fn(&Insn) -> bool) {
    println!("seed {seed:x} (set TRANSHIP_SEED to repeat)");
    let mut random = Random::new(seed);
    let mut native = NativeCpu::new();
    let mut cases = cases(&mut random, VARIATIONS);
    cases.retain(|case| native.has(&case.insn) && !is_masked(&case.insn) && is_fit(&case.insn));
    let sequences = sequences(&mut random, &cases, count);
    let codes: Vec<&[u8]> = sequences.iter().map(|sequence| &sequence.code[..]).collect();
    executor.prepare(&codes);
    let mut run = Run::default();
    let mut before = State::new();
    for sequence in &sequences {
        for _ in 0..STATES {
            random_state(&mut random, &sequence.insns, &mut before);
            native.adapt(&mut before);
            executor.adapt(&mut before);
            compare_fault(&mut run, sequence, &before, &mut native, executor);
        }
    }
    assert!(10 * run.completed >= run.states / 10, "only {} of {} faulted", run.completed, run.states);
    run.finish();
}

/// Of a masked store a part may have been done when it faults, and a masked load may not be made if nothing depends on it
/// (docs/instructions.md).
fn is_masked(i: &Insn) -> bool {
    use Mnemonic::{Maskmovdqu, Maskmovq, Vmaskmovdqu, Vmaskmovpd, Vmaskmovps, Vpmaskmovd, Vpmaskmovq};
    has_masked_memory(i)
        || matches!(
            i.mnemonic(),
            Maskmovdqu | Maskmovq | Vmaskmovdqu | Vmaskmovpd | Vmaskmovps | Vpmaskmovd | Vpmaskmovq
        )
}

fn compare_fault(
    run: &mut Run,
    sequence: &Sequence,
    before: &State,
    native: &mut NativeCpu,
    executor: &mut dyn Executor,
) {
    let mut expected = before.clone();
    let outcome = native.run(&mut expected, &sequence.code);
    run.states += 1;
    if outcome != Outcome::MemoryFault {
        return;
    }
    run.completed += 1;
    let mut found = before.clone();
    let mut found_outcome = executor.run(&mut found, &sequence.code);
    executor.forgive(&sequence.insns[0], &expected, &mut found);
    // Of float operations beside the access that faults any may come first.
    found.cpu.mxcsr = found.cpu.mxcsr & !EXCEPTIONS | expected.cpu.mxcsr & EXCEPTIONS;
    sequence.clear_undefined(&mut expected);
    sequence.clear_undefined(&mut found);
    let insn = sequence.insns.iter().find(|insn| insn.ip() == expected.cpu.rip);
    if insn.is_some_and(|insn| insn.is_string_instruction() && found_outcome == GENERAL_PROTECTION) {
        // Which of the two operands is accessed first differs.
        found_outcome = outcome;
    }
    let undefined = sequence.insns.iter().fold(0, |all, i| all | undefined_flags(i, &before.cpu));
    let undefined = undefined | sequence.overwritten_at(expected.cpu.rip);
    let list = state_differences((outcome, &expected), (found_outcome, &found), undefined);
    let texts = || sequence.insns.iter().map(text).collect::<Vec<_>>().join("; ");
    run.note(&format!("{:02x?}", sequence.code), &list, before, || {
        format!("{} by {}", texts(), executor.name())
    });
}

/// What sequences are made of, and what their states have in common.
struct Choice {
    is_fit: fn(&Insn) -> bool,
    adapt: fn(&mut State),
}

impl Default for Choice {
    fn default() -> Choice {
        Choice { is_fit: |_| true, adapt: |_| {} }
    }
}

fn compare_sequences(seed: u64, count: usize, executors: &mut [&mut dyn Executor]) {
    compare_chosen(NativeCpu::new(), seed, count, executors, Choice::default());
}

/// `count` sequences, of which the CPU must complete some two in five states at least.
fn compare_chosen(
    mut native: NativeCpu,
    seed: u64,
    count: usize,
    executors: &mut [&mut dyn Executor],
    choice: Choice,
) {
    println!("seed {seed:x} (set TRANSHIP_SEED to repeat)");
    let mut random = Random::new(seed);
    let mut cases = cases(&mut random, VARIATIONS);
    cases.retain(|case| native.has(&case.insn) && (choice.is_fit)(&case.insn));
    let sequences = sequences(&mut random, &cases, count);
    let codes: Vec<&[u8]> = sequences.iter().map(|sequence| &sequence.code[..]).collect();
    executors.iter_mut().for_each(|executor| executor.prepare(&codes));
    let mut run = Run::default();
    let mut before = State::new();
    for sequence in &sequences {
        for _ in 0..STATES {
            random_state(&mut random, &sequence.insns, &mut before);
            (choice.adapt)(&mut before);
            if sequence.insns.iter().any(is_difference) {
                do_not_round_down(&mut before);
            }
            native.adapt(&mut before);
            executors.iter().for_each(|executor| executor.adapt(&mut before));
            compare_one(&mut run, sequence, &before, &mut native, executors);
        }
    }
    assert!(5 * run.completed >= 2 * run.states, "only {} of {} completed", run.completed, run.states);
    run.finish();
}

/// Whether it yields zeros whose sign is the rounding's. LLVM does not heed that where it knows the operands, as an
/// instruction before may have made them (docs/instructions.md). Sums are in no sequence.
fn is_difference(i: &Insn) -> bool {
    use Mnemonic::{Hsubpd, Hsubps, Subpd, Subps, Subsd, Subss};
    use Mnemonic::{Vhsubpd, Vhsubps, Vsubpd, Vsubps, Vsubsd, Vsubss};
    let legacy = matches!(i.mnemonic(), Hsubpd | Hsubps | Subpd | Subps | Subsd | Subss);
    legacy || matches!(i.mnemonic(), Vhsubpd | Vhsubps | Vsubpd | Vsubps | Vsubsd | Vsubss)
}

/// Have MXCSR round to nearest instead.
fn do_not_round_down(state: &mut State) {
    const ROUNDING: u32 = 3 << 13;
    const DOWN: u32 = 1 << 13;
    if state.cpu.mxcsr & ROUNDING == DOWN {
        state.cpu.mxcsr &= !ROUNDING;
    }
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
        executor.forgive(&sequence.insns[0], &expected, &mut found);
        forgive_lost_exceptions(&expected, &mut found);
        let list = state_differences((outcome, &expected), (found_outcome, &found), 0);
        let texts = || sequence.insns.iter().map(text).collect::<Vec<_>>().join("; ");
        run.note(&format!("{:02x?}", sequence.code), &list, before, || {
            format!("{} by {}", texts(), executor.name())
        });
    }
}

const GENERAL_PROTECTION: Outcome = Outcome::Trapped(Trap::GeneralProtection);
/// MXCSR's exception flags.
const EXCEPTIONS: u32 = 0x3f;

/// An instruction whose result is overwritten unread may be left out, and with it the exceptions it raised in MXCSR.
fn forgive_lost_exceptions(expected: &State, found: &mut State) {
    if found.cpu.mxcsr & !expected.cpu.mxcsr == 0 {
        found.cpu.mxcsr |= expected.cpu.mxcsr & EXCEPTIONS;
    }
}
