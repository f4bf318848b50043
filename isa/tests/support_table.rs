//! docs/instructions.md is what the blocks say. `TRANSHIP_BLESS=1` writes it.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::fmt::Write;
use std::path::Path;
use tranship_isa::x86_64::insn::{self, Block, Level};

const INTRODUCTION: &str = "\
# x86-64 instructions

What guest code may contain. *Exact* is every defined result, flag and exception, held against a real CPU by
the differential tests. An instruction that is not here is *absent*: it stops with an error that names it.

This page is made from the instructions' blocks in `isa/src/x86_64/insn/`:
`TRANSHIP_BLESS=1 cargo test -p tranship-isa --test support_table`.

Levels are those of every encoding: a test looks that no form that AVX-512 (F, BW, CD, DQ, VL, BITALG, IFMA, VBMI, VBMI2, VNNI,
VPOPCNTDQ), GFNI, VAES and VPCLMULQDQ have in EVEX is absent.
A masked operand at the edge of memory may be missed for a lane that its mask leaves out.

Compiled code differs from the interpreter, which is as the tables say, in this:

- Of two NaNs, a sum or product of floats may yield either.
- A difference of constants, or a sum, that is zero is positive even if MXCSR rounds down.
- What nothing depends on may be left out: a load from the function's own frame with its fault, a float operation with
  the flags it raises in MXCSR.
- A masked load that nothing depends on may be left out with its fault, and a masked store that faults, or a store of
  more than 16 bytes (arm64: 8) that crosses into a page that is not there, may have been made in part.
- On arm64, MXCSR's FTZ and DAZ work together only and flush before rounding, its denormal flag is raised for flushed
  operands only, and its underflow flag also where a result is tiny before rounding only. A fused zero times infinity
  raises its invalid flag even if a NaN is added.
";

#[test]
fn the_page_is_what_the_blocks_say() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/instructions.md");
    let page = page();
    if std::env::var_os("TRANSHIP_BLESS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == page, "docs/instructions.md is out of date: run with TRANSHIP_BLESS=1");
}

fn page() -> String {
    let mut page = String::from(INTRODUCTION);
    let mut extension = "";
    for block in insn::blocks() {
        if block.extension != extension {
            extension = block.extension;
            let title = extension.replace('_', " ");
            write!(page, "\n## {title}\n\n| instructions | meaning | level |\n|---|---|---|\n").unwrap();
        }
        page += &row(block);
    }
    page
}

fn row(block: &Block) -> String {
    let names: Vec<String> = block.mnemonics.iter().map(|m| format!("{m:?}").to_lowercase()).collect();
    let level = match block.level {
        Level::Exact => "exact".to_owned(),
        Level::Approximate(why) => format!("approximate: {why}"),
    };
    format!("| {} | {} | {level} |\n", names.join(" "), block.summary.trim().replace('|', "\\|"))
}
