//! What the kernel keeps for a process comes along: files, pipes, sockets, timers, signals, directory, limits.

use crate::lab::{TestLab, wait_for};
use crate::program::c_root;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

const UNIT: &str = "porter";

#[test]
fn what_a_process_has_crosses_with_it() {
    let lab = TestLab::up("belongings");
    let root = c_root(&lab, "belongings.c");
    fs::create_dir(root.join("data")).unwrap();
    fs::write(root.join("data/text"), "shared text of a file").unwrap();
    let options = ["--directory", "/data", "--env", "GREETING=hello there"];
    lab.start(UNIT, &root, &options, &["/bin/belongings", "argument"]);
    let lines = || lab.ok(&["logs", UNIT]).lines().count();
    let wait_for_more = || {
        let seen = lines();
        wait_for("more lines", || (lines() > seen + 3).then_some(()));
    };
    wait_for_more();
    for (to, translated) in [("x86b", true), ("x86", true), ("x86b", false), ("x86", false)] {
        lab.migrate(UNIT, to, translated);
        wait_for_more();
    }
    lab.ok(&["signal", UNIT, "15"]);
    let output = lab.finish(UNIT);
    let (end, states): (Vec<&str>, Vec<&str>) = output.lines().partition(|line| line.starts_with("end"));
    let different: BTreeSet<&str> = states.iter().copied().collect();
    assert_eq!(different.len(), 1, "{different:#?}");
    assert_eq!(end, ["end: in the pipe, in the fifo, 41 events, 77 queued, timers ran"]);
    let log = fs::read(lab.unit("x86", UNIT).join("root/data/log")).unwrap();
    assert_eq!(log, vec![b'.'; states.len()], "the file that it appended to");
    for file in ["data/text", "bin/belongings"] {
        let modified = |root: &Path| fs::metadata(root.join(file)).unwrap().modified().unwrap();
        assert_eq!(modified(&lab.unit("x86", UNIT).join("root")), modified(&root), "{file}");
    }
    let state = states[0];
    for part in ["cwd /data", "name porter", "arguments /bin/belongings,argument", "environment hello there"]
    {
        assert!(state.contains(part), "no {part:?} in {state}");
    }
}
