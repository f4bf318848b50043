//! The lab's local network: an Ethernet switch in a network namespace of its own, into which all nodes are plugged. Each node
//! has a bridge to it, on which its containers are; so an address can move from node to node as it does between machines on
//! one switch. The namespace is a machine on the network, too: a client outside the nodes.

use crate::error::{LabError, Result};
use crate::process::{self, Recorded};
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags, open};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};
use tranship_node::unit::network::within;

/// Name of the network in engines.
pub const NETWORK: &str = "lan";
/// Its addresses.
const SUBNET: &str = "10.77.0.0/24";
/// The client's.
const CLIENT: &str = "10.77.0.1";
/// The node's that is called `name`; containers have theirs from 10.77.0.100 on.
pub fn address(name: &str) -> &'static str {
    match name {
        "x86" => "10.77.0.11",
        "x86b" => "10.77.0.12",
        "arm64" => "10.77.0.13",
        _ => "10.77.0.14",
    }
}

/// Name of the bridge, in the switch and in nodes.
pub(crate) const BRIDGE: &str = "lan0";
/// Name of a node's link to the switch.
const UPLINK: &str = "uplink";
/// Where a node that shares this kernel has its containers' network, in its own root.
const NODE_NETWORK: &str = "run/tranship-network";
/// How long the switch may take to start.
const PATIENCE: Duration = Duration::from_secs(5);

/// The network as Podman has it in its configuration: a bridge that is there, nothing that would filter or forward.
pub(crate) fn engine_network() -> String {
    serde_json::json!({
        "name": NETWORK,
        "id": "7472616e736869702d6c616e7472616e736869702d6c616e7472616e73686970",
        "driver": "bridge",
        "network_interface": BRIDGE,
        "created": "2026-01-01T00:00:00Z",
        "subnets": [{ "subnet": SUBNET, "gateway": CLIENT }],
        "ipv6_enabled": false,
        "internal": false,
        "dns_enabled": false,
        "options": { "mode": "unmanaged" },
        "ipam_options": { "driver": "host-local" },
    })
    .to_string()
}

/// A running switch.
pub(crate) struct Switch {
    /// Its namespace.
    network: PathBuf,
}

impl Switch {
    /// Start one. It is the process that is returned.
    pub(crate) fn start(log: &Path) -> Result<Recorded> {
        let process = process::detached(&["unshare", "--net", "--", "sleep", "infinity"], &[], log)?;
        let switch = Switch::of(&process);
        let deadline = Instant::now() + PATIENCE;
        while fs::read_link(&switch.network).ok() == fs::read_link("/proc/self/ns/net").ok() {
            if Instant::now() > deadline || !process.lives() {
                return Err(failed("its namespace was not made (is this root?)"));
            }
            thread::sleep(Duration::from_millis(5));
        }
        switch.ip("link set lo up")?;
        switch.ip(&format!("link add name {BRIDGE} type bridge"))?;
        switch.ip(&format!("address add {CLIENT}/24 dev {BRIDGE}"))?;
        switch.ip(&format!("link set {BRIDGE} up"))?;
        Ok(process)
    }

    /// The switch that `process` is.
    pub(crate) fn of(process: &Recorded) -> Switch {
        Switch { network: PathBuf::from(format!("/proc/{}/ns/net", process.pid)) }
    }

    /// Plug in the node on this kernel whose first process is a child of `process`, with its address.
    pub(crate) fn plug_in(&self, name: &str, address: &str, process: &Recorded) -> Result<()> {
        let children = PathBuf::from(format!("/proc/{0}/task/{0}/children", process.pid));
        let first = fs::read_to_string(&children).map_err(LabError::at("reading", &children))?;
        let network = PathBuf::from(format!("/proc/{}/root/{NODE_NETWORK}", first.trim()));
        self.ip(&format!("link add name {name} type veth peer name {UPLINK}"))?;
        self.ip(&format!("link set {name} master {BRIDGE} up"))?;
        self.ip(&format!("link set {UPLINK} netns {}", network.display()))?;
        let node = Switch { network };
        node.ip(&format!("link add name {BRIDGE} type bridge"))?;
        node.ip(&format!("address add {address}/24 dev {BRIDGE}"))?;
        node.ip(&format!("link set {UPLINK} master {BRIDGE} up"))?;
        node.ip(&format!("link set {BRIDGE} up"))
    }

    /// A port for a virtual machine, open for a child of this process to inherit. It is there as long as it is open.
    pub(crate) fn port(&self, name: &str) -> Result<OwnedFd> {
        let tap = File::open(&self.network).and_then(|network| within(network, || tap(name)));
        let tap = tap.map_err(|why| failed(&why.to_string()))?;
        self.ip(&format!("link set {name} master {BRIDGE} up"))?;
        Ok(tap)
    }

    /// A command that sees the network as a machine on it.
    pub(crate) fn command(&self, program: &str) -> Command {
        let [nsenter, words @ ..] = &self.enter()[..] else { return Command::new(program) };
        let mut command = Command::new(nsenter);
        command.args(words).arg(program);
        command
    }

    /// What such a command begins with.
    pub(crate) fn enter(&self) -> Vec<OsString> {
        vec!["nsenter".into(), format!("--net={}", self.network.display()).into(), "--".into()]
    }

    /// Run ip(8) there.
    fn ip(&self, words: &str) -> Result<()> {
        let output = self.command("ip").args(words.split(' ')).output();
        let output = output.map_err(|_| LabError::NoTool { tool: "nsenter", package: "util-linux" })?;
        match output.status.success() {
            true => Ok(()),
            false => {
                let said = String::from_utf8_lossy(&output.stderr);
                Err(failed(&format!("ip {words}: {}", said.trim())))
            }
        }
    }
}

/// A network device that is a descriptor (Documentation/networking/tuntap.rst), in the namespace that the caller sees.
fn tap(name: &str) -> io::Result<OwnedFd> {
    // Not closed on exec: it is for the child.
    let tap = open("/dev/net/tun", OFlags::RDWR, Mode::empty())?;
    // SAFETY: all zeros are a valid ifreq.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes().take(libc::IFNAMSIZ - 1)) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: TUNSETIFF reads and writes one ifreq.
    match unsafe { libc::ioctl(tap.as_raw_fd(), libc::TUNSETIFF as _, &mut request) } {
        0 => Ok(tap),
        _ => Err(io::Error::last_os_error()),
    }
}

fn failed(why: &str) -> LabError {
    LabError::Io { doing: "setting up the lab's network".to_owned(), why: why.to_owned() }
}
