//! `tranship-suites`: other projects' test suites, run natively and translated on this machine, and compared case by
//! case. Exits 1 if there is a difference that `expectations.txt` does not explain, or an expectation that has gone.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::panic))]

mod cases;
mod engine;
mod error;
mod expectations;
mod report;
mod suite;

use clap::Parser;
use engine::Engine;
use error::Error;
use expectations::Expectations;
use report::{Report, Row};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Run other projects' test suites natively and translated, and compare them case by case.
#[derive(Parser)]
#[command(version)]
struct Options {
    /// Only these suites, separated by commas.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Also write the page to this file.
    #[arg(long, short)]
    output: Option<PathBuf>,
}

/// The repository's top folder.
fn top() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."))
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("tranship-suites: {error}");
            ExitCode::FAILURE
        }
    }
}

/// False if something differs that is not expected to, or no longer differs.
fn run(options: &Options) -> Result<bool, Error> {
    let suites = suite::select(&options.only)?;
    let expectations = Expectations::read(&top().join("suites/expectations.txt"))?;
    let mut rows = Vec::new();
    for suite in suites {
        suite.prepare()?;
        let native = engine::run(suite, Engine::Native)?;
        for &engine in suite.engines {
            let row = Row::new(suite, engine, &native, &engine::run(suite, engine)?, &expectations);
            eprint!("{}", row.complaints());
            rows.push(row);
        }
    }
    let report = Report::new(rows);
    if let Some(path) = &options.output {
        std::fs::write(path, report.page()).map_err(Error::file(path))?;
    }
    print!("{}", report.table());
    Ok(report.all_good())
}
