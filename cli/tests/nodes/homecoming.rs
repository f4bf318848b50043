//! A program that was started abroad comes home: from then on its process is what it would have been, had it been
//! started there; but for the kernel's vDSO, which a program is only given when it starts.

use crate::lab::{TestLab, wait_for};
use crate::program::{busybox_root, compile_busybox, undisturbed};
use std::collections::BTreeSet;
use std::fs;

/// The mappings of a unit's process.
fn mappings(lab: &TestLab, node: &str, unit: &str) -> String {
    let inside = lab.status(node, unit).unwrap()["pid"].as_u64().unwrap();
    fs::read_to_string(format!("/proc/{}/maps", lab.outside(node, inside))).unwrap()
}

/// What they are of: files in its root, and what the kernel makes but the vDSO.
fn mapped(lab: &TestLab, node: &str, unit: &str) -> BTreeSet<String> {
    let maps = mappings(lab, node, unit);
    let directory = format!("/units/{unit}/root");
    let name = |line: &str| line.splitn(6, ' ').nth(5).unwrap_or("").trim_start().to_owned();
    let rights = |line: &str| line.split(' ').nth(1).unwrap().to_owned();
    let in_root =
        |name: String| name.split_once(&directory).map_or(name.clone(), |(_, path)| path.to_owned());
    let lines =
        maps.lines().filter(|line| !["[vdso]", "[vvar]", "[vvar_vclock]"].contains(&name(line).as_str()));
    lines.map(|line| format!("{} {}", rights(line), in_root(name(line)))).collect()
}

/// Abroad the runtime has the host's vDSO.
fn assert_reads_clocks(lab: &TestLab) {
    let has_it = || mappings(lab, "x86", "foreign").contains("[vdso]").then_some(());
    wait_for("the host's vDSO", has_it);
}

#[test]
fn a_program_started_abroad_comes_home_with_nothing_of_ours() {
    let lab = TestLab::up("homecoming");
    let root = busybox_root(&lab, 256);
    compile_busybox(&lab);
    let program = ["/bin/busybox", "sha256sum", "/file", "/file", "/file", "/file", "/file", "/file"];
    lab.start("native", &root, &[], &program);
    wait_for("it to read", || (mapped(&lab, "x86", "native").len() > 4).then_some(()));
    lab.migrate("native", "x86b", false);
    let usual = mapped(&lab, "x86b", "native");

    lab.start("foreign", &root, &["--translated"], &program);
    let abroad = mapped(&lab, "x86", "foreign");
    assert_ne!(abroad, usual);
    assert_reads_clocks(&lab);
    lab.migrate("foreign", "x86b", false);
    assert_eq!(lab.runs("x86b", "foreign").as_deref(), Some("native"));
    assert_eq!(mapped(&lab, "x86b", "foreign"), usual);
    lab.migrate("foreign", "x86", true);
    assert_reads_clocks(&lab);
    lab.migrate("foreign", "x86b", false);
    assert_eq!(mapped(&lab, "x86b", "foreign"), usual);
    let expected = undisturbed(&root, &program);
    assert_eq!(lab.finish("foreign"), expected);
    assert_eq!(lab.finish("native"), expected);
}
