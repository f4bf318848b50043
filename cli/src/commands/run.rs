//! `tranship run`: a program as a unit.

use crate::commands::logs::{Follower, exit_code};
use crate::error::{CliError, Result};
use crate::objects::{self, Uncompiled};
use crate::output::Context;
use clap::Args;
use serde::Serialize;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;
use std::time::Duration;
use tranship_node::client::Node;
use tranship_node::{Progress, UnitId, UnitRecord, UnitSpec};

/// Run a program on a node.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  tranship run --node x86 -- busybox echo hello\n  \
tranship run --node x86 --root ./root --name sum --detach -- /busybox sha256sum /data\n  \
tranship run --node x86 --standby arm64 --root ./root --name sum --detach -- /busybox sha256sum /data\n\n\
The unit's root is a copy of --root; without it, a root that has only the program, as /bin/NAME.\n\
Exits as the program does; with 125 if it could not be run.")]
pub(crate) struct Run {
    /// Where.
    #[arg(long)]
    node: String,
    /// Directory to copy as the unit's root.
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// The unit's name [default: the program's, and a number].
    #[arg(long)]
    name: Option<UnitId>,
    /// Working directory in the root.
    #[arg(long, value_name = "DIR", default_value = "/")]
    directory: String,
    /// Environment settings, besides PATH.
    #[arg(long, short, value_name = "NAME=VALUE")]
    env: Vec<String>,
    /// Translate even if the node could run it natively.
    #[arg(long)]
    translated: bool,
    /// Compile nothing first: what has no object yet is interpreted, until `tranship serve` supplies it.
    #[arg(long)]
    at_once: bool,
    /// Nodes to bring the root and a translated object to before the program starts, so that a migration to them moves
    /// only what has changed by then.
    #[arg(long, value_name = "NODE", value_delimiter = ',')]
    standby: Vec<String>,
    /// Print the unit's name and leave it running.
    #[arg(long, short)]
    detach: bool,
    /// Program and arguments.
    #[arg(last = true, required = true, value_name = "PROGRAM ARGS")]
    program: Vec<String>,
}

/// What `run --json` prints of a unit that was started.
#[derive(Serialize)]
struct Started {
    node: String,
    #[serde(flatten)]
    record: UnitRecord,
}

impl Run {
    pub(crate) fn run(self, context: &Context) -> Result<ExitCode> {
        let nodes = context.nodes()?;
        let standby = self.standby.iter().map(|name| nodes.node(name)).collect::<Result<Vec<_>>>()?;
        let node = nodes.node(&self.node)?;
        let spec = self.spec()?;
        let root = self.make_root(&spec)?;
        let mut made = Vec::new();
        let started = self.make_and_start(context, &node, &standby, &spec, &root, &mut made);
        if started.is_err() {
            // What was made for it is of no use; if that fails too, the first error is the one to tell.
            made.iter().for_each(|node| drop(node.remove(&spec.id)));
        }
        let record = started?;
        if self.detach {
            let id = spec.id.to_string();
            context.print(&Started { node: self.node, record }, || id)?;
            return Ok(ExitCode::SUCCESS);
        }
        let end = Follower { context, unit: &spec.id, print: true, seen: [0; 2] }.run(true)?;
        Ok(end.map_or(ExitCode::SUCCESS, exit_code))
    }

    fn spec(&self) -> Result<UnitSpec> {
        let (program, args) =
            self.program.split_first().ok_or_else(|| CliError::io("running", "no program"))?;
        let file_name = Path::new(program).file_name().unwrap_or_default().to_string_lossy().into_owned();
        let id = match &self.name {
            Some(name) => name.clone(),
            None => format!("{file_name}-{}", std::process::id()).parse()?,
        };
        let program = if self.root.is_some() { program.clone() } else { format!("/bin/{file_name}") };
        let path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".to_owned();
        let env = [vec![path], self.env.clone()].concat();
        Ok(UnitSpec { id, program, args: args.to_vec(), env, directory: self.directory.clone() })
    }

    /// The directory to copy as root.
    fn make_root(&self, spec: &UnitSpec) -> Result<Root> {
        if let Some(root) = &self.root {
            return Ok(Root { path: root.clone(), ours: false });
        }
        let named = &self.program[0];
        let program = find_here(named).ok_or_else(|| CliError::NoProgram { program: named.clone() })?;
        let path = std::env::temp_dir().join(format!("tranship-root-{}", std::process::id()));
        let copy = path.join(spec.program.trim_start_matches('/'));
        let make = || {
            fs::create_dir_all(path.join("bin"))?;
            fs::copy(&program, &copy)
        };
        make().map_err(|why| CliError::io(format!("copying {}", program.display()), why))?;
        Ok(Root { path, ours: true })
    }

    /// Start the unit on `node`, with all that it needs on the `standby` nodes too. `made` are the nodes that have
    /// something of it, also after an error.
    fn make_and_start<'a>(
        &self,
        context: &Context,
        node: &'a Node,
        standby: &'a [Node],
        spec: &UnitSpec,
        root: &Root,
        made: &mut Vec<&'a Node>,
    ) -> Result<UnitRecord> {
        let mut make = |node: &'a Node, translated| {
            node.create(spec)?;
            made.push(node);
            send_root(context, node, &spec.id, &root.path)?;
            let uncompiled = Uncompiled::unless(self.at_once);
            objects::how_to_run(context, node, spec, &root.path, translated, uncompiled)
        };
        for node in standby {
            make(node, false)?;
        }
        let how = make(node, self.translated)?;
        Ok(node.start(&spec.id, &how)?)
    }
}

/// A directory that becomes a unit's root.
struct Root {
    path: PathBuf,
    /// Made for this, to be removed.
    ours: bool,
}

impl Drop for Root {
    fn drop(&mut self) {
        if self.ours {
            // It lies in the directory for temporary files; failing to remove it is no reason to fail.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// A program as the shell would find it.
fn find_here(program: &str) -> Option<PathBuf> {
    let executable =
        |path: &PathBuf| fs::metadata(path).is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0);
    if program.contains('/') {
        return Some(PathBuf::from(program)).filter(executable);
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|directory| directory.join(program)).find(executable)
}

fn send_root(context: &Context, node: &Node, unit: &UnitId, root: &Path) -> Result<()> {
    let progress = Progress::default();
    let mut display = context.progress();
    thread::scope(|scope| {
        let sending = scope.spawn(|| node.send_tree(unit, root, &progress));
        while !sending.is_finished() {
            thread::sleep(Duration::from_millis(10));
            display.show(&progress.report());
        }
        sending.join().map_err(|_| CliError::io("sending the root", "a thread died"))
    })??;
    Ok(())
}
