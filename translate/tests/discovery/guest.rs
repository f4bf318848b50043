//! Guest programs for tests: assembled and compiled by the system's compiler.

use std::path::PathBuf;
use std::process::Command;

/// Where compiled programs go; the directory above is shared with the tests of other crates.
fn directory() -> PathBuf {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("discovery");
    std::fs::create_dir_all(&directory).unwrap();
    directory
}

/// Compile `source` (of the language that gcc's `-x` names) with `flags` and return the file's bytes.
pub(crate) fn compile(name: &str, language: &str, source: &str, flags: &[&str]) -> Vec<u8> {
    let (input, output) = (directory().join(format!("{name}.source")), directory().join(name));
    std::fs::write(&input, format!("{source}\n")).unwrap();
    let status = Command::new("gcc")
        .args(["-x", language])
        .arg(&input)
        .args(["-x", "none", "-o"])
        .arg(&output)
        .args(flags)
        .status()
        .unwrap();
    assert!(status.success(), "gcc fails on {name}");
    std::fs::read(&output).unwrap()
}

/// The same file without symbols.
pub(crate) fn strip(name: &str, bytes: &[u8]) -> Vec<u8> {
    let path = directory().join(format!("{name}.stripped"));
    std::fs::write(&path, bytes).unwrap();
    assert!(Command::new("strip").arg(&path).status().unwrap().success());
    std::fs::read(&path).unwrap()
}

/// A static program of a few lines of assembly at fixed addresses.
pub(crate) fn assemble(name: &str, source: &str) -> Vec<u8> {
    let flags = ["-nostdlib", "-static", "-no-pie", "-Wl,--build-id=none", "-Wl,-Ttext=0x401000"];
    compile(name, "assembler", source, &flags)
}
