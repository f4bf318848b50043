//! `tranship recode`: a checkpoint between its canonical form and a host's.

use crate::error::{CliError, Result};
use crate::output::{Context, bytes};
use clap::Args;
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tranship_lab::companions;
use tranship_node::Isa;
use tranship_recode::{
    FileSource, GuestObject, Home, HostLayout, MappedFile, RecodeError, Target, link_base, recode,
};

/// Recode a CRIU image set: to its canonical form, or for a machine that is to run it translated.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  tranship recode images --to aarch64 -o images.aarch64\n  \
tranship recode images.aarch64 --to canonical -o images.back\n\n\
The new set names the old one as its parent, for the pages that did not change: keep both.")]
pub(crate) struct Recode {
    /// Directory of the image set.
    directory: PathBuf,
    /// canonical, x86_64 or aarch64.
    #[arg(long, value_name = "FORM")]
    to: String,
    /// Directory for the new set.
    #[arg(long, short, value_name = "DIR")]
    output: PathBuf,
    /// The runtime on the machine that is to run it [default: the one beside this program].
    #[arg(long, value_name = "FILE")]
    runtime: Option<PathBuf>,
    /// A guest program, as the images name it, and its object.
    #[arg(long, value_name = "PROGRAM=OBJECT")]
    object: Vec<String>,
}

#[derive(Serialize)]
struct Recoded {
    processes: usize,
    threads: usize,
    bytes: u64,
}

impl Recode {
    pub(crate) fn run(self, context: &Context) -> Result<ExitCode> {
        let target = self.target()?;
        let of_set = |error| CliError::Recode(format!("{}: {error}", self.directory.display()));
        let report = recode(&self.directory, &self.output, &target).map_err(of_set)?;
        let written = fs::read_dir(&self.output).into_iter().flatten().flatten();
        let bytes_written = written.filter_map(|file| file.metadata().ok()).map(|m| m.len()).sum();
        let report = Recoded { processes: report.processes, threads: report.threads, bytes: bytes_written };
        context.print(&report, || {
            format!("{} processes, {} threads, {}", report.processes, report.threads, bytes(report.bytes))
        })?;
        Ok(ExitCode::SUCCESS)
    }

    fn target(&self) -> Result<Target> {
        if self.to == "canonical" {
            return Ok(Target::Canonical(Home::default()));
        }
        let machine: Isa = self.to.parse()?;
        let runtime = match &self.runtime {
            Some(path) => path.clone(),
            None => companions()?.join(format!("runtime-{machine}")),
        };
        let objects = self.object.iter().map(|pair| guest_object(pair)).collect::<Result<_>>()?;
        Ok(Target::Host(HostLayout {
            machine: machine.0,
            runtime: mapped(&runtime)?,
            objects,
            filter: None,
            kernel: None,
        }))
    }
}

fn guest_object(pair: &str) -> Result<GuestObject> {
    let (program, object) =
        pair.split_once('=').ok_or_else(|| CliError::Recode(format!("{pair:?} is not PROGRAM=OBJECT")))?;
    let elf = FileSource::open(Path::new(program)).map_err(failed)?;
    let guest_base = link_base(program, &elf).map_err(failed)?;
    Ok(GuestObject { guest_path: program.to_owned(), guest_base, object: mapped(Path::new(object))? })
}

fn mapped(path: &Path) -> Result<MappedFile> {
    let absolute =
        path.canonicalize().map_err(|why| CliError::io(format!("finding {}", path.display()), why))?;
    MappedFile::open(path, absolute.display().to_string()).map_err(failed)
}

fn failed(error: RecodeError) -> CliError {
    CliError::Recode(error.to_string())
}
