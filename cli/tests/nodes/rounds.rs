//! Servers in containers go to arm64 and back; clients outside of both nodes keep their connections, and every answer is
//! checked. `make test-containers` has them go ten times.

use crate::containers::ADDRESS;
use crate::lab::TestLab;
use crate::program::debian_root;
use crate::services::{LEDGER, MEMCACHED, NGINX, REDIS, Service};

/// There and back, so many times.
const ROUNDS: u32 = if cfg!(feature = "long") { 10 } else { 1 };

/// Start a server's container, have it travel under the load of its clients, and remove it.
fn cross(test: &str, service: &Service) {
    let lab = TestLab::with(test, "x86,arm64");
    let root = debian_root(&lab);
    (service.furnish)(&root);
    lab.image("x86", "server", &root);
    let run =
        ["podman", "run", "--detach", "--network", "lan", "--ip", ADDRESS, "--name", "server", "server"];
    lab.on("x86", &[&run[..], service.command].concat());
    let clients = service.clients(&lab);
    for round in 0..ROUNDS {
        for (to, translated) in [("arm64", true), ("x86", false)] {
            clients.go_on();
            travel(&lab, round, to, translated);
        }
    }
    clients.go_on();
    clients.end();
    lab.on("x86", &["podman", "rm", "--force", "--time", "0", "server"]);
}

fn travel(lab: &TestLab, round: u32, to: &str, translated: bool) {
    let crossing = lab.json(&["migrate", "server", "--to", to, "--keep-address"]);
    println!("round {round}, to {to}: {crossing}");
    assert_eq!(crossing["to"], to);
    let rows = lab.json(&["ps"]);
    let [row] = &rows.as_array().unwrap()[..] else { panic!("it runs in one place: {rows}") };
    assert_eq!((&row["node"], &row["container"]["translated"]), (&to.into(), &translated.into()));
}

#[test]
fn redis() {
    cross("rounds_redis", &REDIS);
}

#[test]
fn memcached() {
    cross("rounds_memcached", &MEMCACHED);
}

#[test]
fn nginx_with_four_workers() {
    cross("rounds_nginx", &NGINX);
}

#[test]
fn three_processes_and_a_unix_socket() {
    cross("rounds_processes", &LEDGER);
}
