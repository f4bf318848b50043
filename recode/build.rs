//! Looks for a CRIU and a runtime to test with: where one is not there, tests that need it are marked as ignored, with the
//! reason.

use std::env::var_os;
use std::path::{Path, PathBuf};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=TRANSHIP_CRIU");
    println!("cargo::rustc-check-cfg=cfg(criu, runtime)");
    let criu = var_os("TRANSHIP_CRIU").map(PathBuf::from).filter(|place| place.exists()).or_else(lab_root);
    if criu.is_some() {
        println!("cargo::rustc-cfg=criu");
    }
    println!("cargo::rustc-env=TRANSHIP_CRIU={}", criu.unwrap_or_default().display());
    // A file that is not there must not be watched: cargo would take it for changed at every build.
    let runtime = Path::new("../dist/runtime-x86_64");
    if runtime.exists() {
        println!("cargo::rerun-if-changed={}", runtime.display());
        println!("cargo::rustc-cfg=runtime");
    }
}

/// The root of the lab's x86 node, if the lab was built: it has CRIU in it.
fn lab_root() -> Option<PathBuf> {
    let cache = var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(var_os("HOME")?).join(".cache")))?;
    let roots = std::fs::read_dir(cache.join("tranship/lab")).ok()?;
    let mut roots = roots.filter_map(|entry| Some(entry.ok()?.path()));
    roots.find(|root| root.join("usr/sbin/criu").exists() && root.join("usr/lib64").exists())
}
