//! Keeps docs/syscalls.md equal to the table. `TRANSHIP_BLESS=1` rewrites it.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::fmt::Write;
use tranship_abi::syscall::{Action, ROWS, Syscall, lookup};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/syscalls.md");

fn how(row: &Syscall) -> String {
    match row.action {
        Action::Pass => "passed on".into(),
        Action::As(number, _) => format!("as `{}`", lookup(number.into()).unwrap().name),
        Action::Emulate => "by the runtime".into(),
        Action::Absent(why) => format!("absent: {why}"),
    }
}

fn page() -> String {
    let mut page = String::from(
        "# System calls of an x86-64 guest abroad\n\n\
         At home a guest makes its own system calls. On another machine the runtime performs them as this\n\
         table says. An absent call gives ENOSYS and a line on --stats-fd. The rows are those of\n\
         `abi/src/syscall/table.rs`; `TRANSHIP_BLESS=1 cargo test -p tranship-abi` writes this page.\n\n",
    );
    let absent = ROWS.iter().filter(|row| matches!(row.action, Action::Absent(_))).count();
    let approximate = ROWS.iter().filter(|row| row.approximate.is_some()).count();
    let exact = ROWS.len() - absent - approximate;
    writeln!(page, "{} calls: {exact} exact, {approximate} approximate, {absent} absent.\n", ROWS.len())
        .unwrap();
    page.push_str("| x86-64 | generic | name | performed | fidelity |\n|--:|--:|---|---|---|\n");
    for row in ROWS {
        let generic = row.generic.map_or("–".into(), |number| number.to_string());
        let fidelity = match (row.action, row.approximate) {
            (Action::Absent(_), _) => "absent".into(),
            (_, Some(why)) => format!("approximate: {why}"),
            (_, None) => String::from("exact"),
        };
        writeln!(page, "| {} | {generic} | {} | {} | {fidelity} |", row.x86_64, row.name, how(row)).unwrap();
    }
    page
}

#[test]
fn the_page_is_the_table() {
    if std::env::var_os("TRANSHIP_BLESS").is_some() {
        std::fs::write(PAGE, page()).unwrap();
    }
    let written = std::fs::read_to_string(PAGE).unwrap_or_default();
    assert!(written == page(), "docs/syscalls.md is out of date: run with TRANSHIP_BLESS=1");
}
