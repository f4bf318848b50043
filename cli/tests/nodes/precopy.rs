//! Podman's pre-copy: what is in a container's memory is written down while it runs, and at its checkpoint only what has changed since.
//! It begins on a virtual machine with Debian's x86-64 kernel, which tracks that; arm64 kernels cannot.

use crate::engines::publish;
use crate::lab::{TestLab, wait_for};
use tranship_lab::REGISTRY;

const HOME: &str = "x86vm";
const ABROAD: &str = "arm64";
/// Keys that are there before anything is written down.
const KEYS: u64 = 100_000;
/// Where redis listens: Podman leaves the loopback device of a container without a network down when it restores it.
const SOCKET: &str = "/run/cache.socket";

impl TestLab {
    /// What redis answers.
    fn ask(&self, node: &str, words: &[&str]) -> String {
        self.on(node, &ask_line(words)).trim().to_owned()
    }

    fn bytes(&self, node: &str, file: &str) -> u64 {
        self.on(node, &["stat", "--format", "%s", file]).trim().parse().unwrap()
    }
}

/// The command that asks redis.
fn ask_line<'a>(words: &[&'a str]) -> Vec<&'a str> {
    [&["podman", "exec", "cache", "redis-cli", "-s", SOCKET], words].concat()
}

fn check(lab: &TestLab, node: &str) {
    assert_eq!(lab.ask(node, &["dbsize"]), (KEYS + 1).to_string(), "{node}");
    assert_eq!(lab.ask(node, &["get", "key:777"]), "777".repeat(20), "{node}");
    assert_eq!(lab.ask(node, &["get", "late"]), "yes", "{node}");
}

#[test]
fn podman_takes_along_what_was_written_down_before() {
    let lab = TestLab::with("precopy", "x86vm,arm64");
    let image = format!("{REGISTRY}/servers");
    publish(&lab, HOME, &image);
    lab.on(ABROAD, &["podman", "pull", "--quiet", "--platform", "linux/amd64", &image]);
    let server = format!("redis-server --port 0 --unixsocket {SOCKET}");
    lab.shell(HOME, &format!("podman run --detach --network none --name cache {image} {server}"));
    let ping = [&["lab", "exec", HOME, "--"], &ask_line(&["ping"])[..]].concat();
    wait_for("redis", || lab.run(&ping).status.success().then_some(()));
    let fill = format!("for i = 1, {KEYS} do redis.call('set', 'key:' .. i, string.rep(i, 20)) end");
    lab.ask(HOME, &["eval", &fill, "0"]);

    let checkpoint = "podman container checkpoint --compress none";
    lab.shell(HOME, &format!("{checkpoint} --pre-checkpoint --export /var/tmp/before.tar cache"));
    assert_eq!(lab.ask(HOME, &["set", "late", "yes"]), "OK");
    lab.shell(HOME, &format!("{checkpoint} --with-previous --export /var/tmp/rest.tar cache"));
    let (before, rest) = (lab.bytes(HOME, "/var/tmp/before.tar"), lab.bytes(HOME, "/var/tmp/rest.tar"));
    assert!(rest < before / 2, "{before} bytes were written down before, and then {rest}");

    for archive in ["before", "rest"] {
        let file = format!("/var/tmp/{archive}.tar");
        lab.carry(HOME, &format!("cat {file}"), ABROAD, &format!("cat >{file}"));
    }
    lab.shell(HOME, "podman rm cache");
    lab.shell(
        ABROAD,
        "podman container restore --import-previous /var/tmp/before.tar --import /var/tmp/rest.tar",
    );
    check(&lab, ABROAD);

    // There is no such thing on arm64: that is said, and the container runs on.
    let refused =
        ["podman", "container", "checkpoint", "--pre-checkpoint", "--export", "/var/tmp/no.tar", "cache"];
    assert!(!lab.run(&[&["lab", "exec", ABROAD, "--"], &refused[..]].concat()).status.success());
    check(&lab, ABROAD);

    lab.shell(ABROAD, &format!("{checkpoint} --export /var/tmp/back.tar cache"));
    lab.carry(ABROAD, "cat /var/tmp/back.tar", HOME, "cat >/var/tmp/back.tar");
    lab.shell(HOME, "podman container restore --import /var/tmp/back.tar");
    check(&lab, HOME);
}
