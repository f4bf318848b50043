//! Running a command and taking its CPU time.

use crate::error::Error;
use std::io::Read;
use std::mem::MaybeUninit;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};

/// CPU seconds after which the kernel ends a run that hangs.
const LIMIT_SECONDS: u64 = 600;

/// A run that succeeded.
pub(crate) struct Run {
    /// User plus system time.
    pub(crate) cpu_seconds: f64,
    /// What it printed.
    pub(crate) stdout: Vec<u8>,
}

/// Runs a program to its end.
pub(crate) fn run(mut command: Command) -> Result<Run, Error> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|e| Error::Start { command: words(&command), source: e })?;
    limit_cpu(&child);
    let stdout = read_all(child.stdout.take());
    // A program that fills the pipe with complaints before it closes stdout would wait for us; ours print a line.
    let stderr = String::from_utf8_lossy(&read_all(child.stderr.take())).into_owned();
    let (status, cpu_seconds) = wait(&child);
    if status.success() { Ok(Run { cpu_seconds, stdout }) } else { Err(Error::Exit { status, stderr }) }
}

/// Runs a tool whose complaints nobody needs unless it fails.
pub(crate) fn tool(command: Command) -> Result<Run, Error> {
    let name = words(&command);
    match run(command) {
        Err(Error::Exit { stderr, .. }) => Err(Error::Tool { command: name, stderr }),
        other => other,
    }
}

/// What a tool prints, trimmed.
pub(crate) fn output_of(program: &str, arguments: &[&str]) -> Result<String, Error> {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(crate::top());
    Ok(String::from_utf8_lossy(&run(command)?.stdout).trim().to_owned())
}

fn words(command: &Command) -> String {
    let arguments = command.get_args().map(|argument| argument.to_string_lossy());
    std::iter::once(command.get_program().to_string_lossy()).chain(arguments).collect::<Vec<_>>().join(" ")
}

fn read_all(pipe: Option<impl Read>) -> Vec<u8> {
    let mut bytes = vec![];
    if let Some(mut pipe) = pipe {
        // What was read until an error is compared like anything else.
        let _ = pipe.read_to_end(&mut bytes);
    }
    bytes
}

fn limit_cpu(child: &Child) {
    let limit = libc::rlimit { rlim_cur: LIMIT_SECONDS, rlim_max: LIMIT_SECONDS };
    // SAFETY: the child has not been waited for, so the id is its own; `limit` is read only during the call.
    unsafe { libc::prlimit(child.id() as i32, libc::RLIMIT_CPU, &limit, std::ptr::null_mut()) };
}

/// Status and CPU seconds (user and system) of a child that nobody else waits for.
fn wait(child: &Child) -> (ExitStatus, f64) {
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: both pointers are to live objects of the types that wait4 writes.
    while unsafe { libc::wait4(child.id() as i32, &mut status, 0, usage.as_mut_ptr()) } < 0 {
        // Only EINTR is possible: the child is ours and was not waited for.
    }
    // SAFETY: all zeros is a valid rusage, and wait4 has filled it in.
    let usage = unsafe { usage.assume_init() };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 * 1e-6;
    (ExitStatus::from_raw(status), seconds(usage.ru_utime) + seconds(usage.ru_stime))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_is_the_childs() {
        let mut busy = Command::new("sh");
        busy.args(["-c", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; echo $i"]);
        let run = run(busy).unwrap();
        assert_eq!(run.stdout, b"200000\n");
        assert!(run.cpu_seconds > 0.005, "{}", run.cpu_seconds);
    }

    #[test]
    fn a_failing_program_has_no_time() {
        let mut failing = Command::new("sh");
        failing.args(["-c", "echo why >&2; exit 3"]);
        let Err(Error::Exit { status, stderr }) = run(failing) else { panic!("it succeeded") };
        assert_eq!((status.code(), stderr.as_str()), (Some(3), "why\n"));
    }
}
