//! Debian's redis, nginx and Python, and a program of four threads, move in mid-work, natively and translated: no wrong
//! answer, and nothing is lost of what was acknowledged. `make test-crossings` does so more often.

use crate::lab::{TestLab, wait_for};
use crate::load::{Load, Place, check_redis, fill_redis, load_http, load_redis};
use crate::program::{compute_root, debian_root, redis_root, source, threads_root, undisturbed};
use std::fs;
use std::sync::Arc;

/// Times there and back.
const ROUNDS: u32 = if cfg!(feature = "long") { 20 } else { 3 };
/// CPU time in milliseconds that a program that computes gets between two crossings, at least.
const WORK_MS: u64 = 150;
const UNIT: &str = "traveller";
const THREADS: &[&str] = &["/usr/bin/threads"];
const PYTHON: &[&str] = &["/usr/bin/python3", "/compute.py"];

/// Move the unit from x86 to `away`, translated, and back, and again. At each stop `stay` is called with the node.
fn travel(lab: &TestLab, away: &str, rounds: u32, stay: impl Fn(&str)) {
    stay("x86");
    for _ in 0..rounds {
        for (to, options) in [(away, &["--translated", "--at-once"][..]), ("x86", &[])] {
            lab.json(&[&["migrate", UNIT, "--to", to], options].concat());
            let mode = if options.is_empty() { "native" } else { "translated" };
            assert_eq!(lab.runs(to, UNIT).as_deref(), Some(mode));
            stay(to);
        }
    }
}

/// A program that works until it is told to stop, and then says how much it did: natively, that much has the same
/// result.
fn computes(lab: &TestLab, away: &str, rounds: u32, program: &[&str]) {
    let root = lab.path("root");
    lab.start(UNIT, &root, &[], program);
    travel(lab, away, rounds, |node| {
        wait_for("some work", || {
            let status = lab.status(node, UNIT).unwrap();
            assert_eq!(status["state"], "running", "{:?}", lab.run(&["logs", UNIT]));
            (status["cpu_ms"].as_u64().unwrap() > WORK_MS).then_some(())
        });
    });
    lab.ok(&["signal", UNIT, "15"]);
    let output = lab.finish(UNIT);
    let amount = output.split(' ').next().unwrap();
    assert_eq!(output, undisturbed(&root, &[program, &[amount]].concat()));
}

#[test]
fn four_threads() {
    let lab = TestLab::up("four_threads");
    threads_root(&lab);
    computes(&lab, "x86b", ROUNDS, THREADS);
}

#[test]
fn python() {
    let lab = TestLab::up("python");
    compute_root(&lab);
    computes(&lab, "x86b", ROUNDS, PYTHON);
}

/// On the arm64 machine, which is emulated.
#[cfg(feature = "long")]
mod arm64 {
    use super::*;

    const ROUNDS: u32 = 2;

    #[test]
    fn four_threads() {
        let lab = TestLab::with("four_threads_arm64", "x86,arm64");
        threads_root(&lab);
        computes(&lab, "arm64", ROUNDS, THREADS);
    }

    #[test]
    fn python() {
        let lab = TestLab::with("python_arm64", "x86,arm64");
        compute_root(&lab);
        computes(&lab, "arm64", ROUNDS, PYTHON);
    }
}

/// Where a unit's server at `port` may be.
fn place(lab: &TestLab, port: u16) -> Place {
    Place { networks: Arc::new(["x86", "x86b"].map(|node| lab.network(node)).into()), port }
}

/// Travel while the clients work; at each stop they get so many more answers.
fn travel_under_load<T: Send + 'static>(lab: &TestLab, load: Load<T>, answers: u64) -> Vec<T> {
    travel(lab, "x86b", ROUNDS, |_| {
        let before = load.answered();
        wait_for("answers", || (load.answered() > before + answers).then_some(()));
    });
    load.end()
}

#[test]
fn redis() {
    let lab = TestLab::up("redis");
    let (root, program) = redis_root(&lab);
    lab.start(UNIT, &root, &[], &program);
    let place = place(&lab, 6379);
    fill_redis(&place);
    let ledgers = travel_under_load(&lab, load_redis(&place), 2000);
    check_redis(&place, ledgers);
    lab.ok(&["signal", UNIT, "15"]);
    lab.finish(UNIT);
}

#[test]
fn nginx_with_two_workers() {
    let lab = TestLab::up("nginx_with_two_workers");
    let root = debian_root(&lab);
    for directory in ["files", "run", "var/lib/nginx", "var/log/nginx"] {
        fs::create_dir_all(root.join(directory)).unwrap();
    }
    fs::copy(source("nginx.conf"), root.join("nginx.conf")).unwrap();
    fs::write(root.join("etc/passwd"), "root:x:0:0:root:/:/bin/sh\n").unwrap();
    fs::write(root.join("etc/group"), "root:x:0:\n").unwrap();
    let contents: Vec<u8> =
        (0..500_000_u64).flat_map(|block| block.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes()).collect();
    fs::write(root.join("files/data"), &contents).unwrap();
    lab.start(UNIT, &root, &[], &["/usr/sbin/nginx", "-e", "stderr", "-c", "/nginx.conf"]);
    travel_under_load(&lab, load_http(&place(&lab, 8080), "/data", contents), 8);
    lab.ok(&["signal", UNIT, "3"]);
    lab.finish(UNIT);
    let log = String::from_utf8(lab.run(&["logs", UNIT]).stderr).unwrap();
    assert!(!log.contains("[alert]") && !log.contains("[crit]"), "{log}");
    assert_eq!(log.matches("exited with code 0").count(), 2, "{log}");
}
