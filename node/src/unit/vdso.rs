//! What the vDSO of processes on this machine reads: every process has the same vDSO, and the same data of the kernel's, seen from
//! its time namespace.

use super::proc;
use super::recoding;
use crate::error::{NodeError, Result};
use crate::record::Isa;
use std::cell::OnceCell;
use std::fs::File;
use std::io::{Read, Write};
use std::ops::Range;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use tranship_abi::host::Host;
use tranship_recode::{Kernel, leave_vdso};

/// The mappings that the kernel's data is in.
const DATA: &[&str] = &["[vvar]", "[vvar_vclock]"];
/// As a number of bytes: a clock is asked for.
const CLOCK: usize = 0;

/// Have the threads leave the vDSO in the images that were just written of processes at home on this machine, of which `pid` is the
/// first, so that they could go on abroad. False if not all of them can: a dump at another moment may be better.
pub fn leave(images: &Path, pid: u32) -> Result<bool> {
    let Some(kernel) = KernelHere::of(pid)? else { return Ok(false) };
    match leave_vdso(images, &kernel) {
        Ok(left) => left.write().map(|()| true).map_err(recoding::failure),
        // Whoever stays on machines of the same kind has no need of it.
        Err(_) => Ok(false),
    }
}

/// This machine's kernel, as a process sees it.
struct KernelHere {
    /// The vDSO of this process, and where it is.
    vdso: Vec<u8>,
    start: u64,
    /// Where the data is.
    data: Vec<Range<u64>>,
    namespace: File,
    /// Started when there is something to read.
    reader: OnceCell<Option<Reader>>,
}

impl KernelHere {
    /// As `pid` sees it. `None` on a machine that is nobody's home.
    fn of(pid: u32) -> Result<Option<KernelHere>> {
        if Isa::here()?.0 != Host::X86_64 {
            return Ok(None);
        }
        let maps = proc::maps(std::process::id())?;
        let Some(mapping) = maps.iter().find(|mapping| mapping.name == "[vdso]") else { return Ok(None) };
        let start = mapping.start;
        // SAFETY: the kernel has mapped it readable, nobody changes it, and this program does not unmap it.
        let vdso = unsafe { std::slice::from_raw_parts(start as *const u8, (mapping.end - start) as usize) };
        let data = maps.iter().filter(|mapping| DATA.contains(&mapping.name.as_str()));
        let data = data.map(|mapping| mapping.start..mapping.end).collect();
        let path = format!("/proc/{pid}/ns/time");
        let namespace = File::open(&path).map_err(NodeError::at("opening", Path::new(&path)))?;
        Ok(Some(KernelHere { vdso: vdso.to_vec(), start, data, namespace, reader: OnceCell::new() }))
    }
}

impl KernelHere {
    fn reader(&self) -> Option<&Reader> {
        self.reader.get_or_init(|| Reader::start(&self.namespace).ok()).as_ref()
    }
}

impl Kernel for KernelHere {
    fn vdso(&self) -> &[u8] {
        &self.vdso
    }

    fn data(&self, offset: i64, into: &mut [u8]) -> bool {
        let Some(address) = self.start.checked_add_signed(offset) else { return false };
        let is_in = |data: &Range<u64>| data.contains(&address) && into.len() as u64 <= data.end - address;
        if !self.data.iter().any(is_in) {
            return false;
        }
        let Some(word) = self.reader().and_then(|reader| reader.ask(address, into.len()).ok()) else {
            return false;
        };
        word.to_ne_bytes().get(..into.len()).is_some_and(|word| {
            into.copy_from_slice(word);
            true
        })
    }

    fn counter(&self) -> u64 {
        counter()
    }

    fn clocks(&self) -> Option<[u64; 2]> {
        let clock = |clock: libc::clockid_t| self.reader()?.ask(clock as u64, CLOCK).ok();
        Some([clock(libc::CLOCK_MONOTONIC)?, clock(libc::CLOCK_BOOTTIME)?])
    }
}

/// A process in another one's time namespace, which reads what the vDSO there would. A page may turn out to be for nobody to read:
/// then it is this process that ends.
struct Reader {
    pid: libc::pid_t,
    socket: Option<UnixStream>,
}

impl Reader {
    fn start(namespace: &File) -> std::io::Result<Reader> {
        let (ours, its) = UnixStream::pair()?;
        let [own, other, namespace] = [its.as_raw_fd(), ours.as_raw_fd(), namespace.as_raw_fd()];
        // SAFETY: this process may have other threads; the child does nothing but system calls and loads.
        match unsafe { libc::fork() } {
            -1 => Err(std::io::Error::last_os_error()),
            0 => serve(namespace, own, other),
            pid => Ok(Reader { pid, socket: Some(ours) }),
        }
    }

    /// What a load of so many bytes finds at `address`, or, with [`CLOCK`], what that clock says.
    fn ask(&self, address: u64, bytes: usize) -> std::io::Result<u64> {
        let mut socket = self.socket.as_ref().ok_or(std::io::ErrorKind::NotConnected)?;
        socket.write_all([address, bytes as u64].map(u64::to_ne_bytes).as_flattened())?;
        let mut word = [0; 8];
        socket.read_exact(&mut word)?;
        Ok(u64::from_ne_bytes(word))
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        // It ends when nobody asks any more.
        self.socket = None;
        // SAFETY: waitpid(2) with no status writes nothing.
        unsafe { libc::waitpid(self.pid, std::ptr::null_mut(), 0) };
    }
}

/// Be the reader, at `own` end of the socket, in `namespace`.
fn serve(namespace: RawFd, own: RawFd, other: RawFd) -> ! {
    // SAFETY: these calls take numbers, and buffers of the lengths that they are told.
    unsafe {
        libc::close(other);
        let is_there = libc::setns(namespace, libc::CLONE_NEWTIME) == 0;
        let mut request = [0_u64; 2];
        let bytes = size_of_val(&request);
        while is_there && libc::read(own, request.as_mut_ptr().cast(), bytes) == bytes as isize {
            let word = load(request[0], request[1]).to_ne_bytes();
            libc::write(own, word.as_ptr().cast(), word.len());
        }
        libc::_exit(0)
    }
}

/// What the reader says to [`Reader::ask`].
///
/// # Safety
/// If the address cannot be read, the process ends.
unsafe fn load(address: u64, bytes: u64) -> u64 {
    // SAFETY: as the caller says; all of these are aligned.
    unsafe {
        match bytes {
            0 => clock(address),
            1 => (address as *const u8).read_volatile().into(),
            2 if address.is_multiple_of(2) => (address as *const u16).read_volatile().into(),
            4 if address.is_multiple_of(4) => (address as *const u32).read_volatile().into(),
            8 if address.is_multiple_of(8) => (address as *const u64).read_volatile(),
            _ => libc::_exit(1),
        }
    }
}

/// Nanoseconds of a clock, in this process's time namespace.
fn clock(number: u64) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: clock_gettime(2) writes `time`.
    unsafe { libc::syscall(libc::SYS_clock_gettime, number as libc::clockid_t, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The CPU's time-stamp counter, behind all that was read before.
#[cfg(target_arch = "x86_64")]
fn counter() -> u64 {
    // SAFETY: every x86-64 CPU has both instructions.
    unsafe {
        core::arch::x86_64::_mm_lfence();
        core::arch::x86_64::_rdtsc()
    }
}

/// On other machines nothing is at home.
#[cfg(not(target_arch = "x86_64"))]
fn counter() -> u64 {
    0
}
