//! The container engine of the lab's nodes: Podman with `tranship-runc`, set up in their roots as its packages' scripts and
//! a user would have done it.

use crate::error::{LabError, Result};
use crate::lan;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::thread;
use std::time::Duration;

/// What it needs of Debian.
pub(crate) const PACKAGES: &[&str] = &[
    "base-passwd",
    "bash",
    "busybox-static",
    "ca-certificates",
    "conmon",
    "coreutils",
    "criu",
    "dash",
    "golang-github-containers-common",
    "golang-github-containers-image",
    "grep",
    "gzip",
    "iproute2",
    "iptables",
    "mount",
    "netavark",
    "nftables",
    "podman",
    "runc",
    "tar",
];

/// Files of ours: path in the root, contents.
pub(crate) const FILES: &[(&str, &str)] = &[
    ("etc/containers/containers.conf", include_str!("engine/containers.conf")),
    // There are kernels without what iptables needs.
    ("etc/criu/runc.conf", "network-lock nftables\n"),
    ("etc/hosts", "127.0.0.1 localhost\n"),
];

/// Podman's control group for containers.
const GROUP: &str = "libpod_parent";

/// How often its removal is tried.
const ATTEMPTS: u32 = 20;
/// Time in between.
const MOMENT: Duration = Duration::from_millis(20);

/// Links that the package of iptables makes.
const IPTABLES: &[&str] =
    &["iptables", "ip6tables", "iptables-save", "ip6tables-save", "iptables-restore", "ip6tables-restore"];

/// Set it up in a root that has the packages.
pub(crate) fn set_up(root: &Path) -> Result<()> {
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
        let link = root.join("usr/sbin").join(name);
        symlink("xtables-nft-multi", &link).map_err(LabError::at("making", &link))?;
    }
    Ok(())
}

/// Remove the control groups that a node's engine has left on this kernel: where containers are, they stay.
pub(crate) fn remove_control_groups() {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let unified = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let at = unified.filter_map(|fields| (fields.get(2) == Some(&"cgroup2")).then(|| fields[1].to_owned()));
    for group in at.map(|at| Path::new(&at).join(GROUP)) {
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
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(LabError::at("making", parent))?;
    }
    fs::write(path, contents).map_err(LabError::at("writing", path))
}
