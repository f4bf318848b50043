//! `tranship-load`: clients of a redis that moves, and pictures of what they saw.

use clap::{Args, Parser};
use std::io::stdin;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};
use tranship_load::{Connection, Event, Load, Outcome, Record, Recorder, Result, bars, png, svg};

/// Between two lines of the record.
const SAMPLE: Duration = Duration::from_millis(100);

/// Clients of a redis that moves.
#[derive(Parser)]
#[command(version)]
enum Options {
    /// Open connections once and write over them until standard input ends; then read all of it back.
    ///
    /// Lines that come by standard input are marks in the record. Exits 1 if a connection or a write was lost.
    Write(Write),
    /// Draw a record: on the terminal, and into files.
    Draw(Draw),
}

#[derive(Args)]
struct Write {
    /// Where redis listens.
    address: SocketAddr,
    /// Where the record goes.
    #[arg(long, value_name = "FILE")]
    record: PathBuf,
    /// How many connections.
    #[arg(long, default_value_t = 50)]
    connections: usize,
    /// Milliseconds from one write of a connection to its next.
    #[arg(long, value_name = "MS", default_value_t = 50)]
    interval: u64,
}

#[derive(Args)]
struct Draw {
    /// The record.
    record: PathBuf,
    /// Also as SVG.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Also as PNG.
    #[arg(long, value_name = "FILE")]
    png: Option<PathBuf>,
}

fn main() -> ExitCode {
    let done = match Options::parse() {
        Options::Write(write) => write.run(),
        Options::Draw(draw) => draw.run().map(|()| true),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("tranship-load: {error}");
            ExitCode::FAILURE
        }
    }
}

impl Write {
    /// False if something was lost.
    fn run(self) -> Result<bool> {
        let open = |_| Connection::open(self.address);
        let connections = (0..self.connections).map(open).collect::<Result<Vec<_>>>()?;
        println!("{} connections to {}", connections.len(), self.address);
        let mut recorder = Recorder::create(&self.record)?;
        let load = Load::start(connections, Duration::from_millis(self.interval));
        sample(&load, &mut recorder)?;
        let outcome = load.end();
        say(&outcome);
        recorder.note(Event::Outcome(outcome.clone()))?;
        Ok(outcome.is_whole())
    }
}

/// Record what is acknowledged, and the marks that come, until no more can come.
fn sample(load: &Load, recorder: &mut Recorder) -> Result<()> {
    let marks = marks();
    let (mut next, mut before) = (Instant::now() + SAMPLE, 0);
    loop {
        match marks.recv_timeout(next.saturating_duration_since(Instant::now())) {
            Ok(mark) => recorder.note(Event::Mark(mark))?,
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
            Err(RecvTimeoutError::Timeout) => {
                let now = load.acknowledged();
                recorder.note(Event::Acknowledged(now - before))?;
                (next, before) = (next + SAMPLE, now);
            }
        }
    }
}

/// The lines of standard input, as they come.
fn marks() -> Receiver<String> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let lines = stdin().lines().map_while(std::io::Result::ok);
        // Nobody hears any more when the record could not be written.
        lines.map(|line| sender.send(line)).all(|sent| sent.is_ok())
    });
    receiver
}

fn say(outcome: &Outcome) {
    let Outcome { connections, broken, acknowledged, read_back, longest_wait_ms } = outcome;
    let kept = connections - broken.len();
    println!("{kept} of {connections} connections kept, {} lost", broken.len());
    println!("{acknowledged} writes acknowledged, {read_back} read back, {} lost", acknowledged - read_back);
    println!("the longest wait for an answer: {:.1} s", *longest_wait_ms as f64 / 1e3);
    broken.iter().for_each(|why| println!("{why}"));
}

impl Draw {
    fn run(self) -> Result<()> {
        let record = Record::read(&self.record)?;
        print!("{}", bars(&record)?);
        self.svg.map_or(Ok(()), |path| svg(&record, &path))?;
        self.png.map_or(Ok(()), |path| png(&record, &path))
    }
}
