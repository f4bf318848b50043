//! What recoding costs, for processes of little and of much memory, in all directions. Every set is a real CRIU's dump
//! of a real process. `--output FILE` also writes the page.

#![allow(clippy::unwrap_used, clippy::panic)]
#![allow(dead_code, reason = "the tests use more of what is shared with them")]

#[path = "../tests/checkpoints/abroad.rs"]
mod abroad;
#[path = "../tests/checkpoints/support.rs"]
mod support;

use abroad::{arm64_host, park_all, this_host};
use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use support::{Criu, Program, Scratch, compile};
use tranship_recode::{Home, Report, Target, recode};

/// Each recoding is done so often; the median counts.
const ROUNDS: usize = 21;

fn main() {
    let processes = [heap("10 MB of heap", "10000000"), heap("500 MB of heap", "500000000"), sha256sum()];
    let rows = processes.map(|process| process.measure());
    let page = page(&rows.concat());
    print!("{page}");
    let mut arguments = std::env::args().skip_while(|argument| argument != "--output");
    if let Some(path) = arguments.nth(1) {
        std::fs::write(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path), page).unwrap();
    }
}

/// A process to be recoded.
struct Subject {
    name: &'static str,
    scratch: Scratch,
    program: Program,
}

/// One direction's figures.
#[derive(Clone)]
struct Row {
    name: &'static str,
    direction: &'static str,
    report: Report,
    median: Duration,
    worst: Duration,
}

fn heap(name: &'static str, bytes: &str) -> Subject {
    let scratch = Scratch::new(&format!("bench_{bytes}"));
    let binary = compile(&scratch, "heap.c", &["-static"]);
    let program = Program::start(&scratch, &binary, &[bytes]);
    program.wait_for_lines(1);
    Subject { name, scratch, program }
}

fn sha256sum() -> Subject {
    let scratch = Scratch::new("bench_sha256sum");
    let file = scratch.path("file");
    File::create(&file).unwrap().set_len(512 << 20).unwrap();
    let program = Program::start(&scratch, Path::new("/bin/busybox"), &["sha256sum", file.to_str().unwrap()]);
    std::thread::sleep(Duration::from_millis(200));
    Subject { name: "sha256sum of a 512 MB file", scratch, program }
}

impl Subject {
    fn measure(self) -> Vec<Row> {
        let criu = Criu::get();
        let [home, parked] = ["home", "parked"].map(|name| self.scratch.path(name));
        criu.dump(self.program.pid, &home);
        let mut rows = vec![
            self.row("home → arm64", &home, &arm64_host()),
            self.row("home → x86-64", &home, &this_host()),
        ];
        let host = self.scratch.path("host");
        recode(&home, &host, &this_host()).unwrap();
        criu.restore(&host);
        std::thread::sleep(Duration::from_millis(100));
        park_all(&BTreeSet::from([self.program.pid]));
        criu.dump(self.program.pid, &parked);
        rows.push(self.row("x86-64 → home", &parked, &Target::Canonical(Home::default())));
        // It was dumped for good: there is no process to end.
        std::mem::forget(self.program);
        rows
    }

    fn row(&self, direction: &'static str, from: &Path, target: &Target) -> Row {
        let to: PathBuf = self.scratch.path("recoded");
        let once = || {
            let start = Instant::now();
            let report = recode(from, &to, target).unwrap();
            let time = start.elapsed();
            std::fs::remove_dir_all(&to).unwrap();
            (time, report)
        };
        let (mut times, reports): (Vec<Duration>, Vec<Report>) = (0..ROUNDS).map(|_| once()).unzip();
        times.sort();
        let (median, worst) = (times[ROUNDS / 2], times[ROUNDS - 1]);
        Row { name: self.name, direction, report: reports[0], median, worst }
    }
}

fn page(rows: &[Row]) -> String {
    let mut page = format!(
        "# What recoding costs\n\nTime of one recoding of a real CRIU dump, median and worst of {ROUNDS}; what it read and \
         wrote.\nPages of memory stay where they are, so the cost does not grow with them. Written by `make bench-recode`.\n\n\
         | process | direction | median | worst | read | written | pages copied |\n|---|---|--:|--:|--:|--:|--:|\n"
    );
    for Row { name, direction, report, median, worst } in rows {
        let ms = |time: &Duration| format!("{:.2} ms", time.as_secs_f64() * 1e3);
        let kb = |bytes: u64| format!("{:.1} kB", bytes as f64 / 1e3);
        page += &format!(
            "| {name} | {direction} | {} | {} | {} | {} | {} |\n",
            ms(median),
            ms(worst),
            kb(report.bytes_read),
            kb(report.bytes_written),
            kb(report.bytes_copied),
        );
    }
    page
}
