//! The container engines of the lab's nodes: Podman, Docker and containerd with `tranship-runc`, set up in their roots as their
//! packages' scripts and a user would have done it.

use crate::error::{LabError, Result};
use crate::lan;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::thread;
use std::time::Duration;

/// What they need of Debian.
pub(crate) const PACKAGES: &[&str] = &[
    "base-passwd",
    "bash",
    "busybox-static",
    "ca-certificates",
    "conmon",
    "containerd",
    "coreutils",
    "criu",
    "crun",
    "dash",
    "docker-cli",
    "docker.io",
    "golang-github-containers-common",
    "golang-github-containers-image",
    "grep",
    "gzip",
    "iproute2",
    "iptables",
    "libcriu2",
    "mount",
    "netavark",
    "nftables",
    "podman",
    "runc",
    "tar",
];

/// Those of them that are the older release's: Docker 28 cannot start a container from a checkpoint (it looks for the network of
/// process 0), and 26 goes with this containerd.
pub(crate) const OLDER: &[&str] = &["containerd", "docker-cli", "docker.io"];

/// Files of ours: path in the root, contents.
pub(crate) const FILES: &[(&str, &str)] = &[
    ("etc/containers/containers.conf", include_str!("engine/containers.conf")),
    ("etc/docker/daemon.json", include_str!("engine/daemon.json")),
    ("etc/containers/registries.conf.d/lab.conf", include_str!("engine/registries.conf")),
    // There are kernels without what iptables needs.
    ("etc/criu/runc.conf", "network-lock nftables\n"),
    ("etc/hosts", "127.0.0.1 localhost\n"),
];

/// The engines' control groups for containers.
const GROUPS: &[&str] = &["libpod_parent", "tranship-lab"];

/// Where the engines find the OCI runtime, whichever machine the node is.
const RUNTIME: &str = "usr/local/bin/tranship-runc";

/// How often its removal is tried.
const ATTEMPTS: u32 = 20;
/// Time in between.
const MOMENT: Duration = Duration::from_millis(20);

/// Links that the package of iptables makes.
const IPTABLES: &[&str] =
    &["iptables", "ip6tables", "iptables-save", "ip6tables-save", "iptables-restore", "ip6tables-restore"];

/// Set them up in the root of a machine (as Linux names it) that has the packages.
pub(crate) fn set_up(root: &Path, machine: &str) -> Result<()> {
    for (path, contents) in FILES {
        write(&root.join(path), contents.as_bytes())?;
    }
    write(&root.join("etc/containers/networks/lan.json"), lan::engine_network().as_bytes())?;
    for name in ["passwd", "group"] {
        let master = root.join(format!("usr/share/base-passwd/{name}.master"));
        let contents = fs::read(&master).map_err(LabError::at("reading", &master))?;
        write(&root.join("etc").join(name), &contents)?;
    }
    for name in IPTABLES {
        link(Path::new("xtables-nft-multi"), &root.join("usr/sbin").join(name))?;
    }
    link(&Path::new("/opt/tranship").join(format!("tranship-runc-{machine}")), &root.join(RUNTIME))
}

fn link(target: &Path, link: &Path) -> Result<()> {
    make_parent(link)?;
    symlink(target, link).map_err(LabError::at("making", link))
}

/// Remove the control groups that a node's engine has left on this kernel: where containers are, they stay.
pub(crate) fn remove_control_groups() {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let unified = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let at = unified.filter_map(|fields| (fields.get(2) == Some(&"cgroup2")).then(|| fields[1].to_owned()));
    let groups = at.flat_map(|at| GROUPS.iter().map(move |group| Path::new(&at).join(group)));
    for group in groups {
        // The node's processes have been ended, and take a moment to go.
        for _ in 0..ATTEMPTS {
            remove_empty(&group);
            if !group.exists() {
                break;
            }
            thread::sleep(MOMENT);
        }
    }
}

/// Remove a tree of control groups from its leaves on: the files in them go with them.
fn remove_empty(group: &Path) {
    for entry in fs::read_dir(group).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_empty(&entry.path());
        }
    }
    // One that is in use cannot be removed.
    let _ = fs::remove_dir(group);
}

fn write(path: &Path, contents: &[u8]) -> Result<()> {
    make_parent(path)?;
    fs::write(path, contents).map_err(LabError::at("writing", path))
}

fn make_parent(path: &Path) -> Result<()> {
    let Some(parent) = path.parent() else { return Ok(()) };
    fs::create_dir_all(parent).map_err(LabError::at("making", parent))
}
