//! Every implemented instruction, in random encodings and states: the interpreter and compiled code against the real
//! CPU.
//! Most states are those of fixed seeds, so that a change is judged as the one before it was; a few are new each time.
//! `TRANSHIP_SEED` repeats a run, `TRANSHIP_ONLY` names extensions (`shift,bit`) to run alone.
#![cfg(target_arch = "x86_64")]
#![allow(clippy::unwrap_used, clippy::panic)]

mod estimates;
mod examples;
mod run;
mod sequences;
mod x87_pointers;

use run::{Size, compare_cases, only, seed, seed_or};
use tranship_isa::x86_64::{Flag, Mnemonic, decode};
use tranship_tests::differential::{
    CODE, Compiled, Emulated, Executor, Interpreter, NativeCpu, Outcome, State,
};

#[test]
fn all_agree_with_the_cpu_on_a_fixed_seed() {
    compare_cases(
        NativeCpu::new(),
        0x7a4e_5419,
        only(),
        Size::LARGE,
        &mut [&mut Interpreter, &mut Compiled::new(), &mut Compiled::newest()],
    )
    .finish();
}

#[test]
fn all_agree_with_the_cpu_on_a_fresh_seed() {
    let executors: &mut [&mut dyn Executor] = &mut [&mut Interpreter, &mut Compiled::newest()];
    compare_cases(NativeCpu::new(), seed(), only(), Size::MEDIUM, executors).finish();
}

#[test]
fn all_agree_with_a_cpu_that_has_no_avx512() {
    let native = NativeCpu::without_avx512();
    compare_cases(native, seed_or(0x0512_5eed), only(), Size::SMALL, &mut [&mut Interpreter]).finish();
}

#[test]
fn code_for_arm64_agrees_with_the_cpu() {
    let seed = seed_or(0xa64_5eed);
    compare_cases(NativeCpu::new(), seed, only(), Size::SMALL, &mut [&mut Emulated::default()]).finish();
}

#[test]
fn code_for_arm64_with_instructions_for_aes_agrees_with_the_cpu() {
    let (seed, only) = (seed_or(0xae5_5eed), Some("aes".into()));
    compare_cases(NativeCpu::new(), seed, only, Size::SMALL, &mut [&mut Emulated::with_aes()]).finish();
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
    let logic = Some("logic".into());
    let run = compare_cases(NativeCpu::new(), 0x7a4e_5419, logic, Size::SMALL, &mut [&mut Wrong]);
    assert!(run.failures.contains_key("Xor"));
    assert!(!run.failures.contains_key("And"));
}
