//! Servers in containers, each with clients outside of both nodes that keep their connections and check every answer.

use crate::containers::ADDRESS;
use crate::lab::{TestLab, wait_for};
use crate::program::source;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::{self, JoinHandle, sleep};
use std::time::Duration;
use tranship_load::{Connection, Load};
use tranship_node::unit::network::within;

/// Answers that each client gets at each stop, at least.
const ANSWERS: u64 = 5;
/// How long a server may be away.
const PATIENCE: Duration = Duration::from_secs(120);
/// From one request of a client to its next.
const PAUSE: Duration = Duration::from_millis(20);

/// A server of Debian's, or with Debian's Python.
pub(crate) struct Service {
    pub(crate) port: u16,
    pub(crate) command: &'static [&'static str],
    /// Puts what it needs into the root of an image.
    pub(crate) furnish: fn(&Path),
    /// How many clients it has, and how they begin.
    connections: usize,
    begin: fn(&TestLab, &Service) -> Box<dyn Clients>,
}

/// Clients at work.
pub(crate) trait Clients {
    /// Every one of them has got answers since this was asked.
    fn go_on(&self);
    /// They end, and check all that was ever acknowledged.
    fn end(self: Box<Self>);
}

impl Service {
    /// Its clients, as soon as it can be reached.
    pub(crate) fn clients(&self, lab: &TestLab) -> Box<dyn Clients> {
        wait_for(self.command[0], || lab.connect(self.port, 1).ok());
        (self.begin)(lab, self)
    }
}

// ---- redis ----

pub(crate) const REDIS: Service = Service {
    port: 6379,
    command: &["redis-server", "--bind", "0.0.0.0", "--protected-mode", "no", "--save", ""],
    furnish: |_| {},
    connections: 50,
    begin: |lab, redis| {
        let address = format!("{ADDRESS}:{}", redis.port).parse().unwrap();
        let open = |_| Connection::open(address).map_err(io::Error::other);
        let connections = within(lab.lan(), || (0..redis.connections).map(open).collect());
        Box::new(Load::start(connections.unwrap(), Duration::from_millis(100)))
    },
};

impl Clients for Load {
    fn go_on(&self) {
        let before = self.acknowledged();
        wait_for("writes", || (self.acknowledged() > before + 500).then_some(()));
    }

    fn end(self: Box<Self>) {
        let outcome = (*self).end();
        assert!(outcome.is_whole() && outcome.connections == REDIS.connections, "{outcome:?}");
    }
}

// ---- clients of one connection each ----

/// A client with one connection, which it never makes anew.
trait Client: Send + 'static {
    /// One of many clients, with its connection.
    fn of(stream: TcpStream, number: usize) -> Self;
    /// Ask something and check the answer.
    fn ask(&mut self, turn: u64);
    /// Check all that was acknowledged.
    fn check(&mut self) {}
}

struct Several {
    is_over: Arc<AtomicBool>,
    answered: Arc<[AtomicU64]>,
    threads: Vec<JoinHandle<()>>,
}

fn begin<C: Client>(lab: &TestLab, service: &Service) -> Box<dyn Clients> {
    let is_over = Arc::new(AtomicBool::new(false));
    let answered: Arc<[AtomicU64]> = (0..service.connections).map(|_| AtomicU64::new(0)).collect();
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
    let streams = lab.connect(service.port, service.connections).unwrap();
    let threads = streams.into_iter().enumerate().map(run).collect();
    Box::new(Several { is_over, answered, threads })
}

impl Clients for Several {
    fn go_on(&self) {
        let counts = || self.answered.iter().map(|count| count.load(Relaxed)).collect::<Vec<_>>();
        let before = counts();
        wait_for("answers for every client", || {
            assert!(!self.threads.iter().any(JoinHandle::is_finished), "a client gave up");
            counts().iter().zip(&before).all(|(now, before)| *now >= before + ANSWERS).then_some(())
        });
    }

    fn end(self: Box<Self>) {
        self.is_over.store(true, Relaxed);
        for thread in self.threads {
            thread.join().unwrap();
        }
    }
}

// ---- memcached ----

pub(crate) const MEMCACHED: Service = Service {
    port: 11211,
    command: &["memcached", "-u", "root", "-t", "4"],
    furnish: |_| {},
    connections: 50,
    begin: begin::<Memcached>,
};

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

// ---- nginx ----

/// Four workers.
pub(crate) const NGINX: Service = Service {
    port: 8080,
    command: &["nginx", "-e", "stderr", "-c", "/site.conf"],
    furnish: |root| {
        for directory in ["site", "var/lib/nginx", "var/log/nginx"] {
            fs::create_dir_all(root.join(directory)).unwrap();
        }
        for (number, (path, _)) in FILES.iter().enumerate() {
            fs::write(root.join("site").join(&path[1..]), contents(number)).unwrap();
        }
        fs::copy(source("site.conf"), root.join("site.conf")).unwrap();
    },
    connections: 20,
    begin: begin::<Browser>,
};

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

// ---- three processes ----

/// They are joined by a unix socket and a socket pair.
pub(crate) const LEDGER: Service = Service {
    port: 7000,
    command: &["python3", "/ledger.py"],
    furnish: |root| {
        fs::copy(source("ledger.py"), root.join("ledger.py")).unwrap();
    },
    connections: 10,
    begin: begin::<Account>,
};

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

/// A line of text of a server that keeps its connections.
fn line(stream: &mut BufReader<TcpStream>) -> String {
    let mut line = String::new();
    let read = stream.read_line(&mut line).expect("the connection is kept");
    assert_ne!(read, 0, "the server closed the connection");
    line.trim_end().to_owned()
}
