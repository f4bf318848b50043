//! No instruction in EVEX encoding of the features that x86-64 guests may find at home is absent, in any of its forms.
#![allow(clippy::unwrap_used, clippy::panic)]

use iced_x86::{Code, CpuidFeature as F, EncodingKind, RoundingControl};
use tranship_isa::x86_64::{Insn, insn};

/// What is exact of AVX-512, and what else has EVEX encodings there.
const FEATURES: &[F] = &[
    F::AVX512F,
    F::AVX512BW,
    F::AVX512CD,
    F::AVX512DQ,
    F::AVX512VL,
    F::AVX512_BITALG,
    F::AVX512_IFMA,
    F::AVX512_VBMI,
    F::AVX512_VBMI2,
    F::AVX512_VNNI,
    F::AVX512_VPOPCNTDQ,
    F::GFNI,
    F::VAES,
    F::VPCLMULQDQ,
];

#[test]
fn all_forms_have_blocks() {
    let mut absent = vec![];
    let mut forms = 0;
    for code in Code::values().filter(|code| is_offered(*code)) {
        for form in forms_of(code) {
            forms += 1;
            if insn::level(&form).is_none() {
                absent.push(format!("{code:?}"));
            }
        }
    }
    absent.dedup();
    assert!(forms > 1000, "{forms} forms are few");
    assert!(absent.is_empty(), "{} of {forms} forms: {absent:#?}", absent.len());
}

fn is_offered(code: Code) -> bool {
    let features = code.cpuid_features();
    let own = features.iter().all(|feature| FEATURES.contains(feature));
    code.encoding() == EncodingKind::EVEX && own
}

/// The instruction as it is, with exceptions suppressed, and with each rounding, as far as it has them.
fn forms_of(code: Code) -> Vec<Insn> {
    let mut plain = Insn::default();
    plain.set_code(code);
    let mut forms = vec![plain];
    let mut add = |change: &dyn Fn(&mut Insn)| {
        let mut form = plain;
        change(&mut form);
        forms.push(form);
    };
    // Immediates choose between meanings of VRNDSCALE and others.
    add(&|form| form.set_immediate8(0x35));
    if code.op_code().can_suppress_all_exceptions() {
        add(&|form| form.set_suppress_all_exceptions(true));
    }
    if code.op_code().can_use_rounding_control() {
        use RoundingControl::{RoundDown, RoundToNearest, RoundTowardZero, RoundUp};
        for rounding in [RoundToNearest, RoundDown, RoundUp, RoundTowardZero] {
            add(&|form| form.set_rounding_control(rounding));
        }
    }
    forms
}
