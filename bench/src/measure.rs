//! Running a command and taking its CPU time.

use crate::error::Error;
use std::io::Read;
use std::mem::MaybeUninit;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

/// CPU seconds after which the kernel ends a run that hangs.
const LIMIT_SECONDS: u64 = 600;

/// A run that succeeded.
pub(crate) struct Run {
    /// User plus system time.
    pub(crate) cpu_seconds: f64,
    /// Most memory that it had at a time, in bytes.
    pub(crate) memory: u64,
    /// What it printed.
    pub(crate) stdout: Vec<u8>,
    /// Requests per second, of a server.
    pub(crate) rate: Option<f64>,
}

/// Runs a program to its end.
pub(crate) fn run(command: Command) -> Result<Run, Error> {
    run_beside(command, |_| {})
}

/// Runs a program to its end, and `beside` with its number at the same time.
pub(crate) fn run_beside(mut command: Command, beside: impl FnOnce(u32) + Send) -> Result<Run, Error> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|e| Error::Start { command: words(&command), source: e })?;
    limit_cpu(&child);
    let (pid, stdout, stderr) = (child.id(), child.stdout.take(), child.stderr.take());
    let (stdout, stderr, (status, cpu_seconds), memory) = thread::scope(|scope| {
        scope.spawn(move || beside(pid));
        let memory = scope.spawn(move || most_memory(pid));
        let stdout = read_all(stdout);
        // A program that fills the pipe with complaints before it closes stdout would wait for us; ours print a line.
        let stderr = String::from_utf8_lossy(&read_all(stderr)).into_owned();
        let ended = wait(&child);
        (stdout, stderr, ended, memory.join().unwrap_or(0))
    });
    if status.success() {
        Ok(Run { cpu_seconds, memory, stdout, rate: None })
    } else {
        Err(Error::Exit { status, stderr })
    }
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

/// Most bytes that a process has had resident by the time it ends, to within what it takes in the last moment. (What the
/// kernel tells its parent counts what the parent had when it made it.)
fn most_memory(pid: u32) -> u64 {
    const LOOK: Duration = Duration::from_millis(10);
    let mut most = 0;
    while let Some(kilobytes) = high_water_mark(pid) {
        most = kilobytes * 1024;
        thread::sleep(LOOK);
    }
    most
}

/// `VmHWM` in kilobytes, while the process has memory.
fn high_water_mark(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse().ok()
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
    (ExitStatus::from_raw(status), cpu_seconds(&usage))
}

fn cpu_seconds(usage: &libc::rusage) -> f64 {
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 * 1e-6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

/// CPU seconds that this process has used so far.
pub(crate) fn own_cpu_seconds() -> f64 {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is to a live object of the type that getrusage writes; all zeros is a valid one.
    cpu_seconds(unsafe {
        libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr());
        usage.assume_init_ref()
    })
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
