//! The programs: C sources in `programs/`, built static with `gcc -O2` as a distribution would.

use crate::error::Error;
use crate::fresh::is_newer;
use crate::measure;
use crate::top;
use std::path::PathBuf;
use std::process::Command;

/// A program whose speed is measured. It prints a checksum of what it did.
pub(crate) struct Program {
    /// Its source is `programs/NAME.c`.
    pub(crate) name: &'static str,
    /// What it does, for the table.
    pub(crate) about: &'static str,
    /// Libraries to link, besides the C library.
    libraries: &'static [&'static str],
    /// A file in `programs/` that it takes as its argument.
    script: Option<&'static str>,
}

const fn c(name: &'static str, about: &'static str, libraries: &'static [&'static str]) -> Program {
    Program { name, about, libraries, script: None }
}

/// All of them, in the order of the table.
pub(crate) const PROGRAMS: &[Program] = &[
    c("sha256", "SHA-256 in plain C", &[]),
    c("matmul", "dense matrix product, doubles", &[]),
    c("mix", "list sort, 16-bit matrix, state machine, CRC", &[]),
    c("callret", "recursion, direct and through pointers", &[]),
    c("is", "NPB-like IS, class B: integer sort", &[]),
    c("ep", "NPB-like EP, class A: Gaussian deviates", &["m"]),
    c("cg", "NPB-like CG: sparse conjugate gradient", &["m"]),
    c("mg", "NPB-like MG: multigrid", &["m"]),
    c("gzip", "zlib deflate and inflate", &["z"]),
    Program { script: Some("work.lua"), ..c("lua", "Lua 5.4 interpreter", &["lua5.4", "m"]) },
    c("sqlite", "SQLite in memory", &["sqlite3", "m"]),
];

/// The programs of these names; no names means all.
pub(crate) fn select(names: &[String]) -> Result<Vec<&'static Program>, Error> {
    if names.is_empty() {
        return Ok(PROGRAMS.iter().collect());
    }
    let find = |name: &String| {
        let found = PROGRAMS.iter().find(|program| program.name == name);
        found.ok_or_else(|| Error::UnknownProgram { name: name.clone() })
    };
    names.iter().map(find).collect()
}

/// An executable and the arguments it runs with.
pub(crate) struct Built {
    /// Static x86-64 ELF file.
    pub(crate) path: PathBuf,
    /// Its arguments.
    pub(crate) arguments: Vec<PathBuf>,
}

impl Program {
    /// Compiles and links it into `target/bench/`, unless what is there has not aged.
    pub(crate) fn build(&self) -> Result<Built, Error> {
        let sources = top().join("bench/programs");
        let source = sources.join(self.name).with_extension("c");
        let path = folder()?.join(self.name);
        if !is_newer(&path, &[&source, &sources.join("random.h")]) {
            let mut gcc = Command::new("gcc");
            gcc.args(["-O2", "-static", "-w", "-I/usr/include/lua5.4", "-o"]).arg(&path).arg(&source);
            gcc.args(self.libraries.iter().map(|library| format!("-l{library}")));
            measure::tool(gcc)?;
        }
        Ok(Built { path, arguments: self.script.iter().map(|script| sources.join(script)).collect() })
    }
}

/// Where executables and translated objects go.
fn folder() -> Result<PathBuf, Error> {
    let folder = top().join("target/bench");
    match std::fs::create_dir_all(&folder) {
        Ok(()) => Ok(folder),
        Err(source) => Err(Error::File { path: folder, source }),
    }
}
