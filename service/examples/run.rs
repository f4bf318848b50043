//! Runs an x86-64 program translated on this machine, with code supplied while it runs: `run PROGRAM ARGUMENTS…`. What
//! was supplied goes to stderr.
#![allow(missing_docs, clippy::unwrap_used)]

use std::path::Path;
use std::process::{Command, ExitCode};
use tranship_service::{Workshop, host_here};

fn main() -> ExitCode {
    let program: Vec<String> = std::env::args().skip(1).collect();
    let runtime = concat!(env!("CARGO_MANIFEST_DIR"), "/../dist/runtime-x86_64");
    let mut child = Command::new(runtime).args(["--stats-fd", "2", "--"]).args(program).spawn().unwrap();
    let directory = std::env::var("CACHE").unwrap_or_else(|_| "target/tmp/hot".into());
    let pid = child.id();
    let service = std::thread::spawn(move || {
        let workshop = Workshop::new(host_here(), Path::new(&directory));
        let counts = workshop.serve(pid, |error| eprintln!("{error}"));
        workshop.keep(|error| eprintln!("{error}"));
        counts
    });
    let status = child.wait().unwrap();
    eprintln!("{:?}", service.join().unwrap());
    ExitCode::from(status.code().unwrap_or(1) as u8)
}
