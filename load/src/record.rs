//! The record of a load: lines of JSON, each with the milliseconds since the beginning and what happened.

use crate::clients::Outcome;
use crate::error::{LoadError, Result};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// So many writes were acknowledged since the line before that says so.
    Acknowledged(u64),
    /// A phase begins, which is called so.
    Mark(String),
    /// The load has ended.
    Outcome(Outcome),
}

/// A line.
#[derive(Serialize, Deserialize)]
struct Line {
    ms: u64,
    #[serde(flatten)]
    event: Event,
}

/// A record that is being written.
#[derive(Debug)]
pub struct Recorder {
    path: PathBuf,
    file: File,
    start: Instant,
}

impl Recorder {
    /// Begin a record.
    pub fn create(path: &Path) -> Result<Recorder> {
        let file = File::create(path).map_err(LoadError::at(path))?;
        Ok(Recorder { path: path.to_owned(), file, start: Instant::now() })
    }

    /// Write down what happens now.
    pub fn note(&mut self, event: Event) -> Result<()> {
        let line = Line { ms: self.start.elapsed().as_millis() as u64, event };
        let written = serde_json::to_string(&line).map_err(Into::into);
        written.and_then(|text| writeln!(self.file, "{text}")).map_err(LoadError::at(&self.path))
    }
}

/// From one mark to the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Phase {
    /// What the mark says.
    pub name: String,
    /// When it begins.
    pub from_ms: u64,
    /// When it ends.
    pub to_ms: u64,
}

/// Writes that were acknowledged in a span of time.
#[derive(Clone, Copy, Debug)]
struct Sample {
    from_ms: u64,
    to_ms: u64,
    acknowledged: u64,
}

impl Sample {
    fn per_second(&self) -> f64 {
        self.acknowledged as f64 * 1000.0 / (self.to_ms - self.from_ms).max(1) as f64
    }
}

/// What a picture shows of a span of time, in seconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) from: f64,
    pub(crate) to: f64,
    pub(crate) per_second: f64,
}

/// The most that any step has.
pub(crate) fn most(steps: &[Step]) -> f64 {
    steps.iter().map(|step| step.per_second).fold(0.0, f64::max)
}

/// The round number from `most` on, but for a twentieth.
pub(crate) fn ceiling(most: f64) -> f64 {
    let unit = 10_f64.powf(most.max(1.0).log10().floor());
    let round = [1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0].map(|factor| factor * unit);
    round.into_iter().find(|round| *round >= most * 0.95).unwrap_or(most)
}

/// A record that was read.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// Without gaps.
    samples: Vec<Sample>,
    /// Without gaps, from the first mark on.
    pub(crate) phases: Vec<Phase>,
    /// What has become of the load, if it has ended.
    pub outcome: Option<Outcome>,
}

impl Record {
    /// Read one.
    pub fn read(path: &Path) -> Result<Record> {
        fs::read_to_string(path).map_err(LoadError::at(path))?.parse()
    }

    /// When it begins and ends.
    pub(crate) fn span(&self) -> Result<(u64, u64)> {
        match (self.samples.first(), self.samples.last()) {
            (Some(first), Some(last)) if first.from_ms < last.to_ms => Ok((first.from_ms, last.to_ms)),
            _ => Err(LoadError::Empty),
        }
    }

    /// All of its time in so many steps of the same length.
    pub(crate) fn steps(&self, number: usize) -> Result<Vec<Step>> {
        let (start, end) = self.span()?;
        let at = |step: usize| start as f64 + (end - start) as f64 * step as f64 / number as f64;
        let step = |step: usize| {
            let (from, to) = (at(step), at(step + 1));
            Step { from: from / 1e3, to: to / 1e3, per_second: self.per_second(from, to) }
        };
        Ok((0..number).map(step).collect())
    }

    /// Writes per second between two times.
    fn per_second(&self, from_ms: f64, to_ms: f64) -> f64 {
        let share = |sample: &Sample| {
            let (from, to) = (from_ms.max(sample.from_ms as f64), to_ms.min(sample.to_ms as f64));
            sample.per_second() * (to - from).max(0.0)
        };
        self.samples.iter().map(share).sum::<f64>() / (to_ms - from_ms)
    }

    fn add(&mut self, line: Line) {
        let now = line.ms;
        match line.event {
            Event::Acknowledged(acknowledged) => {
                let from_ms = self.samples.last().map_or(0, |before| before.to_ms);
                self.samples.push(Sample { from_ms, to_ms: now.max(from_ms), acknowledged });
            }
            Event::Mark(name) => {
                self.end_phase(now);
                self.phases.push(Phase { name, from_ms: now, to_ms: now });
            }
            Event::Outcome(outcome) => self.outcome = Some(outcome),
        }
    }

    fn end_phase(&mut self, now: u64) {
        if let Some(phase) = self.phases.last_mut() {
            phase.to_ms = now;
        }
    }
}

impl std::str::FromStr for Record {
    type Err = LoadError;

    fn from_str(text: &str) -> Result<Record> {
        let mut record = Record::default();
        for (number, line) in text.lines().enumerate() {
            record
                .add(serde_json::from_str(line).map_err(|why| LoadError::Record { line: number + 1, why })?);
        }
        if let Ok((_, end)) = record.span() {
            record.end_phase(end);
        }
        Ok(record)
    }
}

/// Ten seconds natively, ten of moving, ten abroad at half the speed.
#[cfg(test)]
pub(crate) fn journey() -> Record {
    let mut text = String::from("{\"ms\":0,\"mark\":\"x86\"}\n");
    for tenth in 1..=300 {
        let acknowledged = [100, 0, 50][(tenth - 1) / 100];
        text.push_str(&format!("{{\"ms\":{},\"acknowledged\":{acknowledged}}}\n", tenth * 100));
        if tenth == 100 {
            text.push_str("{\"ms\":10000,\"mark\":\"moving\"}\n");
        } else if tenth == 200 {
            text.push_str("{\"ms\":20000,\"mark\":\"a name that is too long for the phase\"}\n");
        }
    }
    text.parse().unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_end_at_round_numbers() {
        let scales = [0.0, 1.0, 999.0, 1001.0, 1100.0, 2400.0].map(ceiling);
        assert_eq!(scales, [1.0, 1.0, 1000.0, 1000.0, 1500.0, 3000.0]);
    }

    #[test]
    fn what_is_written_is_read() {
        let path = std::env::temp_dir().join(format!("record-{}.jsonl", std::process::id()));
        let mut recorder = Recorder::create(&path).unwrap();
        let outcome = Outcome { connections: 2, acknowledged: 7, read_back: 7, ..Outcome::default() };
        let events = [Event::Mark("here".into()), Event::Acknowledged(7), Event::Outcome(outcome.clone())];
        for event in events {
            std::thread::sleep(std::time::Duration::from_millis(5));
            recorder.note(event).unwrap();
        }
        let record = Record::read(&path).unwrap();
        assert_eq!((record.phases.len(), record.outcome), (1, Some(outcome)));
        assert_eq!(
            (record.phases[0].name.as_str(), record.phases[0].to_ms),
            ("here", record.samples[0].to_ms)
        );
        fs::remove_file(path).unwrap();
    }
}
