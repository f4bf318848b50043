//! runc's command line, as far as it has to be understood: global options, the command, and the options of the commands
//! that start programs.

use std::ffi::{OsStr, OsString};
use std::ops::Range;
use std::path::PathBuf;

/// What precedes the delegate's own help.
pub(crate) const HELP: &str = "\
tranship-runc: an OCI runtime whose checkpoints can be restored on machines of other instruction sets.

Every command is runc's (or crun's). What is added:
  create, run   start the container with the CPU baseline that every node has; translated, if it is of another machine
  exec          the same
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
/// The same of `exec`.
const EXEC_WITH_VALUE: &[&str] = &[
    "console-socket",
    "cwd",
    "env",
    "e",
    "user",
    "u",
    "additional-gids",
    "g",
    "process",
    "p",
    "pid-file",
    "process-label",
    "apparmor",
    "cap",
    "c",
    "preserve-fds",
    "cgroup",
];
/// How many descriptors are passed to the container.
const PRESERVE_FDS: &[&str] = &["preserve-fds"];

/// A command line in parts.
pub(crate) struct CommandLine {
    words: Vec<OsString>,
    /// Where the command is.
    command: usize,
}

impl CommandLine {
    /// Take `words` apart.
    pub(crate) fn parse(words: Vec<OsString>) -> CommandLine {
        let command = skip_options(&words, 0, GLOBAL_WITH_VALUE);
        CommandLine { words, command }
    }

    /// All of it.
    pub(crate) fn words(&self) -> &[OsString] {
        &self.words
    }

    /// The global options.
    pub(crate) fn global(&self) -> &[OsString] {
        &self.words[..self.command]
    }

    /// Where the runtime keeps the state of its containers, if that is given.
    pub(crate) fn root(&self) -> Option<&str> {
        let mut words = self.global().iter().filter_map(|word| word.to_str());
        let is_root = |word: &&str| matches!(word.trim_start_matches('-').split('=').next(), Some("root"));
        let word = words.find(is_root)?;
        word.split_once('=').map(|(_, value)| value).or_else(|| words.next())
    }

    /// The command; empty if there is none.
    pub(crate) fn command(&self) -> &str {
        self.words.get(self.command).and_then(|word| word.to_str()).unwrap_or_default()
    }

    /// Whether the user wants to know what this program does.
    pub(crate) fn asks_for_help(&self) -> bool {
        self.global().iter().any(|word| is_help(word)) || matches!(self.command(), "" | "help" | "h")
    }

    /// Whether the command is only to be explained.
    pub(crate) fn asks_for_commands_help(&self) -> bool {
        let end = self.options_end();
        end == self.words.len() || self.words[..end].iter().any(|word| is_help(word))
    }

    /// The bundle's directory: the working directory, if it is not given.
    pub(crate) fn bundle(&self) -> PathBuf {
        self.option(&["bundle", "b"]).map_or_else(|| ".".into(), PathBuf::from)
    }

    /// Where `exec` starts the container's id: the first word that is no option, nor an option's.
    fn options_end(&self) -> usize {
        let with_value = if self.command() == "exec" { EXEC_WITH_VALUE } else { &[] };
        skip_options(&self.words, self.command + 1, with_value).min(self.words.len())
    }

    /// The container of `exec`, and the program and its arguments.
    pub(crate) fn executed(&self) -> Option<(&OsStr, &[OsString])> {
        let (container, program) = self.words[self.options_end()..].split_first()?;
        Some((container, program))
    }

    /// The value of an option of the command that has these names.
    pub(crate) fn option(&self, names: &[&str]) -> Option<&str> {
        self.find(names).map(|(_, value)| value)
    }

    /// Where the words of such an option are, and its value.
    fn find(&self, names: &[&str]) -> Option<(Range<usize>, &str)> {
        let mut at = self.command + 1;
        while let Some(word) = self.words.get(at) {
            let word = word.to_str().unwrap_or_default();
            let name = word.strip_prefix("--").or(word.strip_prefix('-')).unwrap_or_default();
            match name.split_once('=') {
                Some((name, value)) if names.contains(&name) => return Some((at..at + 1, value)),
                None if names.contains(&name) => {
                    return Some((at..at + 2, self.words.get(at + 1)?.to_str()?));
                }
                _ => at += 1,
            }
        }
        None
    }

    /// The same with the option `name` set to `value`.
    pub(crate) fn with_option(mut self, names: &[&str], value: &str) -> CommandLine {
        if let Some((range, _)) = self.find(names) {
            self.words.drain(range);
        }
        let words = [format!("--{}", names[0]).into(), value.into()];
        self.words.splice(self.command + 1..self.command + 1, words);
        self
    }

    /// The same with another program for `exec`.
    pub(crate) fn with_program(mut self, program: Vec<OsString>) -> CommandLine {
        self.words.truncate(self.options_end() + 1);
        self.words.extend(program);
        self
    }

    /// The same with one descriptor more that is passed to the container, and the number that it has to have.
    pub(crate) fn with_descriptor(self) -> (CommandLine, i32) {
        let passed: i32 = self.option(PRESERVE_FDS).and_then(|count| count.parse().ok()).unwrap_or(0);
        let listening: i32 =
            std::env::var("LISTEN_FDS").ok().and_then(|count| count.parse().ok()).unwrap_or(0);
        (self.with_option(PRESERVE_FDS, &(passed + 1).to_string()), 3 + listening + passed)
    }
}

/// The first word from `at` on that is neither an option nor the value of one.
fn skip_options(words: &[OsString], mut at: usize, with_value: &[&str]) -> usize {
    while let Some(option) = words.get(at).and_then(|word| word.to_str()?.strip_prefix('-')) {
        at += if with_value.contains(&option.trim_start_matches('-')) { 2 } else { 1 };
    }
    at.min(words.len())
}

fn is_help(word: &OsStr) -> bool {
    matches!(word.to_str(), Some("-h" | "--help" | "-help"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> CommandLine {
        CommandLine::parse(text.split(' ').map(OsString::from).collect())
    }

    #[test]
    fn engines_command_lines_are_taken_apart() {
        let bundle = |text: &str| {
            let line = line(text);
            (line.command().to_owned(), line.bundle().display().to_string())
        };
        let conmon = "--systemd-cgroup --root=/run/runc --log /a/log create --bundle /b --pid-file /c id";
        assert_eq!(bundle(conmon), ("create".to_owned(), "/b".to_owned()));
        assert_eq!(bundle("--root /run/create run -b=/x id"), ("run".to_owned(), "/x".to_owned()));
        assert_eq!(bundle("create id"), ("create".to_owned(), ".".to_owned()));
        let root = |text: &str| line(text).root().map(str::to_owned);
        assert_eq!(root(conmon).as_deref(), Some("/run/runc"));
        assert_eq!(root("--debug --root /r state id").as_deref(), Some("/r"));
        assert_eq!(root("--rootless true state id"), None);
    }

    #[test]
    fn help_is_told_from_commands() {
        let asks = |text: &str| line(text).asks_for_help();
        assert!(asks("--help") && asks("--root /x help") && !asks("list") && !asks("state --help"));
        assert!(
            line("create --help").asks_for_commands_help() && !line("create id").asks_for_commands_help()
        );
    }

    #[test]
    fn what_exec_executes_is_behind_its_options() {
        let line = line("exec -e A=1 --tty -u 0:0 --cwd=/x box ls -l -e");
        let (container, program) = line.executed().unwrap();
        assert_eq!((container, program), (OsStr::new("box"), &["ls", "-l", "-e"].map(OsString::from)[..]));
        let line = line.with_program(vec!["id".into()]);
        assert_eq!(line.words()[line.words().len() - 2..], ["box", "id"]);
    }

    #[test]
    fn descriptors_come_after_those_of_the_engine() {
        let (line, number) = line("exec --preserve-fds 2 box").with_descriptor();
        assert_eq!((line.option(PRESERVE_FDS), number), (Some("3"), 5));
        assert_eq!(line.words().len(), 4);
    }
}
