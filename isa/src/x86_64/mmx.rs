//! MMX registers: the significands of the x87 registers by their physical number (SDM vol. 1, 9.2). An
//! instruction that uses one puts the x87 unit into MMX state: writing does, and one that only reads says so
//! with [`enter`], after its last access that can fault.

use super::operand::X86;
use super::x87::Operation;
use crate::machine::{CmpOp, Trap, Width};

/// Read MMX register `number`.
pub(super) fn read<M: X86>(m: &mut M, number: u32) -> M::Int {
    let answer = ask(m, Operation::MmxRead, number);
    m.trunc(answer, Width::W64)
}

/// Write MMX register `number`.
pub(super) fn write<M: X86>(m: &mut M, number: u32, value: M::Int) {
    let number = m.int(Width::W128, number.into());
    let value = m.zext(value, Width::W128);
    let answer = m.coprocessor(Operation::MmxWrite as u32, number, value);
    trap_if_pending(m, answer);
}

/// Put the x87 unit into MMX state.
pub(super) fn enter<M: X86>(m: &mut M) {
    ask(m, Operation::MmxEnter, 0);
}

fn ask<M: X86>(m: &mut M, operation: Operation, number: u32) -> M::Int {
    let (number, none) = (m.int(Width::W128, number.into()), m.int(Width::W128, 0));
    let answer = m.coprocessor(operation as u32, number, none);
    trap_if_pending(m, answer);
    answer
}

/// Raise the floating-point exception that was pending, and kept the coprocessor from doing anything, when it
/// gave `answer`.
pub(super) fn trap_if_pending<M: X86>(m: &mut M, answer: M::Int) {
    let zero = m.int(Width::W128, 0);
    let pending = m.cmp(CmpOp::Slt, answer, zero);
    m.trap_if(pending, Trap::FloatingPoint);
}
