//! Fingerprint of everything that a translated object depends on besides the guest and the host: the sources of the
//! translator and of what it builds on. Objects in the cache are named by it.

use sha2::{Digest, Sha256};
use std::fs;
use std::io::Result;
use std::path::{Path, PathBuf};

const SOURCES: &[&str] = &["src", "../isa/src", "../abi/src"];

fn main() -> Result<()> {
    let mut hash = Sha256::new();
    for directory in SOURCES {
        println!("cargo:rerun-if-changed={directory}");
        let mut files = Vec::new();
        list(Path::new(directory), &mut files)?;
        files.sort();
        for file in files {
            hash.update(file.to_string_lossy().as_bytes());
            hash.update(fs::read(&file)?);
        }
    }
    let text: String = hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    println!("cargo:rustc-env=TRANSHIP_TRANSLATOR={text}");
    Ok(())
}

fn list(directory: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() { list(&path, files)? } else { files.push(path) }
    }
    Ok(())
}
