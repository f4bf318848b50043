//! Looks for a CRIU to test with: where there is none, tests that need one are marked as ignored, with the reason.

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
}
