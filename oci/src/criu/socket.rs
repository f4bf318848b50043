//! Sockets that keep the bounds of messages and carry descriptors: what CRIU's RPC runs over.

use crate::error::{OciError, Result};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recv, recvmsg, sendmsg, socketpair, sockopt,
};
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Most descriptors that come with a message; CRIU sends one.
const MAX_FDS: usize = 1;

/// A connected socket.
pub(crate) struct Socket(OwnedFd);

/// A message.
pub(crate) struct Message {
    /// Its contents.
    pub(crate) bytes: Vec<u8>,
    /// A descriptor that came with it.
    pub(crate) fd: Option<OwnedFd>,
}

impl From<OwnedFd> for Socket {
    fn from(fd: OwnedFd) -> Socket {
        Socket(fd)
    }
}

impl From<Socket> for OwnedFd {
    fn from(socket: Socket) -> OwnedFd {
        socket.0
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn failed(why: rustix::io::Errno) -> OciError {
    OciError::io("talking between CRIU and its client", why)
}

impl Socket {
    /// Two ends. Whoever has one sees this process behind it.
    pub(crate) fn pair() -> Result<(Socket, Socket)> {
        let ends = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None);
        ends.map(|(one, other)| (Socket(one), Socket(other))).map_err(failed)
    }

    /// The process behind the other end.
    pub(crate) fn peer(&self) -> Result<u32> {
        let credentials = sockopt::socket_peercred(&self.0).map_err(failed)?;
        Ok(credentials.pid.as_raw_nonzero().get() as u32)
    }

    /// Send a message, and a descriptor with it.
    pub(crate) fn send(&self, bytes: &[u8], fd: Option<BorrowedFd>) -> Result<()> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let fds: Vec<BorrowedFd> = fd.into_iter().collect();
        if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(&fds)) {
            return Err(OciError::Protocol("no room for a descriptor".to_owned()));
        }
        sendmsg(&self.0, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL).map(drop).map_err(failed)
    }

    /// The bytes of the next message, which stays; none once the other side has closed.
    pub(crate) fn peek(&self) -> Result<Vec<u8>> {
        let mut bytes = vec![0; self.next_length()?.unwrap_or(0)];
        let (got, _) = recv(&self.0, &mut bytes[..], RecvFlags::PEEK).map_err(failed)?;
        bytes.truncate(got);
        Ok(bytes)
    }

    /// Length of the next message; `None` if the other side has gone.
    fn next_length(&self) -> Result<Option<usize>> {
        let nothing: &mut [u8] = &mut [];
        match recv(&self.0, nothing, RecvFlags::PEEK | RecvFlags::TRUNC) {
            Err(rustix::io::Errno::CONNRESET) => Ok(None),
            received => received.map(|(_, length)| Some(length)).map_err(failed),
        }
    }

    /// The next message; `None` once the other side has closed.
    pub(crate) fn receive(&self) -> Result<Option<Message>> {
        let Some(length) = self.next_length()? else { return Ok(None) };
        let mut bytes = vec![0; length];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let into = &mut [IoSliceMut::new(&mut bytes)];
        let received = recvmsg(&self.0, into, &mut control, RecvFlags::CMSG_CLOEXEC).map_err(failed)?;
        let fd = control.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
            _ => None,
        });
        Ok((received.bytes > 0).then_some(Message { bytes, fd }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_keep_their_bounds_and_carry_descriptors() {
        let (one, other) = Socket::pair().unwrap();
        let file = std::fs::File::open("/dev/null").unwrap();
        one.send(b"first", Some(file.as_fd())).unwrap();
        one.send(&[7; 5000], None).unwrap();
        assert_eq!(other.peek().unwrap(), b"first");
        let first = other.receive().unwrap().unwrap();
        assert_eq!((&first.bytes[..], first.fd.is_some()), (&b"first"[..], true));
        let second = other.receive().unwrap().unwrap();
        assert_eq!((second.bytes, second.fd.is_some()), (vec![7; 5000], false));
        assert_eq!(one.peer().unwrap(), std::process::id());
        drop(one);
        assert!(other.receive().unwrap().is_none());
    }
}
