//! /proc/PID/maps and smaps: the kernel's, without the hole, with the guest's right to execute.

use super::text::{Lines, Output};
use crate::hole;
use crate::linux::{PAGE, prot};
use crate::memory::code;
use core::fmt::{self, Write};

/// Column at which the kernel puts a mapping's name.
const NAME_COLUMN: usize = 73;

/// A line that tells of a mapping: `start-end rights offset device inode  name`.
struct Mapping<'a> {
    start: u64,
    end: u64,
    rights: &'a [u8],
    offset: u64,
    /// Device and inode.
    file: &'a [u8],
    name: &'a [u8],
}

impl<'a> Mapping<'a> {
    fn parse(line: &'a [u8]) -> Option<Mapping<'a>> {
        let number = |text: &[u8]| u64::from_str_radix(core::str::from_utf8(text).ok()?, 16).ok();
        let mut words = line.splitn(6, |&byte| byte == b' ');
        let (range, rights, offset) = (words.next()?, words.next()?, words.next()?);
        let (device, inode) = (words.next()?, words.next()?);
        let dash = range.iter().position(|&byte| byte == b'-')?;
        let from = device.as_ptr() as usize - line.as_ptr() as usize;
        let file = &line[from..from + device.len() + 1 + inode.len()];
        Some(Mapping {
            start: number(&range[..dash])?,
            end: number(&range[dash + 1..])?,
            rights: (rights.len() == 4).then_some(rights)?,
            offset: number(offset)?,
            file,
            name: words.next().unwrap_or_default().trim_ascii_start(),
        })
    }

    /// The part of it from `start` to `end`.
    fn write_part(&self, output: &mut Output, start: u64, end: u64) -> fmt::Result {
        let protection = code::protection_of(start);
        let execute = if protection & prot::EXEC != 0 { 'x' } else { '-' };
        let write = if protection & prot::WRITE != 0 { 'w' } else { self.rights[1] as char };
        let offset = if self.file == b"00:00 0" { self.offset } else { self.offset + (start - self.start) };
        let mut head = Head { text: [0; 128], used: 0 };
        let rights = |n: usize| self.rights[n] as char;
        write!(head, "{start:08x}-{end:08x} {}{write}{execute}{} {offset:08x} ", rights(0), rights(3))?;
        output.bytes(&head.text[..head.used])?;
        output.bytes(self.file)?;
        output.bytes(b" ")?;
        let name = match self.name {
            b"" | b"[heap]" | b"[stack]" => own_name(start, end),
            name => name,
        };
        if !name.is_empty() {
            for _ in head.used + self.file.len() + 1..NAME_COLUMN {
                output.bytes(b" ")?;
            }
            output.bytes(name)?;
        }
        output.bytes(b"\n")
    }

    /// The end of the part from `at` on that is all the guest's and all code or none; `None` in the hole.
    fn part_end(&self, at: u64) -> Option<u64> {
        if hole::overlaps(at, 1) {
            return None;
        }
        let end = self.end.min(code::next_change(at));
        Some(if at < hole::base() { end.min(hole::base()) } else { end })
    }
}

/// The kernel does not know the guest's heap, and not everywhere its stack.
fn own_name(start: u64, end: u64) -> &'static [u8] {
    let state = &hole::process().state;
    if start < state.brk.next_multiple_of(PAGE) && end > state.brk_start {
        b"[heap]"
    } else if (start..end).contains(&state.auxv.start) {
        b"[stack]"
    } else {
        b""
    }
}

/// The beginning of a line.
struct Head {
    text: [u8; 128],
    used: usize,
}

impl Write for Head {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = self.text.get_mut(self.used..self.used + text.len()).ok_or(fmt::Error)?;
        room.copy_from_slice(text.as_bytes());
        self.used += text.len();
        Ok(())
    }
}

/// Write the guest's view of what `kernel` is open for. `sizes`: lines about each mapping follow it; of one in parts,
/// all but the size follow the last part.
pub(super) fn write(output: &mut Output, kernel: i32, sizes: bool) -> fmt::Result {
    let mut lines = Lines::of(kernel);
    // The part that the next lines are about.
    let mut last = None;
    while let Some(line) = lines.next() {
        if let Some(mapping) = Mapping::parse(line) {
            last = write_parts(output, &mapping, sizes)?;
        } else if let Some((start, end)) = last {
            if line.starts_with(b"Size:") {
                write_size(output, start, end)?;
            } else {
                output.bytes(line)?;
                output.bytes(b"\n")?;
            }
        }
    }
    Ok(())
}

/// Write the guest's parts of a mapping; yields the last one, whose size is not written.
fn write_parts(
    output: &mut Output,
    mapping: &Mapping<'_>,
    sizes: bool,
) -> Result<Option<(u64, u64)>, fmt::Error> {
    let mut last = None;
    let mut at = mapping.start;
    while at < mapping.end {
        let Some(end) = mapping.part_end(at) else {
            at = hole::end();
            continue;
        };
        if let (true, Some((start, end))) = (sizes, last) {
            write_size(output, start, end)?;
        }
        mapping.write_part(output, at, end)?;
        last = Some((at, end));
        at = end;
    }
    Ok(last)
}

fn write_size(output: &mut Output, start: u64, end: u64) -> fmt::Result {
    writeln!(output, "Size:           {:8} kB", (end - start) / 1024)
}
