//! A node's view of this machine: its root, with runc and CRIU in it, and namespaces of its own.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use tranship_lab::Lab;

/// A node. It ends with this value.
pub(crate) struct Node {
    first: Child,
    work: PathBuf,
}

impl Node {
    /// A node with runc, whose /tmp is the directory `work`.
    pub(crate) fn start(work: &Path) -> Node {
        let root = Lab::new(None).x86_root(&mut |step| eprintln!("{step}"));
        let root = root.unwrap_or_else(|why| panic!("{why}"));
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut command = Command::new("unshare");
        command.args(["--mount", "--net", "--pid", "--fork", "--kill-child", "sh"]);
        command.arg(here.join("tests/containers/enter.sh")).arg(root).arg(work).arg(here.join("../dist"));
        let mut first = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(first.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n", "the node did not start");
        Node { first, work: work.to_owned() }
    }

    /// The directory that is /tmp in it.
    pub(crate) fn work(&self) -> &Path {
        &self.work
    }

    /// What the path is in the node.
    pub(crate) fn path(&self, path: &Path) -> PathBuf {
        Path::new("/tmp").join(path.strip_prefix(&self.work).unwrap())
    }

    /// A command in it.
    pub(crate) fn command(&self, program: &str) -> Command {
        let first = self.first_inside();
        let mut command = Command::new("nsenter");
        command.args(["--mount", "--net", "--pid", "--target", &first, "--", program]);
        command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").env("TRANSHIP_LIB", "/opt/tranship");
        command.stdin(Stdio::null());
        command
    }

    /// Its processes, the oldest first.
    pub(crate) fn processes(&self) -> Vec<u32> {
        let namespace = |pid: &str| fs::read_link(format!("/proc/{pid}/ns/pid")).ok();
        let own = namespace(&self.first_inside());
        let all = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.file_name());
        let mut processes: Vec<u32> =
            all.filter_map(|name| name.to_str().filter(|pid| namespace(pid) == own)?.parse().ok()).collect();
        processes.sort_unstable();
        processes
    }

    fn first_inside(&self) -> String {
        let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", self.first.id()));
        children.unwrap().trim().to_owned()
    }

    /// Its network, as a file.
    pub(crate) fn network(&self) -> PathBuf {
        Path::new("/proc").join(self.first_inside()).join("ns/net")
    }

    /// The container runtime.
    pub(crate) fn runtime(&self) -> Command {
        self.command("/opt/tranship/tranship-runc-x86_64")
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // It ends with its standard input, and everything in it with its first process.
        drop(self.first.stdin.take());
        let _ = self.first.wait();
    }
}

/// The output of a command that has to succeed.
pub(crate) fn succeed(command: &mut Command, context: impl FnOnce() -> String) -> Output {
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{text}{}", output.status, context());
    output
}
