//! runc's command line, as far as it has to be understood: global options, the command, and the options of the commands
//! that start containers.

use std::ffi::OsString;
use std::path::PathBuf;

/// What precedes the delegate's own help.
pub(crate) const HELP: &str = "\
tranship-runc: an OCI runtime whose checkpoints can be restored on machines of other instruction sets.

Every command is runc's (or crun's). What is added:
  create, run   start the container with the CPU baseline that every node has
  checkpoint    leaves images as CRIU writes them on the container's home machine
  restore       takes such images on any machine

Environment:
  TRANSHIP_RUNTIME     the OCI runtime to use [default: runc or crun, the first in PATH]
  TRANSHIP_LIB         directory with the in-process runtimes, runtime-ISA [default: lib/tranship beside this program's bin]
  TRANSHIP_TRANSLATE   always: translate on the home machine, too (for tests)

Examples:
  podman --runtime /usr/bin/tranship-runc run -d --name cache redis
  podman --runtime /usr/bin/tranship-runc container checkpoint --export cache.tar cache
  podman --runtime /usr/bin/tranship-runc container restore --import cache.tar

";

/// Global options of runc and crun that take the next word, if they have no `=`.
const GLOBAL_WITH_VALUE: &[&str] = &["log", "log-format", "root", "criu", "rootless", "cgroup-manager"];

/// A command line in parts.
pub(crate) struct CommandLine<'w> {
    command: Option<&'w str>,
    /// What follows the command.
    rest: Vec<&'w str>,
    global: Vec<&'w str>,
}

impl<'w> CommandLine<'w> {
    /// Take `words` apart. What is no UTF-8 is no option that matters here.
    pub(crate) fn parse(words: &'w [OsString]) -> CommandLine<'w> {
        let words: Vec<&str> = words.iter().map(|word| word.to_str().unwrap_or_default()).collect();
        let mut at = 0;
        while let Some(option) = words.get(at).and_then(|word| word.strip_prefix('-')) {
            let takes_next = GLOBAL_WITH_VALUE.contains(&option.trim_start_matches('-'));
            at += if takes_next { 2 } else { 1 };
        }
        let (global, rest) = words.split_at(at.min(words.len()));
        let (command, rest) =
            rest.split_first().map_or((None, rest), |(command, rest)| (Some(*command), rest));
        CommandLine { command, rest: rest.to_vec(), global: global.to_vec() }
    }

    /// Whether the user wants to know what this program does.
    pub(crate) fn asks_for_help(&self) -> bool {
        let is_help = |word: &&str| matches!(*word, "-h" | "--help" | "-help");
        self.global.iter().any(is_help) || self.command.is_none_or(|command| matches!(command, "help" | "h"))
    }

    /// Whether a program starts in a new container.
    pub(crate) fn starts_a_container(&self) -> bool {
        matches!(self.command, Some("create" | "run"))
            && !self.rest.iter().any(|word| matches!(*word, "-h" | "--help"))
    }

    /// The bundle's directory: the working directory, if it is not given.
    pub(crate) fn bundle(&self) -> PathBuf {
        let mut words = self.rest.iter();
        while let Some(word) = words.next() {
            let Some(option) = word.strip_prefix('-') else { continue };
            let option = option.trim_start_matches('-');
            match option.split_once('=') {
                Some(("bundle" | "b", value)) => return value.into(),
                None if matches!(option, "bundle" | "b") => {
                    return words.next().copied().unwrap_or(".").into();
                }
                _ => {}
            }
        }
        ".".into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn engines_command_lines_are_taken_apart() {
        let starts = |line: &str| {
            let words = words(line);
            let line = CommandLine::parse(&words);
            line.starts_a_container().then(|| line.bundle().display().to_string())
        };
        let conmon = "--systemd-cgroup --root=/run/runc --log /a/log create --bundle /b --pid-file /c id";
        assert_eq!(starts(conmon).as_deref(), Some("/b"));
        assert_eq!(starts("--root /run/create run -b=/x id").as_deref(), Some("/x"));
        assert_eq!(starts("create id").as_deref(), Some("."));
        assert_eq!(starts("--root /run/runc checkpoint --bundle /b id"), None);
        assert_eq!(starts("state create"), None);
        assert_eq!(starts("create --help"), None);
    }

    #[test]
    fn help_is_told_from_commands() {
        let asks = |line: &str| CommandLine::parse(&words(line)).asks_for_help();
        assert!(asks("--help") && asks("--root /x help") && !asks("list") && !asks("state --help"));
    }
}
