//! Operations of units of their own, numbered: what [`Machine::coprocessor`] hands over. The interpreter
//! calls [`run`] directly, compiled code through the runtime.
//!
//! [`Machine::coprocessor`]: crate::machine::Machine::coprocessor

use super::{Cpu, cpuid, x87};

/// CPUID: `a` is the leaf, `b` the subleaf; yields eax, ebx, ecx, edx from low to high.
pub const CPUID: u32 = 0;
/// The time-stamp counter. The one operation that needs the host; [`run`] does not know it.
pub const TIMESTAMP: u32 = 1;
/// The low bits of `a`, put where `b` has ones.
pub const DEPOSIT: u32 = 2;
/// The bits of `a` where `b` has ones, put together from bit 0 up.
pub const EXTRACT: u32 = 3;
/// CRC-32C of 2^n bytes of `b` (n = 0 to 3), going on from `a`: operation `CRC32C + n`.
pub const CRC32C: u32 = 4;
/// First number of the x87 unit's operations, [`x87::Operation`].
pub const X87: u32 = x87::FIRST;

/// Do `operation`. Reads and writes no part of `cpu` but the unit's own.
pub fn run(cpu: &mut Cpu, operation: u32, a: u128, b: u128) -> u128 {
    match operation {
        CPUID => cpuid::query(a as u32, b as u32),
        DEPOSIT => deposit(a as u64, b as u64).into(),
        EXTRACT => extract(a as u64, b as u64).into(),
        CRC32C..=7 => crc32c(a as u32, b as u64, 1 << (operation - CRC32C)).into(),
        X87.. => x87::run(&mut cpu.x87, operation, a, b),
        _ => 0,
    }
}

fn deposit(value: u64, mut mask: u64) -> u64 {
    let mut result = 0;
    let mut n = 0;
    while mask != 0 {
        result |= (value >> n & 1) << mask.trailing_zeros();
        mask &= mask - 1;
        n += 1;
    }
    result
}

fn extract(value: u64, mut mask: u64) -> u64 {
    let mut result = 0;
    let mut n = 0;
    while mask != 0 {
        result |= (value >> mask.trailing_zeros() & 1) << n;
        mask &= mask - 1;
        n += 1;
    }
    result
}

/// The Castagnoli polynomial, bits reversed.
const CASTAGNOLI: u32 = 0x82f6_3b78;

fn crc32c(crc: u32, data: u64, bytes: u32) -> u32 {
    data.to_le_bytes().into_iter().take(bytes as usize).fold(crc, |crc, byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| crc >> 1 ^ CASTAGNOLI & (crc & 1).wrapping_neg())
    })
}
