//! Generates the message types of CRIU's images from `criu/`.

use std::path::PathBuf;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut protos: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir("criu")? {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == "proto") {
            protos.push(path);
        }
    }
    protos.sort();
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=criu");
    protobuf_codegen::Codegen::new().pure().include("criu").inputs(&protos).cargo_out_dir("criu").run()?;
    Ok(())
}
