//! Whole guest programs: built from C, run natively, and translated by the runtime on every host.

use std::fs::File;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use tranship_translate::bitcode::Bitcode;
use tranship_translate::compile::{Host, Options, compile};
use tranship_translate::discover::discover;
use tranship_translate::elf::GuestElf;
use tranship_translate::region::{Discovery, Faults};

/// A host that programs are translated for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum On {
    /// This machine.
    X86_64,
    /// Emulated.
    Aarch64,
}

/// All of them.
pub const HOSTS: [On; 2] = [On::X86_64, On::Aarch64];

fn top() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// The runtimes, built from the sources as they are.
fn blobs() -> &'static Path {
    static DIST: OnceLock<PathBuf> = OnceLock::new();
    DIST.get_or_init(|| {
        let status = Command::new(top().join("runtime/build-blobs")).status().unwrap();
        assert!(status.success(), "runtime/build-blobs: {status}");
        top().join("dist")
    })
}

impl On {
    fn host(self) -> Host {
        match self {
            On::X86_64 => Host::x86_64(),
            On::Aarch64 => Host::aarch64(),
        }
    }

    fn runtime(self) -> Command {
        match self {
            On::X86_64 => Command::new(blobs().join("runtime-x86_64")),
            On::Aarch64 => {
                let mut command = Command::new("qemu-aarch64-static");
                command.arg(blobs().join("runtime-aarch64"));
                command
            }
        }
    }
}

/// A static program.
#[derive(Debug)]
pub struct Program {
    path: PathBuf,
}

impl Program {
    /// Compile `source` into `directory`.
    pub fn build(source: &Path, directory: &Path, options: &[&str]) -> Program {
        let path = directory.join(source.file_stem().unwrap());
        let mut gcc = Command::new("gcc");
        gcc.args(["-static", "-Wall", "-Wextra", "-Werror", "-o"]).arg(&path).arg(source).args(options);
        let status = gcc.status().unwrap();
        assert!(status.success(), "gcc: {status}");
        Program { path }
    }

    /// Its file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Run it on the CPU.
    pub fn run_natively(&self, arguments: &[&str]) -> Ran {
        let output = Command::new(&self.path).args(arguments).env_clear().output().unwrap();
        Ran { output, entered: 0, interpreted: 0 }
    }

    /// Its object for a host.
    pub fn translate(&self, on: On, faults: Faults) -> Translated<'_> {
        let elf = GuestElf::parse(std::fs::read(&self.path).unwrap()).unwrap();
        let options = Options { faults, ..Options::default() };
        let found = Discovery { faults, ..discover(&elf) };
        let bitcode = Bitcode::lift(&elf, &found, options.jobs, &());
        let bytes = compile(&bitcode, &on.host(), &options, &()).unwrap();
        let object = self.path.with_extension(format!("{on:?}-{faults:?}"));
        std::fs::write(&object, bytes).unwrap();
        Translated { program: self, on, object }
    }
}

/// A program with its object.
#[derive(Debug)]
pub struct Translated<'a> {
    program: &'a Program,
    on: On,
    object: PathBuf,
}

impl Translated<'_> {
    /// Run it by the runtime.
    pub fn run(&self, arguments: &[&str]) -> Ran {
        let object = File::open(&self.object).unwrap();
        let (mut stats, into) = std::io::pipe().unwrap();
        let mut command = self.on.runtime();
        command.env_clear();
        command.args(["--object", &object.as_raw_fd().to_string()]);
        command.args(["--stats-fd", &into.as_raw_fd().to_string()]);
        command.arg("--").arg(&self.program.path).args(arguments);
        let kept = [object.as_raw_fd(), into.as_raw_fd()];
        // SAFETY: system calls only, between fork and exec.
        unsafe {
            command.pre_exec(move || {
                kept.into_iter().for_each(|fd| {
                    libc::fcntl(fd, libc::F_SETFD, 0);
                });
                Ok(())
            })
        };
        let output = command.output().unwrap();
        drop((into, command));
        let mut counters = String::new();
        stats.read_to_string(&mut counters).unwrap();
        let counter = |name: &str| {
            let line = counters.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
            line.unwrap_or(0)
        };
        let (entered, interpreted) = (counter("entered "), counter("interpreted_instructions "));
        Ran { output, entered, interpreted }
    }
}

/// How a program ended.
#[derive(Debug)]
pub struct Ran {
    output: Output,
    /// Times that compiled code was entered.
    pub entered: u64,
    /// Instructions interpreted.
    pub interpreted: u64,
}

impl Ran {
    /// Fail at the first line in which this differs from the `native` run.
    pub fn must_be(&self, native: &Ran, what: &str) {
        let (ours, theirs) = (self.text(), native.text());
        for (n, (ours, theirs)) in ours.lines().zip(theirs.lines()).enumerate() {
            assert_eq!(ours, theirs, "line {n}, {what}");
        }
        assert_eq!(ours.lines().count(), theirs.lines().count(), "lines, {what}");
    }

    /// Status, output and errors.
    fn text(&self) -> String {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        format!("{}\n{}{}", self.output.status, text(&self.output.stdout), text(&self.output.stderr))
    }
}
