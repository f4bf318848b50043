//! Which flags may be undefined behind a sequence of instructions, whatever state it starts from.

use iced_x86::{Mnemonic, RflagsBits};
use tranship_isa::x86_64::Insn;

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
pub(super) fn keeps_flags_at_times(i: &Insn) -> bool {
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
