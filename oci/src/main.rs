//! `tranship-runc`: an OCI runtime for engines. It is runc (or crun), which gets every command as it came, with two things
//! added: containers start with the CPU baseline, and the CRIU that checkpoints and restores them is ours under that name
//! ([`criu`]), which recodes images between a container's home and this machine.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::panic))]

mod bundle;
mod command_line;
mod criu;
mod delegate;
mod error;

use command_line::{CommandLine, HELP};
use error::Result;
use std::convert::Infallible;
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut words = std::env::args_os();
    let name = words.next().unwrap_or_default();
    let words: Vec<OsString> = words.collect();
    let is_criu = Path::new(&name).file_name().is_some_and(|name| name == delegate::CRIU);
    let failure = match if is_criu { criu::run(&words) } else { run(&words) } {
        Ok(code) => return code,
        Err(error) => error,
    };
    eprintln!("tranship-runc: {failure}");
    ExitCode::FAILURE
}

fn run(words: &[OsString]) -> Result<ExitCode> {
    let line = CommandLine::parse(words);
    if line.asks_for_help() {
        print!("{HELP}");
    }
    if line.starts_a_container() {
        bundle::apply_baseline(&line.bundle())?;
    }
    let never: Infallible = delegate::become_runtime(words)?;
    match never {}
}
