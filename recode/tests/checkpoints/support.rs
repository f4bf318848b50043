//! Test programs, and a real CRIU to dump and restore them with.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, Once};
use std::time::{Duration, Instant};
use tranship_lab::Lab;
use tranship_recode::ImageSet;
use tranship_recode::proto::pstree::Pstree_entry;

/// One at a time: CRIU stops processes and wants their process ids back.
static CRIU: Mutex<()> = Mutex::new(());

/// CRIU, for as long as nobody else uses it.
pub(crate) struct Criu {
    _turn: MutexGuard<'static, ()>,
}

impl Criu {
    /// Wait for a turn.
    pub(crate) fn get() -> Criu {
        static ADOPT: Once = Once::new();
        // Restored processes become our children, so that they can be waited for.
        // SAFETY: PR_SET_CHILD_SUBREAPER takes one integer.
        ADOPT.call_once(|| assert_eq!(unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) }, 0));
        Criu { _turn: CRIU.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) }
    }

    /// Dump the process tree of `pid` into the new directory `images`; the processes are gone then.
    pub(crate) fn dump(&self, pid: u32, images: &Path) {
        fs::create_dir_all(images).unwrap();
        self.run(images, "dump.log", ["dump", "--tree", &pid.to_string()]);
        let tree: Vec<Pstree_entry> = ImageSet::open(images).unwrap().messages("pstree.img").unwrap();
        tree.iter().for_each(|entry| reap(entry.pid()));
    }

    /// Restore what is in `images`.
    pub(crate) fn restore(&self, images: &Path) {
        self.run(images, "restore.log", ["restore", "--restore-detached"]);
    }

    fn run<const N: usize>(&self, images: &Path, log: &str, arguments: [&str; N]) {
        let mut command = criu_command();
        command.args(arguments).arg("--images-dir").arg(images);
        command.args(["--log-file", log, "-v4", "--shell-job"]).stdin(Stdio::null());
        let output = command.output().unwrap();
        if !output.status.success() {
            let log = fs::read_to_string(images.join(log)).unwrap_or_default();
            let errors: Vec<&str> =
                log.lines().filter(|l| l.contains("Error") || l.contains("Warn")).collect();
            panic!("criu {}: {}\n{}", arguments[0], output.status, errors.join("\n"));
        }
    }
}

/// The CRIU in the root of the lab's nodes, which is built if it is not there yet, run with that root's own libraries.
fn criu_command() -> Command {
    let root =
        Lab::new(None).x86_root(&mut |step| eprintln!("{step}")).unwrap_or_else(|error| panic!("{error}"));
    let usr = root.join("usr");
    let mut command = Command::new(usr.join("lib64/ld-linux-x86-64.so.2"));
    command.arg("--library-path").arg(usr.join("lib/x86_64-linux-gnu")).arg(usr.join("sbin/criu"));
    command
}

fn reap(pid: u32) {
    // SAFETY: a null status pointer is allowed.
    unsafe { libc::waitpid(pid as i32, std::ptr::null_mut(), 0) };
}

/// A folder of this test's own, removed at the end of a test that passes.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    /// A new, empty folder.
    pub(crate) fn new(test: &str) -> Scratch {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        Scratch(folder)
    }

    /// A path in it.
    pub(crate) fn path(&self, name: impl AsRef<OsStr>) -> PathBuf {
        self.0.join(name.as_ref())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = fs::remove_dir_all(&self.0);
        }
    }
}

/// Compile `tests/programs/<source>`; returns the binary.
pub(crate) fn compile(scratch: &Scratch, source: &str, options: &[&str]) -> PathBuf {
    let binary = scratch.path(Path::new(source).file_stem().unwrap());
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(source);
    let status =
        Command::new("gcc").args(["-O1", "-w", "-o"]).arg(&binary).arg(source).args(options).status();
    assert!(status.unwrap().success());
    binary
}

/// Keeps glibc to code that the runtime can execute, wherever the program goes later.
const BASELINE: &str = "glibc.cpu.hwcaps=-AVX,-AVX2,-AVX512F,-AVX512VL,-AVX512BW,-AVX512CD,-AVX512DQ,-BMI1,-BMI2,-FMA,\
                        -LZCNT,-MOVBE,-POPCNT,-SSSE3,-SSE4_1,-SSE4_2,-XSAVE,-XSAVEC,-RTM,-AVX_Fast_Unaligned_Load";

/// A test program that was started, or restored.
pub(crate) struct Program {
    /// Its process id, which survives a restore.
    pub(crate) pid: u32,
    output: PathBuf,
    done: bool,
}

impl Program {
    #[expect(clippy::zombie_processes, reason = "reaped by its id: it may be a restored process by then")]
    /// Start `binary` in a session of its own, its output in a file.
    pub(crate) fn start(scratch: &Scratch, binary: &Path, arguments: &[&str]) -> Program {
        use std::os::unix::process::CommandExt;
        let output = scratch.path("output");
        let mut command = Command::new(binary);
        command
            .args(arguments)
            .env("GLIBC_TUNABLES", BASELINE)
            .stdin(Stdio::null())
            .stdout(fs::File::create(&output).unwrap());
        // SAFETY: setsid(2) and close_range(2) are safe between fork and exec.
        let new_session = || unsafe {
            libc::setsid();
            libc::syscall(libc::SYS_close_range, 3, u32::MAX, 4 /* CLOSE_RANGE_CLOEXEC */);
            Ok(())
        };
        // SAFETY: it only makes system calls.
        let child: Child = unsafe { command.pre_exec(new_session) }.stderr(Stdio::null()).spawn().unwrap();
        Program { pid: child.id(), output, done: false }
    }

    /// What it has written so far.
    pub(crate) fn output(&self) -> String {
        fs::read_to_string(&self.output).unwrap()
    }

    /// Wait until it has written `lines` lines.
    pub(crate) fn wait_for_lines(&self, lines: usize) {
        let start = Instant::now();
        while self.output().lines().count() < lines {
            assert!(
                start.elapsed() < Duration::from_secs(60),
                "no {lines} lines in {}",
                self.output.display()
            );
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Wait until it has had a processor for so long.
    pub(crate) fn wait_for_work(&self, work: Duration) {
        let start = Instant::now();
        // Nanoseconds on a processor come first; Documentation/scheduler/sched-stats.rst.
        let worked = || {
            let said = fs::read_to_string(format!("/proc/{}/schedstat", self.pid)).unwrap();
            Duration::from_nanos(said.split(' ').next().unwrap().parse().unwrap())
        };
        let until = worked() + work;
        while worked() < until {
            assert!(start.elapsed() < Duration::from_secs(60), "does not work");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Wait until it ends; returns its whole output.
    pub(crate) fn finish(mut self) -> String {
        let start = Instant::now();
        let mut status = 0;
        // SAFETY: `status` outlives the call.
        while unsafe { libc::waitpid(self.pid as i32, &mut status, libc::WNOHANG) } == 0 {
            assert!(start.elapsed() < Duration::from_secs(60), "does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
        self.done = true;
        assert_eq!(status, 0, "exit status");
        self.output()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if !self.done {
            // SAFETY: the process is ours: it was started by us or restored by a CRIU of ours, and not reaped.
            unsafe { libc::kill(self.pid as i32, libc::SIGKILL) };
            reap(self.pid);
        }
    }
}
