//! Images and containers on a lab's nodes, and a client outside of them on the lab's local network.

use crate::lab::TestLab;
use std::fs::{self, File};
use std::io;
use std::net::TcpStream;
use std::path::Path;
use std::process::Stdio;
use tranship_node::unit::network::within;

/// Where the container is on the local network.
pub(crate) const ADDRESS: &str = "10.77.0.100";

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
        // 1: a file changed meanwhile, as another test has made a link to it.
        assert!(matches!(status.unwrap().code(), Some(0 | 1)));
        let words = ["lab", "exec", node, "--", "podman", "import", "--quiet", "--arch", machine, "-", name];
        let imported =
            self.command(&words).stdin(File::open(&archive).unwrap()).stdout(Stdio::null()).status();
        assert!(imported.unwrap().success());
        fs::remove_file(archive).unwrap();
    }

    /// Connections to a port of the container, from outside the nodes.
    pub(crate) fn connect(&self, port: u16, count: usize) -> io::Result<Vec<TcpStream>> {
        within(self.lan(), || (0..count).map(|_| TcpStream::connect((ADDRESS, port))).collect())
    }

    /// The namespace that is the local network.
    pub(crate) fn lan(&self) -> File {
        let lab: serde_json::Value =
            serde_json::from_slice(&fs::read(self.state().join("lab.json")).unwrap()).unwrap();
        File::open(format!("/proc/{}/ns/net", lab["switch"]["pid"])).unwrap()
    }
}
