//! Every block's examples: the encoding decodes to the text, and every mnemonic has one.

use tranship_isa::x86_64::{decode, insn};
use tranship_tests::differential::{bytes, text};

#[test]
fn texts_are_what_the_decoder_prints() {
    let mut wrong = String::new();
    for block in insn::blocks() {
        for example in block.examples {
            let code = bytes(example.hex);
            let printed = match decode(&code, 0) {
                Ok(insn) if insn.len() == code.len() => text(&insn),
                other => format!("{other:?}"),
            };
            if printed != example.text {
                wrong += &format!(
                    "{}: {:?} = {:?} prints {printed:?}\n",
                    block.extension, example.text, example.hex
                );
            }
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn every_mnemonic_has_an_example() {
    let mut missing = String::new();
    for block in insn::blocks() {
        let shown: Vec<_> =
            block.examples.iter().map(|e| decode(&bytes(e.hex), 0).unwrap().mnemonic()).collect();
        for mnemonic in block.mnemonics.iter().filter(|mnemonic| !shown.contains(mnemonic)) {
            missing += &format!("{}: {mnemonic:?}\n", block.extension);
        }
    }
    assert!(missing.is_empty(), "no example for\n{missing}");
}
