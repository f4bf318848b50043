//! Runs a program natively and under the runtime, and compares.

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, OnceLock, mpsc};
use std::time::Duration;

/// A host that the runtime is built for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum On {
    /// This machine.
    X86_64,
    /// Emulated.
    Aarch64,
}

/// All of them.
pub(crate) const HOSTS: [On; 2] = [On::X86_64, On::Aarch64];

fn top() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// Directory of the blobs, built from the sources as they are.
pub(crate) fn dist() -> &'static PathBuf {
    static DIST: OnceLock<PathBuf> = OnceLock::new();
    DIST.get_or_init(|| {
        let status = Command::new(top().join("runtime/build-blobs")).status().unwrap();
        assert!(status.success(), "runtime/build-blobs: {status}");
        top().join("dist")
    })
}

impl On {
    /// The runtime's file.
    pub(crate) fn blob(self) -> PathBuf {
        dist().join(match self {
            On::X86_64 => "runtime-x86_64",
            On::Aarch64 => "runtime-aarch64",
        })
    }

    /// A command that starts the runtime, with no environment.
    pub(crate) fn runtime(self) -> Command {
        let mut command = match self {
            On::X86_64 => Command::new(self.blob()),
            On::Aarch64 => {
                let mut command = Command::new("qemu-aarch64-static");
                command.arg(self.blob());
                command
            }
        };
        command.env_clear();
        command
    }
}

/// Where these tests write; the directory above is shared with the tests of other crates.
pub(crate) fn written() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("runtime")
}

/// A directory of a test's own.
pub(crate) fn scratch(name: &str) -> PathBuf {
    let path = written().join(name);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

/// Longest that a program may take, also emulated on a busy machine: what hangs is to fail, not to hang the tests.
const LIMIT: Duration = Duration::from_secs(300);

/// Run a command with this input; it is killed if it does not end.
pub(crate) fn output(command: &mut Command, input: &[u8]) -> Output {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let pid = child.id().to_string();
    let (ended, end) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        // A program that does not read all of it is no error.
        scope.spawn(move || drop(stdin.write_all(input)));
        scope.spawn(move || {
            if end.recv_timeout(LIMIT) == Err(mpsc::RecvTimeoutError::Timeout) {
                let _ = Command::new("kill").args(["-KILL", &pid]).status();
            }
        });
        let output = child.wait_with_output().unwrap();
        drop(ended);
        output
    })
}

/// Run `program` natively and on `on` in `directory`; status, output and errors must be the same.
pub(crate) fn compare_in(on: On, directory: &Path, program: &Path, args: &[impl AsRef<OsStr>], input: &[u8]) {
    let native = output(Command::new(program).env_clear().current_dir(directory).args(args), input);
    let mut command = on.runtime();
    let ours = output(command.current_dir(directory).arg("--").arg(program).args(args), input);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    // The emulator announces guests that die by a signal.
    let said = text(&ours.stderr)
        .lines()
        .filter(|line| !line.starts_with("qemu: "))
        .fold(String::new(), |all, line| all + line + "\n");
    let what =
        format!("{} {:?} on {on:?}", program.display(), args.iter().map(AsRef::as_ref).collect::<Vec<_>>());
    assert_eq!(said, text(&native.stderr), "stderr of {what}");
    assert_eq!(text(&ours.stdout), text(&native.stdout), "stdout of {what}");
    assert_eq!(ours.status, native.status, "{what}");
}

/// One of the test programs, compiled statically.
pub(crate) fn compile(name: &str) -> PathBuf {
    static BUILT: Mutex<()> = Mutex::new(());
    let _one_at_a_time = BUILT.lock();
    let source =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/runtime/programs").join(name).with_extension("c");
    let program = written().join(name);
    fs::create_dir_all(written()).unwrap();
    let age = |path: &Path| fs::metadata(path).and_then(|data| data.modified()).ok();
    if age(&program) < age(&source) {
        let mut gcc = Command::new("gcc");
        gcc.args(["-O1", "-static", "-Wall", "-Wextra", "-Werror", "-o"]).arg(&program).arg(source);
        let status = gcc.args(["-lm", "-lpthread"]).status().unwrap();
        assert!(status.success(), "gcc: {status}");
    }
    program
}
