//! The system calls that the runtime makes for itself.

use crate::host::{self, HOST, PageFault};
use core::fmt;
use core::sync::atomic::AtomicU32;
use tranship_abi::open_flags::GuestOpenFlags;
use tranship_abi::syscall::{lookup, nr};

/// An error number; the same on all hosts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Errno(pub i32);

#[allow(missing_docs)]
impl Errno {
    pub const EPERM: Errno = Errno(1);
    pub const ENOENT: Errno = Errno(2);
    pub const E2BIG: Errno = Errno(7);
    pub const ESRCH: Errno = Errno(3);
    pub const EINTR: Errno = Errno(4);
    pub const ENOEXEC: Errno = Errno(8);
    pub const EAGAIN: Errno = Errno(11);
    pub const ENOMEM: Errno = Errno(12);
    pub const EACCES: Errno = Errno(13);
    pub const EFAULT: Errno = Errno(14);
    pub const EEXIST: Errno = Errno(17);
    pub const EBUSY: Errno = Errno(16);
    pub const EINVAL: Errno = Errno(22);
    pub const ENOSPC: Errno = Errno(28);
    pub const ENAMETOOLONG: Errno = Errno(36);
    pub const ENOSYS: Errno = Errno(38);
    pub const ELOOP: Errno = Errno(40);
    pub const EOPNOTSUPP: Errno = Errno(95);
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error {}", self.0)
    }
}

impl From<PageFault> for Errno {
    fn from(_: PageFault) -> Errno {
        Errno::EFAULT
    }
}

/// AT_FDCWD.
pub const AT_FDCWD: i32 = -100;
/// A page on every host that is supported.
pub const PAGE: u64 = 4096;

#[allow(missing_docs)]
pub mod prot {
    pub const READ: u32 = 1;
    pub const WRITE: u32 = 2;
    pub const EXEC: u32 = 4;
}

#[allow(missing_docs)]
pub mod map {
    pub const SHARED: u32 = 1;
    pub const PRIVATE: u32 = 2;
    pub const FIXED: u32 = 0x10;
    pub const ANONYMOUS: u32 = 0x20;
    pub const NORESERVE: u32 = 0x4000;
    pub const HUGETLB: u32 = 0x4_0000;
    pub const FIXED_NOREPLACE: u32 = 0x10_0000;
}

/// O_RDONLY.
pub const O_RDONLY: GuestOpenFlags = GuestOpenFlags(0);
/// O_RDONLY | O_CLOEXEC.
pub const O_RDONLY_CLOEXEC: GuestOpenFlags = GuestOpenFlags(0o2_000_000);

/// The host's number of an x86-64 call. Only calls that every host has may be asked for.
pub fn number(x86_64: u32) -> u32 {
    lookup(x86_64.into()).and_then(|row| row.number_on(HOST)).unwrap_or(u32::MAX)
}

/// A result as the kernel returns it.
pub fn result(value: i64) -> Result<u64, Errno> {
    if (-4095..0).contains(&value) { Err(Errno(-value as i32)) } else { Ok(value as u64) }
}

/// Make the host's equivalent of x86-64 call `x86_64`.
///
/// # Safety
/// As the call itself.
pub unsafe fn call(x86_64: u32, args: [u64; 6]) -> Result<u64, Errno> {
    // SAFETY: the caller's.
    result(unsafe { host::syscall(number(x86_64), args) })
}

/// mmap(2). A kernel that does not know MAP_FIXED_NOREPLACE takes the address as a hint: that is EEXIST too.
///
/// # Safety
/// With MAP_FIXED, what is mapped there goes.
pub unsafe fn mmap(at: u64, len: u64, prot: u32, flags: u32, fd: i32, offset: u64) -> Result<u64, Errno> {
    // SAFETY: the caller's.
    let got = unsafe { call(nr::mmap, [at, len, prot.into(), flags.into(), fd as u64, offset]) }?;
    if flags & map::FIXED_NOREPLACE != 0 && got != at {
        // SAFETY: mapped just now, and nobody knows of it.
        unsafe { munmap(got, len) }?;
        return Err(Errno::EEXIST);
    }
    Ok(got)
}

/// Anonymous, private, readable and writable memory at a place that must be free.
pub fn map_anonymous(at: u64, len: u64) -> Result<u64, Errno> {
    let flags = map::PRIVATE | map::ANONYMOUS | map::NORESERVE | map::FIXED_NOREPLACE;
    // SAFETY: replaces nothing.
    unsafe { mmap(at, len, prot::READ | prot::WRITE, flags, -1, 0) }
}

/// munmap(2).
///
/// # Safety
/// Nothing may use the memory any more.
pub unsafe fn munmap(at: u64, len: u64) -> Result<(), Errno> {
    // SAFETY: the caller's.
    unsafe { call(nr::munmap, [at, len, 0, 0, 0, 0]) }.map(drop)
}

/// mprotect(2).
///
/// # Safety
/// Nothing may rely on the old protection.
pub unsafe fn mprotect(at: u64, len: u64, prot: u32) -> Result<(), Errno> {
    // SAFETY: the caller's.
    unsafe { call(nr::mprotect, [at, len, prot.into(), 0, 0, 0]) }.map(drop)
}

/// openat(2) with a NUL-terminated path.
pub fn openat(dir: i32, path: &[u8], flags: GuestOpenFlags) -> Result<i32, Errno> {
    debug_assert_eq!(path.last(), Some(&0));
    let flags = flags.to_host(HOST).0;
    // SAFETY: `path` is readable and terminated.
    unsafe { call(nr::openat, [dir as u64, path.as_ptr() as u64, flags.into(), 0, 0, 0]) }.map(|fd| fd as i32)
}

/// Whether a NUL-terminated path is that of a regular file.
pub fn is_regular(path: &[u8]) -> Result<bool, Errno> {
    const STATX_TYPE: u64 = 1;
    const FORMAT: u16 = 0o170_000;
    const REGULAR: u16 = 0o100_000;
    debug_assert_eq!(path.last(), Some(&0));
    // `struct statx`, with the mode as its 15th half word.
    let mut status = [0_u16; 128];
    let args = [AT_FDCWD as u64, path.as_ptr() as u64, 0, STATX_TYPE, status.as_mut_ptr() as u64, 0];
    // SAFETY: `path` is readable and terminated, `status` is as large as the structure.
    unsafe { call(nr::statx, args) }?;
    Ok(status[14] & FORMAT == REGULAR)
}

/// close(2).
pub fn close(fd: i32) {
    // SAFETY: no memory is involved.
    let _ = unsafe { call(nr::close, [fd as u64, 0, 0, 0, 0, 0]) };
}

/// read(2), until `into` is full or the file ends.
pub fn read(fd: i32, into: &mut [u8]) -> Result<usize, Errno> {
    let mut got = 0;
    while let Some(rest) = into.get_mut(got..).filter(|rest| !rest.is_empty()) {
        let args = [fd as u64, rest.as_mut_ptr() as u64, rest.len() as u64, 0, 0, 0];
        // SAFETY: the kernel writes into `rest` only.
        match unsafe { call(nr::read, args) } {
            Ok(0) => break,
            Ok(n) => got += n as usize,
            Err(Errno::EINTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(got)
}

/// pread(2), until `into` is full or the file ends.
pub fn pread(fd: i32, into: &mut [u8], offset: u64) -> Result<usize, Errno> {
    let mut got = 0;
    while let Some(rest) = into.get_mut(got..).filter(|rest| !rest.is_empty()) {
        let args = [fd as u64, rest.as_mut_ptr() as u64, rest.len() as u64, offset + got as u64, 0, 0];
        // SAFETY: the kernel writes into `rest` only.
        match unsafe { call(nr::pread64, args) } {
            Ok(0) => break,
            Ok(n) => got += n as usize,
            Err(Errno::EINTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(got)
}

/// write(2), all of it.
pub fn write(fd: i32, mut bytes: &[u8]) -> Result<(), Errno> {
    while !bytes.is_empty() {
        let args = [fd as u64, bytes.as_ptr() as u64, bytes.len() as u64, 0, 0, 0];
        // SAFETY: the kernel reads from `bytes` only.
        match unsafe { call(nr::write, args) } {
            Ok(n) => bytes = bytes.get(n as usize..).unwrap_or_default(),
            Err(Errno::EINTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// exit_group(2).
pub fn exit_group(status: i32) -> ! {
    loop {
        // SAFETY: the process ends.
        let _ = unsafe { call(nr::exit_group, [status as u64, 0, 0, 0, 0, 0]) };
    }
}

/// exit(2): end the calling thread.
pub fn exit_thread(status: u64) -> ! {
    loop {
        // SAFETY: the thread ends.
        let _ = unsafe { call(nr::exit, [status, 0, 0, 0, 0, 0]) };
    }
}

/// gettid(2).
pub fn gettid() -> u32 {
    // SAFETY: no memory is involved.
    unsafe { call(nr::gettid, [0; 6]) }.unwrap_or(0) as u32
}

/// getpid(2).
pub fn getpid() -> u32 {
    // SAFETY: no memory is involved.
    unsafe { call(nr::getpid, [0; 6]) }.unwrap_or(0) as u32
}

/// Send `signal` to the calling thread.
pub fn raise(signal: u32) {
    // SAFETY: no memory is involved.
    let _ = unsafe { call(nr::tgkill, [getpid().into(), gettid().into(), signal.into(), 0, 0, 0]) };
}

/// Set the calling thread's signal mask.
pub fn set_signal_mask(mask: u64) {
    const SIG_SETMASK: u64 = 2;
    // SAFETY: the kernel reads the local.
    let _ = unsafe { call(nr::rt_sigprocmask, [SIG_SETMASK, (&raw const mask) as u64, 0, 8, 0, 0]) };
}

/// CLOCK_MONOTONIC in nanoseconds.
pub fn monotonic_ns() -> u64 {
    const CLOCK_MONOTONIC: u64 = 1;
    let mut time = [0_u64; 2];
    // SAFETY: the kernel fills the local.
    let _ = unsafe { call(nr::clock_gettime, [CLOCK_MONOTONIC, time.as_mut_ptr() as u64, 0, 0, 0, 0]) };
    time[0] * 1_000_000_000 + time[1]
}

/// futex(2) FUTEX_WAIT (private) for up to `nanoseconds`.
pub fn futex_wait(word: &AtomicU32, value: u32, nanoseconds: u64) {
    let timeout = [nanoseconds / 1_000_000_000, nanoseconds % 1_000_000_000];
    let args = [word.as_ptr() as u64, 128, value.into(), timeout.as_ptr() as u64, 0, 0];
    // SAFETY: the kernel reads the word and the local.
    let _ = unsafe { call(nr::futex, args) };
}

/// futex(2) FUTEX_WAKE (private) of all waiters.
pub fn futex_wake(word: &AtomicU32) {
    // SAFETY: the kernel only looks for waiters.
    let _ = unsafe { call(nr::futex, [word.as_ptr() as u64, 129, i32::MAX as u64, 0, 0, 0]) };
}
