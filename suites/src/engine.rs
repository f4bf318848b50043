//! The ways to run a suite that are compared.

use crate::cases::Cases;
use crate::error::Error;
use crate::suite::{Suite, folder, root};
use crate::top;
use std::fs::{self, File};
use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use tranship_service::{Workshop, host_here};

/// Enters a root in namespaces of its own.
const ENTER: &str = "runtime/tests/runtime/packages/enter.sh";

/// How the programs of a suite run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Engine {
    /// On the CPU.
    Native,
    /// By the runtime's interpreter alone.
    Interpreted,
    /// With an object of the whole program; its libraries are interpreted.
    Compiled,
    /// With the translation service beside them, which compiles what is hot.
    Served,
}

impl Engine {
    /// As in the table and in expectations.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Engine::Native => "native",
            Engine::Interpreted => "interpreted",
            Engine::Compiled => "compiled",
            Engine::Served => "served",
        }
    }

    /// What the scripts are told by `enter.sh`.
    fn host(self) -> &'static str {
        if self == Engine::Native { "native" } else { "x86_64" }
    }
}

/// The runtimes' folder.
pub(crate) fn dist() -> PathBuf {
    top().join("dist")
}

/// Run all cases of a suite.
pub(crate) fn run(suite: &Suite, engine: Engine) -> Result<Cases, Error> {
    eprintln!("{}: {}", suite.name, engine.name());
    let log = suite.log(engine.name());
    let script = script(suite, engine)?;
    let messages = File::create(&log).map_err(Error::file(&log))?;
    let mut command = Command::new(top().join(ENTER));
    command.arg(root()).arg(dist()).arg(engine.host()).arg(&script);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(messages);
    let mut child = command.spawn().map_err(Error::file(&top().join(ENTER)))?;
    let pid = child.id();
    let service = (engine == Engine::Served).then(|| thread::spawn(move || serve(pid)));
    let mut output = Vec::new();
    if let Some(mut stdout) = child.stdout.take() {
        stdout.read_to_end(&mut output).map_err(Error::file(&log))?;
    }
    child.wait().map_err(Error::file(&log))?;
    if let Some(service) = service {
        // What the service could not do is in its messages; the suite has run without it.
        let _ = service.join();
    }
    let cases = Cases::parse(&String::from_utf8_lossy(&output));
    if cases.is_empty() { Err(Error::NoCases { suite: suite.name, log }) } else { Ok(cases) }
}

/// The suite's script, told what its engine is.
fn script(suite: &Suite, engine: Engine) -> Result<PathBuf, Error> {
    let source = suite.script();
    let text = fs::read_to_string(&source).map_err(Error::file(&source))?;
    let path = folder().join(format!("{}.{}.sh", suite.name, engine.name()));
    fs::write(&path, format!("engine={}\n{text}", engine.name())).map_err(Error::file(&path))?;
    Ok(path)
}

/// Supply the processes below `pid` with compiled code until it has ended.
fn serve(pid: u32) {
    let workshop = Workshop::new(host_here(), &folder().join("hot"));
    let counts = workshop.serve(pid, |error| eprintln!("  {error}"));
    workshop.keep(|error| eprintln!("  {error}"));
    eprintln!("  {counts:?}");
}
