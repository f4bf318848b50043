//! The programs: C sources in `programs/`, built static with `gcc -O2` as a distribution would, and programs of the
//! distribution itself, linked with its libraries: installed, or in the root that `suites/prepare` makes.

use crate::client::{self, Served};
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
    /// What comes behind its own arguments.
    operand: Operand,
    /// It is a server, and this is what it serves.
    client: Option<Client>,
    /// Only lines that begin so have to be the same with every engine: the others tell times.
    result: &'static str,
}

/// Makes a server that runs, of this process, work, and has it end.
pub(crate) type Client = fn(u32) -> Result<Served, Error>;

/// Files that a program takes.
enum Operand {
    None,
    /// One in `programs/`.
    Script(&'static str),
    /// pyperformance's benchmark of that name, and how often it runs.
    Pyperformance(&'static str, &'static str),
    /// The executable of that name that was built here, so many times.
    Executable(&'static str, usize),
}

/// Where a program comes from.
enum Origin {
    /// `programs/NAME.c`, and these libraries besides the C library.
    Source { libraries: &'static [&'static str] },
    /// The distribution's, with these arguments.
    Installed { path: &'static str, arguments: &'static [&'static str] },
    /// The same in the root of the suites.
    InRoot { path: &'static str, arguments: &'static [&'static str] },
}

/// A program that takes nothing more, serves nobody, and prints the same each time.
const fn plain(name: &'static str, about: &'static str, origin: Origin) -> Program {
    Program { name, about, origin, operand: Operand::None, client: None, result: "" }
}

const fn c(name: &'static str, about: &'static str, libraries: &'static [&'static str]) -> Program {
    plain(name, about, Origin::Source { libraries })
}

const fn installed(
    name: &'static str,
    about: &'static str,
    path: &'static str,
    arguments: &'static [&'static str],
) -> Program {
    plain(name, about, Origin::Installed { path, arguments })
}

const fn in_root(
    name: &'static str,
    about: &'static str,
    path: &'static str,
    arguments: &'static [&'static str],
) -> Program {
    plain(name, about, Origin::InRoot { path, arguments })
}

/// One of pyperformance's, so many times. It prints times, too.
const fn python(
    name: &'static str,
    about: &'static str,
    benchmark: &'static str,
    loops: &'static str,
) -> Program {
    let operand = Operand::Pyperformance(benchmark, loops);
    Program { operand, result: "done:", ..installed(name, about, "/usr/bin/python3", &["-S"]) }
}

/// Arguments with which `openssl` derives a key, which is what takes the time, and encrypts a file.
const ENCRYPT: &[&str] =
    &["enc", "-aes-256-ctr", "-pbkdf2", "-iter", "5000000", "-nosalt", "-pass", "pass:bench", "-in"];

/// A server that keeps nothing and listens on [`client::SOCKET`] only.
const REDIS: &[&str] = &[
    "--port",
    "0",
    "--unixsocket",
    client::SOCKET,
    "--save",
    "",
    "--enable-debug-command",
    "local",
    "--loglevel",
    "warning",
    "--logfile",
    "/dev/null",
];

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
    c("zlib", "zlib deflate and inflate", &["z"]),
    Program { operand: Operand::Script("work.lua"), ..c("lua", "Lua 5.4 interpreter", &["lua5.4", "m"]) },
    c("sqlite", "SQLite in memory", &["sqlite3", "m"]),
    python("py-nbody", "CPython 3.11, dynamic: pyperformance's nbody", "nbody", "40"),
    python("py-richards", "the same: richards", "richards", "70"),
    python("py-json", "the same: json_loads", "json_loads", "7000"),
    Program {
        operand: Operand::Script("work.lua"),
        ..installed("openssl", "OpenSSL 3, dynamic: PBKDF2 and AES", "/usr/bin/openssl", ENCRYPT)
    },
    Program {
        operand: Operand::Executable("sqlite", 8),
        ..installed("gzip", "gzip -9, dynamic", "/usr/bin/gzip", &["-9", "-c"])
    },
    Program {
        result: "Verification Hash",
        ..in_root(
            "speedtest1",
            "SQLite's speedtest1 with its library, dynamic",
            "suites/speedtest1/speedtest1",
            &["--verify", "--size", "50", "--testset", "main"],
        )
    },
    Program {
        client: Some(client::redis),
        ..in_root("redis", "redis 7, dynamic: SET and GET, 32 at a time", "usr/bin/redis-server", REDIS)
    },
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
    /// Where its libraries are, if not where they are installed.
    pub(crate) libraries: Option<PathBuf>,
    /// What it serves.
    pub(crate) client: Option<Client>,
    /// How the lines begin that have to be the same with every engine.
    pub(crate) result: &'static str,
}

impl Program {
    /// Compiles and links it into `target/bench/`, unless what is there has not aged.
    pub(crate) fn build(&self) -> Result<Built, Error> {
        let sources = top().join("bench/programs");
        let (path, own, libraries) = match &self.origin {
            Origin::Source { libraries } => (self.compile(&sources, libraries)?, &[][..], None),
            Origin::Installed { path, arguments } => (path.into(), *arguments, None),
            Origin::InRoot { path, arguments } => {
                prepare_suite("speedtest1")?;
                (suites_root().join(path), *arguments, Some(suites_libraries()))
            }
        };
        let operands: Vec<OsString> = match self.operand {
            Operand::None => vec![],
            Operand::Script(name) => vec![sources.join(name).into()],
            Operand::Pyperformance(name, loops) => {
                prepare_suite("pyperformance")?;
                let folder = suites_root().join("suites/pyperformance");
                vec![sources.join("pyperformance.py").into(), folder.into(), name.into(), loops.into()]
            }
            Operand::Executable(name, times) => vec![executable(name)?.into(); times],
        };
        let arguments = own.iter().map(OsString::from).chain(operands).collect();
        let is_dynamic = !matches!(self.origin, Origin::Source { .. });
        Ok(Built { path, is_dynamic, arguments, libraries, client: self.client, result: self.result })
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

/// The executable of the program that is called so.
fn executable(name: &str) -> Result<PathBuf, Error> {
    let program = select(&[name.to_owned()])?;
    let built: Result<Vec<Built>, Error> = program.into_iter().map(Program::build).collect();
    Ok(built?.into_iter().map(|built| built.path).collect())
}

/// The Debian root of `suites/`.
pub(crate) fn suites_root() -> PathBuf {
    top().join("target/suites/root")
}

/// The libraries of what is in that root.
pub(crate) fn suites_libraries() -> PathBuf {
    suites_root().join("usr/lib/x86_64-linux-gnu")
}

/// Have that root, with redis and this suite in it.
fn prepare_suite(name: &str) -> Result<(), Error> {
    let mut prepare = Command::new(top().join("suites/prepare"));
    prepare.arg(top().join("target/suites")).arg(name);
    measure::tool(prepare).map(|_| ())
}

/// Where executables and translated objects go.
pub(crate) fn folder() -> Result<PathBuf, Error> {
    let folder = top().join("target/bench");
    match std::fs::create_dir_all(&folder) {
        Ok(()) => Ok(folder),
        Err(source) => Err(Error::File { path: folder, source }),
    }
}
