//! Clients, native ones, of the servers that are measured.

use crate::error::Error;
use crate::measure;
use crate::program::{folder, suites_libraries, suites_root};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::thread;
use std::time::Duration;

/// Where redis listens, in the folder that programs run in.
pub(crate) const SOCKET: &str = "redis.sock";

/// What a server has done.
pub(crate) struct Served {
    /// What has to be the same with every engine.
    pub(crate) answer: Vec<u8>,
    pub(crate) requests_per_second: f64,
}

/// Who has which CPU.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// The first that this process may use.
    Server,
    /// The last one.
    Client,
}

/// Have the command run on one CPU.
pub(crate) fn pin(command: &mut Command, side: Side) {
    let pin = move || {
        // SAFETY: all zeros is a CPU set, and both calls get one and its size.
        let done = unsafe {
            let (size, mut usable) = (size_of::<libc::cpu_set_t>(), std::mem::zeroed::<libc::cpu_set_t>());
            libc::sched_getaffinity(0, size, &mut usable);
            let mut cpus = (0..size * 8).filter(|&cpu| libc::CPU_ISSET(cpu, &usable));
            let cpu = if side == Side::Server { cpus.next() } else { cpus.next_back() };
            let mut one = std::mem::zeroed::<libc::cpu_set_t>();
            libc::CPU_SET(cpu.unwrap_or(0), &mut one);
            libc::sched_setaffinity(0, size, &one)
        };
        if done == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
    };
    // SAFETY: the closure makes two system calls and allocates nothing.
    unsafe { command.pre_exec(pin) };
}

/// SETs and GETs of random keys, by twenty connections that send 32 requests at a time. Every key is set in the end.
pub(crate) fn redis(server: u32) -> Result<Served, Error> {
    let served = load_redis(server);
    if served.is_err() {
        // SAFETY: kill only sends a signal. The server is a child that was not waited for, or is about to be.
        unsafe { libc::kill(server as i32, libc::SIGKILL) };
    }
    served
}

fn load_redis(server: u32) -> Result<Served, Error> {
    let load = ["-n", "2000000", "-r", "50000", "-P", "32", "-c", "20", "-d", "64", "--csv"];
    await_redis(server)?;
    let sets = redis_tool("redis-benchmark", &[&load[..], &["-t", "set"]].concat())?;
    let gets = redis_tool("redis-benchmark", &[&load[..], &["-t", "get"]].concat())?;
    let answer = redis_tool("redis-cli", &["debug", "digest"])?;
    redis_tool("redis-cli", &["shutdown", "nosave"])?;
    match (rate(&sets), rate(&gets)) {
        (Some(sets), Some(gets)) => {
            Ok(Served { answer: answer.into(), requests_per_second: 2.0 / (1.0 / sets + 1.0 / gets) })
        }
        _ => Err(Error::Unserved),
    }
}

/// Wait until it answers, as long as it lives.
fn await_redis(server: u32) -> Result<(), Error> {
    while std::fs::exists(format!("/proc/{server}/exe")).unwrap_or(false) {
        if redis_tool("redis-cli", &["ping"]).is_ok_and(|answer| answer.trim() == "PONG") {
            return Ok(());
        }
        thread::sleep(Duration::from_millis(20));
    }
    Err(Error::Unserved)
}

/// What a tool of redis' prints that talks to the server.
fn redis_tool(name: &str, arguments: &[&str]) -> Result<String, Error> {
    let mut tool = Command::new(suites_root().join("usr/bin").join(name));
    tool.env("LD_LIBRARY_PATH", suites_libraries()).current_dir(folder()?);
    tool.args(["-s", SOCKET]).args(arguments);
    pin(&mut tool, Side::Client);
    Ok(String::from_utf8_lossy(&measure::tool(tool)?.stdout).into_owned())
}

/// The second column of the table's only row.
fn rate(table: &str) -> Option<f64> {
    table.lines().nth(1)?.split(',').nth(1)?.trim_matches('"').parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read() {
        let table = "\"test\",\"rps\",\"avg_latency_ms\"\n\"SET\",\"813008.13\",\"0.4\"\n";
        assert_eq!(rate(table), Some(813_008.13));
        assert_eq!(rate("nothing"), None);
    }
}
