//! Generates the message types of CRIU's images from `proto/`, and looks for a CRIU to test with.

use std::path::{Path, PathBuf};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut protos: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir("proto")? {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == "proto") {
            protos.push(path);
        }
    }
    protos.sort();
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=proto");
    protobuf_codegen::Codegen::new().pure().include("proto").inputs(&protos).cargo_out_dir("proto").run()?;
    find_criu();
    Ok(())
}

/// Tests that need CRIU are marked as ignored, with the reason, where there is none: `cfg(criu)`.
fn find_criu() {
    println!("cargo::rustc-check-cfg=cfg(criu)");
    println!("cargo::rerun-if-env-changed=TRANSHIP_CRIU");
    let criu = std::env::var("TRANSHIP_CRIU").ok().filter(|place| Path::new(place).exists());
    if let Some(place) = criu {
        println!("cargo::rerun-if-changed={place}");
        println!("cargo::rustc-cfg=criu");
        println!("cargo::rustc-env=TRANSHIP_CRIU={place}");
    } else {
        println!("cargo::rustc-env=TRANSHIP_CRIU=");
    }
}
