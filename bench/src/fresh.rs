//! Whether a file is made from what its sources are now.

use std::io;
use std::path::Path;
use std::time::SystemTime;

/// Whether `file` and all of `sources` exist and none of these was changed after it.
pub(crate) fn is_newer(file: &Path, sources: &[&Path]) -> bool {
    let Ok(made) = changed(file) else { return false };
    sources.iter().all(|source| changed(source).is_ok_and(|time| time <= made))
}

fn changed(path: &Path) -> io::Result<SystemTime> {
    path.metadata()?.modified()
}
