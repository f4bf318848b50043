//! Every block's examples: the encoding decodes to the text, and the block covers it.
#![allow(clippy::unwrap_used, clippy::panic)]

use iced_x86::{Formatter, IntelFormatter};
use tranship_isa::x86_64::{Insn, decode, insn};

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|n| u8::from_str_radix(&hex[n..n + 2], 16).unwrap()).collect()
}

/// The one formatter configuration that example texts are in.
fn text(insn: &Insn) -> String {
    let mut formatter = IntelFormatter::new();
    let options = formatter.options_mut();
    options.set_hex_prefix("0x");
    options.set_hex_suffix("");
    options.set_uppercase_hex(false);
    options.set_branch_leading_zeros(false);
    options.set_show_branch_size(false);
    options.set_rip_relative_addresses(true);
    options.set_signed_immediate_operands(true);
    let mut text = String::new();
    formatter.format(insn, &mut text);
    text
}

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
