//! What is built once: the root of nodes on this kernel, and kernel, initramfs and disk of the virtual machine. Each
//! is made beside its place and moved there when it is whole, so a build that was cut off is begun anew and a finished
//! one is never touched.

use crate::cpio;
use crate::debian::{self, Recipe, SUITE};
use crate::engine;
use crate::error::{LabError, Result};
use crate::registry;
use crate::state::Lock;
use crate::vm::Machine;
use sha2::{Digest, Sha256};
use std::fs;
use std::path::{Path, PathBuf};

/// The root of nodes on this kernel. The emulators for virtual machines are in it too, and the registry.
const X86_64: Recipe = Recipe {
    suite: SUITE,
    architecture: "amd64",
    packages: &["base-files", registry::PACKAGE, "qemu-system-arm", "qemu-system-x86"],
    engine: true,
};
/// Size of a virtual machine's disk; what is not written takes no room.
const DISK_BYTES: u64 = 16 << 30;
/// Modules that virtual machines need, in the order of insertion: the disk, the network, what CRIU asks about
/// sockets, what containers need. Each kernel has some of them built in, and much else.
const MODULES: &[&str] = &[
    "drivers/virtio/virtio",
    "drivers/virtio/virtio_ring",
    "drivers/virtio/virtio_pci_legacy_dev",
    "drivers/virtio/virtio_pci_modern_dev",
    "drivers/virtio/virtio_pci",
    "drivers/block/virtio_blk",
    "lib/crc/crc16",
    "fs/mbcache",
    "fs/jbd2/jbd2",
    "fs/ext4/ext4",
    "net/core/failover",
    "drivers/net/net_failover",
    "drivers/net/virtio_net",
    "net/ipv4/inet_diag",
    "net/ipv4/tcp_diag",
    "net/ipv4/udp_diag",
    "net/unix/unix_diag",
    "net/netlink/netlink_diag",
    "net/packet/af_packet_diag",
    "fs/overlayfs/overlay",
    "drivers/net/veth",
    "net/llc/llc",
    "net/802/stp",
    "net/bridge/bridge",
    "net/netfilter/nf_tables",
    "net/ipv4/netfilter/nf_defrag_ipv4",
    "net/ipv6/netfilter/nf_defrag_ipv6",
    "net/netfilter/nf_conntrack",
    "net/netfilter/nf_conntrack_netlink",
];
/// Their first program.
const INIT: &str = include_str!("init.sh");

/// What a virtual machine starts from.
#[derive(Debug)]
pub(crate) struct Vm {
    /// Kernel image.
    pub kernel: PathBuf,
    /// Initramfs without our programs.
    pub initramfs: PathBuf,
    /// Disk image, not to be written to.
    pub disk: PathBuf,
}

/// The root of nodes on this kernel.
pub(crate) fn x86_root(cache: &Path, say: &mut dyn FnMut(&str)) -> Result<PathBuf> {
    once(cache, "x86_64", &key(&X86_64, ""), |directory, log| {
        say("building the root of x86 nodes (once)");
        debian::extract(&X86_64, directory, log)
    })
}

/// A tree of packages, `name` in the cache.
pub(crate) fn tree(cache: &Path, name: &str, recipe: &Recipe) -> Result<PathBuf> {
    once(cache, name, &key(recipe, ""), |directory, log| debian::extract(recipe, directory, log))
}

/// What a virtual machine starts from.
pub(crate) fn vm(cache: &Path, machine: &Machine, say: &mut dyn FnMut(&str)) -> Result<Vm> {
    let extra = format!("{INIT}{MODULES:?}{DISK_BYTES}");
    let Machine { name, recipe, .. } = machine;
    let directory = once(cache, name, &key(recipe, &extra), |directory, log| {
        say(&format!("building the root of {name} (once)"));
        let root = directory.join("root");
        debian::extract(recipe, &root, log)?;
        say(&format!("building the disk of {name} (once)"));
        let modules = kernel_modules(&root)?;
        let kernel = directory.join("kernel");
        let built = modules.join("vmlinuz");
        fs::copy(&built, &kernel).map_err(LabError::at("copying", &built))?;
        initramfs(&root, &modules, &directory.join("initramfs"))?;
        // The modules that are needed are in the initramfs; the rest would only fill the disk.
        fs::remove_dir_all(&modules).map_err(LabError::at("removing", &modules))?;
        debian::ext4_image(&root, &directory.join("disk"), DISK_BYTES, log)?;
        fs::remove_dir_all(&root).map_err(LabError::at("removing", &root))
    })?;
    let file = |name| directory.join(name);
    Ok(Vm { kernel: file("kernel"), initramfs: file("initramfs"), disk: file("disk") })
}

/// What distinguishes one build from another.
fn key(recipe: &Recipe, extra: &str) -> String {
    let Recipe { suite, architecture, packages, engine } = recipe;
    let mut text = format!("{suite} {architecture} {packages:?} {extra}");
    if *engine {
        text.push_str(&format!("{:?} {:?}", engine::PACKAGES, engine::FILES));
    }
    Sha256::digest(text).iter().take(6).map(|byte| format!("{byte:02x}")).collect()
}

/// The directory NAME-KEY in the cache, made by `build` if it is not there. Whoever comes while another makes it waits.
fn once(
    cache: &Path,
    name: &str,
    key: &str,
    build: impl FnOnce(&Path, &Path) -> Result<()>,
) -> Result<PathBuf> {
    let finished = cache.join(format!("{name}-{key}"));
    if finished.exists() {
        return Ok(finished);
    }
    fs::create_dir_all(cache).map_err(LabError::at("making", cache))?;
    let _lock = Lock::wait_for(&cache.join(format!("{name}.lock")))?;
    if finished.exists() {
        return Ok(finished);
    }
    let unfinished = cache.join(format!("{name}-{key}.unfinished"));
    if unfinished.exists() {
        fs::remove_dir_all(&unfinished).map_err(LabError::at("removing", &unfinished))?;
    }
    fs::create_dir_all(&unfinished).map_err(LabError::at("making", &unfinished))?;
    build(&unfinished, &cache.join(format!("{name}.log")))?;
    fs::rename(&unfinished, &finished).map_err(LabError::at("finishing", &finished))?;
    Ok(finished)
}

/// Directory of the modules, which has the kernel too.
fn kernel_modules(root: &Path) -> Result<PathBuf> {
    let all = root.join("usr/lib/modules");
    let entries = fs::read_dir(&all).map_err(LabError::at("reading", &all))?;
    let found = entries.flatten().map(|entry| entry.path()).find(|path| path.join("vmlinuz").exists());
    found.ok_or_else(|| LabError::at("looking for a kernel in", &all)("there is none"))
}

/// Busybox, the modules and [`INIT`].
fn initramfs(root: &Path, modules: &Path, path: &Path) -> Result<()> {
    let read = |path: PathBuf| fs::read(&path).map_err(LabError::at("reading", &path));
    let mut files = vec![
        ("init".to_owned(), 0o755, INIT.as_bytes().to_vec()),
        ("bin/busybox".to_owned(), 0o755, read(root.join("usr/bin/busybox"))?),
    ];
    let built_in = read(modules.join("modules.builtin"))?;
    let built_in = String::from_utf8_lossy(&built_in);
    for (index, module) in MODULES.iter().enumerate() {
        if built_in.lines().any(|line| line == format!("kernel/{module}.ko")) {
            continue;
        }
        let name = module.rsplit('/').next().unwrap_or(module);
        let contents = read(modules.join("kernel").join(format!("{module}.ko.xz")))?;
        files.push((format!("modules/{index:02}-{name}.ko.xz"), 0o644, contents));
    }
    cpio::archive(path, &["bin", "dev", "modules", "proc", "root", "sys"], &files)
        .map_err(LabError::at("writing", path))
}
