//! Who may come in: before the node has joined an authority, an operator with its token; after that, whom the
//! authority vouches for, until the node leaves it.

use crate::error::{NodeError, Result};
use crate::protocol::{Channel, Hello, VERSION, Welcome};
use crate::serve::answer;
use crate::trust::{Guest, Join, Membership};
use std::collections::BTreeMap;
use std::net::{Shutdown, TcpStream};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Time for a client to say hello.
const HELLO: Duration = Duration::from_secs(5);

/// Let a client in. `None` if it came to have the node join, which is done then.
pub(super) fn admit(socket: TcpStream) -> Result<Option<(Channel, Guest)>> {
    let membership = Membership::load()?;
    let mut channel = Channel::accept(socket, membership.server()?)?;
    let guest = channel.certificate().map(Guest::with).transpose()?;
    channel.wait_for_frames(Some(HELLO))?;
    let hello: Hello = channel.receive()?.message;
    if hello.protocol != VERSION {
        let error = NodeError::Version { theirs: hello.protocol, ours: VERSION };
        channel.send(&Welcome::Refused(error))?;
        return Ok(None);
    }
    channel.send(&Welcome::Welcome)?;
    match (membership, guest) {
        (Membership::Joined(_), Some(guest)) => Ok(Some((channel, guest))),
        _ => join(channel).map(|()| None),
    }
}

fn join(mut channel: Channel) -> Result<()> {
    let asked: Join = channel.receive()?.message;
    let outcome = Membership::join(&asked);
    eprintln!(
        "{}",
        outcome.as_ref().map_or_else(|why| format!("not joined: {why}"), |()| "joined".to_owned())
    );
    answer(&mut channel, outcome)
}

/// Say how to have this node join, if it has not.
pub(super) fn announce(membership: &Membership) -> Result<()> {
    if let Membership::Waiting(candidate) = membership {
        eprintln!("waiting to join: tranship node add NAME ADDRESS --token {}", candidate.token()?);
    }
    Ok(())
}

/// Print the token of this node.
pub fn print_token() -> Result<()> {
    match Membership::begin()? {
        Membership::Waiting(candidate) => println!("{}", candidate.token()?),
        Membership::Joined(_) => return Err(NodeError::Token { tries: 0 }),
    }
    Ok(())
}

/// The connections that are open, by a number of their own.
static OPEN: Mutex<BTreeMap<u64, TcpStream>> = Mutex::new(BTreeMap::new());

/// An open connection, until this is dropped.
pub(super) struct Open(u64);

impl Open {
    pub(super) fn new(socket: &TcpStream) -> Result<Open> {
        let again = socket.try_clone().map_err(|why| NodeError::io("setting up the connection", why))?;
        let mut open = open();
        let number = open.last_key_value().map_or(0, |(last, _)| last + 1);
        open.insert(number, again);
        Ok(Open(number))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        open().remove(&self.0);
    }
}

/// Close all of them.
pub(super) fn close_all() {
    for socket in open().values() {
        // It may be closed already.
        let _ = socket.shutdown(Shutdown::Both);
    }
}

fn open() -> MutexGuard<'static, BTreeMap<u64, TcpStream>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}
