//! The suites. `prepare` makes what one needs, `scripts/NAME.sh` runs it: natively or with `$RUN`, and prints a line
//! for each case, its name and its result with a tab in between.

use crate::engine::Engine;
use crate::error::Error;
use crate::top;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread;
use tranship_service::host_here;
use tranship_translate::cache::Cache;
use tranship_translate::compile::Options;
use tranship_translate::elf::GuestElf;

/// A test suite of another project.
pub(crate) struct Suite {
    /// Its script is `scripts/NAME.sh`.
    pub(crate) name: &'static str,
    /// What it is, for the table.
    pub(crate) about: &'static str,
    /// How it runs translated.
    pub(crate) engines: &'static [Engine],
}

/// All of them, in the order of the table.
pub(crate) const SUITES: &[Suite] = &[
    Suite {
        name: "c-torture",
        about: "gcc 12's c-torture/execute, each program by gcc -O2",
        engines: &[Engine::Interpreted, Engine::Compiled],
    },
    Suite {
        name: "redis",
        about: "redis 7.0's Tcl tests in unit, all of them, on a translated server",
        engines: &[Engine::Served],
    },
    Suite {
        name: "glibc",
        about: "glibc 2.36's tests in signal, setjmp, socket, time, dirent, rt and sysdeps/unix/sysv/linux, as far as \
                they compile against the installed library",
        engines: &[Engine::Interpreted],
    },
    Suite {
        name: "kernel",
        about: "Linux 6.1's own tests of its system calls: of what tools/testing/selftests says of processes, files, memory, \
                time and sockets, what compiles against the installed headers, sets no clocks and ends soon",
        engines: &[Engine::Interpreted],
    },
    Suite {
        name: "speedtest1",
        about: "SQLite 3.40's speedtest1 --verify, test sets main, cte, fp and orm: hashes of all results",
        engines: &[Engine::Served],
    },
    Suite {
        name: "cpython",
        about: "CPython 3.11's tests of int, float, math, struct, json, re, threading, socket, signal and subprocess, \
                without those that need its resources",
        engines: &[Engine::Served],
    },
];

/// The suites of these names; no names means all.
pub(crate) fn select(names: &[String]) -> Result<Vec<&'static Suite>, Error> {
    if names.is_empty() {
        return Ok(SUITES.iter().collect());
    }
    let find = |name: &String| {
        let found = SUITES.iter().find(|suite| suite.name == name);
        found.ok_or_else(|| Error::UnknownSuite { name: name.clone() })
    };
    names.iter().map(find).collect()
}

/// Where everything is that comes from elsewhere or is made of it.
pub(crate) fn folder() -> PathBuf {
    top().join("target/suites")
}

/// The Debian root that suites run in.
pub(crate) fn root() -> PathBuf {
    folder().join("root")
}

impl Suite {
    /// Its script, run by bash in the root.
    pub(crate) fn script(&self) -> PathBuf {
        top().join("suites/scripts").join(self.name).with_extension("sh")
    }

    /// Where a run's messages go.
    pub(crate) fn log(&self, run: &str) -> PathBuf {
        folder().join(format!("{}.{run}.log", self.name))
    }

    /// Have its programs in the root, and objects of those that are to run compiled.
    pub(crate) fn prepare(&self) -> Result<(), Error> {
        fs::create_dir_all(folder()).map_err(Error::file(&folder()))?;
        let log = self.log("prepare");
        let output = File::create(&log).map_err(Error::file(&log))?;
        let errors = output.try_clone().map_err(Error::file(&log))?;
        eprintln!("{}: preparing", self.name);
        let mut prepare = Command::new(top().join("suites/prepare"));
        prepare.arg(folder()).arg(self.name).stdin(Stdio::null()).stdout(output).stderr(errors);
        match prepare.status() {
            Ok(status) if status.success() => {}
            Ok(_) => return Err(Error::Prepare { suite: self.name, log }),
            Err(why) => return Err(Error::file(&top().join("suites/prepare"))(why)),
        }
        if self.engines.contains(&Engine::Compiled) { self.compile() } else { Ok(()) }
    }

    /// Write NAME.object beside every program NAME.
    fn compile(&self) -> Result<(), Error> {
        let programs = root().join("suites").join(self.name).join("programs");
        let listed = fs::read_dir(&programs).map_err(Error::file(&programs))?;
        let paths = listed.flatten().map(|entry| entry.path()).filter(|path| path.extension().is_none());
        let left = Mutex::new(paths.collect::<Vec<PathBuf>>());
        let next = || left.lock().ok()?.pop();
        let work = || -> Result<(), Error> {
            while let Some(program) = next() {
                compile(&program)?;
            }
            Ok(())
        };
        let workers = thread::available_parallelism().map_or(1, Into::into);
        thread::scope(|scope| {
            let started: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
            started.into_iter().filter_map(|worker| worker.join().ok()).collect()
        })
    }
}

/// Write NAME.object beside the program NAME.
fn compile(program: &Path) -> Result<(), Error> {
    let bytes = fs::read(program).map_err(Error::file(program))?;
    let elf = GuestElf::parse(bytes).map_err(|why| Error::Guest { program: program.to_owned(), why })?;
    let options = Options { jobs: 1, ..Options::default() };
    let made = Cache::new(folder().join("objects")).object(&elf, &host_here(), &options, &());
    let made = made.map_err(|why| Error::Translate { program: program.to_owned(), why })?;
    let object = program.with_extension("object");
    fs::copy(&made.path, &object).map_err(Error::file(&object))?;
    Ok(())
}
