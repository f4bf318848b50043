//! Containers of Podman that move between nodes by `tranship migrate`, with a client outside of them on the lab's local network.

use crate::lab::{TestLab, wait_for};
use crate::program::debian_root;
use crate::rounds::travel;
use std::fs::{self, File};
use std::io;
use std::net::TcpStream;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use tranship_load::{Connection, Load};
use tranship_node::unit::network::within;

/// Where the container is on the local network.
pub(crate) const ADDRESS: &str = "10.77.0.100";
/// Connections that are kept.
const CONNECTIONS: usize = 50;

impl TestLab {
    /// A command on a node; returns what it says.
    pub(crate) fn on(&self, node: &str, words: &[&str]) -> String {
        self.ok(&[&["lab", "exec", node, "--"], words].concat())
    }

    /// Make an image for amd64 out of a directory, on a node.
    pub(crate) fn image(&self, node: &str, name: &str, root: &Path) {
        self.image_for(node, "amd64", name, root);
    }

    /// The same, for a machine as Debian calls it.
    pub(crate) fn image_for(&self, node: &str, machine: &str, name: &str, root: &Path) {
        let archive = self.path("image.tar");
        let status =
            std::process::Command::new("tar").arg("-C").arg(root).arg("-cf").arg(&archive).arg(".").status();
        assert!(status.unwrap().success());
        let words = ["lab", "exec", node, "--", "podman", "import", "--quiet", "--arch", machine, "-", name];
        let imported =
            self.command(&words).stdin(File::open(&archive).unwrap()).stdout(Stdio::null()).status();
        assert!(imported.unwrap().success());
        fs::remove_file(archive).unwrap();
    }

    /// Clients of redis outside the nodes, on their local network.
    pub(crate) fn clients(&self) -> Load {
        let address = format!("{ADDRESS}:6379").parse().unwrap();
        let open = |_| Connection::open(address).map_err(io::Error::other);
        let connections = within(self.lan(), || (0..CONNECTIONS).map(open).collect());
        Load::start(connections.unwrap(), Duration::from_millis(100))
    }

    /// Connections to a port of the container, from outside the nodes.
    pub(crate) fn connect(&self, port: u16, count: usize) -> io::Result<Vec<TcpStream>> {
        within(self.lan(), || (0..count).map(|_| TcpStream::connect((ADDRESS, port))).collect())
    }

    /// The namespace that is the local network.
    fn lan(&self) -> File {
        let lab: serde_json::Value =
            serde_json::from_slice(&fs::read(self.state().join("lab.json")).unwrap()).unwrap();
        File::open(format!("/proc/{}/ns/net", lab["switch"]["pid"])).unwrap()
    }
}

/// Clients of redis get answers.
pub(crate) fn go_on(clients: &Load) {
    let before = clients.acknowledged();
    wait_for("writes", || (clients.acknowledged() > before + 500).then_some(()));
}

#[test]
fn redis_keeps_its_connections_on_another_isa() {
    let lab = TestLab::with("redis_keeps_its_connections", "x86,arm64");
    lab.image("x86", "redis", &debian_root(&lab));
    let run = ["podman", "run", "--detach", "--network", "lan", "--ip", ADDRESS, "--name", "cache", "redis"];
    let server = ["redis-server", "--bind", "0.0.0.0", "--protected-mode", "no", "--save", ""];
    lab.on("x86", &[&run[..], &server].concat());
    wait_for("redis", || {
        lab.on("x86", &["podman", "logs", "cache"]).contains("Ready to accept").then_some(())
    });
    let clients = lab.clients();
    travel(&lab, "cache", || go_on(&clients));
    let outcome = clients.end();
    assert!(outcome.is_whole() && outcome.connections == CONNECTIONS, "{outcome:?}");
    lab.on("x86", &["podman", "rm", "--force", "--time", "0", "cache"]);
}
