//! Finding the programs and blobs that nodes get from us.

use crate::error::{LabError, Result};
use std::path::PathBuf;

/// A file that the directory has.
const WITNESS: &str = "node-x86_64";

/// Directory with `node-ISA` (agents) and `runtime-ISA` (blobs): `$TRANSHIP_LIB`, or `lib` beside this program, or
/// where the build or an installation puts them.
pub fn companions() -> Result<PathBuf> {
    let mut tried: Vec<PathBuf> = std::env::var_os("TRANSHIP_LIB").map(PathBuf::from).into_iter().collect();
    if tried.is_empty()
        && let Ok(program) = std::env::current_exe()
        && let Some(directory) = program.parent()
    {
        tried.extend(
            ["lib", "../lib/tranship", "../../dist", "../../../dist"].map(|path| directory.join(path)),
        );
    }
    let found = tried.iter().find(|path| path.join(WITNESS).exists());
    match found.map(|path| path.canonicalize()) {
        Some(Ok(path)) => Ok(path),
        _ => Err(LabError::NoCompanions { tried }),
    }
}
