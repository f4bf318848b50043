//! `tranship-bench`: how fast translated programs are, beside their native selves and qemu-user. Every program
//! runs once per engine in each round, so that all engines see the same noise; what counts is the median of the
//! CPU time. Exits 1 if a program failed or printed something else than it does natively.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::panic))]

mod client;
mod engine;
mod error;
mod fresh;
mod measure;
mod program;
mod report;

use clap::Parser;
use engine::Engine;
use error::Error;
use measure::Run;
use program::Program;
use report::{Report, Row};
use std::path::Path;
use std::process::ExitCode;

/// Measure translated programs against their native selves and qemu-user.
#[derive(Parser)]
#[command(version)]
struct Options {
    /// Only these programs, separated by commas.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// How often every program runs with every engine.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Only native and translated, for a quick look at a change.
    #[arg(long)]
    no_qemu: bool,
    /// Translate static programs for exact faults, as those are that handle faults.
    #[arg(long)]
    exact_faults: bool,
    /// Print every sample as JSON instead of the table.
    #[arg(long)]
    json: bool,
    /// Also write the page to this file.
    #[arg(long, short)]
    output: Option<std::path::PathBuf>,
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
            eprintln!("tranship-bench: {error}");
            ExitCode::FAILURE
        }
    }
}

/// False if a program failed.
fn run(options: &Options) -> Result<bool, Error> {
    let programs = program::select(&options.only)?;
    let engines = engine::all(!options.no_qemu, options.exact_faults);
    let mut rows =
        programs.into_iter().map(|program| prepare(program, &engines)).collect::<Result<Vec<_>, _>>()?;
    for round in 1..=options.rounds {
        for row in &mut rows {
            eprintln!("round {round} of {}: {}", options.rounds, row.program.name);
            run_once(row, &engines);
        }
    }
    let report = Report::new(&engines, rows, options.rounds);
    if let Some(path) = &options.output {
        std::fs::write(path, report.page()?).map_err(|e| Error::File { path: path.clone(), source: e })?;
    }
    print!("{}", if options.json { report.json() } else { report.table() });
    Ok(report.all_good())
}

/// Builds the program and lets every engine do beforehand what is done once per program.
fn prepare(program: &'static Program, engines: &[Engine]) -> Result<Row, Error> {
    let built = program.build()?;
    let prepared = engines.iter().map(|engine| engine.prepare(&built)).collect();
    Ok(Row::new(program, built, prepared))
}

/// One run per engine; engine 0 is native and says what the others have to print.
fn run_once(row: &mut Row, engines: &[Engine]) {
    let mut expected: Option<Run> = None;
    for (engine, column) in engines.iter().zip(&mut row.columns) {
        let Some(preparation) = column.preparation() else { continue };
        let outcome = engine.run(&row.built, preparation);
        let outcome = outcome.and_then(|run| match &expected {
            Some(native) if native.stdout != run.stdout => Err(Error::OtherOutput { engine: engine.name() }),
            _ => Ok(run),
        });
        match outcome {
            Ok(run) => {
                column.add(&run);
                expected.get_or_insert(run);
            }
            Err(error) => {
                eprintln!("  {}: {error}", engine.name());
                column.fail(error);
            }
        }
    }
}
