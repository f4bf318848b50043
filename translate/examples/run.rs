//! Translates a static x86-64 program and runs it here: `run [-o OBJECT] PROGRAM ARGUMENTS…`, with times on stderr.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, clippy::undocumented_unsafe_blocks)]
#[path = "../tests/harness/mod.rs"]
mod harness;

use std::time::Instant;
use tranship_translate::bitcode::Bitcode;
use tranship_translate::compile::{Host, Options, compile};
use tranship_translate::discover::discover;
use tranship_translate::elf::GuestElf;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let elf = GuestElf::parse(std::fs::read(&args[0]).unwrap()).unwrap();
    let cached = std::env::var("OBJECT").ok();
    let object = match cached.as_ref().and_then(|p| std::fs::read(p).ok()) {
        Some(object) => object,
        None => {
            let start = Instant::now();
            let program = discover(&elf);
            eprintln!("discover {:?}: {} regions", start.elapsed(), program.regions.len());
            let mut options = Options::default();
            if let Ok(passes) = std::env::var("PASSES") {
                options.passes = passes;
            }
            let start = Instant::now();
            let bitcode = Bitcode::lift(&elf, &program, options.jobs, &());
            let bytes: usize = bitcode.parts.iter().map(Vec::len).sum();
            eprintln!("lift {:?}: {} parts, {bytes} bytes", start.elapsed(), bitcode.parts.len());
            if let Ok(path) = std::env::var("BITCODE") {
                std::fs::write(path, &bitcode.parts[0]).unwrap();
            }
            let start = Instant::now();
            let object = compile(&bitcode, &Host::x86_64(), &options, &()).unwrap();
            eprintln!("compile {:?}: {} bytes", start.elapsed(), object.len());
            if let Some(path) = cached {
                std::fs::write(path, &object).unwrap();
            }
            object
        }
    };
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let mut process = harness::Process::load(&elf, &object, &args);
    let start = Instant::now();
    let code = process.run();
    eprintln!("ran {:?}: {} entered, {} interpreted", start.elapsed(), process.entered, process.interpreted);
    std::process::exit(code);
}
