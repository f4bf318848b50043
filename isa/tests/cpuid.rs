//! What CPUID promises is implemented.
#![allow(clippy::unwrap_used, clippy::panic)]

use iced_x86::{Code, Instruction, Mnemonic};
use std::collections::{BTreeMap, BTreeSet};
use tranship_isa::x86_64::{cpuid, insn};

/// Mnemonics that a feature has but programs do not: privileged, or left over from the 8087.
const UNUSED: &[Mnemonic] =
    &[Mnemonic::Sysret, Mnemonic::Sysretq, Mnemonic::Fndisi, Mnemonic::Fneni, Mnemonic::Fstpnce];

#[test]
fn every_instruction_of_a_feature_has_a_block() {
    let covered: Vec<Mnemonic> = insn::blocks().flat_map(|block| block.mnemonics).copied().collect();
    let mut missing: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for code in Code::values().filter(|code| is_decoded(*code)) {
        let mut insn = Instruction::default();
        insn.set_code(code);
        let promised = cpuid::FEATURES.iter().any(|f| insn.cpuid_features() == f.instructions.as_slice());
        let known = covered.contains(&code.mnemonic()) || UNUSED.contains(&code.mnemonic());
        if promised && !known {
            let feature = format!("{:?}", insn.cpuid_features());
            missing.entry(feature).or_default().insert(format!("{:?}", code.mnemonic()));
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
}

/// Not the assembler's names for two instructions in one, WAIT and another.
fn is_decoded(code: Code) -> bool {
    code.op_code().mode64() && !code.op_code().fwait()
}

#[test]
fn vendor_and_brand_read_as_text() {
    let registers = |leaf| cpuid::query(leaf, 0).to_le_bytes();
    let leaf_0 = registers(0);
    let vendor = [&leaf_0[4..8], &leaf_0[12..16], &leaf_0[8..12]].concat();
    assert_eq!(vendor, b"GenuineIntel");
    let brand = [registers(0x8000_0002), registers(0x8000_0003), registers(0x8000_0004)].concat();
    assert!(brand.starts_with(b"Tranship virtual x86-64 CPU\0"));
}
