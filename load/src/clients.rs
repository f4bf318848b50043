//! Clients at work: a thread each, with a connection of its own, which writes one key after the other.

use crate::error::Result;
use crate::redis::Connection;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Clients that write until they are told to end.
#[derive(Debug)]
pub struct Load {
    common: Arc<Common>,
    clients: Vec<JoinHandle<Client>>,
}

/// What clients and their [`Load`] know of each other.
#[derive(Debug, Default)]
struct Common {
    is_over: AtomicBool,
    acknowledged: AtomicU64,
}

/// What has become of all connections and writes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// Connections at the beginning.
    pub connections: usize,
    /// Why some were lost.
    pub broken: Vec<String>,
    /// Writes that the server has acknowledged.
    pub acknowledged: u64,
    /// Those that were read back, with the right value.
    pub read_back: u64,
    /// The longest that a client has waited for an answer.
    pub longest_wait_ms: u64,
}

impl Outcome {
    /// Whether all connections were kept and all writes are there.
    pub fn is_whole(&self) -> bool {
        self.broken.is_empty() && self.read_back == self.acknowledged
    }

    fn add(&mut self, client: thread::Result<Client>) {
        self.connections += 1;
        match client {
            Ok(client) => {
                self.broken.extend(client.broken);
                self.acknowledged += client.acknowledged;
                self.read_back += client.read_back;
                self.longest_wait_ms = self.longest_wait_ms.max(client.longest_wait.as_millis() as u64);
            }
            Err(_) => self.broken.push("its thread died".to_owned()),
        }
    }
}

impl Load {
    /// Start a client for each connection, which writes a key in every `interval`, or as soon as the one before is answered.
    pub fn start(connections: Vec<Connection>, interval: Duration) -> Load {
        let common = Arc::new(Common::default());
        let client = |(number, connection)| {
            let common = common.clone();
            let client = Client { number: number as u64, ..Client::default() };
            thread::spawn(move || client.live(connection, interval, &common))
        };
        let clients = connections.into_iter().enumerate().map(client).collect();
        Load { common, clients }
    }

    /// Writes that have been acknowledged so far.
    pub fn acknowledged(&self) -> u64 {
        self.common.acknowledged.load(Relaxed)
    }

    /// Have them read back what they have written, and end.
    pub fn end(self) -> Outcome {
        self.common.is_over.store(true, Relaxed);
        let mut outcome = Outcome::default();
        self.clients.into_iter().for_each(|client| outcome.add(client.join()));
        outcome
    }
}

/// One client, and what it knows of the server's data: all of its first `acknowledged` keys are there.
#[derive(Debug, Default)]
struct Client {
    number: u64,
    acknowledged: u64,
    read_back: u64,
    longest_wait: Duration,
    broken: Option<String>,
}

impl Client {
    fn live(mut self, mut connection: Connection, interval: Duration, common: &Common) -> Client {
        let lived = self.write(&mut connection, interval, common);
        let lived = lived.and_then(|()| self.read_back(&mut connection));
        self.broken = lived.err().map(|why| format!("connection {}: {why}", self.number));
        self
    }

    fn write(&mut self, connection: &mut Connection, interval: Duration, common: &Common) -> Result<()> {
        while !common.is_over.load(Relaxed) {
            let start = Instant::now();
            connection.set(&self.key(self.acknowledged), &self.value(self.acknowledged))?;
            self.acknowledged += 1;
            common.acknowledged.fetch_add(1, Relaxed);
            let waited = start.elapsed();
            self.longest_wait = self.longest_wait.max(waited);
            thread::sleep(interval.saturating_sub(waited));
        }
        Ok(())
    }

    fn read_back(&mut self, connection: &mut Connection) -> Result<()> {
        for write in 0..self.acknowledged {
            let value = connection.get(&self.key(write))?;
            self.read_back += u64::from(value == Some(self.value(write)));
        }
        Ok(())
    }

    fn key(&self, write: u64) -> String {
        format!("{}:{write}", self.number)
    }

    /// No two writes have the same value.
    fn value(&self, write: u64) -> String {
        format!("{:016x}", (self.number << 40 | write).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }
}
