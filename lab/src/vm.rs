//! Nodes that are virtual machines with Debian's kernel, emulated: no arm64 hardware and no KVM is assumed. The x86-64 one is for what
//! this machine's own kernel may not have: that of Debian tracks which memory was written to (CONFIG_MEM_SOFT_DIRTY).

use crate::build::Vm;
use crate::cpio;
use crate::debian::{self, Recipe, SUITE};
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
/// Port of the agent in the machine.
const AGENT_PORT: u16 = 7700;
/// Its memory in MiB.
const MEMORY: &str = "3072";

/// A machine that can be emulated.
#[derive(Debug)]
pub(crate) struct Machine {
    /// The node's name.
    pub(crate) name: &'static str,
    /// Linux's name of the machine, which is QEMU's, too.
    isa: &'static str,
    /// Its root and kernel.
    pub(crate) recipe: Recipe,
    /// QEMU's `-machine`.
    board: &'static str,
    /// QEMU's `-cpu`.
    cpu: &'static str,
    /// Kernel parameters. Page-table isolation makes every system call eight times as slow under emulation.
    parameters: &'static str,
}

/// All of them.
const MACHINES: &[Machine] = &[
    Machine {
        name: "arm64",
        isa: "aarch64",
        recipe: Recipe {
            suite: SUITE,
            architecture: "arm64",
            packages: &["base-files", "busybox-static", "linux-image-arm64"],
            engine: true,
        },
        board: "virt,gic-version=3",
        // LSE atomics, no SVE (which arm64 checkpoints do not carry).
        cpu: "neoverse-n1",
        parameters: "console=ttyAMA0 quiet mitigations=off kpti=0",
    },
    Machine {
        name: "x86vm",
        isa: "x86_64",
        recipe: Recipe {
            suite: SUITE,
            architecture: "amd64",
            packages: &["base-files", "busybox-static", "linux-image-amd64"],
            engine: true,
        },
        board: "q35",
        // All that QEMU emulates, but for protection keys, with which its XSAVE has gaps.
        cpu: "max,-pku,-la57",
        parameters: "console=ttyS0 quiet mitigations=off nopti",
    },
];

impl Machine {
    /// That of the node called `name`.
    pub(crate) fn of(name: &str) -> Option<&'static Machine> {
        MACHINES.iter().find(|machine| machine.name == name)
    }
}

/// Start the machine with its state in `directory`; it has joined as `membership` says. QEMU is in the root `tools`, `lan` its port
/// on the local network.
pub(crate) fn start(
    machine: &Machine,
    tools: &Path,
    vm: &Vm,
    directory: &Path,
    installed: &Path,
    membership: &[u8],
    lan: &OwnedFd,
) -> Result<NodeEntry> {
    let port = free_port()?;
    let initramfs = directory.join("initramfs");
    initramfs_with_ours(machine, vm, installed, membership, &initramfs)?;
    let console = directory.join("machine.log");
    let mut line = emulator(tools, machine);
    line.extend(arguments(machine, vm, &initramfs, port, lan, &directory.join(CONSOLE)));
    // The disk's changes go to an unlinked file there.
    let environment = [("TMPDIR", directory.to_str().unwrap_or("/var/tmp"))];
    let process = process::detached(&line, &environment, &console)?;
    Ok(NodeEntry { kind: Kind::Vm, port, process })
}

/// QEMU out of a root.
fn emulator(tools: &Path, machine: &Machine) -> Vec<OsString> {
    let mut line = debian::program(tools, &format!("usr/bin/qemu-system-{}", machine.isa));
    for firmware in ["usr/share/qemu", "usr/share/seabios"] {
        line.extend(["-L".into(), tools.join(firmware).into_os_string()]);
    }
    line
}

fn arguments(
    machine: &Machine,
    vm: &Vm,
    initramfs: &Path,
    port: u16,
    lan: &OwnedFd,
    console: &Path,
) -> Vec<OsString> {
    let text = |path: &Path| path.display().to_string();
    let Machine { name, isa, board, cpu, parameters, .. } = machine;
    let parameters = format!(
        "{parameters} tranship_isa={isa} tranship_port={AGENT_PORT} tranship_lan={}",
        lan::address(name)
    );
    let options = [
        ("-machine", (*board).to_owned()),
        ("-cpu", (*cpu).to_owned()),
        ("-smp", "1".to_owned()),
        ("-m", MEMORY.to_owned()),
        ("-accel", "tcg,thread=multi,tb-size=512".to_owned()),
        ("-kernel", text(&vm.kernel)),
        ("-initrd", text(initramfs)),
        ("-append", parameters),
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
fn initramfs_with_ours(
    machine: &Machine,
    vm: &Vm,
    installed: &Path,
    membership: &[u8],
    path: &Path,
) -> Result<()> {
    let ours = path.with_extension("ours");
    let mut files = vec![(format!("tranship/{MEMBERSHIP_FILE}"), 0o600, membership.to_vec())];
    for name in ["node", "runtime", "tranship-runc"] {
        let name = format!("{name}-{}", machine.isa);
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
