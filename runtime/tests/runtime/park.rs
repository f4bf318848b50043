//! Parking from outside, as the node agent does it: through /proc/PID/mem and signal 64.

use crate::run::{On, compile, output};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::mem::offset_of;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tranship_abi::block::{ProcessBlock, THREADS_OFFSET, ThreadBlock, ThreadState, phase};
use tranship_isa::x86_64::Cpu;

const PATIENCE: Duration = Duration::from_secs(20);
const INTERRUPT: i32 = 64;

/// A process under the runtime, with its memory open.
pub(crate) struct Guest {
    pub(crate) child: Child,
    pub(crate) memory: File,
    pub(crate) hole: u64,
}

impl Guest {
    /// Start `program` with its hole at `hole`.
    pub(crate) fn start(on: On, hole: u64, program: &Path, args: &[&str]) -> Guest {
        let mut command = on.runtime();
        command.args(["--hole", &format!("{hole:#x}"), "--"]).arg(program).args(args);
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let path = format!("/proc/{}/mem", child.id());
        let memory = OpenOptions::new().read(true).write(true).open(path).unwrap();
        let guest = Guest { child, memory, hole };
        guest.wait("start", || guest.read_u32(guest.process(offset_of!(ProcessBlock, started))) == Some(2));
        guest
    }

    fn process(&self, offset: usize) -> u64 {
        self.hole + offset as u64
    }

    fn thread(&self, offset: usize) -> u64 {
        self.hole + THREADS_OFFSET + offset as u64
    }

    fn read_u32(&self, address: u64) -> Option<u32> {
        let mut bytes = [0; 4];
        self.memory.read_exact_at(&mut bytes, address).ok()?;
        Some(u32::from_le_bytes(bytes))
    }

    fn write_u32(&self, address: u64, value: u32) {
        self.memory.write_all_at(&value.to_le_bytes(), address).unwrap();
    }

    fn wait(&self, what: &str, condition: impl Fn() -> bool) {
        let start = Instant::now();
        while !condition() {
            assert!(start.elapsed() < PATIENCE, "no {what} in {PATIENCE:?}");
            std::thread::sleep(Duration::from_micros(100));
        }
    }

    fn interrupt(&self) {
        let pid = self.child.id() as i32;
        // SAFETY: a signal to our own child.
        unsafe { libc::syscall(libc::SYS_tgkill, pid, pid, INTERRUPT) };
    }

    /// Have it park; `signal`: also interrupt a system call that it may be in.
    pub(crate) fn park(&self, signal: bool) {
        self.write_u32(self.process(offset_of!(ProcessBlock, quiesce)), 1);
        self.write_u32(self.thread(offset_of!(ThreadBlock, pending)), 1);
        if signal {
            self.interrupt();
        }
        self.wait("parking", || {
            self.read_u32(self.thread(offset_of!(ThreadBlock, phase))) == Some(phase::PARKED)
        });
        assert_eq!(self.read_u32(self.process(offset_of!(ProcessBlock, parked))), Some(1));
    }

    /// Let it go on.
    pub(crate) fn resume(&self, signal: bool) {
        self.write_u32(self.process(offset_of!(ProcessBlock, quiesce)), 0);
        if signal {
            self.interrupt();
        }
        self.wait("going on", || self.read_u32(self.process(offset_of!(ProcessBlock, parked))) != Some(1));
    }

    /// The bytes of its registers.
    pub(crate) fn cpu(&self) -> Vec<u8> {
        let mut bytes = vec![0; size_of::<Cpu>()];
        let at = self.thread(offset_of!(ThreadBlock, state) + offset_of!(ThreadState, cpu));
        self.memory.read_exact_at(&mut bytes, at).unwrap();
        bytes
    }

    fn rip(&self) -> u64 {
        let at = offset_of!(Cpu, rip);
        u64::from_le_bytes(self.cpu()[at..at + 8].try_into().unwrap())
    }

    /// Is it about to make a system call?
    fn is_at_syscall(&self) -> bool {
        let mut bytes = [0; 2];
        self.memory.read_exact_at(&mut bytes, self.rip()).unwrap();
        bytes == [0x0f, 0x05]
    }

    /// The next line that it prints.
    fn read_line(&mut self) -> String {
        let mut line = vec![];
        while line.last() != Some(&b'\n') {
            line.push(0);
            let last = line.len() - 1;
            self.child.stdout.as_mut().unwrap().read_exact(&mut line[last..]).unwrap();
        }
        String::from_utf8(line).unwrap()
    }

    fn finish(&mut self) -> String {
        let mut text = String::new();
        drop(self.child.stdin.take());
        self.child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(self.child.wait().unwrap().code(), Some(5));
        text
    }
}

impl Drop for Guest {
    /// A failed test leaves nothing behind.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What the program prints without interference.
pub(crate) fn undisturbed(program: &Path, args: &[&str], input: &[u8]) -> String {
    String::from_utf8(output(Command::new(program).env_clear().args(args), input).stdout).unwrap()
}

fn computing(on: On, hole: u64, signal: bool) {
    let program = compile("progress");
    let args = ["12"];
    let mut guest = Guest::start(on, hole, &program, &args);
    for n in 0..10 {
        std::thread::sleep(Duration::from_millis(3 * n));
        guest.park(signal);
        let before = guest.cpu();
        std::thread::sleep(Duration::from_millis(3));
        assert_eq!(guest.cpu(), before, "the registers of a parked thread changed");
        guest.resume(signal);
    }
    assert_eq!(guest.finish(), undisturbed(&program, &args, b""));
}

#[test]
fn a_computing_thread_parks_and_goes_on() {
    computing(On::X86_64, 0x3100_0000_0000, true);
}

/// Emulation has no signal 64 to offer: the thread must notice by itself.
#[test]
fn a_computing_thread_parks_without_a_signal() {
    computing(On::X86_64, 0x3200_0000_0000, false);
    computing(On::Aarch64, 0x3300_0000_0000, false);
}

#[test]
fn a_thread_blocked_in_read_parks_before_the_call() {
    let program = compile("progress");
    let args = ["1", "0", "read"];
    let mut guest = Guest::start(On::X86_64, 0x3400_0000_0000, &program, &args);
    let mut text = guest.read_line();
    std::thread::sleep(Duration::from_millis(100));
    for _ in 0..5 {
        guest.park(true);
        assert!(guest.is_at_syscall());
        guest.resume(true);
        std::thread::sleep(Duration::from_millis(50));
    }
    guest.child.stdin.as_mut().unwrap().write_all(b"a line\n").unwrap();
    guest.park(true);
    guest.resume(true);
    text += &guest.finish();
    assert_eq!(text, undisturbed(&program, &args, b"a line\n"));
}

/// Neither shorter nor longer for having been parked many times.
#[test]
fn a_sleeping_thread_sleeps_as_long_as_it_wants() {
    let program = compile("progress");
    let mut guest = Guest::start(On::X86_64, 0x3500_0000_0000, &program, &["1", "3000"]);
    let mut text = guest.read_line();
    let start = Instant::now();
    for _ in 0..8 {
        std::thread::sleep(Duration::from_millis(250));
        guest.park(true);
        assert!(guest.is_at_syscall());
        guest.resume(true);
    }
    text += &guest.finish();
    let slept = start.elapsed();
    assert_eq!(text, undisturbed(&program, &["1"], b""));
    assert!(slept >= Duration::from_millis(2900), "slept too short: {slept:?}");
    assert!(slept < Duration::from_millis(4800), "slept too long: {slept:?}");
}
