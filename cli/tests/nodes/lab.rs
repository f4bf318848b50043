//! A lab of a test's own, and the command line as a user calls it.

use serde_json::Value as Json;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// How long anything that a test waits for may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// Nodes `x86` and `x86b` that no other lab on this machine sees. They end with it.
pub(crate) struct TestLab {
    directory: PathBuf,
}

impl TestLab {
    /// Start the nodes.
    pub(crate) fn up(test: &str) -> TestLab {
        TestLab::with(test, "x86,x86b")
    }

    /// Start these nodes.
    pub(crate) fn with(test: &str, nodes: &str) -> TestLab {
        let lab = TestLab::without_nodes(test);
        lab.ok(&["lab", "up", "--nodes", nodes]);
        lab
    }

    /// None are up.
    pub(crate) fn without_nodes(test: &str) -> TestLab {
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
        let lab = TestLab { directory };
        // What a test left that was killed.
        lab.ok(&["lab", "down"]);
        let _ = fs::remove_dir_all(&lab.directory);
        fs::create_dir_all(&lab.directory).unwrap();
        lab
    }

    /// A path in this test's own directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// The lab's running state.
    pub(crate) fn state(&self) -> PathBuf {
        self.path("lab")
    }

    /// What a node has of a unit.
    pub(crate) fn unit(&self, node: &str, unit: &str) -> PathBuf {
        self.state().join(node).join("state/units").join(unit)
    }

    /// `tranship` with these arguments.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tranship"));
        command
            .env("TRANSHIP_STATE", self.state())
            .env("XDG_CONFIG_HOME", self.path("config"))
            .args(arguments)
            .stdin(Stdio::null());
        command
    }

    /// Run it to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Start it, its standard error to be read at its end.
    pub(crate) fn spawn(&self, arguments: &[&str]) -> Child {
        self.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Run it, expect success, and return its standard output.
    pub(crate) fn ok(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "tranship {}: {}\n{errors}", arguments.join(" "), output.status);
        String::from_utf8(output.stdout).unwrap()
    }

    /// Run it with `--json` and return what it prints.
    pub(crate) fn json(&self, arguments: &[&str]) -> Json {
        serde_json::from_str(&self.ok(&[&["--json"], arguments].concat())).unwrap()
    }

    /// Start a unit on node x86 and leave it running.
    pub(crate) fn start(&self, unit: &str, root: &Path, options: &[&str], program: &[&str]) {
        let root = root.to_str().unwrap();
        let line = ["run", "--node", "x86", "--detach", "--name", unit, "--root", root];
        self.ok(&[&line, options, &["--"], program].concat());
    }

    /// Move a unit; where it could run natively too, `translated` says how it goes on.
    pub(crate) fn migrate(&self, unit: &str, to: &str, translated: bool) -> Json {
        self.json(&migrate_line(unit, to, translated))
    }

    /// As [`Self::migrate`], of a unit that may end before.
    pub(crate) fn try_migrate(&self, unit: &str, to: &str, translated: bool) -> Output {
        self.run(&migrate_line(unit, to, translated))
    }

    /// Forward a port of this machine to a port of a unit.
    pub(crate) fn forward(&self, unit: &str, port: u16) -> Forward {
        let mut process = self.spawn(&["forward", unit, &format!("0:{port}")]);
        let mut address = String::new();
        BufReader::new(process.stdout.as_mut().unwrap()).read_line(&mut address).unwrap();
        let address: SocketAddr = address.trim_end().parse().unwrap();
        Forward { port: address.port(), _process: Beside(process) }
    }

    /// Wait for a unit's good end; returns its whole output.
    pub(crate) fn finish(&self, unit: &str) -> String {
        self.ok(&["wait", unit]);
        self.ok(&["logs", unit])
    }

    /// What `tranship ps` says of a unit on a node.
    pub(crate) fn status(&self, node: &str, unit: &str) -> Option<Json> {
        let rows = self.json(&["ps", "--all"]);
        let is_it = |row: &&Json| row["node"] == node && row["spec"]["id"] == unit;
        rows.as_array().unwrap().iter().find(is_it).cloned()
    }

    /// Whether a unit runs on a node, and how: `native` or `translated`.
    pub(crate) fn runs(&self, node: &str, unit: &str) -> Option<String> {
        let status = self.status(node, unit)?;
        (status["state"] == "running").then(|| status["mode"].as_str().unwrap().to_owned())
    }

    /// The process that is a node.
    pub(crate) fn node_pid(&self, node: &str) -> u32 {
        let lab: Json = serde_json::from_slice(&fs::read(self.state().join("lab.json")).unwrap()).unwrap();
        lab["nodes"][node]["process"]["pid"].as_u64().unwrap().try_into().unwrap()
    }

    /// End a node, as a power failure would.
    pub(crate) fn kill_node(&self, node: &str) {
        kill(self.node_pid(node));
    }

    /// The process that a node calls `inside`.
    pub(crate) fn outside(&self, node: &str, inside: u64) -> u32 {
        let own_id = |pid: u32| {
            let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
            let ids = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
            ids.split_whitespace().nth(1)?.parse::<u64>().ok()
        };
        descendants(self.node_pid(node)).into_iter().find(|pid| own_id(*pid) == Some(inside)).unwrap()
    }
}

/// A forwarded port. It is as long as this is.
pub(crate) struct Forward {
    /// On this machine's loopback.
    pub(crate) port: u16,
    _process: Beside,
}

/// A process beside the test. It is as long as this is.
pub(crate) struct Beside(pub(crate) Child);

impl Drop for Beside {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for TestLab {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for node in ["x86", "x86b"] {
                let log = fs::read_to_string(self.state().join(node).join("console.log"));
                eprintln!("--- {node}:\n{}", log.unwrap_or_default());
            }
        }
        let down = self.run(&["lab", "down"]);
        if !std::thread::panicking() {
            assert!(down.status.success());
            let _ = fs::remove_dir_all(&self.directory);
        }
    }
}

/// `pid` and the processes that descend from it.
pub(crate) fn descendants(pid: u32) -> Vec<u32> {
    let mut found = vec![pid];
    let mut next = 0;
    while let Some(parent) = found.get(next) {
        next += 1;
        let tasks = fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten().flatten();
        let lists: Vec<_> =
            tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok()).collect();
        found.extend(
            lists.iter().flat_map(|list| list.split_whitespace()).map(|id| id.parse::<u32>().unwrap()),
        );
    }
    found
}

/// End a process of a test's lab.
pub(crate) fn kill(pid: u32) {
    // SAFETY: kill(2) takes two integers.
    assert_eq!(unsafe { libc::kill(pid as i32, libc::SIGKILL) }, 0);
}

/// Send a signal to a process of a test that may have ended.
pub(crate) fn signal(pid: u32, number: i32) {
    // SAFETY: kill(2) takes two integers.
    unsafe { libc::kill(pid as i32, number) };
}

/// Wait until `seen` has something.
pub(crate) fn wait_for<T>(what: &str, mut seen: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = seen() {
            return found;
        }
        assert!(Instant::now() < deadline, "{what}: not within {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn migrate_line<'a>(unit: &'a str, to: &'a str, translated: bool) -> Vec<&'a str> {
    let options: &[&str] = if translated { &["--translated"] } else { &[] };
    [&["migrate", unit, "--to", to], options].concat()
}
