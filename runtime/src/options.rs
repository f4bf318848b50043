//! The runtime's command line: `[--root-fd N] [--object FD]… [--hole ADDR] [--stats-fd N] [--program PATH]
//! [--program-fd FD] [--name NAME] [--own-fd N] [--seccomp-fd N] -- PROGRAM ARGS…`.

use core::ffi::CStr;
use core::fmt;

/// Objects that one command line may name.
pub const MAX_OBJECTS: usize = 16;

/// What the command line asks for.
#[derive(Debug)]
pub struct Options<'a> {
    /// Directory that becomes the root.
    pub root_fd: Option<i32>,
    objects: [i32; MAX_OBJECTS],
    object_count: usize,
    /// Where the hole is to be.
    pub hole: Option<u64>,
    /// Where counters go at exit.
    pub stats_fd: Option<i32>,
    /// The program's file, if it is not its argument 0.
    pub program: Option<&'a CStr>,
    /// The program's file, open, if it may have no path any more.
    pub program_fd: Option<i32>,
    /// What the process is to be called, if it is not the last part of the program's path.
    pub name: Option<&'a CStr>,
    /// What the runtime itself was executed by; not for the guest.
    pub own_fd: Option<i32>,
    /// The guest's seccomp filters, as an earlier program of the process left them.
    pub seccomp_fd: Option<i32>,
    /// Index of the guest's argument 0.
    pub guest_args: usize,
}

impl Options<'_> {
    /// Translated objects.
    pub fn objects(&self) -> &[i32] {
        &self.objects[..self.object_count]
    }
}

const USAGE: &str = "usage: tranship-runtime [OPTION VALUE]... -- PROGRAM [ARG]...";
const HELP: &str = "

Runs an x86-64 Linux program on this machine.

  --root-fd FD     make this directory the root
  --object FD      use this translated object; may be repeated
  --hole ADDRESS   keep the runtime's own memory there
  --stats-fd FD    write counters there at exit
  --program PATH   the program's file, if PROGRAM is only to be its argument 0
  --program-fd FD  the program's file, open
  --name NAME      the process's name, if it is not the last part of the path
  --own-fd FD      close this, by which the runtime was executed
  --seccomp-fd FD  the guest's filters, as the runtime hands them over in execve
";

/// What is wrong with the command line.
#[derive(Debug, PartialEq, Eq)]
pub enum OptionError<'a> {
    /// No such option.
    Unknown(&'a CStr),
    /// The option's value is missing or no number.
    BadValue(&'a CStr),
    /// Nothing after `--`, or no `--`.
    NoProgram,
    /// `--help` was asked for.
    Help,
    /// More than [`MAX_OBJECTS`].
    TooManyObjects,
}

impl fmt::Display for OptionError<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OptionError::Unknown(option) => {
                write!(f, "unknown option {}; --help lists all", printable(option))
            }
            OptionError::BadValue(option) => {
                write!(f, "{}: value is missing or no number", printable(option))
            }
            OptionError::NoProgram => write!(f, "no program given; {USAGE}"),
            OptionError::Help => write!(f, "{USAGE}{HELP}"),
            OptionError::TooManyObjects => write!(f, "--object: more than {MAX_OBJECTS}"),
        }
    }
}

fn printable(text: &CStr) -> &str {
    text.to_str().unwrap_or("(not UTF-8)")
}

/// Read the arguments after argument 0.
pub fn parse<'a>(args: impl Iterator<Item = &'a CStr>) -> Result<Options<'a>, OptionError<'a>> {
    let mut options = Options {
        root_fd: None,
        objects: [0; MAX_OBJECTS],
        object_count: 0,
        hole: None,
        stats_fd: None,
        program: None,
        program_fd: None,
        name: None,
        own_fd: None,
        seccomp_fd: None,
        guest_args: 0,
    };
    let mut args = args.enumerate().skip(1);
    while let Some((index, option)) = args.next() {
        if matches!(option.to_bytes(), b"--help" | b"-h") {
            return Err(OptionError::Help);
        }
        if option.to_bytes() == b"--" {
            options.guest_args = index + 1;
            return if args.next().is_some() { Ok(options) } else { Err(OptionError::NoProgram) };
        }
        let Some((_, value)) = args.next() else { return Err(OptionError::BadValue(option)) };
        let fd = || number(value).and_then(|n| i32::try_from(n).ok()).ok_or(OptionError::BadValue(option));
        match option.to_bytes() {
            b"--root-fd" => options.root_fd = Some(fd()?),
            b"--stats-fd" => options.stats_fd = Some(fd()?),
            b"--hole" => options.hole = Some(number(value).ok_or(OptionError::BadValue(option))?),
            b"--own-fd" => options.own_fd = Some(fd()?),
            b"--seccomp-fd" => options.seccomp_fd = Some(fd()?),
            b"--program-fd" => options.program_fd = Some(fd()?),
            b"--program" => options.program = Some(value),
            b"--name" => options.name = Some(value),
            b"--object" => {
                let slot =
                    options.objects.get_mut(options.object_count).ok_or(OptionError::TooManyObjects)?;
                *slot = fd()?;
                options.object_count += 1;
            }
            _ => return Err(OptionError::Unknown(option)),
        }
    }
    Err(OptionError::NoProgram)
}

/// Decimal, or hexadecimal after `0x`.
fn number(text: &CStr) -> Option<u64> {
    let text = text.to_str().ok()?;
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_end_at_the_double_dash() {
        let args = [c"r", c"--object", c"5", c"--hole", c"0x30000", c"--", c"prog", c"--hole"];
        let options = parse(args.into_iter()).unwrap();
        assert_eq!((options.objects(), options.hole, options.guest_args), (&[5][..], Some(0x30000), 6));
    }

    #[test]
    fn mistakes_are_named() {
        assert_eq!(parse([c"r", c"--x", c"1"].into_iter()).unwrap_err(), OptionError::Unknown(c"--x"));
        assert_eq!(parse([c"r", c"--hole", c"z"].into_iter()).unwrap_err(), OptionError::BadValue(c"--hole"));
        assert_eq!(parse([c"r", c"--"].into_iter()).unwrap_err(), OptionError::NoProgram);
    }
}
