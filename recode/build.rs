//! Generates the message types of CRIU's images from `proto/`.

use std::path::PathBuf;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut protos: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir("proto")? {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == "proto") {
            protos.push(path);
        }
    }
    protos.sort();
    println!("cargo:rerun-if-changed=proto");
    protobuf_codegen::Codegen::new().pure().include("proto").inputs(&protos).cargo_out_dir("proto").run()?;
    Ok(())
}
