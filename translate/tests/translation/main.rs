//! Around translating: the cache of objects, and what a translation shows of itself.
#![allow(clippy::unwrap_used, clippy::panic)]

mod cache;
mod dump;

use std::path::{Path, PathBuf};
use std::process::Command;
use tranship_translate::elf::GuestElf;

const SOURCE: &str = "__attribute__((noinline)) long twice(long n) { return n * 2; }
    static double of[4];
    __attribute__((noinline)) void add_up(double *to, double start) {
        for (long n = 0; n < 400; n++) start += of[n % 4];
        *to = start;
    }
    void _start(void) {
        for (volatile long n = 1; n < 100; n = twice(n));
        add_up(of, 1);
        __builtin_trap();
    }";

/// An empty directory of the test's own.
fn scratch(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("translation").join(name);
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    path
}

/// A program with the functions `twice` and `add_up`, which are called.
fn program(directory: &Path) -> GuestElf {
    let (source, program) = (directory.join("program.c"), directory.join("program"));
    std::fs::write(&source, SOURCE).unwrap();
    let status = Command::new("gcc")
        .args(["-O1", "-static", "-nostdlib", "-fcf-protection=none", "-o"])
        .args([&program, &source])
        .status();
    assert!(status.unwrap().success());
    GuestElf::parse(std::fs::read(program).unwrap()).unwrap()
}
