//! What users see: results as text or JSON on standard output, progress and errors on standard error.

use crate::error::{CliError, Result};
use crate::journal::Journal;
use crate::nodes::Nodes;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use std::io::{IsTerminal, stderr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use tranship_lab::Lab;
use tranship_node::ProgressReport;
use tranship_node::operator::Operator;

/// Operations shorter than this show no progress.
const SHORT: Duration = Duration::from_secs(2);
/// How often progress is said again where lines cannot be rewritten.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// What every command needs.
#[derive(Debug)]
pub(crate) struct Context {
    json: bool,
    /// The nodes on this machine.
    pub lab: Lab,
    /// Whose nodes the other ones are.
    pub operator: Operator,
}

impl Context {
    pub(crate) fn new(json: bool, state: Option<PathBuf>) -> Context {
        Context { json, lab: Lab::new(state), operator: Operator::here() }
    }

    /// All nodes.
    pub(crate) fn nodes(&self) -> Result<Nodes> {
        Ok(Nodes { lab: self.lab.load()?, registry: self.operator.registry()? })
    }

    /// Print a result: as JSON, or as `text` makes it.
    pub(crate) fn print<T: Serialize>(&self, result: &T, text: impl FnOnce() -> String) -> Result<()> {
        let line = match self.json {
            true => serde_json::to_string_pretty(result).map_err(|why| CliError::io("writing JSON", why))?,
            false => text(),
        };
        if !line.is_empty() {
            println!("{}", line.trim_end());
        }
        Ok(())
    }

    /// The moves that this user's commands have begun.
    pub(crate) fn journal(&self) -> Journal {
        Journal::at(self.lab.journal())
    }

    /// Say what is being done, once.
    pub(crate) fn say(&self, what: &str) {
        if !self.json {
            eprintln!("{what}");
        }
    }

    /// Report an error.
    pub(crate) fn fail(&self, error: &CliError) {
        if self.json {
            println!("{}", report(error.kind(), &error.to_string()));
        }
        eprintln!("tranship: {error}");
    }

    /// A display for a long operation.
    pub(crate) fn progress(&self) -> Display {
        Display::new(self.json)
    }
}

/// What a [`ProgressReport`] counts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Measure {
    Bytes,
    /// Pieces that the work is done in.
    Parts,
}

/// What to say to a command line that cannot be understood, or that asks for help.
pub(crate) fn usage(error: &clap::Error) -> ExitCode {
    let ours = std::env::args_os().take_while(|argument| argument != "--");
    if error.use_stderr() && ours.into_iter().any(|argument| argument == "--json") {
        println!("{}", report("usage", &error.render().to_string()));
    }
    // Failing to say it leaves the exit code.
    let _ = error.print();
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(1))
}

fn report(kind: &str, message: &str) -> serde_json::Value {
    serde_json::json!({ "error": { "kind": kind, "message": message } })
}

/// Shows [`ProgressReport`]s: a bar on a terminal, a line now and then elsewhere, nothing if it is soon over.
#[derive(Debug)]
pub(crate) struct Display {
    bar: ProgressBar,
    is_bar: bool,
    quiet: bool,
    start: Instant,
    phase: String,
    last_line: Option<Instant>,
}

impl Display {
    fn new(quiet: bool) -> Display {
        let is_bar = stderr().is_terminal() && !quiet;
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        let (start, phase) = (Instant::now(), String::new());
        Display { bar, is_bar, quiet, start, phase, last_line: None }
    }

    /// Show how many bytes are done.
    pub(crate) fn show(&mut self, report: &ProgressReport) {
        self.show_in(report, Measure::Bytes);
    }

    /// Show how far it is.
    pub(crate) fn show_in(&mut self, report: &ProgressReport, measure: Measure) {
        // What has no name yet begins just now.
        if self.quiet || report.phase.is_empty() || self.start.elapsed() < SHORT {
            return;
        }
        if report.phase != self.phase {
            self.phase.clone_from(&report.phase);
            self.bar.reset();
            self.last_line = None;
        }
        if self.is_bar { self.draw(report, measure) } else { self.line(report, measure) }
    }

    fn draw(&mut self, report: &ProgressReport, measure: Measure) {
        let form = match (report.total, measure) {
            (0, _) => "{msg} {spinner} {elapsed}",
            (_, Measure::Bytes) => "{msg} [{wide_bar}] {bytes}/{total_bytes} {bytes_per_sec}, {eta} left",
            (_, Measure::Parts) => "{msg} [{wide_bar}] {pos}/{len}, {eta} left",
        };
        if let Ok(style) = ProgressStyle::with_template(form) {
            self.bar.set_style(style.progress_chars("=> "));
        }
        self.bar.set_draw_target(ProgressDrawTarget::stderr());
        self.bar.set_message(report.phase.clone());
        self.bar.set_length(report.total);
        self.bar.set_position(report.done);
    }

    fn line(&mut self, report: &ProgressReport, measure: Measure) {
        if self.last_line.is_some_and(|last| last.elapsed() < LINE_EVERY) {
            return;
        }
        self.last_line = Some(Instant::now());
        let ProgressReport { phase, done, total } = report;
        match (total, measure) {
            (0, _) => eprintln!("{phase}: {} s", self.start.elapsed().as_secs()),
            (_, Measure::Bytes) => eprintln!("{phase}: {} of {}", bytes(*done), bytes(*total)),
            (_, Measure::Parts) => eprintln!("{phase}: {done} of {total}"),
        }
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// `1234567` as `1.2 MB`.
pub(crate) fn bytes(count: u64) -> String {
    match count {
        0..1_000 => format!("{count} B"),
        1_000..1_000_000 => format!("{:.1} kB", count as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", count as f64 / 1e6),
        _ => format!("{:.2} GB", count as f64 / 1e9),
    }
}

/// Microseconds as `12.3 ms` or `4.56 s`.
pub(crate) fn time(micros: u64) -> String {
    match micros {
        0..1_000 => format!("{:.2} ms", micros as f64 / 1e3),
        1_000..1_000_000 => format!("{:.1} ms", micros as f64 / 1e3),
        _ => format!("{:.2} s", micros as f64 / 1e6),
    }
}

/// Rows under a heading, in columns as wide as they need.
pub(crate) fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width =
        |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let line = |row: &Vec<String>| {
        let cells: Vec<String> =
            row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        cells.join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}
