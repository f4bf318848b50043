//! What two executors left, held against each other.

use super::states::memory_operand;
use super::{Outcome, SANDBOX, State, approximate};
use iced_x86::{OpKind, Register};
use std::fmt;
use tranship_isa::machine::Trap;
use tranship_isa::x86_64::{Flag, Insn, insn};

/// One thing in which two results differ.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    /// A register, a flag, an address, or the outcome.
    pub what: String,
    /// What was expected.
    pub expected: String,
    /// What came out.
    pub found: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: expected {}, found {}", self.what, self.expected, self.found)
    }
}

/// All differences between what the oracle left (`expected`) and what another executor did, after `insn`
/// in state `before`. Undefined flags, the x87 unit's last-instruction pointers and what [`approximate`] allows are
/// not compared.
pub fn differences(
    insn: &Insn,
    before: &State,
    expected: (Outcome, &State),
    found: (Outcome, &State),
) -> Vec<Difference> {
    let adjusted = approximate::forgive(insn, before, expected.1, found.1);
    let found = (found.0, adjusted.as_ref().unwrap_or(found.1));
    let undefined = match expected.0 {
        Outcome::Completed => insn::undefined_flags(insn, &before.cpu),
        _ => 0,
    };
    let expected_outcome = if same_fault(insn, before, expected.0, found.0) { found.0 } else { expected.0 };
    state_differences((expected_outcome, expected.1), found, undefined)
}

/// All differences between `expected` and `found` but in the flags of RFLAGS that are `undefined`.
pub fn state_differences(
    expected: (Outcome, &State),
    found: (Outcome, &State),
    undefined: u64,
) -> Vec<Difference> {
    let mut list = Differences(vec![]);
    list.compare(|| "outcome".into(), expected.0, found.0);
    let (e, f) = (&expected.1.cpu, &found.1.cpu);
    for (n, name) in GPR_NAMES.iter().enumerate() {
        list.hex(|| (*name).into(), e.gpr[n].into(), f.gpr[n].into());
    }
    list.hex(|| "rip".into(), e.rip.into(), f.rip.into());
    for flag in Flag::ALL.into_iter().filter(|flag| undefined >> flag.bit() & 1 == 0) {
        list.compare(|| format!("{flag:?}"), e.flags[flag as usize], f.flags[flag as usize]);
    }
    list.hex(|| "other flags".into(), e.other_flags.into(), f.other_flags.into());
    list.hex(|| "fs base".into(), e.fs_base.into(), f.fs_base.into());
    list.hex(|| "gs base".into(), e.gs_base.into(), f.gs_base.into());
    list.hex(|| "mxcsr".into(), e.mxcsr.into(), f.mxcsr.into());
    for n in 0..32 {
        let bytes = |vec: &[u8; 64], at: usize| u128::from_le_bytes(vec[at..at + 16].try_into().unwrap());
        for at in (0..64).step_by(16) {
            list.hex(|| format!("vec{n}[{at}..]"), bytes(&e.vec[n], at), bytes(&f.vec[n], at));
        }
    }
    list.hex(|| "fcw".into(), e.x87.control.into(), f.x87.control.into());
    list.hex(|| "fsw".into(), e.x87.status.into(), f.x87.status.into());
    list.hex(|| "x87 tags".into(), e.x87.valid.into(), f.x87.valid.into());
    for n in 0..8 {
        let bits = |x: &tranship_isa::x86_64::X87| {
            u128::from(x.sign_exponent[n]) << 64 | u128::from(x.significand[n])
        };
        list.hex(|| format!("x87 R{n}"), bits(&e.x87), bits(&f.x87));
    }
    if expected.1.memory != found.1.memory {
        let both = expected.1.memory.iter().zip(found.1.memory.iter()).enumerate();
        for (n, (e, f)) in both.filter(|(_, (e, f))| e != f).take(16) {
            list.hex(|| format!("byte at {:#x}", SANDBOX + n as u64), (*e).into(), (*f).into());
        }
    }
    list.0
}

/// Some CPUs look whether an address is canonical before they add the segment base. An operand that begins
/// canonical may not end so, which executors do not see. Which of two operands is accessed first differs.
fn same_fault(insn: &Insn, before: &State, expected: Outcome, found: Outcome) -> bool {
    let refused =
        |outcome| matches!(outcome, Outcome::MemoryFault | Outcome::Trapped(Trap::GeneralProtection));
    if insn.op0_kind() != OpKind::Register
        && insn.op1_kind() != OpKind::Register
        && insn.is_string_instruction()
    {
        return refused(expected) && refused(found);
    }
    let last_canonical = memory_operand(insn, before).is_some_and(|a| (LIMIT - 512..LIMIT).contains(&a));
    (matches!(insn.memory_segment(), Register::FS | Register::GS) || last_canonical)
        && expected == Outcome::Trapped(Trap::GeneralProtection)
        && found == Outcome::MemoryFault
}

/// End of the canonical addresses that user space has.
const LIMIT: u64 = 1 << 47;

const GPR_NAMES: [&str; 16] = [
    "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14",
    "r15",
];

struct Differences(Vec<Difference>);

impl Differences {
    fn compare<T: PartialEq + fmt::Debug>(&mut self, what: impl FnOnce() -> String, expected: T, found: T) {
        if expected != found {
            let (expected, found) = (format!("{expected:?}"), format!("{found:?}"));
            self.0.push(Difference { what: what(), expected, found });
        }
    }

    fn hex(&mut self, what: impl FnOnce() -> String, expected: u128, found: u128) {
        if expected != found {
            let (expected, found) = (format!("{expected:#x}"), format!("{found:#x}"));
            self.0.push(Difference { what: what(), expected, found });
        }
    }
}
