//! Frames over a connection: `u32` length of a JSON message, `u64` length of a raw body, the message, the body. All
//! little-endian. A body is read by whoever expects one, in one piece or as a stream.

use super::tls::Tls;
use super::{CONNECT, MAX_BODY, MAX_MESSAGE, Peer, Reply, SILENCE};
use crate::error::{NodeError, Result};
use crate::progress::{Progress, ProgressReport};
use crate::relay::{End, relay};
use crate::trust;
use rustix::net::sockopt::{self, Timeout};
use rustls::pki_types::CertificateDer;
use rustls::{CertificateError, ClientConfig, ServerConfig};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// Bytes moved at a time.
const CHUNK: usize = 1 << 20;

/// A message that came in, with the length of the body that follows and has to be read next.
#[derive(Debug)]
pub struct Frame<T> {
    /// The message.
    pub message: T,
    /// Length of its body in bytes.
    pub body: u64,
}

/// One end of a connection.
#[derive(Debug)]
pub struct Channel {
    stream: Stream,
    /// Who is at the other end, for messages.
    peer: String,
}

/// What a connection goes over.
#[derive(Debug)]
enum Stream {
    /// A socket that does not leave the node.
    Local(File),
    Tls(Box<Tls>),
}

impl Channel {
    /// Connect to the agent of a node. It has to prove, as `config` says, that it is that node.
    pub(crate) fn connect(peer: &Peer, config: Arc<ClientConfig>) -> Result<Channel> {
        let name = trust::server_name(&peer.name)?;
        let socket = dial(&peer.name, &peer.address)?;
        let tls = Tls::connect(socket, config, name).map_err(|why| not_set_up(peer, &why))?;
        Channel::over_tls(tls, &peer.name)
    }

    /// Be connected to by a client. It has to prove who it is as `config` says.
    pub(crate) fn accept(socket: TcpStream, config: Arc<ServerConfig>) -> Result<Channel> {
        let client = socket.peer_addr().map_or("the client".to_owned(), |address| address.to_string());
        let refused = |why| NodeError::io(format!("admitting {client}"), why);
        prepare(&socket)?;
        Channel::over_tls(Tls::accept(socket, config).map_err(refused)?, &client)
    }

    /// Connect to a supervisor.
    pub fn connect_local(path: &Path) -> Result<Channel> {
        let stream = UnixStream::connect(path).map_err(NodeError::at("connecting to", path))?;
        Channel::over(stream.into(), "the unit's supervisor")
    }

    /// Talk to `peer` over a connected stream socket that does not leave this machine.
    pub fn over(socket: OwnedFd, peer: &str) -> Result<Channel> {
        Channel::with(Stream::Local(File::from(socket)), peer)
    }

    fn over_tls(tls: Tls, peer: &str) -> Result<Channel> {
        Channel::with(Stream::Tls(Box::new(tls)), peer)
    }

    fn with(stream: Stream, peer: &str) -> Result<Channel> {
        let channel = Channel { stream, peer: peer.to_owned() };
        channel.patience(Some(SILENCE))?;
        Ok(channel)
    }

    /// What the other side has proved who it is by.
    pub(crate) fn certificate(&self) -> Option<&CertificateDer<'static>> {
        match &self.stream {
            Stream::Local(_) => None,
            Stream::Tls(tls) => tls.certificate(),
        }
    }

    /// How long to wait for the other side, reading or writing; `None` is forever.
    pub fn patience(&self, limit: Option<Duration>) -> Result<()> {
        for direction in [Timeout::Recv, Timeout::Send] {
            sockopt::set_socket_timeout(&self.stream, direction, limit)
                .map_err(|why| NodeError::io("setting a time limit", why))?;
        }
        Ok(())
    }

    /// How long to wait for the next frame; `None` is forever.
    pub fn wait_for_frames(&self, limit: Option<Duration>) -> Result<()> {
        sockopt::set_socket_timeout(&self.stream, Timeout::Recv, limit)
            .map_err(|why| NodeError::io("setting a time limit", why))
    }

    /// A socket with the same at its other end, for bytes that are no frames and may take their time.
    pub fn into_tunnel(self) -> Result<File> {
        self.patience(None)?;
        let tls = match self.stream {
            Stream::Local(socket) => return Ok(socket),
            Stream::Tls(tls) => tls,
        };
        let (near, far) = UnixStream::pair().map_err(|why| NodeError::io("making a pair of sockets", why))?;
        thread::spawn(move || tls.relay(&File::from(OwnedFd::from(far)), End::OfOneWay));
        Ok(File::from(OwnedFd::from(near)))
    }

    /// Pass bytes between this connection and a stream socket, both ways, until that has ended.
    pub(crate) fn relay(self, other: &File, end: End) -> Result<()> {
        self.patience(None)?;
        match self.stream {
            Stream::Local(socket) => relay(&socket, other, end),
            Stream::Tls(tls) => tls.relay(other, end),
        }
        Ok(())
    }

    /// The same local connection once more, as patient as this is, for a second thread: one may send while the other
    /// receives.
    pub fn duplicate(&self) -> Result<Channel> {
        let Stream::Local(socket) = &self.stream else {
            return Err(NodeError::protocol("only local connections can be had twice"));
        };
        let socket = socket.try_clone().map_err(|why| NodeError::io("duplicating a connection", why))?;
        Ok(Channel { stream: Stream::Local(File::from(OwnedFd::from(socket))), peer: self.peer.clone() })
    }

    /// Send a message without a body.
    pub fn send<T: Serialize>(&mut self, message: &T) -> Result<()> {
        self.send_with_body(message, &[])
    }

    /// Send a message and a body.
    pub fn send_with_body<T: Serialize>(&mut self, message: &T, body: &[u8]) -> Result<()> {
        let mut frame = header(message, body.len() as u64)?;
        frame.extend_from_slice(body);
        self.stream.write_all(&frame).map_err(|why| self.broken(why))
    }

    /// Send a message and `length` bytes of `from`. Bytes that `from` no longer has (a file that shrank) are sent
    /// as zeros; returns how many it had.
    pub fn send_with_stream<T: Serialize>(
        &mut self,
        message: &T,
        length: u64,
        from: &mut dyn Read,
        progress: &Progress,
    ) -> Result<u64> {
        self.stream.write_all(&header(message, length)?).map_err(|why| self.broken(why))?;
        let mut had = 0;
        let mut left = length;
        let mut chunk = vec![0; CHUNK.min(length as usize)];
        while left > 0 {
            progress.check()?;
            let want = left.min(CHUNK as u64) as usize;
            let got = fill(from, &mut chunk[..want])?;
            chunk[got..want].fill(0);
            self.stream.write_all(&chunk[..want]).map_err(|why| self.broken(why))?;
            had += got as u64;
            left -= want as u64;
            progress.add(want as u64);
        }
        Ok(had)
    }

    /// The next message; `None` if the other side closed the connection between frames.
    pub fn receive_or_end<T: DeserializeOwned>(&mut self) -> Result<Option<Frame<T>>> {
        let mut lengths = [0; 12];
        match uninterrupted(|| self.stream.read(&mut lengths)).map_err(|why| self.broken(why))? {
            0 => return Ok(None),
            n => self.stream.read_exact(&mut lengths[n..]).map_err(|why| self.broken(why))?,
        }
        let [a, b, c, d, body @ ..] = lengths;
        let length = u32::from_le_bytes([a, b, c, d]);
        let body = u64::from_le_bytes(body);
        if length > MAX_MESSAGE {
            return Err(NodeError::protocol(format!("a message of {length} bytes (limit {MAX_MESSAGE})")));
        }
        let mut text = vec![0; length as usize];
        self.stream.read_exact(&mut text).map_err(|why| self.broken(why))?;
        let message = serde_json::from_slice(&text).map_err(|why| NodeError::protocol(why.to_string()))?;
        Ok(Some(Frame { message, body }))
    }

    /// The next message.
    pub fn receive<T: DeserializeOwned>(&mut self) -> Result<Frame<T>> {
        self.receive_or_end()?.ok_or_else(|| self.closed())
    }

    /// The answer to what was sent, with the length of its body; `watch` sees the progress until then.
    pub fn answer_with_body<T: DeserializeOwned>(
        &mut self,
        watch: &mut dyn FnMut(&ProgressReport),
    ) -> Result<Frame<T>> {
        loop {
            let frame = self.receive::<Reply>()?;
            match frame.message {
                Reply::Progress(report) => watch(&report),
                Reply::Error(error) => return Err(error),
                Reply::Done(value) => {
                    let answer = serde_json::from_value(value);
                    let message = answer.map_err(|why| NodeError::protocol(why.to_string()))?;
                    return Ok(Frame { message, body: frame.body });
                }
            }
        }
    }

    /// The answer to what was sent.
    pub fn answer<T: DeserializeOwned>(&mut self, watch: &mut dyn FnMut(&ProgressReport)) -> Result<T> {
        Ok(self.answer_with_body(watch)?.message)
    }

    /// A body of the announced length, whole.
    pub fn read_body(&mut self, length: u64) -> Result<Vec<u8>> {
        if length > MAX_BODY {
            return Err(NodeError::protocol(format!("a body of {length} bytes (limit {MAX_BODY})")));
        }
        let mut body = vec![0; length as usize];
        self.stream.read_exact(&mut body).map_err(|why| self.broken(why))?;
        Ok(body)
    }

    /// A body of the announced length into `to`.
    pub fn copy_body(&mut self, length: u64, to: &mut dyn Write, progress: &Progress) -> Result<()> {
        let mut left = length;
        let mut chunk = vec![0; CHUNK.min(length as usize)];
        while left > 0 {
            progress.check()?;
            let want = left.min(CHUNK as u64) as usize;
            let got =
                uninterrupted(|| self.stream.read(&mut chunk[..want])).map_err(|why| self.broken(why))?;
            if got == 0 {
                return Err(self.closed());
            }
            to.write_all(&chunk[..got]).map_err(|why| NodeError::io("writing what arrived", why))?;
            left -= got as u64;
            progress.add(got as u64);
        }
        Ok(())
    }

    /// What a failed read or write means.
    fn broken(&self, why: io::Error) -> NodeError {
        if let Some(rustls::Error::AlertReceived(alert)) = tls_error(&why) {
            return NodeError::NotAdmitted { peer: self.peer.clone(), why: format!("{alert:?}") };
        }
        match why.kind() {
            ErrorKind::UnexpectedEof
            | ErrorKind::BrokenPipe
            | ErrorKind::ConnectionReset
            | ErrorKind::ConnectionAborted => self.closed(),
            ErrorKind::WouldBlock | ErrorKind::TimedOut => {
                NodeError::Silent { peer: self.peer.clone(), seconds: SILENCE.as_secs() }
            }
            _ => NodeError::io(format!("talking to {}", self.peer), why),
        }
    }

    fn closed(&self) -> NodeError {
        NodeError::Closed { peer: self.peer.clone() }
    }
}

/// Connect to a node; `address` is `host:port`.
fn dial(node: &str, address: &str) -> Result<TcpStream> {
    let mut last = io::Error::from(ErrorKind::AddrNotAvailable);
    for candidate in address.to_socket_addrs().map_err(|why| unreachable(node, address, &why))? {
        match TcpStream::connect_timeout(&candidate, CONNECT) {
            Ok(socket) => return prepare(&socket).map(|()| socket),
            Err(error) => last = error,
        }
    }
    Err(unreachable(node, address, &last))
}

fn unreachable(node: &str, address: &str, why: &io::Error) -> NodeError {
    NodeError::Unreachable { node: node.to_owned(), address: address.to_owned(), why: why.to_string() }
}

/// Have small messages sent at once, and a dead peer noticed.
fn prepare(socket: &TcpStream) -> Result<()> {
    let set_up = || -> io::Result<()> {
        socket.set_nodelay(true)?;
        sockopt::set_socket_keepalive(socket, true)?;
        sockopt::set_tcp_keepidle(socket, Duration::from_secs(5))?;
        sockopt::set_tcp_keepintvl(socket, Duration::from_secs(5))?;
        sockopt::set_tcp_keepcnt(socket, 3)?;
        Ok(())
    };
    set_up().map_err(|why| NodeError::io("setting up the connection", why))
}

/// What it means that there is no connection over TLS to a node that answers.
fn not_set_up(peer: &Peer, why: &io::Error) -> NodeError {
    let untrusted = |why: &str| NodeError::Untrusted {
        node: peer.name.clone(),
        address: peer.address.clone(),
        why: why.to_owned(),
    };
    match tls_error(why) {
        Some(rustls::Error::InvalidCertificate(why)) => untrusted(&match why {
            CertificateError::UnknownIssuer | CertificateError::BadSignature => {
                "it has joined another authority, or none".to_owned()
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                "it is another node".to_owned()
            }
            CertificateError::ApplicationVerificationFailure => {
                "the token is not its own; has it joined already?".to_owned()
            }
            other => format!("its certificate is of no use: {other}"),
        }),
        Some(rustls::Error::InvalidMessage(_)) => untrusted("it does not speak TLS"),
        Some(other) => untrusted(&other.to_string()),
        None => unreachable(&peer.name, &peer.address, why),
    }
}

/// What TLS has to say of a failure.
fn tls_error(why: &io::Error) -> Option<&rustls::Error> {
    why.get_ref()?.downcast_ref()
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Stream::Local(socket) => socket.as_fd(),
            Stream::Tls(tls) => tls.as_fd(),
        }
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Local(socket) => socket.read(buffer),
            Stream::Tls(tls) => tls.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Local(socket) => socket.write(bytes),
            Stream::Tls(tls) => tls.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Stream::Local(socket) => socket.flush(),
            Stream::Tls(tls) => tls.flush(),
        }
    }
}

fn header<T: Serialize>(message: &T, body: u64) -> Result<Vec<u8>> {
    let text = serde_json::to_vec(message).map_err(|why| NodeError::protocol(why.to_string()))?;
    let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
    if length > MAX_MESSAGE {
        return Err(NodeError::protocol(format!("a message of {length} bytes (limit {MAX_MESSAGE})")));
    }
    let mut frame = Vec::with_capacity(12 + text.len());
    frame.extend_from_slice(&length.to_le_bytes());
    frame.extend_from_slice(&body.to_le_bytes());
    frame.extend_from_slice(&text);
    Ok(frame)
}

/// Read or write also where the process is stopped and continued meanwhile: that ends calls on sockets with a time limit (signal(7)).
pub(super) fn uninterrupted<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(why) if why.kind() == ErrorKind::Interrupted => {}
            outcome => return outcome,
        }
    }
}

/// As much of `chunk` as `from` still has.
fn fill(from: &mut dyn Read, chunk: &mut [u8]) -> Result<usize> {
    let mut got = 0;
    while got < chunk.len() {
        match uninterrupted(|| from.read(&mut chunk[got..])) {
            Ok(0) => break,
            Ok(n) => got += n,
            Err(why) => return Err(NodeError::io("reading what is to be sent", why)),
        }
    }
    Ok(got)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (Channel, File) {
        let (a, b) = UnixStream::pair().unwrap();
        (Channel::over(a.into(), "there").unwrap(), File::from(OwnedFd::from(b)))
    }

    #[test]
    fn a_frame_arrives_as_sent() {
        let (mut here, there) = pair();
        let mut there = Channel::over(there.into(), "here").unwrap();
        there.send_with_body(&"hello", b"body").unwrap();
        let frame: Frame<String> = here.receive().unwrap();
        assert_eq!((frame.message.as_str(), frame.body), ("hello", 4));
        assert_eq!(here.read_body(frame.body).unwrap(), b"body");
        drop(there);
        assert!(here.receive_or_end::<String>().unwrap().is_none());
    }

    #[test]
    fn an_oversized_message_is_refused_before_it_is_read() {
        let (mut here, mut there) = pair();
        there.write_all(&[0xff; 12]).unwrap();
        assert!(matches!(here.receive::<String>(), Err(NodeError::Protocol { .. })));
    }

    #[test]
    fn a_cut_in_mid_frame_is_closed_not_end() {
        let (mut here, mut there) = pair();
        there.write_all(&[5, 0, 0, 0, 0, 0]).unwrap();
        drop(there);
        assert_eq!(
            here.receive_or_end::<String>().unwrap_err(),
            NodeError::Closed { peer: "there".to_owned() }
        );
    }

    #[test]
    fn a_file_that_shrank_is_padded() {
        let (mut here, there) = pair();
        let mut there = Channel::over(there.into(), "here").unwrap();
        let had = there.send_with_stream(&(), 6, &mut &b"abc"[..], &Progress::default()).unwrap();
        let frame: Frame<()> = here.receive().unwrap();
        assert_eq!((had, here.read_body(frame.body).unwrap().as_slice()), (3, &b"abc\0\0\0"[..]));
    }
}
