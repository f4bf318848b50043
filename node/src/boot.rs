//! The first process of a node: on this machine one in a mount and a PID namespace of its own with the node's root,
//! in a virtual machine init itself. Keeps the agent running and reaps what it leaves.

use crate::error::{NodeError, Result};
use crate::record::Isa;
use crate::unit::network;
use crate::unit::paths::{INSTALLED, STATE, program};
use clap::Args;
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind, mount_bind_recursive, mount_change,
    unmount,
};
use rustix::process::{Signal, WaitOptions, pivot_root, set_parent_process_death_signal, wait};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use std::ffi::CStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread;
use std::time::Duration;

/// File systems of a node on this machine. Of control groups it sees version 2 alone: containers do not move between versions.
const MOUNTS: [(&CStr, &str); 5] = [
    (c"proc", "/proc"),
    (c"sysfs", "/sys"),
    (c"cgroup2", "/sys/fs/cgroup"),
    (c"tmpfs", "/tmp"),
    (c"tmpfs", "/run"),
];
/// What container engines write, as it is called in the state directory of a node on this machine, and where they see it.
const OF_ENGINES: [(&str, &str); 5] = [
    ("containerd", "/var/lib/containerd"),
    ("containers", "/var/lib/containers"),
    ("docker", "/var/lib/docker"),
    ("log", "/var/log"),
    ("scratch", "/var/tmp"),
];
/// Pause before an agent that died is started again.
const PAUSE: Duration = Duration::from_millis(200);

/// A node on this machine.
#[derive(Args, Clone, Debug)]
pub struct Boot {
    /// The node's root; not written to but for mount points.
    #[arg(long)]
    pub root: PathBuf,
    /// The node's state directory.
    #[arg(long)]
    pub state: PathBuf,
    /// Directory with our programs and blobs.
    #[arg(long)]
    pub installed: PathBuf,
    /// Its agent.
    #[command(flatten)]
    pub agent: AgentArgs,
}

/// How to reach an agent.
#[derive(Args, Clone, Debug)]
pub struct AgentArgs {
    /// Address to listen at.
    #[arg(long, default_value = "0.0.0.0:7700")]
    pub listen: String,
    /// Let clients execute any command on this node.
    #[arg(long)]
    pub allow_execute: bool,
}

impl AgentArgs {
    /// Start the agent.
    fn start(&self) -> Result<Child> {
        // By its path in the node: CRIU starts it by that name too.
        let mut command = Command::new(program(Isa::here()?));
        command.args(["agent", "--listen", &self.listen]);
        command.args(self.allow_execute.then_some("--allow-execute"));
        command.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").env("HOME", "/root");
        command.spawn().map_err(|why| NodeError::io("starting the agent", why))
    }
}

/// Enter namespaces of the node's own and run it there until this process ends.
pub fn boot(boot: &Boot) -> Result<()> {
    let failed = |why| NodeError::io("making namespaces (is this root?)", why);
    // SAFETY: no descriptor table is unshared; this program has one thread yet.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS | UnshareFlags::NEWPID) }.map_err(failed)?;
    let mut command = Command::new("/proc/self/exe");
    command.arg("boot-inside").arg("--root").arg(&boot.root).arg("--state").arg(&boot.state);
    command.arg("--installed").arg(&boot.installed).args(["--listen", &boot.agent.listen]);
    command.args(boot.agent.allow_execute.then_some("--allow-execute"));
    let mut inside =
        command.spawn().map_err(|why| NodeError::io("starting the node's first process", why))?;
    inside.wait().map_err(|why| NodeError::io("waiting for the node", why))?;
    Ok(())
}

/// The first process in the namespaces: mounts, then [`init`].
pub fn boot_inside(boot: &Boot) -> Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|why| NodeError::io("tying the node to its parent", why))?;
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
        .map_err(|why| NodeError::io("detaching mounts", why))?;
    let root = &boot.root;
    bind(root, root)?;
    bind(&boot.state, &make_below(root, STATE)?)?;
    bind(&boot.installed, &make_below(root, INSTALLED)?)?;
    let dev = make_below(root, "/dev")?;
    mount_bind_recursive("/dev", &dev).map_err(NodeError::at("mounting", &dev))?;
    for (kind, at) in MOUNTS {
        new_mount(kind, &make_below(root, at)?)?;
    }
    for (from, at) in OF_ENGINES {
        let from = boot.state.join(from);
        fs::create_dir_all(&from).map_err(NodeError::at("making", &from))?;
        bind(&from, &make_below(root, at)?)?;
    }
    change_root(root)?;
    network::make()?;
    init(&boot.agent)
}

fn make_below(root: &Path, path: &str) -> Result<PathBuf> {
    let path = root.join(path.trim_start_matches('/'));
    fs::create_dir_all(&path).map_err(NodeError::at("making", &path))?;
    Ok(path)
}

fn bind(from: &Path, to: &Path) -> Result<()> {
    mount_bind(from, to).map_err(NodeError::at("mounting", to))
}

fn new_mount(kind: &CStr, at: &Path) -> Result<()> {
    mount(kind, at, kind, MountFlags::empty(), None::<&CStr>).map_err(NodeError::at("mounting", at))
}

fn change_root(root: &Path) -> Result<()> {
    let failed = |why| NodeError::at("changing the root to", root)(why);
    std::env::set_current_dir(root).map_err(NodeError::at("changing to", root))?;
    // Both on one directory: the old root ends up below the new one and is taken off it (pivot_root(2), Notes).
    pivot_root(".", ".").map_err(failed)?;
    unmount(".", UnmountFlags::DETACH).map_err(failed)?;
    std::env::set_current_dir("/").map_err(NodeError::at("changing to", Path::new("/")))
}

/// Keep the agent running and reap orphans, for ever.
pub fn init(agent: &AgentArgs) -> Result<()> {
    loop {
        let child = agent.start()?;
        reap_until(child.id());
        thread::sleep(PAUSE);
    }
}

/// Reap children until `pid` has ended.
fn reap_until(pid: u32) {
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((ended, _))) if ended.as_raw_nonzero().get() as u32 == pid => return,
            Ok(_) => {}
            Err(_) => return,
        }
    }
}
