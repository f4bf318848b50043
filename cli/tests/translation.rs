//! `tranship lift` and `tranship compile`, as a user calls them.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const SOURCE: &str = "__attribute__((noinline)) long twice(long n) { return n * 2; }
    void _start(void) { for (volatile long n = 1; n < 100; n = twice(n)); __builtin_trap(); }";

/// An empty directory with the program in it.
fn scratch(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cli-translation").join(name);
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    std::fs::write(path.join("program.c"), SOURCE).unwrap();
    let status = Command::new("gcc")
        .args(["-O1", "-static", "-nostdlib", "-fcf-protection=none", "-o", "program", "program.c"])
        .current_dir(&path)
        .status();
    assert!(status.unwrap().success());
    path
}

/// Run `tranship` with `arguments` in `directory`, with a cache there.
fn tranship(directory: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tranship"))
        .args(arguments)
        .current_dir(directory)
        .env("XDG_CACHE_HOME", directory.join("cache"))
        .output()
        .unwrap()
}

fn stdout(directory: &Path, arguments: &[&str]) -> String {
    let output = tranship(directory, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn refused(directory: &Path, arguments: &[&str], words: &str) {
    let output = tranship(directory, arguments);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains(words), "{arguments:?}: {said}");
}

#[test]
fn every_stage_can_be_shown() {
    let directory = scratch("stages");
    let lift = |stage: &str| stdout(&directory, &["lift", "program", "--dump", stage, "--function", "twice"]);
    let compile = |stage: &str, host: &str| {
        let dump = format!("--dump={stage}");
        stdout(&directory, &["compile", "program", "--host", host, &dump, "--function", "twice"])
    };
    assert!(lift("cfg").contains("twice") && lift("cfg") == compile("cfg", "aarch64"));
    assert!(lift("lift").contains("define fastcc") && lift("lift") == compile("lift", "aarch64"));
    assert!(compile("opt", "x86_64").contains("x86_regcallcc"));
    assert!(compile("opt", "aarch64").contains("preserve_nonecc"));
    assert!(compile("asm", "x86_64").contains("retq"));
    assert!(compile("asm", "aarch64").contains("\tret\n"));
    let all = stdout(&directory, &["lift", "program", "--dump=cfg"]);
    assert!(all.contains("twice") && all.contains("_start") && !lift("cfg").contains("_start"), "{all}");
}

#[test]
fn what_is_shown_can_go_to_a_file() {
    let directory = scratch("file");
    assert_eq!(stdout(&directory, &["lift", "program", "--dump=cfg", "-o", "graph"]), "");
    assert!(std::fs::read_to_string(directory.join("graph")).unwrap().contains("twice"));
}

#[test]
fn what_cannot_be_shown_is_named() {
    let directory = scratch("errors");
    refused(&directory, &["lift", "program", "--dump=cfg", "--function", "thrice"], "no function thrice");
    refused(&directory, &["lift", "program", "--dump=cfg", "--function", "0x7"], "no function 0x7");
    refused(&directory, &["lift", "program", "--function", "twice", "-o", "x"], "--dump");
    refused(&directory, &["lift", "program"], "--output");
    refused(&directory, &["lift", "program.c", "--dump=cfg"], "program.c");
    refused(&directory, &["compile", "program", "--host", "aarch64", "--dump=nothing"], "asm");
}

#[test]
fn an_object_comes_from_the_cache_the_second_time() {
    let directory = scratch("cached");
    let compile =
        || stdout(&directory, &["--json", "compile", "program", "--host", "aarch64", "-o", "object"]);
    assert!(compile().contains("\"cached\": false"));
    let first = std::fs::read(directory.join("object")).unwrap();
    assert!(compile().contains("\"cached\": true"));
    assert_eq!(first, std::fs::read(directory.join("object")).unwrap());
}
