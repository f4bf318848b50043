//! Differential tests of instructions: the same state goes through several [`Executor`]s, and what
//! comes out must be equal. The real CPU is the one that is right.

mod approximate;
mod cases;
mod compare;
#[cfg(target_arch = "x86_64")]
mod compiled;
#[cfg(target_arch = "x86_64")]
mod emulated;
mod interpreter;
#[cfg(target_arch = "x86_64")]
mod native_cpu;
#[cfg(target_arch = "x86_64")]
mod program;
mod random;
mod sequences;
mod states;
mod undefined;

pub use cases::{Case, NOT_COMPARED, bytes, cases};
pub use compare::{Difference, differences, state_differences};
#[cfg(target_arch = "x86_64")]
pub use compiled::Compiled;
#[cfg(target_arch = "x86_64")]
pub use emulated::Emulated;
pub use interpreter::Interpreter;
#[cfg(target_arch = "x86_64")]
pub use native_cpu::NativeCpu;
pub use random::Random;
pub use sequences::{Sequence, sequences};
pub use states::random_state;

use iced_x86::{Formatter, IntelFormatter};
use tranship_isa::machine::Trap;
use tranship_isa::x86_64::{Cpu, Insn};

/// Where the sandbox lies: the only memory that instructions under test may touch. Below 2^31, so that
/// 32-bit addressing reaches it, and such that sums of two addresses in it are not mapped.
pub const SANDBOX: u64 = 0x1234_4000;
/// Bytes of the sandbox. What lies around it is not mapped.
pub const SANDBOX_BYTES: usize = 0x4000;
/// Where the instruction under test lies. Not readable to it.
pub const CODE: u64 = 0x3456_7100;

/// What an instruction starts from, and what it leaves.
#[derive(Clone)]
pub struct State {
    /// Registers. `rip` is [`CODE`] at the start.
    pub cpu: Cpu,
    /// The sandbox.
    pub memory: Box<[u8; SANDBOX_BYTES]>,
}

impl State {
    /// Registers as at exec, memory zero.
    pub fn new() -> State {
        let memory = vec![0; SANDBOX_BYTES].into_boxed_slice().try_into().unwrap();
        State { cpu: Cpu::at_exec(CODE, SANDBOX + SANDBOX_BYTES as u64 / 2), memory }
    }

    /// Overwrite this state without allocating.
    pub fn copy_from(&mut self, other: &State) {
        self.cpu = other.cpu;
        self.memory.copy_from_slice(&other.memory[..]);
    }

    /// The bytes from `address` to the end of the sandbox; `None` unless it holds `len` bytes there.
    pub fn bytes_at(&mut self, address: u64, len: usize) -> Option<&mut [u8]> {
        let offset = usize::try_from(address.checked_sub(SANDBOX)?).ok()?;
        self.memory.get_mut(offset..offset.checked_add(len)?)
    }
}

impl Default for State {
    fn default() -> State {
        State::new()
    }
}

/// How an instruction ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It completed; `rip` says where it went.
    Completed,
    /// It raised an exception.
    Trapped(Trap),
    /// It touched memory that is not there.
    MemoryFault,
    /// The executor does not know it.
    Absent,
}

/// One way to execute an instruction.
pub trait Executor {
    /// What reports call it.
    fn name(&self) -> &'static str;
    /// All code that [`Executor::run`] will be asked to execute, so that it may be compiled together.
    fn prepare(&mut self, _codes: &[&[u8]]) {}
    /// Execute `code`, which lies at [`CODE`], in `state`: one instruction or a sequence that runs to its end.
    fn run(&mut self, state: &mut State, code: &[u8]) -> Outcome;
    /// Turn a random state into one that the executor can be judged by.
    fn adapt(&self, _state: &mut State) {}
    /// Make `found` equal to `expected` in what `insn` leaves to the executor.
    fn forgive(&self, _insn: &Insn, _expected: &State, _found: &mut State) {}
    /// What cannot be seen of the run just made, which should have ended as `expected` and ended as `found`.
    fn hidden(&self, insn: &Insn, _before: &State, expected: Outcome, found: Outcome) -> Option<Hidden> {
        masked_at_an_edge(insn, expected, found)
    }
}

/// Whether one side alone has found memory missing that a mask may have left out: an absent page, or an address that
/// is none. Where the operand must be aligned, #GP may have another reason.
pub(crate) fn masked_at_an_edge(insn: &Insn, expected: Outcome, found: Outcome) -> Option<Hidden> {
    use iced_x86::Mnemonic::{Vmovapd, Vmovaps, Vmovdqa32, Vmovdqa64};
    let aligned = matches!(insn.mnemonic(), Vmovapd | Vmovaps | Vmovdqa32 | Vmovdqa64);
    let missing = |outcome| match outcome {
        Outcome::MemoryFault => true,
        Outcome::Trapped(Trap::GeneralProtection) => !aligned,
        _ => false,
    };
    let at_edge = expected != found && (missing(expected) || missing(found));
    let why = "which lanes of a masked operand are accessed, at the edge of memory";
    (insn.has_op_mask() && at_edge).then_some(Hidden::Everything(why))
}

/// What an executor cannot show of a result, and why.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hidden {
    /// Whether the outcome is right.
    Everything(&'static str),
    /// Registers and memory; the outcome is.
    State(&'static str),
}

/// An instruction in the one formatter configuration that the blocks' examples are in.
pub fn text(insn: &Insn) -> String {
    let mut formatter = IntelFormatter::new();
    let options = formatter.options_mut();
    options.set_hex_prefix("0x");
    options.set_hex_suffix("");
    options.set_uppercase_hex(false);
    options.set_branch_leading_zeros(false);
    options.set_show_branch_size(false);
    options.set_rip_relative_addresses(true);
    options.set_signed_immediate_operands(true);
    let mut text = String::new();
    formatter.format(insn, &mut text);
    text
}
