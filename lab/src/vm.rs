//! The arm64 node: a virtual machine, emulated, since no arm64 hardware is assumed.

use crate::build::Vm;
use crate::cpio;
use crate::debian;
use crate::error::{LabError, Result};
use crate::lan;
use crate::local::free_port;
use crate::process;
use crate::state::{CONSOLE, Kind, NodeEntry};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use tranship_node::trust::MEMBERSHIP_FILE;

/// This machine, as the virtual one sees it (QEMU's user-mode network).
pub(crate) const HOST: &str = "10.0.2.2";
/// The node's name.
const NAME: &str = "arm64";
/// Port of the agent in the machine.
const AGENT_PORT: u16 = 7700;
/// The machine.
const ISA: &str = "aarch64";
/// LSE atomics, no SVE (which arm64 checkpoints do not carry).
const CPU: &str = "neoverse-n1";
/// Its memory in MiB.
const MEMORY: &str = "3072";

/// Start the machine with its state in `directory`; it has joined as `membership` says. QEMU is in the root `tools`, `lan` its port
/// on the local network.
pub(crate) fn start(
    tools: &Path,
    vm: &Vm,
    directory: &Path,
    installed: &Path,
    membership: &[u8],
    lan: &OwnedFd,
) -> Result<NodeEntry> {
    let port = free_port()?;
    let initramfs = directory.join("initramfs");
    initramfs_with_ours(vm, installed, membership, &initramfs)?;
    let console = directory.join("machine.log");
    let mut line = emulator(tools);
    line.extend(arguments(vm, &initramfs, port, lan, &directory.join(CONSOLE)));
    // The disk's changes go to an unlinked file there.
    let environment = [("TMPDIR", directory.to_str().unwrap_or("/var/tmp"))];
    let process = process::detached(&line, &environment, &console)?;
    Ok(NodeEntry { kind: Kind::Vm, port, process })
}

/// QEMU out of a root.
fn emulator(tools: &Path) -> Vec<OsString> {
    let mut line = debian::program(tools, "usr/bin/qemu-system-aarch64");
    line.extend(["-L".into(), tools.join("usr/share/qemu").into_os_string()]);
    line
}

fn arguments(vm: &Vm, initramfs: &Path, port: u16, lan: &OwnedFd, console: &Path) -> Vec<OsString> {
    let text = |path: &Path| path.display().to_string();
    // kpti=0: page-table isolation makes every system call eight times as slow under emulation.
    let parameters = [
        "console=ttyAMA0 quiet mitigations=off kpti=0".to_owned(),
        format!("tranship_isa={ISA} tranship_port={AGENT_PORT} tranship_lan={}", lan::address(NAME)),
    ];
    let options = [
        ("-machine", "virt,gic-version=3".to_owned()),
        ("-cpu", CPU.to_owned()),
        ("-smp", "1".to_owned()),
        ("-m", MEMORY.to_owned()),
        ("-accel", "tcg,thread=multi,tb-size=512".to_owned()),
        ("-kernel", text(&vm.kernel)),
        ("-initrd", text(initramfs)),
        ("-append", parameters.join(" ")),
        ("-drive", format!("if=none,id=disk,file={},format=raw,cache=unsafe,snapshot=on", text(&vm.disk))),
        ("-device", "virtio-blk-pci,drive=disk".to_owned()),
        ("-netdev", format!("user,id=net,hostfwd=tcp:127.0.0.1:{port}-:{AGENT_PORT}")),
        ("-device", "virtio-net-pci,netdev=net,romfile=".to_owned()),
        ("-netdev", format!("tap,id=lan,fd={}", lan.as_raw_fd())),
        ("-device", "virtio-net-pci,netdev=lan,romfile=".to_owned()),
        ("-device", "virtio-rng-pci".to_owned()),
        ("-serial", format!("file:{}", text(console))),
        ("-display", "none".to_owned()),
        ("-monitor", "none".to_owned()),
    ];
    let mut line: Vec<OsString> = vec!["-nodefaults".into(), "-no-reboot".into()];
    line.extend(options.into_iter().flat_map(|(name, value)| [name.into(), value.into()]));
    line
}

/// The machine's initramfs, and after it an archive with our programs and what the node has joined.
fn initramfs_with_ours(vm: &Vm, installed: &Path, membership: &[u8], path: &Path) -> Result<()> {
    let ours = path.with_extension("ours");
    let mut files = vec![(format!("tranship/{MEMBERSHIP_FILE}"), 0o600, membership.to_vec())];
    for name in ["node", "runtime", "tranship-runc"] {
        let name = format!("{name}-{ISA}");
        let program: PathBuf = installed.join(&name);
        // A node without the runtime is of use, too; its agent says so where it is not.
        if program.exists() {
            let contents = fs::read(&program).map_err(LabError::at("reading", &program))?;
            files.push((format!("tranship/{name}"), 0o755, contents));
        }
    }
    cpio::archive(&ours, &["tranship"], &files).map_err(LabError::at("writing", &ours))?;
    let join = || -> io::Result<()> {
        let mut whole = File::create(path)?;
        for part in [&vm.initramfs, &ours] {
            io::copy(&mut File::open(part)?, &mut whole)?;
        }
        fs::remove_file(&ours)
    };
    join().map_err(LabError::at("writing", path))
}
