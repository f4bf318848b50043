//! Looks for a CRIU and a runtime to test with: where one is not there, tests that need it are marked as ignored, with the
//! reason.

use std::path::Path;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=TRANSHIP_CRIU");
    println!("cargo::rustc-check-cfg=cfg(criu)");
    let place = std::env::var("TRANSHIP_CRIU").ok().filter(|place| Path::new(place).exists());
    if place.is_some() {
        println!("cargo::rustc-cfg=criu");
    }
    println!("cargo::rustc-env=TRANSHIP_CRIU={}", place.unwrap_or_default());
    println!("cargo::rerun-if-changed=../dist/runtime-x86_64");
    println!("cargo::rustc-check-cfg=cfg(runtime)");
    if Path::new("../dist/runtime-x86_64").exists() {
        println!("cargo::rustc-cfg=runtime");
    }
}
