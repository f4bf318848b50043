//! Programs that units run: Debian's own busybox, unmodified, and C programs of the tests' own.

use crate::lab::TestLab;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Once;
use tranship_lab::{Lab, Recipe};

/// Debian's, from the package busybox-static.
pub(crate) const BUSYBOX: &str = "/bin/busybox";

/// A root directory with busybox and a large file in it.
pub(crate) fn busybox_root(lab: &TestLab, megabytes: u64) -> PathBuf {
    let root = lab.path("root");
    fs::create_dir_all(root.join("bin")).unwrap();
    fs::copy(BUSYBOX, root.join("bin/busybox")).unwrap();
    let mut file = BufWriter::new(File::create(root.join("file")).unwrap());
    // No two blocks are the same.
    for block in 0..megabytes << 14 {
        file.write_all(&(block.wrapping_mul(0x9e37_79b9_7f4a_7c15)).to_le_bytes().repeat(8)).unwrap();
    }
    file.flush().unwrap();
    root
}

/// A root directory with a program of `tests/programs` in it, statically linked.
pub(crate) fn c_root(lab: &TestLab, source: &str) -> PathBuf {
    let root = lab.path("root");
    fs::create_dir_all(root.join("bin")).unwrap();
    let binary = root.join("bin").join(Path::new(source).file_stem().unwrap());
    let line = ["-O1", "-w", "-static", "-o"];
    let status = Command::new("gcc").args(line).arg(binary).arg(self::source(source)).status();
    assert!(status.unwrap().success());
    root
}

/// A root directory with Debian's memcached, redis, nginx, Python and sqlite3 in it, and a program of `tests/programs` beside.
pub(crate) fn debian_root(lab: &TestLab) -> PathBuf {
    let packages = &["memcached", "nginx-light", "python3", "redis-server", "sqlite3"];
    let recipe = Recipe { suite: "bookworm", architecture: "amd64", packages, engine: false };
    let tree = Lab::new(None).tree("servers", &recipe).unwrap();
    let root = lab.path("root");
    // Links, and none to what no unit may have or nobody reads.
    let copied = Command::new("cp").arg("-al").arg(tree).arg(&root).status();
    assert!(copied.unwrap().success());
    for useless in ["dev", "usr/share/doc", "usr/share/locale", "usr/share/man", "usr/share/perl"] {
        fs::remove_dir_all(root.join(useless)).unwrap();
    }
    fs::write(root.join("etc/passwd"), "root:x:0:0:root:/:/bin/sh\n").unwrap();
    fs::write(root.join("etc/group"), "root:x:0:\n").unwrap();
    root
}

/// One with the program of four threads, `/usr/bin/threads`.
pub(crate) fn threads_root(lab: &TestLab) -> PathBuf {
    let root = debian_root(lab);
    let mut compiler = Command::new("gcc");
    compiler.args(["-O2", "-pthread", "-o"]).arg(root.join("usr/bin/threads")).arg(source("threads.c"));
    assert!(compiler.arg("-lm").status().unwrap().success());
    root
}

/// One with the Python program `/compute.py`.
pub(crate) fn compute_root(lab: &TestLab) -> PathBuf {
    let root = debian_root(lab);
    fs::copy(source("compute.py"), root.join("compute.py")).unwrap();
    root
}

/// One for redis, and how it is started.
pub(crate) fn redis_root(lab: &TestLab) -> (PathBuf, [&'static str; 7]) {
    let root = debian_root(lab);
    fs::create_dir(root.join("data")).unwrap();
    (root, ["/usr/bin/redis-server", "--dir", "/data", "--save", "", "--bind", "127.0.0.1"])
}

/// The path of a source in `tests/programs`.
pub(crate) fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name)
}

/// Have busybox's translated object in the cache of the command line, where every migration looks for it.
pub(crate) fn compile_busybox(lab: &TestLab) {
    static ONCE: Once = Once::new();
    let cpu = tranship_node::Cpu::here().unwrap().to_string();
    ONCE.call_once(|| drop(lab.ok(&["compile", BUSYBOX, "--host", &cpu])));
}

/// What a program prints when this machine runs it in that root without us.
pub(crate) fn undisturbed(root: &Path, program: &[&str]) -> String {
    let output = Command::new("chroot").arg(root).args(program).output().unwrap();
    assert!(output.status.success(), "{program:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}
