//! What the other checks look at: the files under version control and the workspace as cargo sees it.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The repository's top folder.
pub(crate) fn top() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// The text of a file, by its path from the top.
pub(crate) fn read(path: impl AsRef<Path>) -> String {
    let path = top().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Paths from the top of all files that are committed or about to be.
pub(crate) fn files() -> Vec<PathBuf> {
    let list = stdout_of("git", &["ls-files", "--cached", "--others", "--exclude-standard"]);
    list.lines().map(PathBuf::from).filter(|path| top().join(path).is_file()).collect()
}

/// The same, Rust sources only.
pub(crate) fn rust_files() -> Vec<PathBuf> {
    files().into_iter().filter(|path| path.extension().is_some_and(|e| e == "rs")).collect()
}

/// `cargo metadata` of the workspace, with everything it depends on when built for one of `targets`.
pub(crate) fn metadata(targets: &[&str]) -> serde_json::Value {
    let mut arguments = vec!["metadata", "--format-version=1", "--locked"];
    for target in targets {
        arguments.extend(["--filter-platform", target]);
    }
    serde_json::from_str(&stdout_of(env!("CARGO"), &arguments)).unwrap()
}

fn stdout_of(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).current_dir(top()).output().unwrap();
    assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Fails with every complaint at once.
pub(crate) fn expect_none(complaints: Vec<String>) {
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}
