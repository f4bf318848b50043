//! A unit that is supplied with compiled code while it runs and moves.

use crate::lab::{Beside, TestLab, wait_for};
use crate::program::{c_root, undisturbed};
use serde_json::Value as Json;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

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

#[test]
fn what_runs_translated_beside_units_is_served_as_they_are() {
    let lab = TestLab::with("supply-beside", "x86");
    let root = c_root(&lab, "generator.c");
    lab.start("generator", &root, &["--translated"], &["/bin/generator"]);
    fs::copy(root.join("bin/generator"), lab.state().join("x86/state/generator")).unwrap();
    let mut serve = Beside(lab.command(&["serve"]).stderr(Stdio::piped()).spawn().unwrap());
    let mut said = BufReader::new(serve.0.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert_eq!(said.next().unwrap(), "serving generator on x86");
    // In the agent's own PID namespace, as a container can be.
    let mut beside = Command::new("nsenter");
    beside.args(["--mount", "--pid", "--target", &lab.outside("x86", 1).to_string(), "--"]);
    beside.args(["/opt/tranship/runtime-x86_64", "--stats-fd", "2", "--", "/var/lib/tranship/generator"]);
    let output = beside.stdin(Stdio::null()).output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), undisturbed(&root, &["/bin/generator"]));
    let statistics = String::from_utf8(output.stderr).unwrap();
    assert!(!statistics.lines().any(|line| line == "entered 0"), "no compiled code: {statistics}");
    lab.finish("generator");
    drop(serve);
    let said: Vec<String> = said.collect();
    let is_it = |line: &&String| line.starts_with("serving the container of process ");
    assert_eq!((said.len(), said.iter().filter(is_it).count()), (1, 1), "{said:?}");
}
