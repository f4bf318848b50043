//! What the runtime says: that it cannot go on, on stderr; counters and absent system calls on `--stats-fd`;
//! nothing else ever, since stderr is the guest's.

use crate::linux;
use core::fmt::{Arguments, Write};
use core::sync::atomic::{AtomicI32, AtomicU64, Ordering};

/// The runtime's own exit status when it cannot go on, as shells use it for programs that cannot be run.
const EXIT_CANNOT_RUN: i32 = 126;

/// Text to a file descriptor, gathered so that a line is one write.
pub struct Output {
    fd: i32,
    buffer: [u8; 512],
    used: usize,
}

impl Output {
    /// To `fd`.
    pub const fn new(fd: i32) -> Output {
        Output { fd, buffer: [0; 512], used: 0 }
    }

    fn flush(&mut self) {
        // Nothing can be done about a stderr that is closed.
        let _ = linux::write(self.fd, &self.buffer[..self.used]);
        self.used = 0;
    }
}

impl Write for Output {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        for &byte in text.as_bytes() {
            if self.used == self.buffer.len() {
                self.flush();
            }
            self.buffer[self.used] = byte;
            self.used += 1;
        }
        Ok(())
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        self.flush();
    }
}

/// A line on stderr.
pub fn complain(what: Arguments<'_>) {
    let _ = writeln!(Output::new(2), "tranship-runtime: {what}");
}

/// A last line on stderr, and the end of the process.
pub fn fatal(what: Arguments<'_>) -> ! {
    complain(what);
    linux::exit_group(EXIT_CANNOT_RUN)
}

/// What was asked for, on stdout, and a good end.
pub fn answer(what: Arguments<'_>) -> ! {
    let _ = write!(Output::new(1), "{what}");
    linux::exit_group(0)
}

/// Counters, all of this process since it started.
pub struct Counters {
    /// Branch targets without compiled entry that compiled code or the dispatcher asked for.
    pub missing_entries: AtomicU64,
    /// Times that compiled code was entered by the dispatcher.
    pub entered: AtomicU64,
    /// System calls of the guest.
    pub syscalls: AtomicU64,
    /// Signals delivered to the guest.
    pub signals: AtomicU64,
    /// The latest missing entries.
    pub missing: [AtomicU64; 16],
}

/// The counters.
pub static COUNTERS: Counters = Counters {
    missing_entries: AtomicU64::new(0),
    entered: AtomicU64::new(0),
    syscalls: AtomicU64::new(0),
    signals: AtomicU64::new(0),
    missing: [const { AtomicU64::new(0) }; 16],
};

/// Where the counters go at exit, plus one; 0 for nowhere.
static STATS_FD: AtomicI32 = AtomicI32::new(0);

/// Print the counters to `fd` at exit.
pub fn set_stats_fd(fd: i32) {
    STATS_FD.store(fd + 1, Ordering::Relaxed);
}

/// Count one more, if the counters are asked for: threads that count at the same time wait for each other.
pub fn count(counter: &AtomicU64) {
    if STATS_FD.load(Ordering::Relaxed) != 0 {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// A line to where the counters go, if asked for.
pub fn note(what: Arguments<'_>) {
    let fd = STATS_FD.load(Ordering::Relaxed) - 1;
    if fd >= 0 {
        let _ = writeln!(Output::new(fd), "{what}");
    }
}

/// Note a branch target that has no compiled entry.
pub fn note_missing_entry(guest: u64) {
    let n = COUNTERS.missing_entries.fetch_add(1, Ordering::Relaxed);
    COUNTERS.missing[n as usize % COUNTERS.missing.len()].store(guest, Ordering::Relaxed);
}

/// Print the counters, if asked for. `interpreted` is the process's count of interpreted instructions.
pub fn print_stats(interpreted: u64) {
    let fd = STATS_FD.load(Ordering::Relaxed) - 1;
    if fd < 0 {
        return;
    }
    let mut out = Output::new(fd);
    let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let _ = writeln!(out, "interpreted_instructions {interpreted}");
    let _ = writeln!(out, "entered {}", get(&COUNTERS.entered));
    let _ = writeln!(out, "syscalls {}", get(&COUNTERS.syscalls));
    let _ = writeln!(out, "signals {}", get(&COUNTERS.signals));
    let _ = writeln!(out, "missing_entries {}", get(&COUNTERS.missing_entries));
    for guest in COUNTERS.missing.iter().map(get).filter(|&guest| guest != 0) {
        let _ = writeln!(out, "missing_entry {guest:#x}");
    }
}
