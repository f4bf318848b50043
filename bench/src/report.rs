//! Samples to medians, and medians to a table, a page or JSON.

use crate::engine::{Engine, Preparation};
use crate::error::Error;
use crate::measure::{self, Run};
use crate::program::{Built, Program};
use serde_json::json;
use std::fmt::Write;

/// What one engine did with one program.
pub(crate) struct Column {
    preparation: Result<Preparation, Error>,
    samples: Vec<f64>,
    /// Most memory of any run, in bytes.
    memory: u64,
    /// Requests per second, of a server.
    rates: Vec<f64>,
    failure: Option<Error>,
}

impl Column {
    /// What was prepared, unless that or a run has failed.
    pub(crate) fn preparation(&self) -> Option<&Preparation> {
        self.preparation.as_ref().ok().filter(|_| self.failure.is_none())
    }

    pub(crate) fn add(&mut self, run: &Run) {
        self.samples.push(run.cpu_seconds);
        self.memory = self.memory.max(run.memory);
        self.rates.extend(run.rate);
    }

    pub(crate) fn fail(&mut self, error: Error) {
        self.failure = Some(error);
    }

    fn error(&self) -> Option<&Error> {
        self.failure.as_ref().or(self.preparation.as_ref().err())
    }

    fn median(&self) -> Option<f64> {
        if self.error().is_some() { None } else { median(&self.samples) }
    }
}

/// One program.
pub(crate) struct Row {
    pub(crate) program: &'static Program,
    pub(crate) built: Built,
    /// In the order of the engines.
    pub(crate) columns: Vec<Column>,
}

impl Row {
    pub(crate) fn new(
        program: &'static Program,
        built: Built,
        prepared: Vec<Result<Preparation, Error>>,
    ) -> Row {
        let column =
            |preparation| Column { preparation, samples: vec![], memory: 0, rates: vec![], failure: None };
        Row { program, built, columns: prepared.into_iter().map(column).collect() }
    }

    /// Median of engine `index` as a multiple of the native one.
    fn slowdown(&self, index: usize) -> Option<f64> {
        Some(self.columns[index].median()? / self.columns[0].median()?)
    }
}

/// All rows of one measurement.
pub(crate) struct Report<'a> {
    engines: &'a [Engine],
    rows: Vec<Row>,
    rounds: u32,
}

impl<'a> Report<'a> {
    pub(crate) fn new(engines: &'a [Engine], rows: Vec<Row>, rounds: u32) -> Report<'a> {
        Report { engines, rows, rounds }
    }

    /// Whether every program gave the right output with every engine.
    pub(crate) fn all_good(&self) -> bool {
        self.rows.iter().all(|row| row.columns.iter().all(|column| column.error().is_none()))
    }

    /// Geometric mean of the slowdowns of engine `index` over the rows that it got right.
    fn mean_slowdown(&self, index: usize) -> Option<f64> {
        geometric_mean(self.rows.iter().filter_map(|row| row.slowdown(index)))
    }

    /// The table in Markdown: native seconds, then everybody else as a multiple of them.
    pub(crate) fn table(&self) -> String {
        let others = 1..self.engines.len();
        let mut text = String::from("| program | what it does | native, s |");
        others.clone().for_each(|i| _ = write!(text, " {} |", self.engines[i].name()));
        text.push_str(" translation, s | memory, MB |\n|---|---|--:|");
        text.push_str(&"--:|".repeat(self.engines.len() + 1));
        text.push('\n');
        for row in &self.rows {
            let native = cell(row.columns[0].median(), 2, "");
            _ = write!(text, "| {} | {} | {native} |", row.program.name, row.program.about);
            for i in others.clone() {
                let failed = row.columns[i].error().map(|_| "**failed**".to_owned());
                _ = write!(text, " {} |", failed.unwrap_or_else(|| cell(row.slowdown(i), 2, "×")));
            }
            let prepared = row.columns.iter().find_map(|column| column.preparation()?.cpu_seconds);
            let megabytes = |column: &Column| (column.memory as f64 / 1e6).round().to_string();
            let memory: Vec<String> = row.columns.iter().map(megabytes).collect();
            _ = writeln!(text, " {} | {} |", cell(prepared, 1, ""), memory.join(" / "));
        }
        text.push_str("| **geometric mean** | | |");
        others.for_each(|i| _ = write!(text, " **{}** |", cell(self.mean_slowdown(i), 2, "×")));
        text.push_str(" | |\n");
        text
    }

    /// A line for each server: how much each engine serves.
    fn rates(&self) -> String {
        let mut text = String::new();
        for row in self.rows.iter().filter(|row| !row.columns[0].rates.is_empty()) {
            _ = write!(text, "\nRequests per second, {}:", row.program.name);
            for (engine, column) in self.engines.iter().zip(&row.columns) {
                _ = write!(text, " {} {},", engine.name(), cell(median(&column.rates), 0, ""));
            }
            text = text.trim_end_matches(',').to_owned() + ".\n";
        }
        text
    }

    /// The page that `docs/` keeps.
    pub(crate) fn page(&self) -> Result<String, Error> {
        let mut text = String::from(PAGE_HEAD);
        text.push_str(&self.table());
        text.push_str(&self.rates());
        _ = writeln!(text, "\nMedians of {} interleaved rounds.\n", self.rounds);
        _ = writeln!(text, "- machine: {}", machine());
        _ = writeln!(text, "- kernel: {}", measure::output_of("uname", &["-sr"])?);
        for engine in self.engines {
            _ = writeln!(text, "- {}: {}", engine.name(), engine.version()?);
        }
        Ok(text)
    }

    /// Every sample, in seconds.
    pub(crate) fn json(&self) -> String {
        let column = |(engine, column): (&Engine, &Column)| {
            json!({
                "engine": engine.name(),
                "cpu_seconds": column.samples,
                "median": column.median(),
                "memory_bytes": column.memory,
                "requests_per_second": column.rates,
                "prepare_cpu_seconds": column.preparation().and_then(|p| p.cpu_seconds),
                "error": column.error().map(Error::to_string),
            })
        };
        let row = |row: &Row| {
            let columns: Vec<_> = self.engines.iter().zip(&row.columns).map(column).collect();
            json!({ "program": row.program.name, "engines": columns })
        };
        let means: Vec<_> = (0..self.engines.len())
            .map(|i| json!({ "engine": self.engines[i].name(), "geometric_mean": self.mean_slowdown(i) }))
            .collect();
        let rows: Vec<_> = self.rows.iter().map(row).collect();
        format!("{:#}\n", json!({ "rounds": self.rounds, "programs": rows, "slowdown": means }))
    }
}

const PAGE_HEAD: &str = "\
# Speed of translated programs

CPU time (user and system) of x86-64 programs on an x86-64 machine: natively, translated by Tranship, and under
qemu-user. Native is in seconds, the others are multiples of it. Every program must print the same with every engine. Most
are static, built with `gcc -O2`, and translated as a whole; those that the table calls dynamic are the distribution's,
and what is hot in them and their libraries is compiled while they run, in the four runs before those that are measured.
A server and its native client have a CPU each, and its time is the server's alone. Translation is kept, and not counted in the multiples; its CPU time is in the last column but one. The last one has the
most memory that a run had resident: native, translated, qemu-user.

Made by `make bench-translate`; do it again before believing it of another machine.

";

fn machine() -> String {
    let cpus = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let models: Vec<&str> = cpus.lines().filter_map(|line| line.strip_prefix("model name")).collect();
    let model = models.first().map_or("unknown", |model| model.trim_start_matches(['\t', ' ', ':']));
    format!("{model}, {} CPUs", models.len())
}

fn cell(value: Option<f64>, decimals: usize, unit: &str) -> String {
    value.map_or("–".to_owned(), |value| format!("{value:.decimals$}{unit}"))
}

fn median(samples: &[f64]) -> Option<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        n if n % 2 == 1 => Some(sorted[middle]),
        _ => Some((sorted[middle - 1] + sorted[middle]) / 2.0),
    }
}

fn geometric_mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let logarithms: Vec<f64> = values.map(f64::ln).collect();
    (!logarithms.is_empty()).then(|| (logarithms.iter().sum::<f64>() / logarithms.len() as f64).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0, 1.0, 9.0]), Some(3.0));
        assert_eq!(median(&[4.0, 1.0, 9.0, 2.0]), Some(3.0));
    }

    #[test]
    fn geometric_means() {
        assert_eq!(geometric_mean(std::iter::empty()), None);
        let mean = geometric_mean([1.0, 4.0, 16.0].into_iter()).unwrap();
        assert!((mean - 4.0).abs() < 1e-12);
    }
}
