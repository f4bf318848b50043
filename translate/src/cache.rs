//! Objects kept by what they are made from: the guest file, the host, how to compile, and the translator itself.
//!
//! ```text
//! DIRECTORY/KEY             the SHA-256 of an object, in hexadecimal
//! DIRECTORY/SHA256.object   that object
//! ```
//!
//! Files appear whole, under their names, by rename; so any number of processes can use a directory at once. An object
//! whose contents have another digest than its name is made anew.

use crate::Progress;
use crate::bitcode::Bitcode;
use crate::compile::{CompileError, Host, Options, compile};
use crate::discover::discover;
use crate::elf::GuestElf;
use crate::region::Discovery;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A directory of objects.
#[derive(Clone, Debug)]
pub struct Cache {
    directory: PathBuf,
}

/// An object in a cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cached {
    /// Its file.
    pub path: PathBuf,
    /// SHA-256 of the file, in hexadecimal.
    pub digest: String,
    /// Bytes in the file.
    pub bytes: u64,
    /// It was there before.
    pub found: bool,
}

/// Why there is no object.
#[derive(Debug)]
pub enum CacheError {
    /// It cannot be compiled.
    Compile(CompileError),
    /// The cache's directory cannot be used.
    Io {
        /// What was being read or written.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl std::fmt::Display for CacheError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            CacheError::Compile(error) => error.fmt(f),
            CacheError::Io { path, source } => write!(f, "cache of objects: {}: {source}", path.display()),
        }
    }
}

impl std::error::Error for CacheError {}

impl Cache {
    /// The cache in `directory`, which is made when it is needed.
    pub fn new(directory: impl Into<PathBuf>) -> Cache {
        Cache { directory: directory.into() }
    }

    /// The object for `elf` on `host`: as it is in the cache, or compiled now and kept.
    pub fn object(
        &self,
        elf: &GuestElf,
        host: &Host,
        options: &Options,
        progress: &dyn Progress,
    ) -> Result<Cached, CacheError> {
        let key = self.directory.join(hex(&key(elf, host, options)));
        self.find_or_keep(&key, || {
            let found = Discovery { faults: options.faults, ..discover(elf) };
            let bitcode = Bitcode::lift(elf, &found, options.jobs, progress);
            compile(&bitcode, host, options, progress)
        })
    }

    /// The object that [`Cache::object`] would return without compiling.
    pub fn present(&self, elf: &GuestElf, host: &Host, options: &Options) -> Option<Cached> {
        self.find(&self.directory.join(hex(&key(elf, host, options))))
    }

    /// The same as [`Cache::object`] of the regions around the addresses in `hot`, for a process that runs, see [`Bitcode::lift_running`].
    /// `part` is only asked for them if there is no such object yet.
    pub fn running(
        &self,
        elf: &GuestElf,
        hot: &BTreeSet<u64>,
        part: impl FnOnce() -> Discovery,
        host: &Host,
        options: &Options,
    ) -> Result<Cached, CacheError> {
        self.find_or_keep(&self.running_key(elf, hot, host, options), || {
            let found = Discovery { faults: options.faults, ..part() };
            compile(&Bitcode::lift_running(elf, &found), host, options, &())
        })
    }

    /// What [`Cache::running`] finds without compiling.
    pub fn kept(
        &self,
        elf: &GuestElf,
        hot: &BTreeSet<u64>,
        host: &Host,
        options: &Options,
    ) -> Option<Cached> {
        self.find(&self.running_key(elf, hot, host, options))
    }

    fn running_key(&self, elf: &GuestElf, hot: &BTreeSet<u64>, host: &Host, options: &Options) -> PathBuf {
        let mut digest = Sha256::new().chain_update(key(elf, host, options));
        hot.iter().for_each(|address| digest.update(address.to_le_bytes()));
        self.directory.join(hex(&digest.finalize()))
    }

    fn find_or_keep(
        &self,
        key: &Path,
        make: impl FnOnce() -> Result<Vec<u8>, CompileError>,
    ) -> Result<Cached, CacheError> {
        match self.find(key) {
            Some(found) => Ok(found),
            None => self.keep(key, &make().map_err(CacheError::Compile)?),
        }
    }

    /// What `key` leads to, if that is whole.
    fn find(&self, key: &Path) -> Option<Cached> {
        let digest = fs::read_to_string(key).ok()?;
        let path = self.object_path(&digest);
        let object = fs::read(&path).ok()?;
        let whole = hex(&Sha256::digest(&object)) == digest;
        whole.then_some(Cached { path, digest, bytes: object.len() as u64, found: true })
    }

    fn keep(&self, key: &Path, object: &[u8]) -> Result<Cached, CacheError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| CacheError::Io { path, source }
        };
        let digest = hex(&Sha256::digest(object));
        let path = self.object_path(&digest);
        write_whole(&path, object).map_err(failed(&path))?;
        write_whole(key, digest.as_bytes()).map_err(failed(key))?;
        Ok(Cached { path, digest, bytes: object.len() as u64, found: false })
    }

    fn object_path(&self, digest: &str) -> PathBuf {
        self.directory.join(format!("{digest}.object"))
    }
}

/// Everything that an object depends on.
fn key(elf: &GuestElf, host: &Host, options: &Options) -> [u8; 32] {
    let (major, minor, patch) = inkwell::support::get_llvm_version();
    let translator = env!("TRANSHIP_TRANSLATOR");
    let Host { machine, cpu, features } = host;
    let Options { passes, faults, .. } = options;
    let rest = format!(
        "{machine} {cpu} {features}\n{passes}\n{faults:?}\n{translator} LLVM {major}.{minor}.{patch}"
    );
    Sha256::new().chain_update(elf.digest).chain_update(rest).finalize().into()
}

/// Have a file at `path`, and its directory, that is never seen in part.
pub fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory)?;
    }
    let next = path.with_extension(format!("{}-{number}", std::process::id()));
    let written = fs::write(&next, bytes).and_then(|()| fs::rename(&next, path));
    if written.is_err() {
        // Nothing else to do about it: the first error is the one that counts.
        let _ = fs::remove_file(&next);
    }
    written
}

/// Bytes in hexadecimal, as files of a cache are named.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
