//! What only EVEX says.

use crate::machine::Rounding;
use crate::x86_64::Insn;
use iced_x86::RoundingControl;

/// Whether the instruction runs in other floating-point modes than the guest has set.
pub fn changes_modes(i: &Insn) -> bool {
    embedded(i).is_some()
}

/// The rounding that the encoding brings along, and with it that no exception is noted.
pub(super) fn embedded(i: &Insn) -> Option<Rounding> {
    match i.rounding_control() {
        RoundingControl::None => i.suppress_all_exceptions().then_some(Rounding::Current),
        RoundingControl::RoundToNearest => Some(Rounding::NearestEven),
        RoundingControl::RoundDown => Some(Rounding::Down),
        RoundingControl::RoundUp => Some(Rounding::Up),
        RoundingControl::RoundTowardZero => Some(Rounding::Zero),
    }
}
