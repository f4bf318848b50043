//! `tranship lift`: a program to host-neutral bitcode.

use crate::error::{CliError, Result};
use crate::objects;
use crate::output::{Context, bytes};
use clap::Args;
use serde::Serialize;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use tranship_translate::compile::Host;
use tranship_translate::region::Faults;

/// Lift an ELF program to bitcode that suits any host.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  tranship lift /bin/busybox -o busybox.bitcode\n  \
tranship lift program --dump=cfg\n  tranship lift program --dump=lift --function main")]
pub(crate) struct Lift {
    /// The program.
    file: PathBuf,
    /// Where to write the bitcode; with --dump, the text, else to standard output.
    #[arg(long, short, value_name = "FILE", required_unless_present = "dump")]
    output: Option<PathBuf>,
    /// Instead of bitcode, show the program at a stage of lifting; `compile` has the later ones.
    #[arg(long, value_name = "STAGE")]
    dump: Option<Stage>,
    /// Show only this function: a symbol, or the address where it starts as 0x….
    #[arg(long, value_name = "ADDR|SYMBOL", requires = "dump")]
    function: Option<String>,
}

/// A stage of lifting to show.
#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum Stage {
    /// Functions with their basic blocks.
    Cfg,
    /// LLVM IR for any host.
    Lift,
}

impl From<Stage> for tranship_translate::dump::Stage {
    fn from(stage: Stage) -> Self {
        match stage {
            Stage::Cfg => Self::Cfg,
            Stage::Lift => Self::Lift,
        }
    }
}

#[derive(Serialize)]
struct Lifted {
    regions: usize,
    bytes: usize,
}

impl Lift {
    pub(crate) fn run(self, context: &Context) -> Result<ExitCode> {
        if let Some(stage) = self.dump {
            let function = self.function.as_deref();
            // Nothing before compiling depends on the host.
            objects::dump(
                &self.file,
                function,
                stage.into(),
                &Host::x86_64(),
                Faults::Fatal,
                self.output.as_deref(),
            )?;
            return Ok(ExitCode::SUCCESS);
        }
        let lifted = objects::lift(context, &self.file)?;
        let contents = lifted.bitcode.to_bytes();
        let output = self.output.unwrap_or_default();
        fs::write(&output, &contents)
            .map_err(|why| CliError::io(format!("writing {}", output.display()), why))?;
        let report = Lifted { regions: lifted.regions, bytes: contents.len() };
        context.print(&report, || format!("{} regions, {}", report.regions, bytes(report.bytes as u64)))?;
        Ok(ExitCode::SUCCESS)
    }
}
