//! A record as bars of characters.

use crate::error::Result;
use crate::record::{Phase, Record, Step, ceiling, most};

/// Columns of a terminal that everybody has.
const WIDTH: usize = 80;
/// Those that the scale takes.
const SCALE: usize = 7;
/// Columns of bars.
const BARS: usize = WIDTH - SCALE;
/// Lines of bars.
const HEIGHT: usize = 8;
/// Eighths of a character's height.
const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Writes per second over time, with the phases below.
pub fn bars(record: &Record) -> Result<String> {
    let (start, end) = record.span()?;
    let steps = record.steps(BARS)?;
    let top = ceiling(most(&steps));
    let mut lines = vec!["writes acknowledged per second".to_owned()];
    lines.extend((0..HEIGHT).map(|line| bar_line(&steps, top, line)));
    let column_of = |ms: u64| (ms.saturating_sub(start) * BARS as u64 / (end - start)) as usize;
    lines.push(format!("{:>5} └{}", 0, axis(&record.phases, column_of)));
    lines.push(texts(&record.phases, column_of, name));
    lines.push(texts(&record.phases, column_of, duration));
    Ok(lines.into_iter().map(|line| line.trim_end().to_owned() + "\n").collect())
}

/// A line of bars, from the top, with the scale.
fn bar_line(steps: &[Step], top: f64, line: usize) -> String {
    let below = (HEIGHT - 1 - line) as f64;
    let scale = match line {
        0 => format!("{top:>5} ┤"),
        _ if line == HEIGHT / 2 => format!("{:>5} ┤", top / 2.0),
        _ => format!("{:>5} │", ""),
    };
    let eighths =
        |step: &Step| ((step.per_second / top * HEIGHT as f64 - below) * 8.0).round().clamp(0.0, 8.0);
    scale + &steps.iter().map(|step| EIGHTHS[eighths(step) as usize]).collect::<String>()
}

/// The axis of time, with a tick where a phase begins.
fn axis(phases: &[Phase], column_of: impl Fn(u64) -> usize) -> String {
    let ticks: Vec<usize> = phases.iter().skip(1).map(|phase| column_of(phase.from_ms)).collect();
    (0..BARS).map(|column| if ticks.contains(&column) { '┴' } else { '─' }).collect()
}

/// A text in the middle below each phase.
fn texts(
    phases: &[Phase],
    column_of: impl Fn(u64) -> usize,
    text: impl Fn(&Phase, usize) -> String,
) -> String {
    let mut line = " ".repeat(SCALE);
    for phase in phases {
        let (from, to) = (column_of(phase.from_ms), column_of(phase.to_ms));
        let missing = (SCALE + from).saturating_sub(line.chars().count());
        let room = to.saturating_sub(from);
        line.push_str(&format!("{:missing$}{:^room$}", "", text(phase, room)));
    }
    line
}

/// As much of a phase's name as there is room for; what is behind a comma can be missed.
fn name(phase: &Phase, room: usize) -> String {
    let short = phase.name.split(',').next().unwrap_or_default();
    let name = if phase.name.chars().count() < room { &phase.name } else { short };
    name.chars().take(room).collect()
}

/// How long a phase was, if there is room for it.
fn duration(phase: &Phase, room: usize) -> String {
    let text = format!("{:.0} s", phase.to_ms.saturating_sub(phase.from_ms) as f64 / 1e3);
    if text.len() <= room { text } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::journey;

    #[test]
    fn bars_show_what_was_answered() {
        let drawn = bars(&journey()).unwrap();
        let lines: Vec<&str> = drawn.lines().collect();
        assert!(lines.iter().all(|line| line.chars().count() <= WIDTH), "{drawn}");
        assert_eq!(lines[1], format!(" 1000 ┤{}", "█".repeat(24)));
        let cell = |line: &str, column: usize| line.chars().nth(SCALE + column);
        assert_eq!(
            (cell(lines[8], 36), cell(lines[8], 60), cell(lines[4], 60)),
            (Some(' '), Some('█'), None)
        );
        assert_eq!(cell(lines[9], 24), Some('┴'));
        assert_eq!(
            lines[10],
            "                 x86                    moving         a name that is too long f"
        );
        assert!(lines[11].contains("10 s"), "{drawn}");
    }

    #[test]
    fn nothing_is_not_drawn() {
        assert!(bars(&Record::default()).is_err());
        assert!("{\"ms\":0}".parse::<Record>().is_err());
    }
}
