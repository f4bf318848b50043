//! The x87 unit remembers where its last instruction and that one's memory operand were. A signal frame does
//! not show it, so a whole sequence runs on the CPU.

use std::arch::asm;
use tranship_tests::differential::{CODE, Executor, Interpreter, Outcome, SANDBOX, State, bytes};

/// FIP less the address of the first instruction, and FDP less that of the operand, in 32 bits.
fn on_the_cpu() -> [u32; 2] {
    let operand = 1.5_f64;
    let mut environment = [0_u32; 7];
    let start: u64;
    // SAFETY: leaves the x87 unit as a function call must find it.
    unsafe {
        asm!(
            "lea {start}, [rip + 2f]",
            "fninit",
            "2:",
            "fld qword ptr [{operand}]",
            "fadd st(0), st(0)",
            "fnstcw word ptr [{environment}]",
            "fnstenv [{environment}]",
            "fninit",
            start = out(reg) start,
            operand = in(reg) &operand,
            environment = in(reg) &mut environment,
        );
    }
    let operand = &raw const operand as u64;
    [environment[3].wrapping_sub(start as u32), environment[5].wrapping_sub(operand as u32)]
}

#[test]
fn pointers_are_those_of_the_last_instruction_that_is_no_control_instruction() {
    let mut state = State::new();
    state.cpu.gpr[7] = SANDBOX;
    // The same sequence, at the same lengths: fld qword ptr [rdi]; fadd st,st; fnstcw [rdi].
    assert_eq!(Interpreter.run(&mut state, &bytes("dd07d8c0d93f")), Outcome::Completed);
    let x87 = &state.cpu.x87;
    let ours = [(x87.instruction - CODE) as u32, (x87.data - SANDBOX) as u32];
    assert_eq!(ours, on_the_cpu());
}
