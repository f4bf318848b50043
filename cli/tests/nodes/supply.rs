//! A unit that is supplied with compiled code while it runs and moves.

use crate::lab::{TestLab, wait_for};
use crate::program::{c_root, undisturbed};
use serde_json::Value as Json;
use std::process::Stdio;

#[test]
fn generated_code_is_supplied_before_and_after_a_crossing() {
    let lab = TestLab::up("supply");
    let root = c_root(&lab, "generator.c");
    let program = ["/bin/generator"];
    lab.start("generator", &root, &["--translated"], &program);
    let mut serve = lab.command(&["--json", "serve", "generator"]);
    let serve = serve.stdout(Stdio::piped()).spawn().unwrap();
    wait_for("the first lines", || {
        let lines = lab.ok(&["logs", "generator"]).lines().count();
        (lines > 0).then_some(())
    });
    lab.migrate("generator", "x86b", false);
    lab.migrate("generator", "x86", true);
    assert_eq!(lab.finish("generator"), undisturbed(&root, &program));
    let said = serve.wait_with_output().unwrap();
    assert!(said.status.success());
    let summary: Json = serde_json::from_slice(&said.stdout).unwrap();
    assert!(summary["objects"].as_u64().unwrap() > 0, "{summary}");
}
