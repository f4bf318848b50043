//! Servers in containers go to arm64 and back; clients outside of both nodes keep their connections, and every answer is
//! checked. `make test-containers` has them go ten times.

use crate::containers::ADDRESS;
use crate::lab::{TestLab, wait_for};
use crate::program::{debian_root, source};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::{self, JoinHandle, sleep};
use std::time::Duration;

/// There and back, so many times.
pub(crate) const ROUNDS: u32 = if cfg!(feature = "long") { 10 } else { 1 };
/// Answers that each client gets at each stop, at least.
const ANSWERS: u64 = 5;
/// How long a server may be away.
const PATIENCE: Duration = Duration::from_secs(120);
/// From one request of a client to its next.
const PAUSE: Duration = Duration::from_millis(20);

/// A client with one connection, which it never makes anew.
trait Client: Send + 'static {
    /// One of many clients, with its connection.
    fn of(stream: TcpStream, number: usize) -> Self;
    /// Ask something and check the answer.
    fn ask(&mut self, turn: u64);
    /// Check all that was acknowledged.
    fn check(&mut self) {}
}

/// Clients at work.
struct Clients {
    is_over: Arc<AtomicBool>,
    answered: Arc<[AtomicU64]>,
    threads: Vec<JoinHandle<()>>,
}

impl Clients {
    fn start<C: Client>(connections: Vec<TcpStream>) -> Clients {
        let is_over = Arc::new(AtomicBool::new(false));
        let answered: Arc<[AtomicU64]> = connections.iter().map(|_| AtomicU64::new(0)).collect();
        let run = |(number, stream): (usize, TcpStream)| {
            let (is_over, answered) = (is_over.clone(), answered.clone());
            stream.set_nodelay(true).unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            let mut client = C::of(stream, number);
            thread::spawn(move || {
                for turn in 0.. {
                    if is_over.load(Relaxed) {
                        break;
                    }
                    client.ask(turn);
                    answered[number].fetch_add(1, Relaxed);
                    sleep(PAUSE);
                }
                client.check();
            })
        };
        let threads = connections.into_iter().enumerate().map(run).collect();
        Clients { is_over, answered, threads }
    }

    /// Every one of them has got answers since it was asked.
    fn go_on(&self) {
        let counts = || self.answered.iter().map(|count| count.load(Relaxed)).collect::<Vec<_>>();
        let before = counts();
        wait_for("answers for every client", || {
            assert!(!self.threads.iter().any(JoinHandle::is_finished), "a client gave up");
            counts().iter().zip(&before).all(|(now, before)| *now >= before + ANSWERS).then_some(())
        });
    }

    fn end(self) {
        self.is_over.store(true, Relaxed);
        for thread in self.threads {
            thread.join().unwrap();
        }
    }
}

/// Have the container travel while its clients work.
pub(crate) fn travel(lab: &TestLab, name: &str, go_on: impl Fn()) {
    for round in 0..ROUNDS {
        for (to, translated) in [("arm64", true), ("x86", false)] {
            go_on();
            let crossing = lab.json(&["migrate", name, "--to", to, "--keep-address"]);
            println!("{name}, round {round}, to {to}: {crossing}");
            assert_eq!(crossing["to"], to);
            let rows = lab.json(&["ps"]);
            let [row] = &rows.as_array().unwrap()[..] else { panic!("it runs in one place: {rows}") };
            assert_eq!((&row["node"], &row["container"]["translated"]), (&to.into(), &translated.into()));
        }
    }
    go_on();
}

/// Start a server's container, have it travel under the load of so many clients, and remove it.
fn cross<C: Client>(lab: &TestLab, port: u16, server: &[&str], clients: usize) {
    lab.image("x86", "server", &lab.path("root"));
    let run =
        ["podman", "run", "--detach", "--network", "lan", "--ip", ADDRESS, "--name", "server", "server"];
    lab.on("x86", &[&run[..], server].concat());
    wait_for("the server", || lab.connect(port, 1).ok());
    let clients = Clients::start::<C>(lab.connect(port, clients).unwrap());
    travel(lab, "server", || clients.go_on());
    clients.end();
    lab.on("x86", &["podman", "rm", "--force", "--time", "0", "server"]);
}

// ---- memcached ----

struct Memcached {
    stream: BufReader<TcpStream>,
    number: usize,
    /// What it has stored last under each key.
    stored: Vec<u64>,
}

impl Memcached {
    fn line(&mut self, request: &str) -> String {
        self.stream.get_mut().write_all(request.as_bytes()).expect("the connection is kept");
        line(&mut self.stream)
    }

    fn get(&mut self, key: usize) {
        let name = format!("key:{}:{key}", self.number);
        let value = self.stored[key].to_string();
        let head = self.line(&format!("get {name}\r\n"));
        assert_eq!(head, format!("VALUE {name} 0 {}", value.len()), "an acknowledged write was lost");
        assert_eq!((line(&mut self.stream), line(&mut self.stream)), (value, "END".to_owned()));
    }
}

impl Client for Memcached {
    fn of(stream: TcpStream, number: usize) -> Memcached {
        Memcached { stream: BufReader::new(stream), number, stored: Vec::new() }
    }

    fn ask(&mut self, turn: u64) {
        let key = turn as usize % 200;
        let value = turn.to_string();
        let request = format!("set key:{}:{key} 0 0 {}\r\n{value}\r\n", self.number, value.len());
        assert_eq!(self.line(&request), "STORED");
        match self.stored.get_mut(key) {
            Some(stored) => *stored = turn,
            None => self.stored.push(turn),
        }
        self.get(turn.wrapping_mul(0x9e37_79b9) as usize % self.stored.len());
    }

    fn check(&mut self) {
        (0..self.stored.len()).for_each(|key| self.get(key));
    }
}

#[test]
fn memcached() {
    let lab = TestLab::with("rounds_memcached", "x86,arm64");
    debian_root(&lab);
    cross::<Memcached>(&lab, 11211, &["memcached", "-u", "root", "-t", "4"], 50);
}

// ---- nginx ----

/// Files of the site: path, bytes.
const FILES: &[(&str, usize)] = &[("/index.html", 600), ("/picture", 40_000), ("/download", 1_000_000)];

fn contents(file: usize) -> Vec<u8> {
    let (path, length) = FILES[file];
    let words = (0..).map(|n: u64| (n + path.len() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    words.flat_map(u64::to_le_bytes).take(length).collect()
}

struct Browser {
    stream: BufReader<TcpStream>,
    files: Vec<Vec<u8>>,
}

impl Client for Browser {
    fn of(stream: TcpStream, _: usize) -> Browser {
        Browser { stream: BufReader::new(stream), files: (0..FILES.len()).map(contents).collect() }
    }

    fn ask(&mut self, turn: u64) {
        let file = turn as usize % FILES.len();
        let request = format!("GET {} HTTP/1.1\r\nHost: site\r\n\r\n", FILES[file].0);
        self.stream.get_mut().write_all(request.as_bytes()).expect("the connection is kept");
        assert_eq!(line(&mut self.stream), "HTTP/1.1 200 OK");
        let mut length = None;
        loop {
            let header = line(&mut self.stream);
            if header.is_empty() {
                break;
            }
            assert_ne!(header, "Connection: close");
            length = header.strip_prefix("Content-Length: ").map(|text| text.parse().unwrap()).or(length);
        }
        let mut body = vec![0; length.unwrap()];
        self.stream.read_exact(&mut body).expect("the connection is kept");
        assert!(body == self.files[file], "what came of {} is wrong", FILES[file].0);
    }
}

#[test]
fn nginx_with_four_workers() {
    let lab = TestLab::with("rounds_nginx", "x86,arm64");
    let root = debian_root(&lab);
    for directory in ["site", "var/lib/nginx", "var/log/nginx"] {
        fs::create_dir_all(root.join(directory)).unwrap();
    }
    for (number, (path, _)) in FILES.iter().enumerate() {
        fs::write(root.join("site").join(&path[1..]), contents(number)).unwrap();
    }
    fs::copy(source("site.conf"), root.join("site.conf")).unwrap();
    cross::<Browser>(&lab, 8080, &["nginx", "-e", "stderr", "-c", "/site.conf"], 20);
}

// ---- three processes ----

struct Account {
    stream: BufReader<TcpStream>,
    number: usize,
    total: u64,
}

impl Account {
    fn tell(&mut self, what: &str) -> u64 {
        let request = format!("{} {what}\n", self.number);
        self.stream.get_mut().write_all(request.as_bytes()).expect("the connection is kept");
        line(&mut self.stream).parse().unwrap()
    }
}

impl Client for Account {
    fn of(stream: TcpStream, number: usize) -> Account {
        Account { stream: BufReader::new(stream), number, total: 0 }
    }

    fn ask(&mut self, turn: u64) {
        self.total += turn % 1000;
        assert_eq!(self.tell(&(turn % 1000).to_string()), self.total);
    }

    fn check(&mut self) {
        assert_eq!(self.tell("?"), self.total, "what was written down of it");
    }
}

#[test]
fn three_processes_and_a_unix_socket() {
    let lab = TestLab::with("rounds_processes", "x86,arm64");
    let root = debian_root(&lab);
    fs::copy(source("ledger.py"), root.join("ledger.py")).unwrap();
    cross::<Account>(&lab, 7000, &["python3", "/ledger.py"], 10);
}

/// A line of text of a server that keeps its connections.
fn line(stream: &mut BufReader<TcpStream>) -> String {
    let mut line = String::new();
    let read = stream.read_line(&mut line).expect("the connection is kept");
    assert_ne!(read, 0, "the server closed the connection");
    line.trim_end().to_owned()
}
