//! Which flags may be undefined behind a sequence of instructions, whatever state it starts from.

use iced_x86::{Mnemonic, RflagsBits};
use tranship_isa::x86_64::{Flag, Insn};

/// Flags, as the decoder numbers them, that may be undefined after `i` if those in `before` may be undefined before
/// it. `skipped`: it may not be executed.
pub(super) fn after(i: &Insn, before: u32, skipped: bool) -> u32 {
    let undefined = before | i.rflags_undefined() | of_shift(i);
    if skipped || keeps_flags_at_times(i) { undefined } else { undefined & !defined(i) }
}

/// Flags that it always leaves defined.
fn defined(i: &Insn) -> u32 {
    (i.rflags_written() | i.rflags_cleared() | i.rflags_set()) & !i.rflags_undefined()
}

/// A count may be zero.
fn keeps_flags_at_times(i: &Insn) -> bool {
    is_shift(i) || i.has_rep_prefix() || i.has_repne_prefix()
}

fn is_shift(i: &Insn) -> bool {
    use Mnemonic as N;
    matches!(
        i.mnemonic(),
        N::Shl | N::Sal | N::Shr | N::Sar | N::Shld | N::Shrd | N::Rol | N::Ror | N::Rcl | N::Rcr
    )
}

/// What some counts leave undefined.
fn of_shift(i: &Insn) -> u32 {
    if is_shift(i) { RflagsBits::OF | RflagsBits::AF | RflagsBits::CF } else { 0 }
}

/// The decoder's notation to places in RFLAGS.
pub(super) fn in_rflags(flags: u32) -> u64 {
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
    .fold(0, |bits, (_, ours)| bits | 1 << ours.bit())
}
