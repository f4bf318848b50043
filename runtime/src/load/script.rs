//! Scripts: `#! interpreter [argument]` is their first line.

use crate::linux::Errno;
use core::ffi::CStr;
use core::iter;

/// BINPRM_BUF_SIZE: as much of a file's start counts.
pub const LINE_BYTES: usize = 256;
/// As many scripts may be each other's interpreters.
pub const MAX_DEPTH: usize = 5;

/// What a script's first line says.
pub struct Line {
    /// Each part has a NUL behind it.
    text: [u8; LINE_BYTES],
    interpreter: usize,
    argument: usize,
}

impl Line {
    /// Of a file that begins so; `None` if that is no script, ENOEXEC if it names no interpreter.
    pub fn parse(start: &[u8]) -> Result<Option<Line>, Errno> {
        if !start.starts_with(b"#!") {
            return Ok(None);
        }
        let blank = |byte: &u8| matches!(byte, b' ' | b'\t');
        let blanks = |bytes: &[u8]| bytes.iter().take_while(|byte| blank(byte)).count();
        // The last byte is no part of the line, so that there is a NUL in any case.
        let line = &start[..start.len().min(LINE_BYTES - 1)];
        let line = line.split(|&byte| byte == b'\n').next().unwrap_or_default();
        let trailing = line[2..].iter().rev().take_while(|byte| blank(byte)).count();
        let line = &line[..line.len() - trailing];
        let interpreter = 2 + blanks(&line[2..]);
        let name = line[interpreter..].iter().take_while(|byte| !blank(byte)).count();
        if name == 0 {
            return Err(Errno::ENOEXEC);
        }
        let end = interpreter + name;
        let argument = end + blanks(&line[end..]);
        let mut text = [0; LINE_BYTES];
        text[..line.len()].copy_from_slice(line);
        text[end] = 0;
        Ok(Some(Line { text, interpreter, argument }))
    }

    /// The interpreter's path.
    pub fn interpreter(&self) -> &CStr {
        self.part(self.interpreter)
    }

    /// All that is behind it.
    pub fn argument(&self) -> Option<&CStr> {
        Some(self.part(self.argument)).filter(|argument| !argument.is_empty())
    }

    fn part(&self, from: usize) -> &CStr {
        CStr::from_bytes_until_nul(&self.text[from..]).unwrap_or_default()
    }
}

/// A script that is being executed.
#[derive(Clone, Copy)]
pub struct Script<'a> {
    /// Its path.
    pub path: &'a CStr,
    /// Its first line.
    pub line: &'a Line,
    /// The script whose interpreter it is.
    pub of: Option<&'a Script<'a>>,
}

impl<'a> Script<'a> {
    /// It, the script whose interpreter it is, and so on.
    pub fn chain(latest: Option<&'a Script<'a>>) -> impl Iterator<Item = &'a Script<'a>> + Clone {
        iter::successors(latest, |script| script.of)
    }

    /// What comes in place of argument 0, with nothing executed but scripts: the last one's interpreter, then each
    /// one's argument and path.
    pub fn arguments(latest: Option<&'a Script<'a>>) -> impl Iterator<Item = &'a CStr> + Clone {
        let interpreter = latest.map(|script| script.line.interpreter());
        let others = Script::chain(latest).flat_map(|script| [script.line.argument(), Some(script.path)]);
        interpreter.into_iter().chain(others.flatten())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_taken_apart_as_the_kernel_does() {
        let check = |start: &[u8], interpreter: &CStr, argument: Option<&CStr>| {
            let line = Line::parse(start).unwrap().unwrap();
            assert_eq!((line.interpreter(), line.argument()), (interpreter, argument));
        };
        check(b"#!/bin/sh\necho", c"/bin/sh", None);
        check(b"#! \t/bin/sh  -e x \t\n", c"/bin/sh", Some(c"-e x"));
        check(b"#!a", c"a", None);
        assert_eq!(Line::parse(b"#!  \n/bin/sh").err(), Some(Errno::ENOEXEC));
        assert_eq!(Line::parse(b"#!").err(), Some(Errno::ENOEXEC));
        assert!(Line::parse(b"\x7fELF").unwrap().is_none());
        let mut long = [b'x'; LINE_BYTES];
        long[..2].copy_from_slice(b"#!");
        assert_eq!(Line::parse(&long).unwrap().unwrap().interpreter().count_bytes(), LINE_BYTES - 3);
    }

    #[test]
    fn scripts_are_arguments_of_their_interpreters() {
        let lines = [b"#!b -1\n".as_slice(), b"#!c\n"].map(|start| Line::parse(start).unwrap().unwrap());
        let first = Script { path: c"a", line: &lines[0], of: None };
        let second = Script { path: c"b", line: &lines[1], of: Some(&first) };
        assert!(Script::arguments(Some(&second)).eq([c"c", c"b", c"-1", c"a"]));
        assert_eq!(Script::arguments(None).count(), 0);
    }
}
