//! A container's way from home to abroad and back.

use crate::config::config;
use crate::node::{Node, succeed};
use std::fs;
use std::io::{BufRead, BufReader, PipeReader, PipeWriter, pipe};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Steps that a program has to make at each place.
const STEPS: usize = 5;
/// How long they may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often a container may be dumped for a checkpoint: seldom again, for a thread in a restartable sequence.
const FEW: usize = 3;

/// What CRIU takes along only if it is told so.
const TAKEN_ALONG: &[&str] = &["--file-locks", "--tcp-established"];

/// Where it goes: its images' name, the place, and whether it is translated there. First CRIU alone has to do it.
const PLACES: &[(&str, &str, bool)] =
    &[("home", "restored at home", false), ("abroad", "abroad", true), ("back", "back at home", false)];

/// Have the program `object` cross in a container of its own.
pub(crate) fn cross(object: &str) {
    cross_in(Container::new(object));
}

/// As [`cross`], with crun below our OCI runtime. It wants all control groups in one place.
pub(crate) fn cross_by_crun(object: &str) {
    let mut container = Container::new(object);
    container.runtime = Some("/usr/bin/crun");
    let unify = "umount -R -l /sys/fs/cgroup && mount -t cgroup2 cgroup2 /sys/fs/cgroup";
    succeed(container.node.command("sh").args(["-c", unify]), String::new);
    cross_in(container);
}

fn cross_in(container: Container) {
    let mut steps = Steps::follow(container.create(false), 0, "at home");
    for (images, place, translated) in PLACES {
        container.checkpoint(images);
        assert!(container.dumps() <= FEW, "dumped {} times", container.dumps());
        steps = Steps::follow(container.restore(images, *translated), steps.end(), place);
    }
    container.delete();
    steps.end();
}

/// Start the program `object` abroad, execute another one in its container, and have it come home.
pub(crate) fn begin_abroad(object: &str) {
    let container = Container::new(object);
    let abroad = Steps::follow(container.create(true), 0, "abroad from the start");
    let executed = container.execute(true, &["/program", "argument"]);
    assert_eq!(String::from_utf8(executed.stdout).unwrap(), "argument\n");
    assert_eq!(executed.status.code(), Some(3), "{}", String::from_utf8_lossy(&executed.stderr));
    container.checkpoint("abroad");
    let home = Steps::follow(container.restore("abroad", false), abroad.end(), "at home");
    container.delete();
    home.end();
}

/// A container with one program.
pub(crate) struct Container {
    /// Whether runc and CRIU are alone with it.
    pub(crate) is_stock: bool,
    /// The OCI runtime below ours, if not the one that it finds.
    runtime: Option<&'static str>,
    /// Where its memory is served from, if that stays where it was until it is needed after a restore.
    pub(crate) page_server: Option<&'static str>,
    name: String,
    folder: PathBuf,
    node: Node,
}

impl Container {
    pub(crate) fn new(object: &str) -> Container {
        let name = format!("{object}-{}", thread::current().name().unwrap_or_default().replace("::", "-"));
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("containers").join(&name);
        let _ = fs::remove_dir_all(&folder);
        for directory in ["dev", "mnt", "proc", "sys", "tmp"] {
            fs::create_dir_all(folder.join("bundle/rootfs").join(directory)).unwrap();
        }
        compile(object, &folder.join("bundle/rootfs/program"));
        fs::write(folder.join("bundle/config.json"), config(object, &folder).to_string()).unwrap();
        let name = format!("tranship-test-{name}-{}", std::process::id());
        let node = Node::start(&folder);
        Container { is_stock: false, runtime: None, page_server: None, name, folder, node }
    }

    /// Start it; its output.
    pub(crate) fn create(&self, translated: bool) -> PipeReader {
        self.detached(translated, |command| {
            command.args(["run", "--detach", "--bundle"]).arg(self.inside("bundle"));
        })
    }

    /// Write its checkpoint `images`; it is gone then.
    pub(crate) fn checkpoint(&self, images: &str) {
        succeed(&mut self.begin_checkpoint(images), || self.log("dump.log"));
    }

    /// The command for it.
    pub(crate) fn begin_checkpoint(&self, images: &str) -> Command {
        let mut command = self.runtime(false);
        command.arg("checkpoint").args(self.options());
        if self.runtime.is_none() {
            command.arg("--link-remap");
        }
        if let Some(server) = self.page_server {
            command.args(["--page-server", server, "--status-fd", "1"]);
        }
        command.arg("--image-path").arg(self.inside(images));
        command.arg("--work-path").arg(self.inside("logs")).arg(&self.name);
        command
    }

    /// Options of both. crun would have CRIU restore the control groups that it has taken out of sight.
    fn options(&self) -> Vec<&'static str> {
        let groups: &[_] = if self.runtime.is_some() { &["--manage-cgroups-mode=ignore"] } else { &[] };
        let lazy: &[_] = if self.page_server.is_some() { &["--lazy-pages"] } else { &[] };
        [TAKEN_ALONG, groups, lazy].concat()
    }

    /// All processes of its node, the oldest first.
    pub(crate) fn processes(&self) -> Vec<u32> {
        self.node.processes()
    }

    /// Go on from the checkpoint `images`; its output.
    pub(crate) fn restore(&self, images: &str, translated: bool) -> PipeReader {
        self.detached(translated, |command| self.prepare_restore(images, command))
    }

    pub(crate) fn prepare_restore(&self, images: &str, command: &mut Command) {
        command.arg("restore").args(self.options());
        command.args(["--detach", "--bundle"]).arg(self.inside("bundle"));
        command.arg("--image-path").arg(self.inside(images)).arg("--work-path").arg(self.inside("logs"));
    }

    /// What the OCI runtime calls it.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Where it is.
    pub(crate) fn node(&self) -> &Node {
        &self.node
    }

    /// Execute a program in it.
    pub(crate) fn execute(&self, translated: bool, program: &[&str]) -> Output {
        self.runtime(translated).args(["exec", &self.name]).args(program).output().unwrap()
    }

    pub(crate) fn runtime(&self, translated: bool) -> Command {
        let stock = || self.node.command("/usr/sbin/runc");
        let mut command = if self.is_stock { stock() } else { self.node.runtime() };
        if translated {
            command.env("TRANSHIP_TRANSLATE", "always");
        }
        if let Some(runtime) = self.runtime {
            command.env("TRANSHIP_RUNTIME", runtime);
        }
        command
    }

    fn detached(&self, translated: bool, prepare: impl FnOnce(&mut Command)) -> PipeReader {
        let (reader, writer): (PipeReader, PipeWriter) = pipe().unwrap();
        let mut command = self.runtime(translated);
        command.arg("--log").arg(self.inside("runtime.log"));
        prepare(&mut command);
        // What the container has for its whole life: a file would be outside of it, which CRIU cannot dump.
        let status =
            command.arg(&self.name).stderr(writer.try_clone().unwrap()).stdout(writer).status().unwrap();
        drop(command);
        assert!(status.success(), "{status}\n{}", self.why_not_restored());
        reader
    }

    /// What was wrong with the last start or restore.
    pub(crate) fn why_not_restored(&self) -> String {
        let log = fs::read_to_string(self.folder.join("runtime.log")).unwrap_or_default();
        log + &self.log("restore.log")
    }

    pub(crate) fn delete(&self) {
        let mut command = self.runtime(false);
        command.args(["delete", "--force", &self.name]).stdout(Stdio::null()).stderr(Stdio::null());
        let _ = command.status();
    }

    fn inside(&self, name: &str) -> PathBuf {
        self.node.path(&self.folder.join(name))
    }

    /// How often the last checkpoint was dumped.
    fn dumps(&self) -> usize {
        let log = fs::read_to_string(self.folder.join("logs/dump.log")).unwrap_or_default();
        log.lines().filter(|line| line.starts_with("tranship: looked through")).count()
    }

    /// What CRIU says is wrong.
    fn log(&self, name: &str) -> String {
        let log = fs::read_to_string(self.folder.join("logs").join(name)).unwrap_or_default();
        log.lines().filter(|line| line.contains("Error")).map(|line| format!("{line}\n")).collect()
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        self.delete();
        if !std::thread::panicking() {
            let _ = fs::remove_dir_all(&self.folder);
        }
    }
}

/// The steps of a program at one place: none is missing or comes twice, wherever it made those before.
pub(crate) struct Steps {
    reader: JoinHandle<usize>,
    place: &'static str,
    /// How many lines have come.
    count: Arc<AtomicUsize>,
}

impl Steps {
    /// Follow `output` from step `made` on; returns after some steps.
    pub(crate) fn follow(output: PipeReader, made: usize, place: &'static str) -> Steps {
        let (enough, wait) = channel();
        let count = Arc::new(AtomicUsize::new(0));
        let counted = count.clone();
        let reader = thread::spawn(move || {
            let mut next = made;
            for line in BufReader::new(output).lines() {
                assert_eq!(line.unwrap(), next.to_string(), "{place}");
                next += 1;
                counted.fetch_add(1, Relaxed);
                if next == made + STEPS {
                    enough.send(()).unwrap();
                }
            }
            next
        });
        match wait.recv_timeout(PATIENCE) {
            Ok(()) => Steps { reader, place, count },
            Err(RecvTimeoutError::Timeout) => panic!("{place}: the program does not go on"),
            Err(RecvTimeoutError::Disconnected) => panic!("{place}: it has ended: {:?}", reader.join()),
        }
    }

    /// Wait until it has made some more; false if it has ended.
    pub(crate) fn go_on(&self) -> bool {
        let (before, since) = (self.count.load(Relaxed), Instant::now());
        while self.count.load(Relaxed) < before + STEPS && !self.reader.is_finished() {
            assert!(since.elapsed() < PATIENCE, "{}: it does not go on", self.place);
            thread::sleep(Duration::from_millis(5));
        }
        !self.reader.is_finished()
    }

    /// Once the program is gone: the step that it would have made next.
    pub(crate) fn end(self) -> usize {
        let Steps { reader, place, .. } = self;
        reader.join().unwrap_or_else(|_| panic!("{place}: the program went wrong"))
    }
}

fn compile(object: &str, program: &Path) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/containers/objects").join(object);
    let mut gcc = Command::new("gcc");
    gcc.args(["-O1", "-Wall", "-Werror", "-static", "-o"]).arg(program).arg(source.with_extension("c"));
    succeed(&mut gcc, String::new);
}
