//! The network that a node's units see. A node that shares its kernel's network with others has one of its own for
//! them, with nothing but a loopback: during a migration the original still listens where its copy is to listen too. A
//! virtual or real machine needs none, its units see its own.

use crate::error::{NodeError, Result};
use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::mount::mount_bind;
use rustix::net::{AddressFamily, SocketType, socket};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};
use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::thread;

/// Where a node has its units' network, if that is not its own.
const PATH: &str = "/run/tranship-network";

/// Make a network for the units of this node, which must have its own `/run` and `/proc`.
pub fn make() -> Result<()> {
    let path = Path::new(PATH);
    let failed = |why: io::Error| NodeError::io("making a network for units", why);
    File::create(path).map_err(failed)?;
    on_its_own_thread(|| {
        // SAFETY: only this thread's network changes, no descriptor table.
        unsafe { unshare_unsafe(UnshareFlags::NEWNET) }?;
        loopback_up()?;
        Ok(mount_bind("/proc/thread-self/ns/net", path)?)
    })
    .map_err(failed)
}

/// Run `spawn` so that the child it makes sees the units' network.
pub fn inside<T: Send>(spawn: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    let network = match openat(CWD, PATH, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()) {
        Ok(network) => network,
        Err(Errno::NOENT) => return spawn(),
        Err(why) => return Err(why.into()),
    };
    within(network, spawn)
}

/// Do something where `network`, an open namespace, is what is seen.
pub fn within<T: Send>(
    network: impl AsFd + Send,
    work: impl FnOnce() -> io::Result<T> + Send,
) -> io::Result<T> {
    on_its_own_thread(move || {
        move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network))?;
        work()
    })
}

/// Connect to a TCP port of the loopback that process `pid` sees.
pub fn connect(pid: u32, port: u16) -> io::Result<File> {
    let network = File::open(format!("/proc/{pid}/ns/net"))?;
    within(network, || {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.set_nodelay(true)?;
        Ok(OwnedFd::from(stream).into())
    })
}

/// A namespace is a thread's; this one ends with it.
fn on_its_own_thread<T: Send>(work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    let outcome = thread::scope(|scope| scope.spawn(work).join());
    outcome.unwrap_or_else(|_| Err(io::Error::other("the thread died")))
}

fn loopback_up() -> io::Result<()> {
    let socket = socket(AddressFamily::INET, SocketType::DGRAM, None)?;
    // SAFETY: all zeros are a valid ifreq.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    request.ifr_name[..2].copy_from_slice(&[b'l' as libc::c_char, b'o' as libc::c_char]);
    request.ifr_ifru.ifru_flags = libc::IFF_UP as libc::c_short;
    // SAFETY: SIOCSIFFLAGS reads one ifreq.
    match unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS as _, &request) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
