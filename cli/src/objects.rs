//! Translated objects: compiled here, since nodes have no compiler, kept in the user's cache, sent to nodes.

use crate::error::{CliError, Result};
use crate::output::{Context, Display, Measure};
use std::fs;
use std::io::{BufWriter, ErrorKind, Write, stdout};
use std::path::Path;
use std::sync::Mutex;
use tranship_lab::Lab;
use tranship_node::client::Node;
use tranship_node::migrate::Conductor;
use tranship_node::protocol::{GuestProgram, NodeInfo, Translation};
use tranship_node::unit::process::find_program;
use tranship_node::{Cpu, NodeError, Progress, ProgressReport, UnitId, UnitSpec};
use tranship_translate::bitcode::Bitcode;
use tranship_translate::cache::{Cache, Cached};
use tranship_translate::compile::{Host, Options};
use tranship_translate::discover::discover;
use tranship_translate::dump::{self, DumpError, Stage, region};
use tranship_translate::elf::GuestElf;
use tranship_translate::region::{Discovery, Faults, Region};

/// What objects for a CPU are made for.
pub(crate) fn host(cpu: Cpu) -> std::result::Result<Host, String> {
    let other =
        || format!("there is no code generator for {cpu} yet; there are x86_64, x86_64-v3 and aarch64");
    tranship_service::host(cpu).ok_or_else(other)
}

/// The object for guest program `elf` (called `name` in errors) on such a `cpu`, from the cache or compiled now.
pub(crate) fn object(
    lab: &Lab,
    name: &Path,
    elf: Vec<u8>,
    cpu: Cpu,
    faults: Faults,
    display: &Mutex<Display>,
) -> Result<Cached> {
    let failed = |why: String| CliError::Translate { file: name.to_owned(), why };
    let (guest, host) = guest_and_host(elf, cpu).map_err(failed)?;
    let options = Options { faults, ..Options::default() };
    let cached = Cache::new(lab.objects()).object(&guest, &host, &options, &Shown(display));
    cached.map_err(|why| failed(why.to_string()))
}

fn guest_and_host(elf: Vec<u8>, cpu: Cpu) -> std::result::Result<(GuestElf, Host), String> {
    let host = host(cpu)?;
    Ok((GuestElf::parse(elf).map_err(|why| why.to_string())?, host))
}

/// Bitcode of a program.
pub(crate) struct Lifted {
    pub(crate) bitcode: Bitcode,
    pub(crate) regions: usize,
}

/// What to do about guest programs that have not been compiled yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Uncompiled {
    /// Compile them first.
    Compile,
    /// Have them interpreted.
    Interpret,
}

impl Uncompiled {
    /// Compile, unless the program is to go on at once.
    pub(crate) fn unless(at_once: bool) -> Uncompiled {
        if at_once { Uncompiled::Interpret } else { Uncompiled::Compile }
    }
}

/// The object as for [`object`], or none where there is none yet and `uncompiled` says to do without.
fn object_or_none(
    lab: &Lab,
    name: &Path,
    elf: Vec<u8>,
    cpu: Cpu,
    uncompiled: Uncompiled,
    display: &Mutex<Display>,
) -> Result<Option<Cached>> {
    if uncompiled == Uncompiled::Compile {
        return object(lab, name, elf, cpu, Faults::Fatal, display).map(Some);
    }
    let failed = |why: String| CliError::Translate { file: name.to_owned(), why };
    let (guest, host) = guest_and_host(elf, cpu).map_err(failed)?;
    Ok(Cache::new(lab.objects()).present(&guest, &host, &Options::default()))
}

/// Lift the program in `file`.
pub(crate) fn lift(context: &Context, file: &Path) -> Result<Lifted> {
    let guest = guest(file)?;
    let display = Mutex::new(context.progress());
    let discovery = discover(&guest);
    let bitcode = Bitcode::lift(&guest, &discovery, Options::default().jobs, &Shown(&display));
    Ok(Lifted { bitcode, regions: discovery.regions.len() })
}

/// The program in `file`.
fn guest(file: &Path) -> Result<GuestElf> {
    let elf = fs::read(file).map_err(|why| CliError::io(format!("reading {}", file.display()), why))?;
    GuestElf::parse(elf).map_err(|why| CliError::Translate { file: file.to_owned(), why: why.to_string() })
}

/// Write the program in `file` as it is at `stage` of a translation for `host`, or one `function` of it, to `output` or
/// standard output.
pub(crate) fn dump(
    file: &Path,
    function: Option<&str>,
    stage: Stage,
    host: &Host,
    faults: Faults,
    output: Option<&Path>,
) -> Result<()> {
    let failed = |why: String| CliError::Translate { file: file.to_owned(), why };
    let guest = guest(file)?;
    let discovery = Discovery { faults, ..discover(&guest) };
    let regions: Vec<&Region> = match function {
        None => discovery.regions.iter().collect(),
        Some(name) => vec![region(&discovery, name).ok_or_else(|| {
            failed(format!(
                "no function {name}: give a symbol of the file, or the address where one starts as 0x…"
            ))
        })?],
    };
    let mut out: Box<dyn Write> = match output {
        None => Box::new(BufWriter::new(stdout().lock())),
        Some(path) => {
            let file = fs::File::create(path);
            let file = file.map_err(|why| CliError::io(format!("writing {}", path.display()), why))?;
            Box::new(BufWriter::new(file))
        }
    };
    let options = Options::default();
    let written = dump::dump(stage, &guest, &discovery, &regions, host, &options, &mut out)
        .and_then(|()| out.flush().map_err(DumpError::Write));
    match written {
        // Whoever reads has seen enough.
        Err(DumpError::Write(why)) if why.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other.map_err(|why| failed(why.to_string())),
    }
}

/// Passes a translation's progress on.
struct Shown<'a>(&'a Mutex<Display>);

impl tranship_translate::Progress for Shown<'_> {
    fn advance(&self, phase: &str, done: usize, total: usize) {
        let report = ProgressReport { phase: phase.to_owned(), done: done as u64, total: total as u64 };
        if let Ok(mut display) = self.0.lock() {
            display.show_in(&report, Measure::Parts);
        }
    }
}

/// What a migration needs of the command line: objects for the new node, and a display.
pub(crate) struct Supply<'a> {
    pub(crate) lab: &'a Lab,
    pub(crate) unit: &'a UnitId,
    /// Where the unit is.
    pub(crate) from: &'a Node,
    /// Where it goes.
    pub(crate) to: &'a Node,
    pub(crate) uncompiled: Uncompiled,
    pub(crate) display: Mutex<Display>,
}

impl Conductor for Supply<'_> {
    fn objects(&mut self, programs: &[String], to: &NodeInfo) -> tranship_node::Result<Vec<GuestProgram>> {
        let mut made_for = Vec::new();
        for program in programs {
            let elf = self.from.read_file(self.unit, program)?;
            let path = Path::new(program);
            let made = object_or_none(self.lab, path, elf, to.cpu, self.uncompiled, &self.display);
            let made = made.map_err(|why| NodeError::io(format!("translating {program}"), why))?;
            let Some(made) = made else { continue };
            send(self.to, &made, &self.display)?;
            made_for.push(GuestProgram { path: program.clone(), object: made.digest });
        }
        Ok(made_for)
    }

    fn watch(&mut self, report: &ProgressReport) {
        if let Ok(display) = self.display.get_mut() {
            display.show(report);
        }
    }
}

/// Have `object` in the node's store.
pub(crate) fn send(node: &Node, object: &Cached, display: &Mutex<Display>) -> tranship_node::Result<()> {
    if node.missing_objects(std::slice::from_ref(&object.digest))?.is_empty() {
        return Ok(());
    }
    let progress = Progress::default();
    let sent = node.put_object(&object.digest, &object.path, &progress);
    if let Ok(mut display) = display.lock() {
        display.show(&progress.report());
    }
    sent
}

/// How `spec` is to run on `node`: natively if it can and is not to be `translated`, else with an object for its
/// program, which is then in the node's store.
pub(crate) fn how_to_run(
    context: &Context,
    node: &Node,
    spec: &UnitSpec,
    root: &Path,
    translated: bool,
    uncompiled: Uncompiled,
) -> Result<Translation> {
    let info = node.info()?;
    let program = find_program(root, spec)?;
    if program.isa == info.isa && !translated {
        return Ok(Translation::Native);
    }
    let elf = node.read_file(&spec.id, &program.path)?;
    let display = Mutex::new(context.progress());
    let path = Path::new(&program.path);
    let Some(made) = object_or_none(&context.lab, path, elf, info.cpu, uncompiled, &display)? else {
        return Ok(Translation::Objects(vec![]));
    };
    send(node, &made, &display)?;
    Ok(Translation::Objects(vec![GuestProgram { path: program.path, object: made.digest }]))
}
