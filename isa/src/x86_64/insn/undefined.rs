//! Which flags an instruction leaves undefined: what two CPUs may differ in, so tests do not compare it.

use crate::x86_64::{Cpu, Flag, Insn};
use iced_x86::{Mnemonic, OpKind, RflagsBits};

/// The flags, at their places in RFLAGS, that the manual leaves undefined when `i` has executed on `before`.
pub fn undefined_flags(i: &Insn, before: &Cpu) -> u64 {
    use Mnemonic as N;
    let width = operand_bits(i);
    let count = shift_count(i, before, width);
    match i.mnemonic() {
        N::Shl | N::Sal | N::Shr | N::Sar | N::Shld | N::Shrd | N::Rol | N::Ror | N::Rcl | N::Rcr
            if count == 0 =>
        {
            0
        }
        N::Rol | N::Ror | N::Rcl | N::Rcr => after_one(count),
        N::Sar => bit(Flag::Af) | after_one(count),
        N::Shl | N::Sal | N::Shr if count >= width => bit(Flag::Af) | bit(Flag::Cf) | after_one(count),
        N::Shld | N::Shrd if count > width => STATUS,
        N::Shl | N::Sal | N::Shr | N::Shld | N::Shrd => bit(Flag::Af) | after_one(count),
        _ => from_decoder(i.rflags_undefined()),
    }
}

/// The six status flags.
const STATUS: u64 =
    bit(Flag::Cf) | bit(Flag::Pf) | bit(Flag::Af) | bit(Flag::Zf) | bit(Flag::Sf) | bit(Flag::Of);

const fn bit(flag: Flag) -> u64 {
    1 << flag.bit()
}

/// OF is defined for shifts and rotates by one only.
fn after_one(count: u32) -> u64 {
    if count == 1 { 0 } else { bit(Flag::Of) }
}

fn operand_bits(i: &Insn) -> u32 {
    let bytes = match i.op0_kind() {
        OpKind::Register => i.op0_register().size(),
        _ => i.memory_size().size(),
    };
    bytes as u32 * 8
}

/// The masked count of a shift: the last operand, cl or an immediate.
fn shift_count(i: &Insn, before: &Cpu, width: u32) -> u32 {
    let last = i.op_count().saturating_sub(1);
    let count = match i.op_kind(last) {
        OpKind::Immediate8 => i.immediate8(),
        _ => before.gpr[1] as u8,
    };
    u32::from(count) & if width == 64 { 63 } else { 31 }
}

/// Status flags in the decoder's numbering ([`RflagsBits`]) at their places in RFLAGS.
pub fn from_decoder(flags: u32) -> u64 {
    [
        (RflagsBits::CF, Flag::Cf),
        (RflagsBits::PF, Flag::Pf),
        (RflagsBits::AF, Flag::Af),
        (RflagsBits::ZF, Flag::Zf),
        (RflagsBits::SF, Flag::Sf),
        (RflagsBits::OF, Flag::Of),
    ]
    .into_iter()
    .filter(|(theirs, _)| flags & theirs != 0)
    .fold(0, |bits, (_, ours)| bits | bit(ours))
}
