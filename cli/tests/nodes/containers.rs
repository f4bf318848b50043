//! Containers of Podman that move between nodes by `tranship migrate`, with a client outside of them on the lab's local network.

use crate::lab::{TestLab, wait_for};
use crate::program::debian_root;
use crate::rounds::travel;
use rustix::fd::AsFd;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle, sleep};
use std::time::Duration;

/// Where the container is on the local network.
pub(crate) const ADDRESS: &str = "10.77.0.100";
/// How long a server may be away.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);
/// Connections that are kept.
const CONNECTIONS: usize = 50;

impl TestLab {
    /// A command on a node; returns what it says.
    pub(crate) fn on(&self, node: &str, words: &[&str]) -> String {
        self.ok(&[&["lab", "exec", node, "--"], words].concat())
    }

    /// Make an image out of a directory, on a node.
    pub(crate) fn image(&self, node: &str, name: &str, root: &Path) {
        let archive = self.path("image.tar");
        let status =
            std::process::Command::new("tar").arg("-C").arg(root).arg("-cf").arg(&archive).arg(".").status();
        assert!(status.unwrap().success());
        let words = ["lab", "exec", node, "--", "podman", "import", "--quiet", "--arch", "amd64", "-", name];
        let imported =
            self.command(&words).stdin(File::open(&archive).unwrap()).stdout(Stdio::null()).status();
        assert!(imported.unwrap().success());
        fs::remove_file(archive).unwrap();
    }

    /// The namespace that is the local network.
    fn lan(&self) -> File {
        let lab: serde_json::Value =
            serde_json::from_slice(&fs::read(self.state().join("lab.json")).unwrap()).unwrap();
        File::open(format!("/proc/{}/ns/net", lab["switch"]["pid"])).unwrap()
    }
}

/// Start a thread that is on the lab's local network, outside of the nodes.
pub(crate) fn in_lan<T: Send + 'static>(
    lab: &TestLab,
    work: impl FnOnce() -> T + Send + 'static,
) -> JoinHandle<T> {
    let lan = lab.lan();
    thread::spawn(move || {
        // The network is this thread's alone.
        move_into_link_name_space(lan.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
        work()
    })
}

/// A client of redis outside the nodes: it keeps its connection, whatever happens, and what it was told is stored.
struct Client {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<BTreeMap<String, String>>,
}

impl Client {
    fn start(lab: &TestLab, number: usize) -> Client {
        let is_over = Arc::new(AtomicBool::new(false));
        let until = is_over.clone();
        let thread = in_lan(lab, move || {
            let mut redis = Redis::connect();
            let mut stored = BTreeMap::new();
            for value in 0_u64.. {
                if until.load(Relaxed) {
                    break;
                }
                let (key, value) = (format!("key:{number}:{}", value % 500), value.to_string());
                assert_eq!(redis.ask(&["SET", &key, &value]), "OK");
                stored.insert(key, value);
                sleep(Duration::from_millis(10));
            }
            for (key, value) in &stored {
                assert_eq!(redis.ask(&["GET", key]), *value, "a write of {key} was acknowledged and lost");
            }
            stored
        });
        Client { is_over, thread }
    }

    /// How many keys it has written and read back over its one connection.
    fn end(self) -> usize {
        self.is_over.store(true, Relaxed);
        self.thread.join().unwrap().len()
    }
}

/// A connection to redis (RESP2).
struct Redis(BufReader<TcpStream>);

impl Redis {
    fn connect() -> Redis {
        let stream = TcpStream::connect((ADDRESS, 6379)).unwrap();
        stream.set_nodelay(true).unwrap();
        Redis(BufReader::new(stream))
    }

    fn ask(&mut self, words: &[&str]) -> String {
        let mut request = format!("*{}\r\n", words.len());
        for word in words {
            request.push_str(&format!("${}\r\n{word}\r\n", word.len()));
        }
        self.0.get_mut().write_all(request.as_bytes()).expect("the connection is kept");
        let line = self.line();
        match line.split_at(1) {
            ("+", rest) => rest.to_owned(),
            ("$", _) => self.line(),
            _ => panic!("redis says {line:?}"),
        }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        assert_ne!(
            self.0.read_line(&mut line).expect("the connection is kept"),
            0,
            "redis closed the connection"
        );
        line.trim_end().to_owned()
    }
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
    let clients: Vec<Client> = (0..CONNECTIONS).map(|number| Client::start(&lab, number)).collect();
    travel(&lab, "cache", || sleep(Duration::from_secs(1)));
    let written: Vec<usize> = clients.into_iter().map(Client::end).collect();
    assert!(written.iter().all(|keys| *keys > 50), "{written:?}");
    lab.on("x86", &["podman", "rm", "--force", "--time", "0", "cache"]);
}
