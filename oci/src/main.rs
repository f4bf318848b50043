//! `tranship-runc`: an OCI runtime for engines. It is runc (or crun), which gets every command as it came, with two things
//! added: programs start with the CPU baseline, and translated if they are of another machine ([`program`]); and the CRIU
//! that checkpoints and restores them is ours under that name ([`criu`]), which recodes images between a container's home and
//! this machine.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::panic))]

mod baseline;
mod command_line;
mod criu;
mod delegate;
mod error;
mod foreign;
mod program;
mod seccomp;

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
    let failure = match if is_criu { criu::run(&words) } else { run(words) } {
        Ok(code) => return code,
        Err(error) => error,
    };
    eprintln!("tranship-runc: {failure}");
    ExitCode::FAILURE
}

fn run(words: Vec<OsString>) -> Result<ExitCode> {
    let line = CommandLine::parse(words);
    if line.asks_for_help() {
        print!("{HELP}");
    }
    let line = match line.command() {
        "create" | "run" | "exec" if line.asks_for_commands_help() => line,
        "create" | "run" => program::of_bundle(line)?,
        "exec" => program::of_exec(line)?,
        _ => line,
    };
    let never: Infallible = delegate::become_runtime(&line)?;
    match never {}
}
