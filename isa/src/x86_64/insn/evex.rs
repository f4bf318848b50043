//! Which instructions of VEX are covered in their EVEX encodings too, and what only EVEX says.

use crate::machine::Rounding;
use crate::x86_64::Insn;
use iced_x86::{Mnemonic as N, RoundingControl};

/// Whether the EVEX encoding is covered, where there is a block for the mnemonic.
pub(super) fn is_covered(i: &Insn) -> bool {
    let pure = embedded(i).is_some() && is_pure_to_hosts(i);
    !(has_only_vex(i.mnemonic()) || scales(i) || pure)
}

/// Half precision and gathers.
fn has_only_vex(mnemonic: N) -> bool {
    matches!(
        mnemonic,
        N::Vcvtph2ps
            | N::Vcvtps2ph
            | N::Vpgatherdd
            | N::Vpgatherdq
            | N::Vpgatherqd
            | N::Vpgatherqq
            | N::Vgatherdps
            | N::Vgatherdpd
            | N::Vgatherqps
            | N::Vgatherqpd
    )
}

/// VRNDSCALE to something else than integers.
fn scales(i: &Insn) -> bool {
    let rounds = matches!(i.mnemonic(), N::Vrndscaleps | N::Vrndscalepd | N::Vrndscaless | N::Vrndscalesd);
    rounds && i.immediate8() >> 4 != 0
}

/// What LLVM takes an x86-64 host's own instructions for: it may move them to where another rounding is in force, or
/// exceptions are noted.
fn is_pure_to_hosts(i: &Insn) -> bool {
    matches!(
        i.mnemonic(),
        N::Vcvtss2si
            | N::Vcvtsd2si
            | N::Vcvttss2si
            | N::Vcvttsd2si
            | N::Vcvtps2dq
            | N::Vcvtpd2dq
            | N::Vcvttps2dq
            | N::Vcvttpd2dq
            | N::Vminps
            | N::Vminpd
            | N::Vminss
            | N::Vminsd
            | N::Vmaxps
            | N::Vmaxpd
            | N::Vmaxss
            | N::Vmaxsd
            | N::Vrndscaleps
            | N::Vrndscalepd
            | N::Vrndscaless
            | N::Vrndscalesd
    )
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
