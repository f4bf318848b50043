//! The ways to run an x86-64 program that are compared.

use crate::error::Error;
use crate::measure;
use crate::program::Built;
use std::process::Command;

/// One column of the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Engine {
    /// The CPU.
    Native,
    /// qemu-user of the distribution.
    Qemu,
}

/// What an engine has done once for a program.
pub(crate) struct Preparation {
    /// CPU seconds that it took; `None` where there is nothing to prepare.
    pub(crate) cpu_seconds: Option<f64>,
}

/// The engines in the order in which they run; native is first.
pub(crate) fn all(qemu: bool) -> Vec<Engine> {
    if qemu { vec![Engine::Native, Engine::Qemu] } else { vec![Engine::Native] }
}

impl Engine {
    /// Heading of its column.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Engine::Native => "native",
            Engine::Qemu => "qemu-user",
        }
    }

    /// What is done once for a program, and not counted in its time.
    pub(crate) fn prepare(self, _program: &Built) -> Result<Preparation, Error> {
        Ok(Preparation { cpu_seconds: None })
    }

    /// The command that runs the program.
    pub(crate) fn command(self, program: &Built, _preparation: &Preparation) -> Command {
        let mut command = match self {
            Engine::Native => Command::new(&program.path),
            Engine::Qemu => {
                let mut command = Command::new("qemu-x86_64-static");
                command.arg(&program.path);
                command
            }
        };
        command.args(&program.arguments);
        command
    }

    /// Its version, for the page.
    pub(crate) fn version(self) -> Result<String, Error> {
        match self {
            Engine::Native => measure::output_of("gcc", &["--version"]).map(first_line),
            Engine::Qemu => measure::output_of("qemu-x86_64-static", &["--version"]).map(first_line),
        }
    }
}

fn first_line(text: String) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}
