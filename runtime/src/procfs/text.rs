//! Text on its way: paths put together, the lines of a file, output with a buffer.

use crate::linux::{self, AT_FDCWD, Errno};
use core::fmt;
use tranship_abi::syscall::nr;

/// A short path being put together, always followed by a NUL.
pub(super) struct Path {
    bytes: [u8; super::MAX_PATH],
    used: usize,
}

impl Path {
    pub(super) fn new() -> Path {
        Path { bytes: [0; super::MAX_PATH], used: 0 }
    }

    /// Add to it; `None` if it gets too long.
    pub(super) fn push(&mut self, part: &[u8]) -> Option<()> {
        let end = self.used + part.len();
        self.bytes.get(..end + 1)?;
        self.bytes[self.used..end].copy_from_slice(part);
        self.used = end;
        Some(())
    }

    /// Become what the link `name` (NUL-terminated) says.
    pub(super) fn read_link(&mut self, name: &[u8]) -> Result<(), Errno> {
        let room = (self.bytes.as_mut_ptr() as u64, self.bytes.len() as u64 - 1);
        let args = [AT_FDCWD as u64, name.as_ptr() as u64, room.0, room.1, 0, 0];
        // SAFETY: the kernel reads the name and writes into the buffer, whose last byte stays NUL.
        self.used = unsafe { linux::call(nr::readlinkat, args) }? as usize;
        Ok(())
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.used]
    }

    pub(super) fn terminated(&self) -> &[u8] {
        &self.bytes[..=self.used]
    }
}

impl fmt::Write for Path {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.push(text.as_bytes()).ok_or(fmt::Error)
    }
}

/// The lines of a file, without their ends. A longer line than the buffer comes in pieces.
pub(super) struct Lines {
    fd: i32,
    buffer: [u8; 8192],
    start: usize,
    end: usize,
}

impl Lines {
    pub(super) fn of(fd: i32) -> Lines {
        Lines { fd, buffer: [0; 8192], start: 0, end: 0 }
    }

    pub(super) fn next(&mut self) -> Option<&[u8]> {
        let has_line = |lines: &Lines| lines.buffer[lines.start..lines.end].contains(&b'\n');
        if !has_line(self) {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
            self.end += linux::read(self.fd, &mut self.buffer[self.end..]).unwrap_or(0);
        }
        let rest = &self.buffer[self.start..self.end];
        if rest.is_empty() {
            return None;
        }
        let length = rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len());
        self.start = (self.start + length + 1).min(self.end);
        Some(&rest[..length])
    }
}

/// A file being written.
pub(super) struct Output {
    fd: i32,
    buffer: [u8; 4096],
    used: usize,
}

impl Output {
    pub(super) fn new(fd: i32) -> Output {
        Output { fd, buffer: [0; 4096], used: 0 }
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) -> fmt::Result {
        for part in bytes.chunks(self.buffer.len()) {
            if self.used + part.len() > self.buffer.len() {
                self.flush().map_err(|_| fmt::Error)?;
            }
            self.buffer[self.used..self.used + part.len()].copy_from_slice(part);
            self.used += part.len();
        }
        Ok(())
    }

    pub(super) fn flush(&mut self) -> Result<(), Errno> {
        linux::write(self.fd, &self.buffer[..self.used])?;
        self.used = 0;
        Ok(())
    }
}

impl fmt::Write for Output {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.bytes(text.as_bytes())
    }
}
