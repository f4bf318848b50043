//! `tranship compile`: a program to a translated object.

use crate::error::{CliError, Result};
use crate::objects;
use crate::output::{Context, bytes};
use clap::Args;
use serde::Serialize;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;
use tranship_node::Isa;

/// Translate an ELF program for a machine; the object is kept in the cache.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  tranship compile /bin/busybox --host aarch64\n  \
tranship compile /bin/busybox --host x86_64 -o busybox.object")]
pub(crate) struct Compile {
    /// The program.
    file: PathBuf,
    /// The machine that is to run it: x86_64 or aarch64.
    #[arg(long, value_name = "ISA")]
    host: Isa,
    /// Also write the object here.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Serialize)]
struct Compiled {
    digest: String,
    bytes: u64,
    path: PathBuf,
}

impl Compile {
    pub(crate) fn run(self, context: &Context) -> Result<ExitCode> {
        let io = |doing: &str, path: &PathBuf, why| CliError::io(format!("{doing} {}", path.display()), why);
        let elf = fs::read(&self.file).map_err(|why| io("reading", &self.file, why))?;
        let display = Mutex::new(context.progress());
        let made = objects::object(&context.lab, &self.file, elf, self.host, &display)?;
        drop(display);
        if let Some(output) = &self.output {
            fs::copy(&made.path, output).map_err(|why| io("writing", output, why))?;
        }
        let size = fs::metadata(&made.path).map_err(|why| io("reading", &made.path, why))?.len();
        let report = Compiled { digest: made.digest, bytes: size, path: self.output.unwrap_or(made.path) };
        context.print(&report, || format!("{} ({})", report.path.display(), bytes(report.bytes)))?;
        Ok(ExitCode::SUCCESS)
    }
}
