//! The programs: C sources in `programs/`, built static with `gcc -O2` as a distribution would, and programs of the
//! distribution itself, linked with its libraries.

use crate::error::Error;
use crate::fresh::is_newer;
use crate::measure;
use crate::top;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A program whose speed is measured. It prints a checksum of what it did.
pub(crate) struct Program {
    /// What the table calls it.
    pub(crate) name: &'static str,
    /// What it does, for the table.
    pub(crate) about: &'static str,
    origin: Origin,
    /// A file in `programs/` that it takes as its last argument.
    script: Option<&'static str>,
}

/// Where a program comes from.
enum Origin {
    /// `programs/NAME.c`, and these libraries besides the C library.
    Source { libraries: &'static [&'static str] },
    /// The distribution's, with these arguments.
    Installed { path: &'static str, arguments: &'static [&'static str] },
}

const fn c(name: &'static str, about: &'static str, libraries: &'static [&'static str]) -> Program {
    Program { name, about, origin: Origin::Source { libraries }, script: None }
}

const fn installed(
    path: &'static str,
    arguments: &'static [&'static str],
    script: &'static str,
    name: &'static str,
    about: &'static str,
) -> Program {
    Program { name, about, origin: Origin::Installed { path, arguments }, script: Some(script) }
}

/// Arguments with which `openssl` derives a key, which is what takes the time, and encrypts a file.
const ENCRYPT: &[&str] =
    &["enc", "-aes-256-ctr", "-pbkdf2", "-iter", "2000000", "-nosalt", "-pass", "pass:bench", "-in"];

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
    installed(
        "/usr/bin/python3",
        &["-S"],
        "work.py",
        "python3",
        "CPython 3.11, dynamic: objects, floats, JSON",
    ),
    installed("/usr/bin/openssl", ENCRYPT, "work.py", "openssl", "OpenSSL 3, dynamic: PBKDF2 and AES"),
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
    /// x86-64 ELF file.
    pub(crate) path: PathBuf,
    /// It has its code in more files than one, the libraries that it is linked with.
    pub(crate) is_dynamic: bool,
    /// Its arguments.
    pub(crate) arguments: Vec<OsString>,
}

impl Program {
    /// Compiles and links it into `target/bench/`, unless what is there has not aged.
    pub(crate) fn build(&self) -> Result<Built, Error> {
        let sources = top().join("bench/programs");
        let script = self.script.iter().map(|script| sources.join(script).into_os_string());
        match &self.origin {
            Origin::Source { libraries } => {
                let path = self.compile(&sources, libraries)?;
                Ok(Built { path, is_dynamic: false, arguments: script.collect() })
            }
            Origin::Installed { path, arguments } => {
                let arguments = arguments.iter().map(|argument| argument.into()).chain(script);
                Ok(Built { path: path.into(), is_dynamic: true, arguments: arguments.collect() })
            }
        }
    }

    fn compile(&self, sources: &Path, libraries: &[&str]) -> Result<PathBuf, Error> {
        let source = sources.join(self.name).with_extension("c");
        let path = folder()?.join(self.name);
        if !is_newer(&path, &[&source, &sources.join("random.h")]) {
            let mut gcc = Command::new("gcc");
            gcc.args(["-O2", "-static", "-w", "-I/usr/include/lua5.4", "-o"]).arg(&path).arg(&source);
            gcc.args(libraries.iter().map(|library| format!("-l{library}")));
            measure::tool(gcc)?;
        }
        Ok(path)
    }
}

/// Where executables and translated objects go.
pub(crate) fn folder() -> Result<PathBuf, Error> {
    let folder = top().join("target/bench");
    match std::fs::create_dir_all(&folder) {
        Ok(()) => Ok(folder),
        Err(source) => Err(Error::File { path: folder, source }),
    }
}
