//! Programs that units run: Debian's own busybox, unmodified, and C programs of the tests' own.

use crate::lab::TestLab;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Debian's, from the package busybox-static.
pub(crate) const BUSYBOX: &str = "/bin/busybox";

/// A root directory with a program of `tests/programs` in it, statically linked.
pub(crate) fn c_root(lab: &TestLab, source: &str) -> PathBuf {
    let root = lab.path("root");
    fs::create_dir_all(root.join("bin")).unwrap();
    let binary = root.join("bin").join(Path::new(source).file_stem().unwrap());
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(source);
    let status = Command::new("gcc").args(["-O1", "-w", "-static", "-o"]).arg(binary).arg(source).status();
    assert!(status.unwrap().success());
    root
}

/// What a program prints when this machine runs it in that root without us.
pub(crate) fn undisturbed(root: &Path, program: &[&str]) -> String {
    let output = Command::new("chroot").arg(root).args(program).output().unwrap();
    assert!(output.status.success(), "{program:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}
