//! Podman's own checkpoints, with its defaults: default seccomp profile, overlay storage, exported archives.

use crate::node::{Node, succeed};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

#[test]
fn podman_takes_a_container_abroad_and_back() {
    let work = Path::new(env!("CARGO_TARGET_TMPDIR")).join("containers/podman");
    let _ = fs::remove_dir_all(&work);
    fs::create_dir_all(&work).unwrap();
    fs::copy(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/containers/podman.sh"),
        work.join("podman.sh"),
    )
    .unwrap();
    let node = Node::start(&work);
    let output = succeed(node.command("/usr/bin/bash").arg("/tmp/podman.sh"), String::new);
    drop(node);
    remove_control_groups();
    let said = String::from_utf8(output.stdout).unwrap();
    let expected: Vec<String> = (0..said.lines().count()).map(|step| step.to_string()).collect();
    assert!(expected.len() >= 15, "{said}");
    assert_eq!(said.lines().collect::<Vec<_>>(), expected);
}

/// Podman leaves its own behind. Those that somebody else's containers are in stay.
fn remove_control_groups() {
    let mut find = Command::new("find");
    find.args(["/sys/fs/cgroup", "-depth", "-type", "d", "-path", "*/libpod_parent*"]);
    let _ = find.args(["-exec", "rmdir", "{}", "+"]).stderr(Stdio::null()).status();
}
