//! Nodes on this machine. `x86` is this kernel in a Debian root, mount and PID namespace of its own; `x86b` is a
//! second one; `arm64` and `x86vm` are virtual machines with Debian's kernels. Roots and disk images are built once from
//! Debian's packages, by apt alone, and kept in the cache directory.

mod build;
mod companions;
mod cpio;
mod debian;
mod engine;
mod error;
mod lan;
mod local;
mod process;
mod registry;
mod state;
mod vm;

pub use companions::companions;
pub use debian::Recipe;
pub use error::{LabError, Result};
pub use lan::{NETWORK, address};
pub use registry::REGISTRY;
pub use state::{Kind, LabFile, NodeEntry};

use lan::Switch;
use process::Recorded;
use state::Lock;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};
use tranship_node::client::Node;
use tranship_node::history::History;
use tranship_node::protocol::{NodeInfo, Peer};
use tranship_node::trust::Membership;
use vm::Machine;

/// How long a node may take from its start to its first answer.
const PATIENCE: Duration = Duration::from_secs(90);

/// A lab: where it keeps what it builds, and what runs.
#[derive(Clone, Debug)]
pub struct Lab {
    cache: PathBuf,
    state: PathBuf,
}

/// Whether nodes of a lab are called so.
pub fn is_lab_name(name: &str) -> bool {
    Kind::of(name).is_ok()
}

/// The virtual machine that the node called `name` is.
fn machine(name: &str) -> Result<&'static Machine> {
    Machine::of(name).ok_or_else(|| LabError::UnknownNode { name: name.to_owned() })
}

/// A node of the lab, as `tranship lab status` shows it.
#[derive(Debug)]
pub struct NodeStatus {
    /// Its name.
    pub name: String,
    /// What it was started as.
    pub entry: NodeEntry,
    /// What its agent says, or why it says nothing.
    pub info: std::result::Result<NodeInfo, String>,
}

impl Lab {
    /// The lab whose running state is in `state`; by default a directory of the user's cache, in which what was built
    /// always is.
    pub fn new(state: Option<PathBuf>) -> Lab {
        let from_home = || PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".cache");
        let base = std::env::var_os("XDG_CACHE_HOME").map_or_else(from_home, PathBuf::from);
        let cache = base.join("tranship/lab");
        let state = state.unwrap_or_else(|| cache.join("run"));
        Lab { cache, state }
    }

    /// Where running state is.
    pub fn state(&self) -> &Path {
        &self.state
    }

    /// The crossings between its nodes.
    pub fn history(&self) -> History {
        History::at(self.state.join("history.jsonl"))
    }

    /// Where clients note the moves that they have begun.
    pub fn journal(&self) -> PathBuf {
        self.state.join("journal")
    }

    /// Where translated objects are kept.
    pub fn objects(&self) -> PathBuf {
        self.cache.join("objects")
    }

    /// Build what `nodes` start from, where that is not there yet. `say` hears of each step.
    pub fn build(&self, nodes: &[String], say: &mut dyn FnMut(&str)) -> Result<()> {
        let kinds: Vec<Kind> = nodes.iter().map(|name| Kind::of(name)).collect::<Result<_>>()?;
        for (name, kind) in nodes.iter().zip(kinds) {
            self.x86_root(say)?;
            if kind == Kind::Vm {
                build::vm(&self.cache, machine(name)?, say)?;
            }
        }
        Ok(())
    }

    /// The root of nodes on this kernel, built if it is not there yet: a Debian root with CRIU in it.
    pub fn x86_root(&self, say: &mut dyn FnMut(&str)) -> Result<PathBuf> {
        build::x86_root(&self.cache, say)
    }

    /// The tree of `recipe`, extracted if it is not there yet: for units' roots. Not to be written to.
    pub fn tree(&self, name: &str, recipe: &Recipe) -> Result<PathBuf> {
        fs::create_dir_all(&self.cache).map_err(LabError::at("making", &self.cache))?;
        build::tree(&self.cache, name, recipe)
    }

    /// Build what is not built and start what does not run of `nodes`. `say` hears of each step.
    pub fn up(&self, nodes: &[String], say: &mut dyn FnMut(&str)) -> Result<LabFile> {
        let kinds: Vec<Kind> = nodes.iter().map(|name| Kind::of(name)).collect::<Result<_>>()?;
        let installed = companions()?;
        fs::create_dir_all(&self.state).map_err(LabError::at("making", &self.state))?;
        let _lock = Lock::take(&self.state)?;
        let mut lab = LabFile::load(&self.state)?.map_or_else(LabFile::new, Ok)?;
        let mut fresh = Vec::new();
        for (name, kind) in nodes.iter().zip(kinds) {
            if lab.nodes.get(name).is_some_and(|entry| entry.process.lives()) {
                continue;
            }
            let directory = self.fresh_node_directory(name)?;
            let switch = self.switch(&mut lab)?;
            let membership = Membership::Joined(lab.authority().node(name)?).to_json()?;
            let entry = match kind {
                Kind::Local => {
                    let root = self.x86_root(say)?;
                    say(&format!("starting {name}"));
                    local::start(&root, &directory, &installed, &membership)?
                }
                Kind::Vm => {
                    let tools = self.x86_root(say)?;
                    let machine = machine(name)?;
                    let vm = build::vm(&self.cache, machine, say)?;
                    say(&format!("starting {name}"));
                    let port = switch.port(name)?;
                    vm::start(machine, &tools, &vm, &directory, &installed, &membership, &port)?
                }
            };
            lab.nodes.insert(name.clone(), entry);
            lab.save(&self.state)?;
            fresh.push(name);
        }
        for name in nodes {
            self.wait_until_ready(&lab, name)?;
        }
        let switch = self.switch(&mut lab)?;
        for (name, entry) in fresh.into_iter().filter_map(|name| Some((name, lab.nodes.get(name)?))) {
            if entry.kind == Kind::Local {
                switch.plug_in(name, lan::address(name), &entry.process)?;
            }
        }
        self.registry(&mut lab, &switch, say)?;
        Ok(lab)
    }

    /// Start the registry if it does not run.
    fn registry(&self, lab: &mut LabFile, switch: &Switch, say: &mut dyn FnMut(&str)) -> Result<()> {
        if !lab.registry.as_ref().is_some_and(Recorded::lives) {
            let tools = self.x86_root(say)?;
            lab.registry = Some(registry::start(switch, &tools, &self.state.join("registry"))?);
            lab.save(&self.state)?;
        }
        Ok(())
    }

    /// The local network, started if it does not run.
    fn switch(&self, lab: &mut LabFile) -> Result<Switch> {
        if let Some(process) = lab.switch.as_ref().filter(|process| process.lives()) {
            return Ok(Switch::of(process));
        }
        let process = Switch::start(&self.state.join("switch.log"))?;
        let switch = Switch::of(&process);
        lab.switch = Some(process);
        lab.save(&self.state)?;
        Ok(switch)
    }

    /// A command that sees the nodes' local network as a machine on it, outside the nodes.
    pub fn on_lan(&self, program: &str) -> Result<Command> {
        let lab = self.load()?;
        let switch = lab.switch.as_ref().filter(|process| process.lives());
        let switch = switch.ok_or_else(|| LabError::NotUp { name: NETWORK.to_owned() })?;
        Ok(Switch::of(switch).command(program))
    }

    /// Nothing of a node that ran before is kept: its processes are gone, and so are its units.
    fn fresh_node_directory(&self, name: &str) -> Result<PathBuf> {
        let directory = self.state.join(name);
        match fs::remove_dir_all(&directory) {
            Err(why) if why.kind() != std::io::ErrorKind::NotFound => {
                return Err(LabError::at("removing", &directory)(why));
            }
            _ => {}
        }
        fs::create_dir_all(&directory).map_err(LabError::at("making", &directory))?;
        Ok(directory)
    }

    fn wait_until_ready(&self, lab: &LabFile, name: &str) -> Result<()> {
        let node = lab.node(name)?;
        let deadline = Instant::now() + PATIENCE;
        loop {
            let why = match node.info() {
                Ok(_) => return Ok(()),
                Err(error) => error,
            };
            let dead = !lab.nodes.get(name).is_some_and(|entry| entry.process.lives());
            if dead || Instant::now() > deadline {
                let why = if dead { "it ended".to_owned() } else { why.to_string() };
                let log = self.state.join(name).join(state::CONSOLE);
                return Err(LabError::NotReady { name: name.to_owned(), why, log });
            }
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// Stop nodes (all if none is named) and remove what they left.
    pub fn down(&self, nodes: &[String], say: &mut dyn FnMut(&str)) -> Result<()> {
        nodes.iter().try_for_each(|name| Kind::of(name).map(drop))?;
        if !self.state.exists() {
            return Ok(());
        }
        let _lock = Lock::take(&self.state)?;
        let Some(mut lab) = LabFile::load(&self.state)? else { return Ok(()) };
        let all: Vec<String> = lab.nodes.keys().cloned().collect();
        let chosen = if nodes.is_empty() { &all[..] } else { nodes };
        for name in chosen {
            let Some(entry) = lab.nodes.get(name) else { continue };
            say(&format!("stopping {name}"));
            entry.process.end();
            if entry.kind == Kind::Local {
                engine::remove_control_groups();
            }
            lab.nodes.remove(name);
            lab.save(&self.state)?;
            let directory = self.state.join(name);
            fs::remove_dir_all(&directory).map_err(LabError::at("removing", &directory))?;
        }
        if lab.nodes.is_empty() {
            let companions = [lab.registry.take(), lab.switch.take()];
            companions.iter().flatten().for_each(Recorded::end);
            lab.save(&self.state)?;
            let images = self.state.join("registry");
            if images.exists() {
                fs::remove_dir_all(&images).map_err(LabError::at("removing", &images))?;
            }
        }
        Ok(())
    }

    /// What runs.
    pub fn status(&self) -> Result<Vec<NodeStatus>> {
        let Some(lab) = LabFile::load(&self.state)? else { return Ok(vec![]) };
        let status = |(name, entry): (&String, &NodeEntry)| {
            let info = match entry.process.lives() {
                true => lab.node(name).and_then(|node| Ok(node.info()?)).map_err(|error| error.to_string()),
                false => Err("its process is gone".to_owned()),
            };
            NodeStatus { name: name.clone(), entry: entry.clone(), info }
        };
        Ok(lab.nodes.iter().map(status).collect())
    }

    /// The lab as it was started.
    pub fn load(&self) -> Result<LabFile> {
        LabFile::load(&self.state)?.map_or_else(LabFile::new, Ok)
    }
}

impl LabFile {
    /// A node, to be asked from here.
    pub fn node(&self, name: &str) -> Result<Node> {
        let entry = self.nodes.get(name).ok_or_else(|| LabError::NotUp { name: name.to_owned() })?;
        let address = format!("127.0.0.1:{}", entry.port);
        Ok(Node { peer: Peer { name: name.to_owned(), address }, identity: self.authority().operator()? })
    }

    /// Node `to` as node `from` sees it.
    pub fn peer(&self, from: &str, to: &str) -> Result<Peer> {
        let mut peer = self.node(to)?.peer;
        let entry = self.nodes.get(from).ok_or_else(|| LabError::NotUp { name: from.to_owned() })?;
        if entry.kind == Kind::Vm {
            let port = self.nodes.get(to).map_or(0, |entry| entry.port);
            peer.address = format!("{}:{port}", vm::HOST);
        }
        Ok(peer)
    }
}
