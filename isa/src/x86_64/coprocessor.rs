//! Operations of units of their own, numbered: what [`Machine::coprocessor`] hands over. The interpreter
//! calls [`run`] directly, compiled code through the runtime.
//!
//! [`Machine::coprocessor`]: crate::machine::Machine::coprocessor

use super::{Cpu, cpuid};

/// CPUID: `a` is the leaf, `b` the subleaf; yields eax, ebx, ecx, edx from low to high.
pub const CPUID: u32 = 0;
/// The time-stamp counter. The one operation that needs the host; [`run`] does not know it.
pub const TIMESTAMP: u32 = 1;
/// First number of the x87 unit's operations.
pub const X87: u32 = 0x100;

/// Do `operation`. Reads and writes no part of `cpu` but the unit's own.
pub fn run(_cpu: &mut Cpu, operation: u32, a: u128, b: u128) -> u128 {
    match operation {
        CPUID => cpuid::query(a as u32, b as u32),
        _ => 0,
    }
}
