//! The ways to run an x86-64 program that are compared.

use crate::client;
use crate::error::Error;
use crate::measure::{self, Run};
use crate::program::{self, Built, Client};
use crate::top;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use tranship_node::{Cpu, Isa, baseline};
use tranship_service::{Workshop, host_here};

/// Runs of a program with libraries before it is measured: what is hot only once something else is compiled shows in
/// the run after that.
const WARM_UPS: u32 = 4;

/// One column of the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Engine {
    /// The CPU.
    Native,
    /// Tranship, as on a foreign node: translated beforehand, run by the runtime.
    Tranship {
        /// Static programs are translated for exact faults. Others are if they have a handler.
        exact_faults: bool,
    },
    /// qemu-user of the distribution.
    Qemu,
}

/// What an engine has done once for a program.
#[derive(Default)]
pub(crate) struct Preparation {
    /// The translated object of a static program.
    object: Option<File>,
    /// Where the code of a dynamic one comes from.
    workshop: Option<Workshop>,
    /// CPU seconds that it took; `None` where there is nothing to prepare.
    pub(crate) cpu_seconds: Option<f64>,
}

/// The engines in the order in which they run; native is first.
pub(crate) fn all(qemu: bool, exact_faults: bool) -> Vec<Engine> {
    let mut engines = vec![Engine::Native, Engine::Tranship { exact_faults }];
    engines.extend(qemu.then_some(Engine::Qemu));
    engines
}

impl Engine {
    /// Heading of its column.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Engine::Native => "native",
            Engine::Tranship { exact_faults: false } => "translated",
            Engine::Tranship { exact_faults: true } => "translated, exact faults",
            Engine::Qemu => "qemu-user",
        }
    }

    /// What is done once for a program, and not counted in its time.
    pub(crate) fn prepare(self, program: &Built) -> Result<Preparation, Error> {
        match self {
            Engine::Native | Engine::Qemu => Ok(Preparation::default()),
            Engine::Tranship { .. } if program.is_dynamic => warm_up(program),
            Engine::Tranship { exact_faults } => translate(program, exact_faults),
        }
    }

    /// Run the program once, with the settings of a unit, which keep programs from using what other machines lack.
    pub(crate) fn run(self, program: &Built, preparation: &Preparation) -> Result<Run, Error> {
        let mut command = self.command(program, preparation)?;
        let lines = baseline::environment(Isa(tranship_abi::host::Host::X86_64));
        command.envs(lines.iter().filter_map(|line| line.split_once('=')));
        command.envs(program.libraries.iter().map(|libraries| ("LD_LIBRARY_PATH", libraries)));
        let workshop = preparation.workshop.as_ref();
        let mut run = match program.client {
            Some(client) => run_served(command, workshop, client),
            None => measure::run_beside(command, |pid| supply(pid, workshop)),
        }?;
        let lines = run.stdout.split_inclusive(|&byte| byte == b'\n');
        run.stdout =
            lines.filter(|line| line.starts_with(program.result.as_bytes())).flatten().copied().collect();
        Ok(run)
    }

    /// The command that runs the program.
    fn command(self, program: &Built, preparation: &Preparation) -> Result<Command, Error> {
        let mut command = match self {
            Engine::Native => Command::new(&program.path),
            Engine::Qemu => under("qemu-x86_64-static", program),
            Engine::Tranship { .. } => {
                let mut command = Command::new(top().join("dist/runtime-x86_64"));
                if let Some(object) = &preparation.object {
                    command.arg("--object").arg(object.as_raw_fd().to_string());
                    inherit(&mut command, object);
                }
                command.arg("--").arg(&program.path);
                command
            }
        };
        command.args(&program.arguments).current_dir(program::folder()?);
        Ok(command)
    }

    /// Its version, for the page.
    pub(crate) fn version(self) -> Result<String, Error> {
        let text = match self {
            Engine::Native => measure::output_of("gcc", &["--version"]),
            Engine::Tranship { .. } => measure::output_of("git", &["describe", "--always", "--dirty"]),
            Engine::Qemu => measure::output_of("qemu-x86_64-static", &["--version"]),
        }?;
        Ok(text.lines().next().unwrap_or_default().to_owned())
    }
}

fn under(emulator: &str, program: &Built) -> Command {
    let mut command = Command::new(emulator);
    command.arg(&program.path);
    command
}

/// Lets the child keep `file` open under its number.
fn inherit(command: &mut Command, file: &File) {
    let fd = file.as_raw_fd();
    let keep = move || {
        // SAFETY: fcntl with F_SETFD touches no memory.
        match unsafe { libc::fcntl(fd, libc::F_SETFD, 0) } {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        }
    };
    // SAFETY: the closure makes one system call, which is allowed between fork and exec.
    unsafe { command.pre_exec(keep) };
}

/// The program's object, from the benchmarks' own cache of objects. CPU seconds are those of the run that made it.
fn translate(program: &Built, exact_faults: bool) -> Result<Preparation, Error> {
    let kind = if exact_faults { "exact." } else { "" };
    let object = program.path.with_extension(format!("{kind}object"));
    let seconds = program.path.with_extension(format!("{kind}seconds"));
    let mut compile = Command::new(top().join("target/release/tranship"));
    let cpu = Cpu::here().map_or_else(|_| "x86_64".into(), |cpu| cpu.to_string());
    compile.args(["--json", "compile", "--host", &cpu]).arg(&program.path).arg("-o").arg(&object);
    compile.args(exact_faults.then_some("--exact-faults"));
    compile.env("XDG_CACHE_HOME", program.path.with_file_name("cache"));
    let run = measure::tool(compile)?;
    let report: serde_json::Value = serde_json::from_slice(&run.stdout).unwrap_or_default();
    if report["cached"] != true {
        eprintln!("translated {}", program.path.display());
        write(&seconds, &run.cpu_seconds.to_string())?;
    }
    let cpu_seconds = read(&seconds).ok().and_then(|text| text.trim().parse().ok());
    let object = File::open(&object).map_err(|e| Error::File { path: object, source: e })?;
    Ok(Preparation { object: Some(object), workshop: None, cpu_seconds })
}

/// Run a program until all that is hot in it and its libraries is compiled, as `tranship serve` would for a service that
/// goes on running. CPU seconds are those of the first time.
fn warm_up(program: &Built) -> Result<Preparation, Error> {
    let name = program.path.file_name().unwrap_or_default();
    let seconds = program::folder()?.join(name).with_extension("seconds");
    let workshop = Workshop::new(host_here(), &program::folder()?.join("cache"));
    let mut preparation = Preparation { object: None, workshop: Some(workshop), cpu_seconds: None };
    let mut spent = 0.0;
    for run in 1..=WARM_UPS {
        eprintln!("warming up {}: {run} of {WARM_UPS}", program.path.display());
        let before = measure::own_cpu_seconds();
        Engine::Tranship { exact_faults: false }.run(program, &preparation)?;
        if let Some(workshop) = &preparation.workshop {
            workshop.keep(|error| eprintln!("  {error}"));
        }
        spent += measure::own_cpu_seconds() - before;
    }
    if read(&seconds).is_err() {
        write(&seconds, &spent.to_string())?;
    }
    preparation.cpu_seconds = read(&seconds).ok().and_then(|text| text.trim().parse().ok());
    Ok(preparation)
}

/// Supply a translated program with what it is hot in until it ends.
fn supply(pid: u32, workshop: Option<&Workshop>) {
    if let Some(workshop) = workshop {
        workshop.serve(pid, |error| eprintln!("  {error}"));
    }
}

/// Run a server, which has a CPU of its own, while a client has it work. Its output is what the client says.
fn run_served(mut command: Command, workshop: Option<&Workshop>, client: Client) -> Result<Run, Error> {
    client::pin(&mut command, client::Side::Server);
    let mut served = None;
    let run = measure::run_beside(command, |pid| {
        std::thread::scope(|scope| {
            scope.spawn(|| supply(pid, workshop));
            served = Some(client(pid));
        });
    })?;
    let served = served.unwrap_or(Err(Error::Unserved))?;
    Ok(Run { stdout: served.answer, rate: Some(served.requests_per_second), ..run })
}

fn read(path: &Path) -> Result<String, Error> {
    std::fs::read_to_string(path).map_err(|e| Error::File { path: path.to_owned(), source: e })
}

fn write(path: &Path, text: &str) -> Result<(), Error> {
    std::fs::write(path, text).map_err(|e| Error::File { path: path.to_owned(), source: e })
}
