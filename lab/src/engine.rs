//! The container engine of the lab's nodes: Podman with `tranship-runc`, set up in their roots as its packages' scripts and
//! a user would have done it.

use crate::error::{LabError, Result};
use crate::lan;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

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

fn write(path: &Path, contents: &[u8]) -> Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(LabError::at("making", parent))?;
    }
    fs::write(path, contents).map_err(LabError::at("writing", path))
}
