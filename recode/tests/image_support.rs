//! Keeps docs/images.md equal to the catalogue. `TRANSHIP_BLESS=1` rewrites it.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::fmt::Write;
use tranship_recode::catalogue::{IMAGE_TYPES, ImageType, Layout, Part, Rule};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/images.md");

fn what_happens(row: &ImageType) -> String {
    match row.rule {
        Rule::Copy => "copied: the same on every machine".to_owned(),
        Rule::Leave => "left behind: about the dump, not the processes".to_owned(),
        Rule::Refuse(why) => format!("refused: {why}"),
        Rule::Remap(Part::Process) => "rewritten: registers, address space, map of pages".to_owned(),
        Rule::Remap(Part::Files) => "rewritten: open flags, mapped objects".to_owned(),
        Rule::Remap(Part::Pages) => "left where they are; new pages beside them".to_owned(),
        Rule::Remap(Part::CpuInfo) => "left behind where the machine differs".to_owned(),
        Rule::Remap(Part::Seccomp) => {
            "rewritten: the engine's filter is the machine's, the program's own are in the state area"
                .to_owned()
        }
    }
}

fn holds(row: &ImageType) -> String {
    match row.layout {
        Layout::Raw => "raw bytes".to_owned(),
        Layout::Messages(of) => of.name.to_owned(),
        Layout::Headed(head, of) => format!("{}, then {}", head.name, of.name),
        Layout::Trailed(of) => format!("{}, each with bytes", of.name),
        Layout::GhostFile => "ghost_file_entry, then contents".to_owned(),
        Layout::MessageQueues => "ipc_msg_entry, each with ipc_msg".to_owned(),
    }
}

fn page() -> String {
    let count = |wanted: fn(&Rule) -> bool| IMAGE_TYPES.iter().filter(|row| wanted(&row.rule)).count();
    let mut page = format!(
        "# Image files of CRIU 4.2\n\n\
         What recoding does with each file of a checkpoint. A file that is not listed, and a field that is not known in\n\
         a rewritten one, stop it. The rows are those of `recode/src/catalogue.rs`;\n\
         `TRANSHIP_BLESS=1 cargo test -p tranship-recode --test image_support` writes this page.\n\n\
         {} types: {} copied, {} rewritten, {} left behind, {} refused.\n\n\
         | file | holds | in a recoding |\n|---|---|---|\n",
        IMAGE_TYPES.len(),
        count(|rule| matches!(rule, Rule::Copy)),
        count(|rule| matches!(rule, Rule::Remap(_))),
        count(|rule| matches!(rule, Rule::Leave)),
        count(|rule| matches!(rule, Rule::Refuse(_))),
    );
    for row in IMAGE_TYPES {
        writeln!(page, "| `{}` | {} | {} |", row.name, holds(row), what_happens(row)).unwrap();
    }
    page
}

#[test]
fn the_page_is_the_catalogue() {
    if std::env::var_os("TRANSHIP_BLESS").is_some() {
        std::fs::write(PAGE, page()).unwrap();
    }
    let written = std::fs::read_to_string(PAGE).unwrap_or_default();
    assert!(written == page(), "docs/images.md is out of date: run with TRANSHIP_BLESS=1");
}
