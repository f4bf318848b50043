//! `tranship lift`: a program to host-neutral bitcode.

use crate::error::{CliError, Result};
use crate::objects;
use crate::output::{Context, bytes};
use clap::Args;
use serde::Serialize;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

/// Lift an ELF program to bitcode that suits any host.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  tranship lift /bin/busybox -o busybox.bitcode")]
pub(crate) struct Lift {
    /// The program.
    file: PathBuf,
    /// Where to write the bitcode.
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,
}

#[derive(Serialize)]
struct Lifted {
    regions: usize,
    bytes: usize,
}

impl Lift {
    pub(crate) fn run(self, context: &Context) -> Result<ExitCode> {
        let lifted = objects::lift(context, &self.file)?;
        let contents = lifted.bitcode.to_bytes();
        let failed = |why| CliError::io(format!("writing {}", self.output.display()), why);
        fs::write(&self.output, &contents).map_err(failed)?;
        let report = Lifted { regions: lifted.regions, bytes: contents.len() };
        context.print(&report, || format!("{} regions, {}", report.regions, bytes(report.bytes as u64)))?;
        Ok(ExitCode::SUCCESS)
    }
}
