//! What the network around a node gets to know of a container's address: nothing while the container is restored, so that what
//! is sent to it is lost and sent again, not answered by a kernel that has no such connection yet; and where it is now, once it
//! goes on.

use crate::error::{NodeError, Result};
use crate::protocol::Attachment;
use crate::unit::network;
use std::fs::File;
use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::os::fd::AsRawFd;
use std::process::{Command, Stdio};

/// Table of the packet filter with the rules of this.
const TABLE: &str = "tranship";
/// EtherType of the address resolution protocol.
const ARP: u16 = 0x0806;

/// Packets to some addresses are dropped where they enter the node, as long as this lives.
pub(super) struct Silence {
    table: String,
}

impl Silence {
    /// Around what is attached to these bridges of the node, for the container `id`.
    pub(super) fn around(id: &str, attached: &[(String, Attachment)]) -> Result<Option<Silence>> {
        let table = format!("{TABLE}-{}", id.get(..12).unwrap_or(id));
        let mut rules =
            format!("table netdev {table} {{}}\ndelete table netdev {table}\ntable netdev {table} {{\n");
        let mut chains = 0;
        for (bridge, attachment) in attached {
            let Ok(address) = attachment.address.parse::<Ipv4Addr>() else { continue };
            for port in ports(bridge)? {
                rules.push_str(&format!(
                    "chain port{chains} {{ type filter hook ingress device \"{port}\" priority 0; ip daddr {address} drop; }}\n"
                ));
                chains += 1;
            }
        }
        rules.push_str("}\n");
        if chains == 0 {
            return Ok(None);
        }
        filter(&rules)?;
        Ok(Some(Silence { table }))
    }
}

impl Drop for Silence {
    fn drop(&mut self) {
        // What is not there needs no removal.
        let _ = filter(&format!("delete table netdev {}\n", self.table));
    }
}

/// Change the packet filter of the network that containers are on.
fn filter(rules: &str) -> Result<()> {
    let mut command = Command::new("nft");
    command.args(["-f", "-"]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let missing = |why: io::Error| NodeError::Missing {
        what: format!("nft ({why})"),
        remedy: "install nftables, or move without --keep-address".to_owned(),
    };
    let mut child = network::inside(move || command.spawn()).map_err(missing)?;
    let failed = |why: &dyn std::fmt::Display| NodeError::io("setting the packet filter", why);
    if let Some(mut input) = child.stdin.take() {
        input.write_all(rules.as_bytes()).map_err(|why| failed(&why))?;
    }
    let output = child.wait_with_output().map_err(|why| failed(&why))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(failed(&String::from_utf8_lossy(&output.stderr).trim())),
    }
}

/// Network devices that are on a bridge.
fn ports(bridge: &str) -> Result<Vec<String>> {
    let bridge = bridge.to_owned();
    let listed = network::inside(move || {
        let output = Command::new("ip").args(["-json", "link", "show", "master", &bridge]).output()?;
        Ok(output.stdout)
    });
    let listed = listed.map_err(|why| NodeError::io("listing what is on a bridge", why))?;
    let listed: Vec<serde_json::Value> = serde_json::from_slice(&listed).unwrap_or_default();
    Ok(listed.iter().filter_map(|link| Some(link.get("ifname")?.as_str()?.to_owned())).collect())
}

/// Tell the neighbours of the container whose first process is `pid` where its addresses are now (RFC 5227, section 3).
pub(super) fn announce(pid: u32, attachments: &[Attachment]) -> Result<()> {
    let announce = || {
        let mut interfaces = interfaces(attachments)?.into_iter();
        interfaces.try_for_each(|(index, hardware, address)| send(index, hardware, address))
    };
    let network = File::open(format!("/proc/{pid}/ns/net"));
    let announced = network.and_then(|network| network::within(network, announce));
    announced.map_err(|why| NodeError::io("announcing a container's address", why))
}

/// Index, hardware address and address of each attachment that is an interface here.
fn interfaces(attachments: &[Attachment]) -> io::Result<Vec<(i32, [u8; 6], Ipv4Addr)>> {
    // The directory would be the node's: sysfs shows the network that it was mounted in.
    let output = Command::new("ip").args(["-json", "address"]).output()?;
    let links: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let found = links.iter().filter_map(|link| {
        let index = link.get("ifindex")?.as_i64()? as i32;
        let hardware = hardware(link.get("address")?.as_str()?)?;
        let own = link.get("addr_info")?.as_array()?.iter().filter_map(|info| info.get("local")?.as_str());
        let own: Vec<&str> = own.collect();
        let attached = attachments.iter().find(|attachment| own.contains(&attachment.address.as_str()))?;
        Some((index, hardware, attached.address.parse().ok()?))
    });
    Ok(found.collect())
}

fn hardware(text: &str) -> Option<[u8; 6]> {
    let bytes: Option<Vec<u8>> = text.split(':').map(|byte| u8::from_str_radix(byte, 16).ok()).collect();
    bytes?.try_into().ok()
}

fn send(index: i32, hardware: [u8; 6], address: Ipv4Addr) -> io::Result<()> {
    let address = address.octets();
    // Ethernet, IPv4, their lengths, "request"; sender's addresses; the same address as target (RFC 826).
    let mut packet = vec![0, 1, 8, 0, 6, 4, 0, 1];
    packet.extend([&hardware[..], &address[..], &[0; 6][..], &address[..]].concat());
    // SAFETY: socket(2) takes no memory of ours.
    let socket = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    if socket < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it is open and nobody else's.
    let socket = unsafe { <std::os::fd::OwnedFd as std::os::fd::FromRawFd>::from_raw_fd(socket) };
    // SAFETY: all zeros are a valid sockaddr_ll.
    let mut to: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    to.sll_family = libc::AF_PACKET as u16;
    to.sll_protocol = ARP.to_be();
    to.sll_ifindex = index;
    to.sll_halen = 6;
    to.sll_addr[..6].fill(0xff);
    // SAFETY: packet and address are read for the lengths given.
    let sent = unsafe {
        libc::sendto(
            socket.as_raw_fd(),
            packet.as_ptr().cast(),
            packet.len(),
            0,
            (&raw const to).cast(),
            size_of::<libc::sockaddr_ll>() as u32,
        )
    };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
