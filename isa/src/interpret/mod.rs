//! The interpreter: [`Machine`](crate::machine::Machine) over concrete values, a [`Cpu`] and the guest's
//! memory. It runs code that is not compiled (yet) and is the oracle's first opponent in the tests.

mod estimate;
pub(crate) mod float;
pub(crate) mod float_function;
mod integers;
mod interpreter;
mod lanes;
mod unshared;

pub use float_function::FloatFunction;
pub use integers::Integer;
pub use interpreter::Interpreter;
pub use lanes::Vector;
pub use unshared::Unshared;

use crate::machine::{AtomicOp, Trap, Width};
use crate::x86_64::{Cpu, Insn, LazyFlags, LazyState, insn, lazy_flags};

/// What the interpreter needs of its surroundings: guest memory and a clock.
///
/// Every access either happens or leaves memory as it was and yields [`Fault`]. An implementation over
/// mapped memory may instead let the host's own fault handler take over: a block writes no register before
/// its last access that can fault, and `rip` advances last, so `cpu` is then as the guest's handler must
/// see it.
pub trait Host {
    /// Load an integer, little-endian, any alignment; atomic if aligned and at most 64 bits.
    fn load(&mut self, address: u64, width: Width) -> Result<u128, Fault>;
    /// Store an integer, likewise.
    fn store(&mut self, address: u64, width: Width, value: u128) -> Result<(), Fault>;
    /// Load 16, 32 or 64 bytes, any alignment.
    fn load_bytes(&mut self, address: u64, into: &mut [u8]) -> Result<(), Fault>;
    /// Store 16, 32 or 64 bytes, any alignment.
    fn store_bytes(&mut self, address: u64, bytes: &[u8]) -> Result<(), Fault>;
    /// Atomic read-modify-write, at most 64 bits, any alignment; yields the old value.
    fn atomic(&mut self, op: AtomicOp, address: u64, width: Width, value: u128) -> Result<u128, Fault>;
    /// Atomic compare and exchange, any alignment up to 64 bits, aligned at 128; yields the old value.
    fn compare_exchange(
        &mut self,
        address: u64,
        width: Width,
        expected: u128,
        new: u128,
    ) -> Result<u128, Fault>;
    /// Full memory barrier.
    fn fence(&mut self);
    /// The time-stamp counter: any clock that only grows, about a nanosecond per step.
    fn timestamp(&mut self) -> u64;
}

/// A memory access that the guest's address space does not allow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fault {
    /// First address of the access.
    pub address: u64,
    /// It was a store (or a read-modify-write).
    pub write: bool,
}

/// How one instruction ended, and what `cpu.rip` is then.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Fell through: the next instruction.
    Next,
    /// A jump was taken: its target.
    Jumped,
    /// A call: the callee. `return_address` is on the guest's stack.
    Called {
        /// Where the callee should return to.
        return_address: u64,
    },
    /// A return: wherever it went.
    Returned,
    /// A system call instruction: the next instruction. The call itself is the caller's to make.
    Syscall,
    /// An exception: the instruction itself, or the next one for [`Trap::Breakpoint`] and [`Trap::Debug`].
    /// Nothing else has changed, but exception flags in MXCSR or FSW.
    Trapped(Trap),
    /// A memory access was refused: the instruction itself. A repeated string instruction has got as far
    /// as its registers say, any other has not changed anything.
    Faulted(Fault),
    /// No block covers the instruction: the instruction itself, nothing has changed.
    Absent,
}

/// Have in `cpu` what compiled code left otherwise.
pub fn settle<H: Host>(cpu: &mut Cpu, host: &mut H, lazy: &mut LazyState) {
    lazy.cleared.settle(cpu);
    let LazyFlags { rule, left, right } = core::mem::take(&mut lazy.flags);
    if rule != LazyFlags::SETTLED {
        let [rule, left, right] = [rule, left, right].map(|word| Integer::new(Width::W64, word.into()));
        let next = cpu.rip;
        lazy_flags::settle(&mut Interpreter::new(cpu, host, next), rule, left, right);
    }
}

/// Execute `insn`, which was decoded at `cpu.rip`.
pub fn step<H: Host>(cpu: &mut Cpu, host: &mut H, insn: &Insn) -> Step {
    let mut interpreter = Interpreter::new(cpu, host, insn.next_ip());
    match insn::execute(&mut interpreter, insn) {
        Ok(()) => interpreter.finish(),
        Err(insn::Absent) => Step::Absent,
    }
}
