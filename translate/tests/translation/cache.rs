//! The cache: found again, told apart, mended, shared.

use crate::{program, scratch};
use std::fs;
use std::path::{Path, PathBuf};
use tranship_translate::cache::{Cache, Cached};
use tranship_translate::compile::{Host, Options};
use tranship_translate::elf::GuestElf;

fn object(cache: &Path, elf: &GuestElf, host: &Host, options: &Options) -> Cached {
    Cache::new(cache).object(elf, host, options, &()).unwrap()
}

fn files(directory: &Path) -> Vec<PathBuf> {
    fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn an_object_is_made_once() {
    let directory = scratch("once");
    let (elf, cache) = (program(&directory), directory.join("cache"));
    let made = object(&cache, &elf, &Host::x86_64(), &Options::default());
    let found = object(&cache, &elf, &Host::x86_64(), &Options::default());
    assert!(!made.found && found.found);
    assert_eq!((made.path, made.digest, made.bytes), (found.path.clone(), found.digest, found.bytes));
    assert!(fs::read(&found.path).unwrap().starts_with(b"\x7fELF"));
}

#[test]
fn hosts_and_passes_are_told_apart_but_not_jobs() {
    let directory = scratch("apart");
    let (elf, cache) = (program(&directory), directory.join("cache"));
    let options = Options::default();
    let first = object(&cache, &elf, &Host::x86_64(), &options);
    let other_jobs = Options { jobs: options.jobs + 1, ..options.clone() };
    assert!(object(&cache, &elf, &Host::x86_64(), &other_jobs).found);
    let other_passes = Options { passes: "always-inline".into(), ..options.clone() };
    assert!(!object(&cache, &elf, &Host::x86_64(), &other_passes).found);
    let newer = Host { cpu: "x86-64-v3".into(), ..Host::x86_64() };
    assert!(!object(&cache, &elf, &newer, &options).found);
    let abroad = object(&cache, &elf, &Host::aarch64(), &options);
    assert!(!abroad.found && abroad.digest != first.digest);
}

#[test]
fn a_damaged_entry_is_made_anew() {
    let directory = scratch("damaged");
    let (elf, cache) = (program(&directory), directory.join("cache"));
    let options = Options::default();
    let made = object(&cache, &elf, &Host::x86_64(), &options);
    let good = fs::read(&made.path).unwrap();
    let key = files(&cache).into_iter().find(|path| path.extension().is_none()).unwrap();
    let mut flipped = good.clone();
    flipped[good.len() / 2] ^= 1;
    let truncated = &good[..good.len() / 2];
    for (path, contents) in
        [(&made.path, &flipped[..]), (&made.path, truncated), (&key, b"../../etc/passwd"), (&key, b"")]
    {
        fs::write(path, contents).unwrap();
        let again = object(&cache, &elf, &Host::x86_64(), &options);
        assert!(!again.found, "{}", path.display());
        assert_eq!(fs::read(&again.path).unwrap(), good);
        assert!(object(&cache, &elf, &Host::x86_64(), &options).found);
    }
    fs::remove_file(&made.path).unwrap();
    assert!(!object(&cache, &elf, &Host::x86_64(), &options).found);
}

#[test]
fn many_writers_leave_one_object() {
    let directory = scratch("writers");
    let (elf, cache) = (program(&directory), directory.join("cache"));
    let options = Options { jobs: 1, ..Options::default() };
    let made: Vec<Cached> = std::thread::scope(|scope| {
        let write = || object(&cache, &elf, &Host::x86_64(), &options);
        let writers: Vec<_> = (0..8).map(|_| scope.spawn(write)).collect();
        writers.into_iter().map(|writer| writer.join().unwrap()).collect()
    });
    assert!(made.iter().all(|one| one.digest == made[0].digest && one.path == made[0].path));
    assert_eq!(files(&cache).len(), 2, "a key and an object: {:?}", files(&cache));
}

#[test]
fn a_cache_that_cannot_be_written_is_named() {
    let directory = scratch("unwritable");
    let elf = program(&directory);
    let file = directory.join("file");
    fs::write(&file, "").unwrap();
    let cache = Cache::new(file.join("cache"));
    let error = cache.object(&elf, &Host::x86_64(), &Options::default(), &()).unwrap_err();
    assert!(error.to_string().contains(file.to_str().unwrap()), "{error}");
}
