//! Native clients of servers that move: they run in no unit, connect again whenever the server went away, and write down
//! what was acknowledged.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How long a server may take to be there again, or to answer.
const PATIENCE: Duration = Duration::from_secs(300);
/// Clients of a server.
const CLIENTS: u64 = 2;
/// Requests that a redis client sends before it reads the answers.
const PIPELINE: u64 = 16;
/// Keys that a redis client writes to, over and over.
const KEYS: u64 = 1000;
/// Keys that are written once, before the journey: 100 MB with their values.
pub(crate) const BULK: u64 = 100_000;
/// Bytes of each of their values.
const BULK_BYTES: usize = 1000;

/// Connect to the server that `port` of this machine is forwarded to.
fn connect(port: u16) -> TcpStream {
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Clients at work.
pub(crate) struct Load<T> {
    stop: Arc<AtomicBool>,
    /// Requests that were answered.
    answered: Arc<AtomicU64>,
    clients: Vec<JoinHandle<T>>,
}

impl<T: Send + 'static> Load<T> {
    /// Start clients, each with a number of its own. A client asks whether to go on, and counts what was answered.
    fn start(client: impl Fn(u64, &AtomicBool, &AtomicU64) -> T + Send + Sync + 'static) -> Load<T> {
        let (stop, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let client = Arc::new(client);
        let run = |number| {
            let (client, stop, answered) = (client.clone(), stop.clone(), answered.clone());
            thread::spawn(move || client(number, &stop, &answered))
        };
        let clients = (0..CLIENTS).map(run).collect();
        Load { stop, answered, clients }
    }

    /// So many answers so far. A client that found a wrong one is no more.
    pub(crate) fn answered(&self) -> u64 {
        assert!(!self.clients.iter().any(JoinHandle::is_finished), "a client gave up");
        self.answered.load(Ordering::Relaxed)
    }

    /// Have them end, and collect what they wrote down.
    pub(crate) fn end(self) -> Vec<T> {
        self.stop.store(true, Ordering::Relaxed);
        self.clients.into_iter().map(|client| client.join().unwrap()).collect()
    }
}

// ---- redis ----

/// What a client knows of the server's data.
pub(crate) struct Ledger {
    client: u64,
    /// What each key may hold: what was acknowledged last, and what was sent since and never answered.
    keys: Vec<Vec<u64>>,
    /// Acknowledged increments, and those that were never answered.
    increments: [u64; 2],
}

/// The value of a key that is written once.
fn bulk_value(key: u64) -> Vec<u8> {
    let words = (0..).map(|n: u64| (key << 32 | n).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    words.flat_map(|word| format!("{word:016x}").into_bytes()).take(BULK_BYTES).collect()
}

struct Redis(BufReader<TcpStream>);

impl Redis {
    /// Connect to it wherever it is now: until there is an answer, nothing can have been lost.
    fn connect(port: u16) -> Redis {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let mut redis = Redis(BufReader::new(connect(port)));
            if redis.ask(&[words("PING")]).is_ok_and(|answer| answer == [b"+PONG"]) {
                return redis;
            }
            assert!(Instant::now() < deadline, "nobody answers at port {port}");
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Send commands at once and return their answers, text or bulk.
    fn ask(&mut self, commands: &[Vec<Vec<u8>>]) -> io::Result<Vec<Vec<u8>>> {
        let mut line = Vec::new();
        for command in commands {
            write!(line, "*{}\r\n", command.len())?;
            for word in command {
                write!(line, "${}\r\n", word.len())?;
                line.extend_from_slice(word);
                line.extend_from_slice(b"\r\n");
            }
        }
        self.0.get_mut().write_all(&line)?;
        commands.iter().map(|_| self.answer()).collect()
    }

    fn answer(&mut self) -> io::Result<Vec<u8>> {
        let mut line = String::new();
        self.0.read_line(&mut line)?;
        let Some(text) = line.strip_suffix("\r\n") else { return Err(io::ErrorKind::UnexpectedEof.into()) };
        let Some(length) = text.strip_prefix('$') else { return Ok(text.into()) };
        let length: usize = length.parse().unwrap_or_else(|_| panic!("redis answers {text:?}"));
        let mut bytes = vec![0; length + 2];
        self.0.read_exact(&mut bytes)?;
        bytes.truncate(length);
        Ok(bytes)
    }
}

fn words(command: &str) -> Vec<Vec<u8>> {
    command.split(' ').map(|word| word.as_bytes().to_vec()).collect()
}

/// Write what is written once.
pub(crate) fn fill_redis(port: u16) {
    let mut redis = Redis::connect(port);
    for start in (0..BULK).step_by(100) {
        let set = |key| [words(&format!("SET bulk:{key}")), vec![bulk_value(key)]].concat();
        let commands: Vec<_> = (start..start + 100).map(set).collect();
        assert!(redis.ask(&commands).unwrap().iter().all(|answer| answer == b"+OK"));
    }
}

/// Start clients that write, count and read.
pub(crate) fn load_redis(port: u16) -> Load<Ledger> {
    Load::start(move |client, stop, answered| {
        let mut ledger = Ledger { client, keys: vec![Vec::new(); KEYS as usize], increments: [0; 2] };
        let mut redis = Redis::connect(port);
        for batch in 0.. {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            if ledger.work(&mut redis, batch).is_err() {
                redis = Redis::connect(port);
            } else {
                answered.fetch_add(PIPELINE + 2, Ordering::Relaxed);
            }
        }
        ledger
    })
}

impl Ledger {
    fn work(&mut self, redis: &mut Redis, batch: u64) -> io::Result<()> {
        let client = self.client;
        let numbers = batch * PIPELINE + 1..(batch + 1) * PIPELINE + 1;
        let mut commands: Vec<_> =
            numbers.clone().map(|n| words(&format!("SET own:{client}:{} {n}", n % KEYS))).collect();
        commands.push(words(&format!("INCR count:{client}")));
        let bulk = batch.wrapping_mul(0x9e37_79b9) % BULK;
        commands.push(words(&format!("GET bulk:{bulk}")));
        for number in numbers.clone() {
            self.keys[(number % KEYS) as usize].push(number);
        }
        let [acknowledged, unsure] = &mut self.increments;
        *unsure += 1;
        let answers = redis.ask(&commands)?;
        *unsure -= 1;
        *acknowledged += 1;
        for number in numbers {
            self.keys[(number % KEYS) as usize] = vec![number];
        }
        let [set @ .., count, value] = &answers[..] else { unreachable!("as many answers as commands") };
        assert!(set.iter().all(|answer| answer == b"+OK"), "{:?}", String::from_utf8_lossy(&set.concat()));
        self.check_count(count.strip_prefix(b":").unwrap_or(count));
        assert!(*value == bulk_value(bulk), "the value of bulk:{bulk} is wrong");
        Ok(())
    }

    fn check_count(&self, text: &[u8]) {
        let text = String::from_utf8_lossy(text);
        let [acknowledged, unsure] = self.increments;
        let count: u64 = text.parse().unwrap_or_else(|_| panic!("a count of {text}"));
        let possible = acknowledged..=acknowledged + unsure;
        assert!(possible.contains(&count), "{acknowledged} increments and perhaps {unsure} make {count}");
    }
}

/// Read everything back that was ever written.
pub(crate) fn check_redis(port: u16, ledgers: &[Ledger]) {
    let mut redis = Redis::connect(port);
    let mut get = |key: &str| redis.ask(&[words(&format!("GET {key}"))]).unwrap().remove(0);
    for ledger in ledgers {
        for (key, possible) in ledger.keys.iter().enumerate().filter(|(_, values)| !values.is_empty()) {
            let value = get(&format!("own:{}:{key}", ledger.client));
            let is_it = |number: &u64| value == number.to_string().into_bytes();
            assert!(possible.iter().any(is_it), "key {key}: {value:?}, written were {possible:?}");
        }
        ledger.check_count(&get(&format!("count:{}", ledger.client)));
    }
    for key in 0..BULK {
        assert!(get(&format!("bulk:{key}")) == bulk_value(key), "the value of bulk:{key} is wrong");
    }
}

// ---- HTTP ----

/// Start clients that fetch `path` over and over: every whole answer must be `contents`.
pub(crate) fn load_http(port: u16, path: &str, contents: Vec<u8>) -> Load<()> {
    let path = path.to_owned();
    Load::start(move |_, stop, answered| {
        while !stop.load(Ordering::Relaxed) {
            let Some(body) = fetch(&mut connect(port), &path) else { continue };
            assert!(body == contents, "what came of {path} is wrong");
            answered.fetch_add(1, Ordering::Relaxed);
        }
    })
}

/// The body of an answer, unless the server went away in the middle.
fn fetch(stream: &mut TcpStream, path: &str) -> Option<Vec<u8>> {
    write!(stream, "GET {path} HTTP/1.0\r\n\r\n").ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok()?;
    let head = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n")?;
    let body = answer.split_off(head + 4);
    let text = String::from_utf8(answer).unwrap();
    assert!(text.starts_with("HTTP/1.1 200 "), "{text}");
    let length = text.lines().find_map(|line| line.strip_prefix("Content-Length: ")).unwrap();
    (body.len() == length.parse::<usize>().unwrap()).then_some(body)
}
