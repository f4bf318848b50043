//! A connection to redis, in its protocol's version 2. It is opened once: what breaks it is an error, and nothing mends it.

use crate::error::{LoadError, Result};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// How long an answer may take; a move is shorter.
const PATIENCE: Duration = Duration::from_secs(300);
/// How long opening may take.
const OPENING: Duration = Duration::from_secs(10);
/// No answer that is expected here has a longer line.
const LINE_BYTES: u64 = 512;

/// An open connection.
#[derive(Debug)]
pub struct Connection(BufReader<TcpStream>);

impl Connection {
    /// Open one.
    pub fn open(address: SocketAddr) -> Result<Connection> {
        let stream = TcpStream::connect_timeout(&address, OPENING)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Connection(BufReader::new(stream)))
    }

    /// Write a value; it is stored when this returns.
    pub(crate) fn set(&mut self, key: &str, value: &str) -> Result<()> {
        self.send(&["SET", key, value])?;
        match self.line()? {
            line if line == "+OK" => Ok(()),
            line => Err(LoadError::Answer(line)),
        }
    }

    /// Read a value, if there is one.
    pub(crate) fn get(&mut self, key: &str) -> Result<Option<String>> {
        self.send(&["GET", key])?;
        match self.line()? {
            line if line == "$-1" => Ok(None),
            line if line.starts_with('$') => self.line().map(Some),
            line => Err(LoadError::Answer(line)),
        }
    }

    fn send(&mut self, words: &[&str]) -> Result<()> {
        let mut request = format!("*{}\r\n", words.len());
        for word in words {
            request.push_str(&format!("${}\r\n{word}\r\n", word.len()));
        }
        Ok(self.0.get_mut().write_all(request.as_bytes())?)
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        self.0.by_ref().take(LINE_BYTES).read_line(&mut line)?;
        match line.strip_suffix("\r\n") {
            Some(text) => Ok(text.to_owned()),
            None if line.is_empty() => Err(LoadError::Closed),
            None => Err(LoadError::Answer(line)),
        }
    }
}
