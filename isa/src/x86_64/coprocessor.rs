//! Operations of units of their own, numbered: what [`Machine::coprocessor`] hands over. The interpreter
//! calls [`run`] directly, compiled code through the runtime.
//!
//! [`Machine::coprocessor`]: crate::machine::Machine::coprocessor

use super::{Cpu, cpuid, x87};
use crate::interpret::{FloatFunction, float, float_function};
use crate::machine::{FloatFormat, NanRule, Negated, Rounding};

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
/// `a × b + c` in floats for hosts that do not have it, operation `FUSED` plus [`FUSED_DOUBLE`] and what is negated: `a`
/// has two operands in its halves, `b` the third and an MXCSR; yields the result, and above it the exceptions raised.
pub const FUSED: u32 = 0x10;
/// Operands are doubles.
pub const FUSED_DOUBLE: u32 = 1;
/// The product is negated.
pub const FUSED_NEGATED_PRODUCT: u32 = 2;
/// The addend is negated.
pub const FUSED_NEGATED_ADDEND: u32 = 4;
/// The low bits of `a` from half precision to single; `b` and the result are as of [`FUSED`].
pub const FROM_HALF: u32 = 0x18;
/// The low bits of `a` from single to half precision, in the rounding mode of `b`'s MXCSR.
pub const TO_HALF: u32 = 0x19;
/// A [`FloatFunction`], operation `FLOAT_FUNCTION` plus twice its number plus [`FUSED_DOUBLE`]: operands and result are as
/// of [`FUSED`], and above MXCSR `b` has the immediate in its uppermost 32 bits.
pub const FLOAT_FUNCTION: u32 = 0x20;
/// Last number of those.
const LAST_FLOAT_FUNCTION: u32 = FLOAT_FUNCTION + 2 * FloatFunction::ALL.len() as u32 - 1;
/// First number of the x87 unit's operations, [`x87::Operation`].
pub const X87: u32 = x87::FIRST;

/// Do `operation`. Reads and writes no part of `cpu` but the unit's own.
pub fn run(cpu: &mut Cpu, operation: u32, a: u128, b: u128) -> u128 {
    match operation {
        CPUID => cpuid::query(a as u32, b as u32),
        DEPOSIT => deposit(a as u64, b as u64).into(),
        EXTRACT => extract(a as u64, b as u64).into(),
        CRC32C..=7 => crc32c(a as u32, b as u64, 1 << (operation - CRC32C)).into(),
        FUSED..=TO_HALF => float(operation, a, b),
        FLOAT_FUNCTION..=LAST_FLOAT_FUNCTION => float_function(operation - FLOAT_FUNCTION, a, b),
        X87.. => x87::run(&mut cpu.x87, operation, a, b),
        _ => 0,
    }
}

/// MXCSR's exceptions.
const FLAGS: u32 = 0x3f;

fn float(operation: u32, a: u128, b: u128) -> u128 {
    let mut mxcsr = (b >> 64) as u32 & !FLAGS;
    let bits = match operation {
        FROM_HALF => float::half_to_single(&mut mxcsr, NanRule::X86, a as u64),
        TO_HALF => float::single_to_half(&mut mxcsr, Rounding::Current, NanRule::X86, a as u64),
        _ => {
            let has = |bit| operation & bit != 0;
            let format = if has(FUSED_DOUBLE) { FloatFormat::F64 } else { FloatFormat::F32 };
            let negated = Negated { product: has(FUSED_NEGATED_PRODUCT), addend: has(FUSED_NEGATED_ADDEND) };
            let operands = [a as u64, (a >> 64) as u64, b as u64];
            float::multiply_add(&mut mxcsr, format, negated, NanRule::X86, operands)
        }
    };
    u128::from(bits) | u128::from(mxcsr & FLAGS) << 64
}

fn float_function(number: u32, a: u128, b: u128) -> u128 {
    let Some(&function) = FloatFunction::ALL.get(number as usize / 2) else { return 0 };
    let format = if number & FUSED_DOUBLE != 0 { FloatFormat::F64 } else { FloatFormat::F32 };
    let (mut mxcsr, immediate) = ((b >> 64) as u32 & !FLAGS, (b >> 96) as u8);
    let operands = [a as u64, (a >> 64) as u64, b as u64];
    let bits = float_function::run(&mut mxcsr, function, format, operands, immediate);
    u128::from(bits) | u128::from(mxcsr & FLAGS) << 64
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
