//! A connection over TLS: the handshake, bytes in both directions, and passing them on to a socket.

use super::SILENCE;
use super::channel::uninterrupted;
use crate::relay::End;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::ioctl_fionbio;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{Shutdown, shutdown};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, Connection, ServerConfig, ServerConnection};
use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time for a handshake, all of it.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// Time for the other side to hear why it was refused.
const LAST_WORD: Duration = Duration::from_millis(500);
/// Bytes read from the network at a time; records have up to 16 KiB.
const READ: usize = 128 << 10;
/// Plain bytes passed on at a time.
const PASS: usize = 64 << 10;

/// One end of a connection that is set up.
#[derive(Debug)]
pub(super) struct Tls {
    connection: Connection,
    socket: BufReader<TcpStream>,
}

impl Tls {
    /// As the client of the server called `name`.
    pub(super) fn connect(
        socket: TcpStream,
        config: Arc<ClientConfig>,
        name: ServerName<'static>,
    ) -> io::Result<Tls> {
        let connection = ClientConnection::new(config, name).map_err(io::Error::other)?;
        Tls::set_up(socket, connection.into())
    }

    /// As the server.
    pub(super) fn accept(socket: TcpStream, config: Arc<ServerConfig>) -> io::Result<Tls> {
        let connection = ServerConnection::new(config).map_err(io::Error::other)?;
        Tls::set_up(socket, connection.into())
    }

    fn set_up(socket: TcpStream, connection: Connection) -> io::Result<Tls> {
        set_socket_timeout(&socket, Timeout::Send, Some(SILENCE))?;
        let mut tls = Tls { connection, socket: BufReader::with_capacity(READ, socket) };
        let outcome = tls.handshake();
        if outcome.is_err() {
            tls.part();
        }
        outcome.map(|()| tls)
    }

    fn handshake(&mut self) -> io::Result<()> {
        let deadline = Instant::now() + HANDSHAKE;
        loop {
            self.write_out()?;
            if !self.connection.is_handshaking() {
                return Ok(());
            }
            self.limit_to(deadline)?;
            if self.read_in()? == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// Have reading wait no longer than until then.
    fn limit_to(&self, deadline: Instant) -> io::Result<()> {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        Ok(set_socket_timeout(self.socket.get_ref(), Timeout::Recv, Some(left))?)
    }

    /// Have the other side hear what is said last. Closing a socket with unread bytes takes back what was sent.
    fn part(&mut self) {
        let deadline = Instant::now() + LAST_WORD;
        let _ = self.socket.get_ref().shutdown(std::net::Shutdown::Write);
        let mut unheard = [0; 4096];
        while self.limit_to(deadline).is_ok() {
            if !matches!(self.socket.get_ref().read(&mut unheard), Ok(1..)) {
                break;
            }
        }
    }

    /// What the other side has shown.
    pub(super) fn certificate(&self) -> Option<&CertificateDer<'static>> {
        self.connection.peer_certificates()?.first()
    }

    /// Take in what has come from the network; 0 if that was the end.
    fn read_in(&mut self) -> io::Result<usize> {
        let got = uninterrupted(|| self.connection.read_tls(&mut self.socket))?;
        if let Err(why) = self.connection.process_new_packets() {
            // An alert says why.
            let _ = self.write_out();
            return Err(io::Error::new(ErrorKind::InvalidData, why));
        }
        Ok(got)
    }

    /// Hand all that is to be sent over to the kernel.
    fn write_out(&mut self) -> io::Result<()> {
        while self.connection.wants_write() {
            uninterrupted(|| self.connection.write_tls(&mut self.socket.get_mut()))?;
        }
        Ok(())
    }

    /// Pass bytes between this connection and a stream socket, both ways, until that has ended.
    pub(super) fn relay(self, other: &File, end: End) {
        // However it ended, `other` is to know; a socket that is closed already needs no shutdown.
        let _ = Relay { tls: self, other, end, arrived: Vec::new(), ended: [false; 2] }.run();
        let _ = shutdown(other, Shutdown::Both);
    }
}

impl AsFd for Tls {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.get_ref().as_fd()
    }
}

impl Read for Tls {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.connection.reader().read(buffer) {
                Err(why) if why.kind() == ErrorKind::WouldBlock => {}
                outcome => return outcome,
            }
            self.read_in()?;
            // The other side may have asked for new keys.
            self.write_out()?;
        }
    }
}

impl Write for Tls {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = self.connection.writer().write(bytes)?;
        self.write_out()?;
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.write_out()
    }
}

impl Drop for Tls {
    /// An end that is meant is said; without it, it is a connection that broke.
    fn drop(&mut self) {
        self.connection.send_close_notify();
        // Whoever does not read will find it closed.
        let _ = ioctl_fionbio(&*self, true);
        let _ = self.write_out();
    }
}

/// A connection whose bytes are passed on. Its sockets never block: it waits for whichever can go on.
struct Relay<'a> {
    tls: Tls,
    other: &'a File,
    end: End,
    /// Plain bytes on their way to `other`.
    arrived: Vec<u8>,
    /// Whether the connection and `other` have said all.
    ended: [bool; 2],
}

impl Relay<'_> {
    fn run(&mut self) -> io::Result<()> {
        ioctl_fionbio(&self.tls, true)?;
        ioctl_fionbio(self.other, true)?;
        loop {
            self.bring()?;
            match self.tls.write_out() {
                Err(why) if why.kind() != ErrorKind::WouldBlock => return Err(why),
                _ => {}
            }
            let unsent = self.tls.connection.wants_write() || !self.arrived.is_empty();
            let over =
                if self.end == End::OfBoth { self.ended.contains(&true) } else { self.ended == [true; 2] };
            if over && !unsent {
                return Ok(());
            }
            self.wait()?;
        }
    }

    /// Bring what has come to `other`, until no more is there or `other` takes no more.
    fn bring(&mut self) -> io::Result<()> {
        self.deliver()?;
        while self.arrived.is_empty() && !self.ended[0] {
            self.arrived.resize(PASS, 0);
            let read = self.tls.connection.reader().read(&mut self.arrived);
            self.arrived.truncate(*read.as_ref().unwrap_or(&0));
            match read {
                Ok(0) => {
                    self.ended[0] = true;
                    let _ = shutdown(self.other, Shutdown::Write);
                }
                Ok(_) => self.deliver()?,
                Err(why) if why.kind() == ErrorKind::WouldBlock => match self.tls.read_in() {
                    Err(why) if why.kind() == ErrorKind::WouldBlock => return Ok(()),
                    read => drop(read?),
                },
                // It broke.
                Err(why) => return Err(why),
            }
        }
        Ok(())
    }

    fn deliver(&mut self) -> io::Result<()> {
        while !self.arrived.is_empty() {
            match (&mut &*self.other).write(&self.arrived) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(n) => drop(self.arrived.drain(..n)),
                Err(why) if why.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(why) => return Err(why),
            }
        }
        Ok(())
    }
}

impl Relay<'_> {
    /// Wait until something can go on, and take what `other` has to say.
    fn wait(&mut self) -> io::Result<()> {
        let sending = self.tls.connection.wants_write();
        let delivering = !self.arrived.is_empty();
        let hears = [!delivering && !self.ended[0], !sending && !self.ended[1]];
        let speaks = [sending, delivering];
        let ready = ready([self.tls.as_fd(), self.other.as_fd()], hears, speaks)?;
        if !hears[1] || !ready[1] {
            return Ok(());
        }
        let mut chunk = [0; PASS];
        match (&mut &*self.other).read(&mut chunk) {
            Ok(0) => {
                self.ended[1] = true;
                self.tls.connection.send_close_notify();
                Ok(())
            }
            Ok(n) => self.tls.connection.writer().write_all(&chunk[..n]),
            Err(why) if why.kind() == ErrorKind::WouldBlock => Ok(()),
            Err(why) => Err(why),
        }
    }
}

/// Wait until one of two sockets can be read from, or written to, where that `hears` or `speaks`; which.
fn ready(sockets: [BorrowedFd<'_>; 2], hears: [bool; 2], speaks: [bool; 2]) -> io::Result<[bool; 2]> {
    let mut polled = Vec::with_capacity(2);
    for i in 0..2 {
        let mut flags = PollFlags::empty();
        flags.set(PollFlags::IN, hears[i]);
        flags.set(PollFlags::OUT, speaks[i]);
        // One of which nothing is wanted would report its end again and again.
        if !flags.is_empty() {
            polled.push((i, PollFd::from_borrowed_fd(sockets[i], flags)));
        }
    }
    let (places, mut fds): (Vec<usize>, Vec<PollFd<'_>>) = polled.into_iter().unzip();
    while let Err(why) = poll(&mut fds, None) {
        if why != rustix::io::Errno::INTR {
            return Err(why.into());
        }
    }
    let mut ready = [false; 2];
    for (place, fd) in places.into_iter().zip(&fds) {
        ready[place] = !fd.revents().is_empty();
    }
    Ok(ready)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trust::{Authority, server_name};
    use std::net::TcpListener;
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;
    use std::thread;

    /// A client and a node of one authority, connected.
    fn pair() -> (Tls, Tls) {
        let authority = Authority::new().unwrap();
        let node = authority.node("here").unwrap().server().unwrap();
        let client = authority.operator().unwrap().client().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let accepting = thread::spawn(move || Tls::accept(listener.accept().unwrap().0, node).unwrap());
        let socket = TcpStream::connect(address).unwrap();
        (Tls::connect(socket, client, server_name("here").unwrap()).unwrap(), accepting.join().unwrap())
    }

    /// A client whose bytes the node passes on to a server, and what the server has.
    fn relayed(end: End) -> (Tls, UnixStream) {
        let (client, node) = pair();
        let (near, far) = UnixStream::pair().unwrap();
        thread::spawn(move || node.relay(&File::from(OwnedFd::from(near)), end));
        (client, far)
    }

    #[test]
    fn what_is_passed_on_is_what_was_sent() {
        let (mut client, mut server) = relayed(End::OfOneWay);
        let sent: Vec<u8> = (0..3 << 20).map(|n: u32| (n.wrapping_mul(0x9e37_79b9) >> 24) as u8).collect();
        let (there, back) = (sent.clone(), sent.clone());
        let echoing = thread::spawn(move || {
            let mut got = vec![0; there.len()];
            server.read_exact(&mut got).unwrap();
            assert!(got == there);
            server.write_all(&got).unwrap();
        });
        client.write_all(&sent).unwrap();
        let mut got = Vec::new();
        client.read_to_end(&mut got).unwrap();
        assert!(got == back);
        echoing.join().unwrap();
    }

    #[test]
    fn an_end_is_of_one_way_or_of_both() {
        for (end, expected) in [(End::OfOneWay, "hello!"), (End::OfBoth, "")] {
            let (mut client, mut server) = relayed(end);
            client.write_all(b"hello").unwrap();
            client.connection.send_close_notify();
            client.flush().unwrap();
            let mut heard = String::new();
            server.read_to_string(&mut heard).unwrap();
            // If both ways have ended, nobody hears it.
            let _ = server.write_all(format!("{heard}!").as_bytes());
            drop(server);
            let mut answer = String::new();
            let _ = client.read_to_string(&mut answer);
            assert_eq!(answer, expected);
        }
    }

    #[test]
    fn a_connection_that_breaks_is_closed_on_the_other_side_at_once() {
        for end in [End::OfOneWay, End::OfBoth] {
            let (client, mut server) = relayed(end);
            let began = Instant::now();
            client.socket.get_ref().shutdown(std::net::Shutdown::Both).unwrap();
            assert_eq!(server.read(&mut [0]).unwrap(), 0);
            assert!(server.write_all(&[0]).is_err(), "{end:?}: it can still be written to");
            let (mut client, server) = relayed(end);
            drop(server);
            // Said, where it is meant.
            assert_eq!(client.read(&mut [0]).unwrap(), 0);
            assert!(began.elapsed() < Duration::from_secs(1), "{end:?}");
        }
    }

    #[test]
    fn a_cut_is_no_end() {
        let (mut client, node) = pair();
        node.socket.get_ref().shutdown(std::net::Shutdown::Both).unwrap();
        assert_eq!(client.read(&mut [0]).unwrap_err().kind(), ErrorKind::UnexpectedEof);
    }
}
