//! The interpreter as an executor, with the sandbox as its memory.

use super::{CODE, Executor, Outcome, State};
use tranship_isa::interpret::{self, Fault, Step, Unshared};
use tranship_isa::machine::Trap;
use tranship_isa::x86_64::decode;

/// [`tranship_isa::interpret`].
#[derive(Default)]
pub struct Interpreter;

impl Executor for Interpreter {
    fn name(&self) -> &'static str {
        "interpreter"
    }

    fn run(&mut self, state: &mut State, code: &[u8]) -> Outcome {
        loop {
            let outcome = step(state, code);
            let inside = (CODE..CODE + code.len() as u64).contains(&state.cpu.rip);
            if !inside || outcome != Outcome::Completed {
                return outcome;
            }
        }
    }
}

/// Execute the instruction of `code` at the PC.
fn step(state: &mut State, code: &[u8]) -> Outcome {
    let rest = &code[(state.cpu.rip - CODE) as usize..];
    let Ok(insn) = decode(rest, state.cpu.rip) else { return Outcome::Absent };
    let mut cpu = state.cpu;
    let step = interpret::step(&mut cpu, &mut Sandbox(state), &insn);
    state.cpu = cpu;
    match step {
        Step::Next | Step::Jumped | Step::Called { .. } | Step::Returned | Step::Syscall => {
            Outcome::Completed
        }
        Step::Trapped(trap) => Outcome::Trapped(trap),
        Step::Faulted(fault) if is_canonical(fault.address) => Outcome::MemoryFault,
        Step::Faulted(_) => Outcome::Trapped(Trap::GeneralProtection),
        Step::Absent => Outcome::Absent,
    }
}

/// Hardware tells a non-canonical address (#GP) from one that is not mapped (#PF); processes seldom can.
fn is_canonical(address: u64) -> bool {
    (address as i64) << 16 >> 16 == address as i64
}

/// The sandbox, and nothing else.
struct Sandbox<'a>(&'a mut State);

impl Sandbox<'_> {
    fn at(&mut self, address: u64, len: usize, write: bool) -> Result<&mut [u8], Fault> {
        self.0.bytes_at(address, len).ok_or(Fault { address, write })
    }
}

impl Unshared for Sandbox<'_> {
    fn read_bytes(&mut self, address: u64, into: &mut [u8]) -> Result<(), Fault> {
        into.copy_from_slice(self.at(address, into.len(), false)?);
        Ok(())
    }

    fn write_bytes(&mut self, address: u64, bytes: &[u8]) -> Result<(), Fault> {
        self.at(address, bytes.len(), true)?.copy_from_slice(bytes);
        Ok(())
    }

    fn counter(&mut self) -> u64 {
        0
    }
}
