//! ELF relocatable files to one shared object, by `ld.lld`.

use super::{CompileError, object};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

/// The linker's names, the first that is there is used.
const LINKERS: [&str; 2] = ["ld.lld-22", "ld.lld"];

/// How an object comes into a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Shape {
    /// Its segments are mapped from a file: on pages of their own, of any host.
    Mapped,
    /// It is copied there as a whole: as short as possible.
    Copied,
}

impl Shape {
    fn options(self) -> &'static [&'static str] {
        match self {
            Shape::Mapped => &[],
            Shape::Copied => &["-z", "noseparate-code", "-z", "max-page-size=4096"],
        }
    }
}

/// A directory that is gone when the value is.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> std::io::Result<Scratch> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("tranship-link-{}-{number}", std::process::id()));
        std::fs::create_dir(&path)?;
        Ok(Scratch(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed is left to the system's cleaning of temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Link `objects` into one shared object without undefined symbols or dynamic relocations.
pub(super) fn link(objects: &[Vec<u8>], shape: Shape) -> Result<Vec<u8>, CompileError> {
    let scratch = Scratch::new()?;
    let mut inputs = Vec::new();
    for (n, object) in objects.iter().enumerate() {
        let path = scratch.0.join(format!("{n}.o"));
        std::fs::write(&path, object)?;
        inputs.push(path);
    }
    let output = scratch.0.join("object.so");
    let said = run_linker(&inputs, &output, shape)?;
    if !said.status.success() {
        return Err(CompileError::Link { message: String::from_utf8_lossy(&said.stderr).trim().to_owned() });
    }
    Ok(std::fs::read(output)?)
}

fn run_linker(inputs: &[PathBuf], output: &Path, shape: Shape) -> Result<Output, CompileError> {
    for linker in LINKERS {
        let mut command = Command::new(linker);
        command.args([
            "-shared",
            "-z",
            "defs",
            "-z",
            "text",
            "-z",
            "norelro",
            "--build-id=none",
            "-e",
            object::SYMBOL,
        ]);
        match command.args(shape.options()).args(inputs).arg("-o").arg(output).output() {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(CompileError::Link { message: error.to_string() }),
            Ok(said) => return Ok(said),
        }
    }
    Err(CompileError::Link { message: format!("none of {LINKERS:?} is installed (Debian: lld-22)") })
}
