//! A container that is supplied with compiled code on an arm64 machine, and comes home.

use crate::lab::{Beside, TestLab, wait_for};
use crate::program::c_root;
use std::process::Stdio;

/// By how much compiled code has to be faster than the interpreter, at least.
const GAIN: u64 = 4;

/// What `paced.c` has written in its container on `node`.
fn paces(lab: &TestLab, node: &str) -> Vec<u64> {
    let lines = lab.on(node, &["podman", "logs", "paced"]);
    lines.lines().filter_map(|line| line.parse().ok()).collect()
}

#[test]
fn a_container_on_arm64_is_supplied_and_comes_home() {
    let lab = TestLab::with("supply-container", "x86,arm64");
    lab.image("x86", "paced", &c_root(&lab, "paced.c"));
    lab.on(
        "x86",
        &["podman", "run", "--detach", "--network", "none", "--name", "paced", "paced", "/bin/paced"],
    );
    lab.ok(&["migrate", "paced", "--to", "arm64"]);
    let interpreted = wait_for("a line from arm64", || paces(&lab, "arm64").last().copied());
    let _serve = Beside(lab.command(&["serve"]).stderr(Stdio::null()).spawn().unwrap());
    wait_for("compiled code", || {
        let compiled = *paces(&lab, "arm64").last()?;
        (compiled < interpreted / GAIN).then_some(())
    });
    lab.ok(&["migrate", "paced", "--to", "x86"]);
    wait_for("a line from home", || paces(&lab, "x86").last().copied());
}
