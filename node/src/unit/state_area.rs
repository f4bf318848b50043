//! The state area of a translated process (`tranship_abi::block`), read and written from outside through
//! /proc/PID/mem.

use super::proc::{self, Mapping};
use crate::error::{NodeError, Result};
use std::fs::File;
use std::os::unix::fs::FileExt;
use tranship_abi::block::{MAGIC, VERSION};

/// The state area of a process.
#[derive(Debug)]
pub struct StateArea {
    pid: u32,
    memory: File,
    base: u64,
}

impl StateArea {
    /// That of process `pid`, which must be translated.
    pub fn open(pid: u32) -> Result<StateArea> {
        let area = StateArea::find(pid)?;
        area.ok_or_else(|| {
            NodeError::io(format!("looking for the state area of process {pid}"), "there is none")
        })
    }

    /// That of process `pid`, if it has one.
    pub fn find(pid: u32) -> Result<Option<StateArea>> {
        let path = format!("/proc/{pid}/mem");
        let failed = |why: std::io::Error| NodeError::io(format!("opening {path}"), why);
        let memory = File::options().read(true).write(true).open(&path).map_err(failed)?;
        let is_possible = |mapping: &Mapping| mapping.rights == "rw-p" && mapping.name.is_empty();
        let starts = proc::maps(pid)?.into_iter().filter(is_possible).map(|mapping| mapping.start);
        let mut area = StateArea { pid, memory, base: 0 };
        for start in starts {
            let mut magic = [0; MAGIC.len()];
            if area.memory.read_exact_at(&mut magic, start).is_ok() && magic == MAGIC {
                area.base = start;
                return area.of_our_version().map(Some);
            }
        }
        Ok(None)
    }

    fn of_our_version(self) -> Result<StateArea> {
        match self.word(self.base + MAGIC.len() as u64)? {
            VERSION => Ok(self),
            other => Err(NodeError::io(
                format!("looking at the state area of process {}", self.pid),
                format!("its version is {other}, ours is {VERSION}; use one version on all nodes"),
            )),
        }
    }

    /// The process.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Where the state area, and with it the hole, starts.
    pub fn base(&self) -> u64 {
        self.base
    }

    /// Read guest memory or the state area.
    pub fn read(&self, address: u64, into: &mut [u8]) -> Result<()> {
        let read = self.memory.read_exact_at(into, address);
        read.map_err(|why| NodeError::io(format!("reading the memory of process {}", self.pid), why))
    }

    /// Write the hole.
    pub fn write(&self, address: u64, bytes: &[u8]) -> Result<()> {
        let written = self.memory.write_all_at(bytes, address);
        written.map_err(|why| NodeError::io(format!("writing the state area of process {}", self.pid), why))
    }

    /// The 32-bit word at `address`.
    pub fn word(&self, address: u64) -> Result<u32> {
        let mut word = [0; 4];
        self.read(address, &mut word)?;
        Ok(u32::from_le_bytes(word))
    }

    /// The 32-bit words at these addresses, at most [`libc::UIO_MAXIOV`] of them, by one system call.
    pub fn words(&self, addresses: impl Iterator<Item = u64>) -> Result<Vec<u32>> {
        let word =
            |address| libc::iovec { iov_base: address as *mut libc::c_void, iov_len: size_of::<u32>() };
        let remote: Vec<libc::iovec> = addresses.map(word).collect();
        let mut words = vec![0_u32; remote.len()];
        let bytes = size_of_val(&words[..]);
        let local = libc::iovec { iov_base: words.as_mut_ptr().cast(), iov_len: bytes };
        // SAFETY: `words` has room for what is read; the remote side is the kernel's to check.
        let read = unsafe {
            libc::process_vm_readv(
                self.pid as i32,
                &local,
                1,
                remote.as_ptr(),
                remote.len() as libc::c_ulong,
                0,
            )
        };
        match read {
            count if count == bytes as isize => Ok(words),
            count => {
                let short = || std::io::Error::other(format!("{count} of {bytes} bytes"));
                let why = if count < 0 { std::io::Error::last_os_error() } else { short() };
                Err(NodeError::io(format!("reading the memory of process {}", self.pid), why))
            }
        }
    }

    /// Set it.
    pub fn set_word(&self, address: u64, word: u32) -> Result<()> {
        self.write(address, &word.to_le_bytes())
    }

    /// The 64-bit word at `address`.
    pub fn long(&self, address: u64) -> Result<u64> {
        let mut long = [0; 8];
        self.read(address, &mut long)?;
        Ok(u64::from_le_bytes(long))
    }

    /// Set it.
    pub fn set_long(&self, address: u64, long: u64) -> Result<()> {
        self.write(address, &long.to_le_bytes())
    }
}
