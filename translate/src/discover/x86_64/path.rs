//! The code that leads to an instruction: the straight line before it, and constants that reach it.

use super::super::code::{Code, Flow};
use super::Insn;
use super::effects::{VOLATILE, written_gprs};
use iced_x86::{Mnemonic, OpKind, Register};
use std::collections::BTreeSet;

/// Most instructions in a path.
const PATH_LIMIT: usize = 48;
/// Most instructions that the search for a constant looks at.
const SEARCH_LIMIT: usize = 20_000;

/// The instructions that are executed before (and with) an instruction, whatever way control came.
pub(super) struct Path {
    /// In order of execution, each with whether its branch is taken.
    pub(super) steps: Vec<(Insn, bool)>,
}

impl Path {
    /// The longest path that ends with the instruction at `end`: back to where two ways join, where code is entered
    /// from elsewhere, or to a call.
    pub(super) fn to(code: &Code, end: u64) -> Path {
        Path::back_from(code, end, |address| code.flow(address).is_call())
    }

    /// The same, over calls.
    pub(super) fn over_calls_to(code: &Code, end: u64) -> Path {
        Path::back_from(code, end, |_| false)
    }

    fn back_from(code: &Code, end: u64, stop: impl Fn(u64) -> bool) -> Path {
        let mut steps = Vec::new();
        let mut step = Some((end, false));
        while let Some((address, taken)) = step.filter(|&(address, _)| !stop(address)) {
            let Some(insn) = insn_at(code, address) else { break };
            steps.push((insn, taken));
            step = if steps.len() < PATH_LIMIT { only_predecessor(code, address) } else { None };
        }
        steps.reverse();
        Path { steps }
    }

    /// The addresses of its instructions behind the one at `address`.
    pub(super) fn after(&self, address: u64) -> Vec<u64> {
        let addresses = self.steps.iter().map(|(i, _)| i.ip());
        addresses.skip_while(|&a| a != address).skip(1).collect()
    }

    /// Where it starts.
    pub(super) fn start(&self) -> u64 {
        self.steps.first().map_or(0, |(i, _)| i.ip())
    }
}

fn insn_at(code: &Code, address: u64) -> Option<Insn> {
    super::insn(code.bytes(address), address)
}

/// The one instruction from which control comes to `address`, and whether by a taken branch.
fn only_predecessor(code: &Code, address: u64) -> Option<(u64, bool)> {
    if code.entries.contains_key(&address) {
        return None;
    }
    let mut sources = code.sources(address);
    match (code.before(address), sources.next(), sources.next()) {
        (Some(before), None, None) => Some((before, false)),
        // Through a table there is no telling by which index.
        (None, Some(source), None) if code.flow(source) != Flow::IndirectJump => Some((source, true)),
        _ => None,
    }
}

/// The constant that general register `register` has at `address` on every way on which it has one that is known.
pub(super) fn constant_at(code: &Code, address: u64, register: u8) -> Option<u64> {
    let mut found = None;
    let mut seen = BTreeSet::new();
    let mut work = vec![(address, register)];
    while let Some((address, register)) = work.pop() {
        for source in code.before(address).into_iter().chain(code.sources(address)) {
            if !seen.insert((source, register)) {
                continue;
            }
            if seen.len() > SEARCH_LIMIT {
                return None;
            }
            match definition(code, source, register) {
                Definition::None => work.push((source, register)),
                Definition::Copy(from) => work.push((source, from)),
                Definition::Constant(c) if found.is_none_or(|f| f == c) => found = Some(c),
                Definition::Constant(_) => return None,
                Definition::Unknown => {}
            }
        }
    }
    found
}

/// What an instruction makes of a register.
enum Definition {
    None,
    Copy(u8),
    Constant(u64),
    Unknown,
}

fn definition(code: &Code, address: u64, register: u8) -> Definition {
    let Some(i) = insn_at(code, address) else { return Definition::Unknown };
    if code.flow(address).is_call() && VOLATILE >> register & 1 != 0 {
        return Definition::Unknown;
    }
    if written_gprs(&i) >> register & 1 == 0 {
        return Definition::None;
    }
    let whole = i.op0_register().is_gpr64() || i.op0_register().is_gpr32();
    match (i.mnemonic(), i.op1_kind()) {
        (Mnemonic::Lea, _) if i.memory_base() == Register::RIP && whole => {
            Definition::Constant(i.memory_displacement64())
        }
        (Mnemonic::Mov, OpKind::Register) if i.op0_register().is_gpr64() => {
            Definition::Copy(i.op1_register().number() as u8)
        }
        (Mnemonic::Mov, OpKind::Immediate32 | OpKind::Immediate32to64 | OpKind::Immediate64) if whole => {
            Definition::Constant(i.immediate(1))
        }
        _ => Definition::Unknown,
    }
}
