//! The Debian root that the programs lie in: made once with this machine's own apt configuration, and not written to
//! by tests.

use crate::run::written;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// The release that this machine runs, too.
const SUITE: &str = "bookworm";
/// Packages of the programs in the table, and of what their scripts use; what they depend on comes too.
const PACKAGES: &[&str] = &[
    "apache2-bin",
    "bash",
    "caddy",
    "curl",
    "gcc-12",
    "git",
    "gocr",
    "gzip",
    "haproxy",
    "libc6-dev",
    "lua5.4",
    "luajit",
    "memcached",
    "nginx-light",
    "nodejs",
    "openssh-client",
    "openssh-server",
    "openssl",
    "perl",
    "php-cli",
    "python3",
    "redis-server",
    "redis-tools",
    "ripgrep",
    "sqlite3",
    "tcl",
    "xz-utils",
    "zsh",
    "zstd",
];

/// The root, made if it is not there yet.
pub(super) fn root() -> &'static PathBuf {
    static ROOT: OnceLock<PathBuf> = OnceLock::new();
    ROOT.get_or_init(|| {
        let mut key = DefaultHasher::new();
        (SUITE, PACKAGES).hash(&mut key);
        let finished = written().join(format!("packages-{:016x}", key.finish()));
        if !finished.exists() {
            let unfinished = finished.with_extension("unfinished");
            let _ = fs::remove_dir_all(&unfinished);
            install(&unfinished);
            fs::rename(&unfinished, &finished).unwrap();
        }
        finished
    })
}

fn install(root: &PathBuf) {
    fs::create_dir_all(root).unwrap();
    let log = root.with_extension("log");
    let mut command = Command::new("mmdebstrap");
    command.args(["--variant=essential", "--mode=root", "--architectures=amd64"]);
    command.args(["--aptopt=Acquire::Retries \"5\"", "--aptopt=APT::Install-Recommends \"false\""]);
    command.arg(format!("--include={}", PACKAGES.join(","))).arg(SUITE).arg(root).arg(mirror());
    let output = File::create(&log).unwrap();
    command.stdin(Stdio::null()).stderr(output.try_clone().unwrap()).stdout(output);
    let status = command.status().unwrap();
    assert!(status.success(), "mmdebstrap: {status}, see {}", log.display());
}

/// Where this machine gets the release from.
fn mirror() -> String {
    let mut targets = Command::new("apt-get");
    targets.args(["indextargets", "--format", "$(RELEASE) $(REPO_URI)"]);
    let text = String::from_utf8(targets.output().unwrap().stdout).unwrap();
    let mut lines = text.lines().filter_map(|line| line.split_once(' '));
    lines.find(|(suite, _)| *suite == SUITE).expect("apt knows no mirror of the release").1.to_owned()
}
