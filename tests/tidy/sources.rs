//! Rules for source files.

use crate::tree;
use std::path::Path;

/// Lines past which a file asks to be split.
const MAX_LINES: usize = 800;
/// Longer files, with the reason.
const LONG_FILES: &[(&str, &str)] = &[];
/// Names that say nothing about what a file is for.
const EMPTY_NAMES: &[&str] = &["utils", "util", "helpers", "helper", "misc", "manager", "common"];
/// Where a file may ask which machine it is compiled for, with the reason.
const MACHINE_AWARE: &[(&str, &str)] = &[
    ("node/src/unit/vdso.rs", "the CPU's own counter is read by an instruction"),
    ("runtime/src/host/", "the code that runs on that machine"),
    ("tests/process/src/host/", "compiled code runs on that machine"),
    ("tests/src/differential/", "the real CPU is the oracle"),
    ("tests/differential/", "the real CPU is the oracle"),
];

#[test]
fn files_open_with_their_subject() {
    let silent = tree::rust_files().into_iter().filter(|path| {
        let text = tree::read(path);
        !text.lines().find(|line| !line.starts_with("#!")).is_some_and(|line| line.starts_with("//! "))
    });
    tree::expect_none(silent.map(|p| format!("{}: does not open with `//!`", p.display())).collect());
}

#[test]
fn files_are_short() {
    let mut complaints = vec![];
    for path in tree::rust_files() {
        let lines = tree::read(&path).lines().count();
        let excused = LONG_FILES.iter().any(|(name, _)| Path::new(name) == path);
        match (lines > MAX_LINES, excused) {
            (true, false) => complaints.push(format!("{}: {lines} lines, over {MAX_LINES}", path.display())),
            (false, true) => complaints.push(format!("{}: {lines} lines, needs no excuse", path.display())),
            _ => {}
        }
    }
    tree::expect_none(complaints);
}

#[test]
fn names_say_something() {
    let is_empty_name =
        |part: &Path| EMPTY_NAMES.iter().any(|name| part.file_stem().is_some_and(|s| s == *name));
    let files = tree::files();
    let bad = files.iter().filter(|path| path.iter().any(|part| is_empty_name(Path::new(part))));
    tree::expect_none(bad.map(|p| format!("{}: says nothing about its subject", p.display())).collect());
}

#[test]
fn machines_are_values() {
    let mut complaints = vec![];
    for path in tree::rust_files() {
        let allowed = MACHINE_AWARE.iter().any(|(prefix, _)| path.starts_with(prefix));
        if allowed || path.starts_with("tests/tidy") {
            continue;
        }
        let text = tree::read(&path);
        let lines = text.lines().enumerate().filter(|(_, line)| line.contains("target_arch"));
        complaints.extend(lines.map(|(n, line)| format!("{}:{}: {}", path.display(), n + 1, line.trim())));
    }
    tree::expect_none(complaints);
}

#[test]
fn nothing_generated_is_committed() {
    let files = tree::rust_files();
    let generated = files.iter().filter(|path| !path.starts_with("tests/tidy")).filter(|path| {
        let text = tree::read(path).to_lowercase();
        let head: Vec<&str> = text.lines().take(5).collect();
        ["@generated", "do not edit", "automatically generated"]
            .iter()
            .any(|mark| head.join("\n").contains(mark))
    });
    tree::expect_none(generated.map(|p| format!("{}: generated", p.display())).collect());
}

/// `unsafe` is covered by lints only where a crate takes the workspace's, and none of them switches it off.
#[test]
fn every_crate_takes_the_workspace_lints() {
    let mut complaints = vec![];
    for path in tree::files().iter().filter(|p| p.ends_with("Cargo.toml") && p.components().count() == 2) {
        let manifest: toml::Table = tree::read(path).parse().unwrap();
        let taken = manifest.get("lints").and_then(|lints| lints.get("workspace"));
        if taken.and_then(toml::Value::as_bool) != Some(true) && !path.starts_with("fuzz") {
            complaints.push(format!("{}: lacks `[lints] workspace = true`", path.display()));
        }
    }
    for path in tree::rust_files().iter().filter(|path| !path.starts_with("tests/tidy")) {
        let text = tree::read(path);
        if text.contains("allow(clippy::undocumented_unsafe_blocks") {
            complaints.push(format!("{}: allows unsafe blocks without a SAFETY line", path.display()));
        }
    }
    tree::expect_none(complaints);
}
