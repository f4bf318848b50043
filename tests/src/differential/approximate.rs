//! Instructions that may differ from the CPU, and by how much.

use super::State;
use super::states::memory_operand;
use iced_x86::Mnemonic;
use tranship_isa::x86_64::{Cpu, Insn};

/// FSW: condition code C1, which of these instructions says how the last digit was rounded.
const C1: u16 = 1 << 9;
/// FSW: underflow.
const UNDERFLOW: u16 = 1 << 4;

/// For an instruction that is approximate, `found` made equal to `expected` in what is within its bounds.
pub(super) fn forgive(insn: &Insn, before: &State, expected: &State, found: &State) -> Option<State> {
    use Mnemonic as N;
    // Fields of the memory operand: opcode, pointers, selectors; MXCSR_MASK.
    let fields = match insn.mnemonic() {
        N::Rcpps | N::Rcpss | N::Rsqrtps | N::Rsqrtss | N::Vrcpps | N::Vrcpss | N::Vrsqrtps | N::Vrsqrtss => {
            let mut found = found.clone();
            forgive_estimates(insn, &expected.cpu, &mut found.cpu);
            return Some(found);
        }
        N::F2xm1 | N::Fyl2x | N::Fyl2xp1 | N::Fsin | N::Fcos | N::Fsincos | N::Fptan | N::Fpatan => {
            let mut found = found.clone();
            forgive_last_digit(&expected.cpu, &mut found.cpu);
            return Some(found);
        }
        N::Fxsave
        | N::Fxsave64
        | N::Xsave
        | N::Xsave64
        | N::Xsaveopt
        | N::Xsaveopt64
        | N::Xsavec
        | N::Xsavec64 => [6..24, 28..32],
        N::Fnstenv | N::Fnsave if is_short(insn) => [6..14, 0..0],
        N::Fnstenv | N::Fnsave => [12..28, 0..0],
        _ => return None,
    };
    let mut found = found.clone();
    let (address, mut expected) = (memory_operand(insn, before)?, expected.clone());
    for offset in fields.into_iter().flatten() {
        let address = address.wrapping_add(offset);
        if let (Some(e), Some(f)) = (expected.bytes_at(address, 1), found.bytes_at(address, 1)) {
            f[0] = e[0];
        }
    }
    Some(found)
}

/// Both the CPU's and our estimate may be wrong by 1.5 × 2^-12.
fn forgive_estimates(insn: &Insn, expected: &Cpu, found: &mut Cpu) {
    let register = insn.op0_register().number();
    for lane in (0..insn.op0_register().size()).step_by(4) {
        let bits = |cpu: &Cpu| u32::from_le_bytes(cpu.vec[register][lane..lane + 4].try_into().unwrap());
        let (e, f) = (f32::from_bits(bits(expected)), f32::from_bits(bits(found)));
        let near = ((e - f) / e).abs() <= 3.0 / 4096.0;
        // Tiny results become zero, on either side of the limit.
        let tiny = e.abs().max(f.abs()) < 1.001 * f32::MIN_POSITIVE;
        if near || tiny && e.is_sign_negative() == f.is_sign_negative() {
            found.vec[register][lane..lane + 4].copy_from_slice(&expected.vec[register][lane..lane + 4]);
        }
    }
}

/// Whether a compiler may choose which of two NaNs the instruction yields.
pub(super) fn chooses_nans(mnemonic: Mnemonic) -> bool {
    bytes_of_sum(mnemonic).is_some()
}

/// Bytes in each float of what sums or products yield.
fn bytes_of_sum(mnemonic: Mnemonic) -> Option<usize> {
    use Mnemonic as N;
    match mnemonic {
        N::Addss | N::Mulss | N::Addps | N::Mulps | N::Haddps | N::Addsubps | N::Dpps => Some(4),
        N::Vaddss | N::Vmulss | N::Vaddps | N::Vmulps | N::Vhaddps | N::Vaddsubps | N::Vdpps => Some(4),
        N::Addsd | N::Mulsd | N::Addpd | N::Mulpd | N::Haddpd | N::Addsubpd | N::Dppd => Some(8),
        N::Vaddsd | N::Vmulsd | N::Vaddpd | N::Vmulpd | N::Vhaddpd | N::Vaddsubpd | N::Vdppd => Some(8),
        _ => None,
    }
}

/// Which of two NaNs a sum or product yields: a compiler may exchange the operands.
pub(super) fn forgive_choice_of_nan(insn: &Insn, expected: &Cpu, found: &mut Cpu) {
    let Some(bytes) = bytes_of_sum(insn.mnemonic()) else { return };
    let register = insn.op0_register();
    let (e, f) = (&expected.vec[register.number()], &mut found.vec[register.number()]);
    for (e, f) in e.chunks(bytes).zip(f.chunks_mut(bytes)).take(register.size() / bytes) {
        if is_nan(e) && is_nan(f) {
            f.copy_from_slice(e);
        }
    }
}

/// The exceptions of a comparison whose outcome its predicate does not ask for: nothing depends on it.
pub(super) fn forgive_idle_comparison(insn: &Insn, expected: &Cpu, found: &mut Cpu) {
    use Mnemonic as N;
    let compares = matches!(insn.mnemonic(), N::Vcmpps | N::Vcmppd | N::Vcmpss | N::Vcmpsd);
    if compares && insn.immediate8() & 0xb == 0xb {
        found.mxcsr |= expected.mxcsr & 0x3f;
    }
}

/// What an arm64 host's floating-point unit reports otherwise: a denormal operand only where it is flushed, and
/// underflow of results that are tiny before rounding.
pub(super) fn forgive_arm_status(insn: &Insn, expected: &Cpu, found: &mut Cpu) {
    const INVALID: u32 = 1;
    const DENORMAL_OR_UNDERFLOW: u32 = 1 << 1 | 1 << 4;
    // The product of zero and infinity is invalid even if a NaN is added to it.
    if is_fused(insn.mnemonic()) {
        found.mxcsr = found.mxcsr & !INVALID | expected.mxcsr & INVALID;
    }
    found.mxcsr = found.mxcsr & !DENORMAL_OR_UNDERFLOW | expected.mxcsr & DENORMAL_OR_UNDERFLOW;
}

/// Whether it multiplies and adds at once, of which arm64 hosts raise another exception.
pub(super) fn is_fused(mnemonic: Mnemonic) -> bool {
    let name = format!("{mnemonic:?}");
    name.starts_with("Vfm") || name.starts_with("Vfnm")
}

/// Whether these are the bytes of a binary32 or binary64 NaN.
fn is_nan(bytes: &[u8]) -> bool {
    match *bytes {
        [a, b, c, d] => f32::from_le_bytes([a, b, c, d]).is_nan(),
        _ => bytes.try_into().is_ok_and(|bytes| f64::from_le_bytes(bytes).is_nan()),
    }
}

/// One unit in the last place on either side, and with it the direction of rounding.
fn forgive_last_digit(expected: &Cpu, found: &mut Cpu) {
    let least_normal = (0..8).any(|n| expected.x87.sign_exponent[n] & 0x7fff <= 1);
    let unsure = if least_normal { C1 | UNDERFLOW } else { C1 };
    found.x87.status = found.x87.status & !unsure | expected.x87.status & unsure;
    for n in 0..8 {
        let bits = |cpu: &Cpu| {
            u128::from(cpu.x87.sign_exponent[n] & 0x7fff) << 63
                | u128::from(cpu.x87.significand[n]) & ((1 << 63) - 1)
        };
        if bits(expected).abs_diff(bits(found)) <= 2 {
            found.x87.significand[n] = expected.x87.significand[n];
            found.x87.sign_exponent[n] =
                found.x87.sign_exponent[n] & 0x8000 | expected.x87.sign_exponent[n] & 0x7fff;
        }
    }
}

/// An environment in the 16-bit format.
fn is_short(insn: &Insn) -> bool {
    matches!(insn.memory_size().size(), 14 | 94)
}
