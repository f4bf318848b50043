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
use tranship_node::Cpu;
use tranship_translate::cache::Cached;
use tranship_translate::region::Faults;

/// Translate an ELF program for a machine; the object is kept in the cache.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  tranship compile /bin/busybox --host aarch64\n  \
tranship compile /bin/busybox --host x86_64-v3 -o busybox.object\n  \
tranship compile program --host aarch64 --dump=asm --function main\n  \
tranship compile program --host x86_64 --dump=opt --function 0x401000 -o main.ll")]
pub(crate) struct Compile {
    /// The program.
    file: PathBuf,
    /// The machine that is to run it: x86_64, x86_64-v3 (with AVX2, BMI and FMA: faster) or aarch64;
    /// with +aes and +sha what it has of these, as in x86_64-v3+aes+sha.
    #[arg(long, value_name = "CPU")]
    host: Cpu,
    /// Also write the object here; with --dump, the text.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Let handlers of memory faults find the exact state, at the cost of time to compile and of size. While a program
    /// has such a handler, an object without this is not used.
    #[arg(long)]
    exact_faults: bool,
    /// Instead of an object, show the program at a stage of its translation.
    #[arg(long, value_name = "STAGE")]
    dump: Option<Stage>,
    /// Show only this function: a symbol, or the address where it starts as 0x….
    #[arg(long, value_name = "ADDR|SYMBOL", requires = "dump")]
    function: Option<String>,
}

/// A stage of translation to show.
#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum Stage {
    /// Functions with their basic blocks.
    Cfg,
    /// LLVM IR for any host.
    Lift,
    /// LLVM IR for the host, optimised.
    Opt,
    /// The host's assembly.
    Asm,
}

impl From<Stage> for tranship_translate::dump::Stage {
    fn from(stage: Stage) -> Self {
        match stage {
            Stage::Cfg => Self::Cfg,
            Stage::Lift => Self::Lift,
            Stage::Opt => Self::Opt,
            Stage::Asm => Self::Asm,
        }
    }
}

#[derive(Serialize)]
struct Compiled {
    digest: String,
    bytes: u64,
    path: PathBuf,
    cached: bool,
}

impl Compile {
    pub(crate) fn run(self, context: &Context) -> Result<ExitCode> {
        let faults = if self.exact_faults { Faults::Exact } else { Faults::Fatal };
        if let Some(stage) = self.dump {
            let failed = |why| CliError::Translate { file: self.file.clone(), why };
            let host = objects::host(self.host).map_err(failed)?;
            let function = self.function.as_deref();
            objects::dump(&self.file, function, stage.into(), &host, faults, self.output.as_deref())?;
            return Ok(ExitCode::SUCCESS);
        }
        let io = |doing: &str, path: &PathBuf, why| CliError::io(format!("{doing} {}", path.display()), why);
        let elf = fs::read(&self.file).map_err(|why| io("reading", &self.file, why))?;
        let display = Mutex::new(context.progress());
        let made = objects::object(&context.lab, &self.file, elf, self.host, faults, &display)?;
        drop(display);
        if let Some(output) = &self.output {
            fs::copy(&made.path, output).map_err(|why| io("writing", output, why))?;
        }
        let Cached { digest, path, bytes: size, found: cached } = made;
        let report = Compiled { digest, bytes: size, path: self.output.unwrap_or(path), cached };
        context.print(&report, || format!("{} ({})", report.path.display(), bytes(report.bytes)))?;
        Ok(ExitCode::SUCCESS)
    }
}
