//! A checkpoint by hand: a parked process's durable state and memory, put into a fresh process that enters the
//! blob at `tranship_resume`, as a restored one does.

use crate::park::{Guest, undisturbed};
use crate::run::{On, compile};
use std::arch::asm;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::mem::offset_of;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;
use tranship_abi::block::{
    BLOB_OFFSET, HOLE_BYTES, HOST_STACK_BYTES, HOST_STACK_STRIDE, HOST_STACKS_OFFSET, Header, ProcessBlock,
    ProcessState, STATE_AREA_BYTES, THREADS_OFFSET, ThreadBlock, ThreadState,
};

/// A mapping to make: address, contents, rights.
struct Region {
    start: u64,
    bytes: Vec<u8>,
    rights: i32,
}

/// All of a parked guest's own mappings.
fn guest_regions(guest: &Guest) -> Vec<Region> {
    let maps = fs::read_to_string(format!("/proc/{}/maps", guest.child.id())).unwrap();
    let parse = |line: &str| {
        let (range, rest) = line.split_once(' ')?;
        let (start, end) = range.split_once('-')?;
        let number = |text| u64::from_str_radix(text, 16).unwrap();
        let (start, end) = (number(start), number(end));
        if line.ends_with("[vsyscall]") || (guest.hole..guest.hole + HOLE_BYTES).contains(&start) {
            return None;
        }
        let mut bytes = vec![0; (end - start) as usize];
        guest.memory.read_exact_at(&mut bytes, start).unwrap();
        let right = |letter, right| if rest[..4].contains(letter) { right } else { 0 };
        assert!(!rest[..4].contains('x'), "guest memory is executable: {line}");
        Some(Region { start, bytes, rights: right('r', libc::PROT_READ) | right('w', libc::PROT_WRITE) })
    };
    maps.lines().filter_map(parse).collect()
}

/// The state area with nothing but what is durable.
fn state_area(guest: &Guest) -> Region {
    let mut bytes = vec![0; STATE_AREA_BYTES as usize];
    let thread = THREADS_OFFSET as usize + offset_of!(ThreadBlock, state);
    let durable = [
        (offset_of!(ProcessBlock, header), size_of::<Header>()),
        (offset_of!(ProcessBlock, state), size_of::<ProcessState>()),
        (thread, size_of::<ThreadState>()),
    ];
    for (at, len) in durable {
        guest.memory.read_exact_at(&mut bytes[at..at + len], guest.hole + at as u64).unwrap();
    }
    Region { start: guest.hole, bytes, rights: libc::PROT_READ | libc::PROT_WRITE }
}

/// The blob's segments at their place in the hole, fresh from its file, and where `tranship_resume` is.
fn blob_regions(file: &Path, hole: u64) -> (Vec<Region>, u64) {
    let elf = fs::read(file).unwrap();
    let u64_at = |at: usize| u64::from_le_bytes(elf[at..at + 8].try_into().unwrap());
    let u32_at = |at: usize| u32::from_le_bytes(elf[at..at + 4].try_into().unwrap());
    let headers =
        (0..usize::from(u16::from_le_bytes([elf[56], elf[57]]))).map(|n| u64_at(32) as usize + 56 * n);
    let load = |at: usize| {
        let (flags, offset, address) = (u32_at(at + 4), u64_at(at + 8) as usize, u64_at(at + 16));
        let mut bytes = elf[offset..][..u64_at(at + 32) as usize].to_vec();
        bytes.resize((u64_at(at + 40) as usize).next_multiple_of(4096), 0);
        let right = |bit, right| if flags & bit != 0 { right } else { 0 };
        let rights = right(4, libc::PROT_READ) | right(2, libc::PROT_WRITE) | right(1, libc::PROT_EXEC);
        Region { start: hole + BLOB_OFFSET + address, bytes, rights }
    };
    let regions = headers.filter(|&at| u32_at(at) == 1).map(load).collect();
    let symbols = std::process::Command::new("nm").arg("-D").arg(file).output().unwrap().stdout;
    let symbols = String::from_utf8(symbols).unwrap();
    let line = symbols.lines().find(|line| line.ends_with(" tranship_resume")).unwrap();
    let address = u64::from_str_radix(line.split(' ').next().unwrap(), 16).unwrap();
    (regions, hole + BLOB_OFFSET + address)
}

/// Build the process in a fork of this one and let it go. Only system calls may be made in there.
fn restore(regions: &[Region], hole: u64, entry: u64, stdin: i32, stdout: i32) -> i32 {
    let stack = hole + HOST_STACKS_OFFSET + HOST_STACK_STRIDE;
    let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
    // SAFETY: the child replaces what it does not need any more, and leaves this program for good.
    unsafe {
        let child = libc::fork();
        if child != 0 {
            return child;
        }
        libc::dup2(stdin, 0);
        libc::dup2(stdout, 1);
        libc::syscall(libc::SYS_close_range, 3, u32::MAX, 0);
        let stack_bottom = (stack - HOST_STACK_BYTES as u64) as *mut _;
        libc::mmap(stack_bottom, HOST_STACK_BYTES, libc::PROT_READ | libc::PROT_WRITE, kind, -1, 0);
        for region in regions {
            let at = region.start as *mut u8;
            libc::mmap(at.cast(), region.bytes.len(), libc::PROT_READ | libc::PROT_WRITE, kind, -1, 0);
            std::ptr::copy_nonoverlapping(region.bytes.as_ptr(), at, region.bytes.len());
            libc::mprotect(at.cast(), region.bytes.len(), region.rights);
        }
        asm!("mov rsp, {}", "jmp {}", in(reg) stack, in(reg) entry, in("rdi") hole + THREADS_OFFSET,
            options(noreturn));
    }
}

fn pipe() -> (OwnedFd, OwnedFd) {
    let mut fds = [0; 2];
    // SAFETY: the kernel fills the array with new descriptors.
    unsafe {
        assert_eq!(libc::pipe2(fds.as_mut_ptr(), libc::O_CLOEXEC), 0);
        (OwnedFd::from_raw_fd(fds[0]), OwnedFd::from_raw_fd(fds[1]))
    }
}

/// Park the guest after `lines` of its output, take it apart, and have another process finish its work.
fn moves_after(hole: u64, args: &[&str], lines: usize, delay: Duration, input: &[u8]) {
    let program = compile("progress");
    let mut guest = Guest::start(On::X86_64, hole, &program, args);
    let mut printed = BufReader::new(guest.child.stdout.take().unwrap());
    let mut text = String::new();
    for _ in 0..lines {
        printed.read_line(&mut text).unwrap();
    }
    std::thread::sleep(delay);
    guest.park(true);

    let mut regions = guest_regions(&guest);
    regions.push(state_area(&guest));
    let (blob, entry) = blob_regions(&On::X86_64.blob(), hole);
    regions.extend(blob);
    guest.child.kill().unwrap();
    guest.child.wait().unwrap();
    printed.read_to_string(&mut text).unwrap();

    let (stdin, feed) = pipe();
    let (rest, stdout) = pipe();
    let child = restore(&regions, hole, entry, stdin.as_raw_fd(), stdout.as_raw_fd());
    drop((stdin, stdout));
    fs::File::from(feed).write_all(input).unwrap();
    fs::File::from(rest).read_to_string(&mut text).unwrap();
    let mut status = 0;
    // SAFETY: our own child.
    unsafe { libc::waitpid(child, &mut status, 0) };
    assert_eq!(text, undisturbed(&program, args, input));
    assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 5, "status {status:#x}");
}

#[test]
fn a_computing_process_goes_on_elsewhere() {
    for n in 0..5 {
        moves_after(0x3600_0000_0000, &["8"], n, Duration::from_millis(n as u64), b"");
    }
}

#[test]
fn a_waiting_process_goes_on_elsewhere() {
    moves_after(0x3700_0000_0000, &["3", "100"], 2, Duration::from_millis(20), b"");
    moves_after(0x3700_0000_0000, &["1", "0", "read"], 1, Duration::from_millis(20), b"one\ntwo\n");
}
