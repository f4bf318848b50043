//! The OCI runtime and the CRIU that do the work.

use crate::command_line::CommandLine;
use crate::error::{OciError, Result};
use serde_json::Value;
use std::convert::Infallible;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use tranship_node::container::gate;

/// Name under which this program is CRIU.
pub(crate) const CRIU: &str = "criu";
/// Environment variable with the path of the real one.
pub(crate) const REAL_CRIU: &str = "TRANSHIP_CRIU";

/// Environment variable with the bundle of the container that is checkpointed or restored, for CRIU's relay.
pub(crate) const BUNDLE: &str = "TRANSHIP_BUNDLE";

/// Environment variable with the gate before the container that is restored, if there is one, for CRIU's relay.
pub(crate) const GATE: &str = "TRANSHIP_GATE";

/// Environment variable that has CRIU's relay close TCP connections at a restore.
pub(crate) const TCP_CLOSE: &str = "TRANSHIP_TCP_CLOSE";
/// The option of `restore` for that. Engines pass it on; crun knows it, runc does not.
const TCP_CLOSE_OPTION: &str = "--tcp-close";

/// Environment variable with the OCI runtime to use.
const RUNTIME: &str = "TRANSHIP_RUNTIME";
/// Runtimes that are looked for without it, in this order.
const RUNTIMES: &[&str] = &["runc", "crun"];
/// Where programs are looked for behind $PATH: what engines leave of it may be little.
const SYSTEM_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Directory for the link by which this program is found as CRIU.
const LINKS: &str = "/run/tranship/bin";

/// Become the runtime, with this command line. Returns only if that fails.
pub(crate) fn become_runtime(line: &CommandLine) -> Result<Infallible> {
    let runtime = runtime()?;
    let mut command = Command::new(&runtime);
    let is_ours = |word: &&OsString| line.command() == "restore" && *word == TCP_CLOSE_OPTION;
    command.args(line.words().iter().filter(|word| !is_ours(word)));
    if line.words().iter().any(|word| is_ours(&word)) {
        command.env(TCP_CLOSE, "1");
    }
    let bundle = match line.command() {
        "restore" => line.bundle().canonicalize().ok(),
        "checkpoint" => line.words().last().and_then(|container| bundle_of(line, container)),
        _ => return Err(OciError::at("executing", &runtime)(command.exec())),
    };
    // Without CRIU the runtime complains in its own words.
    if let Some(criu) = find(CRIU) {
        command.env(REAL_CRIU, criu).env("PATH", path_with(&link()?));
    }
    if let Some(bundle) = bundle {
        command.env(BUNDLE, bundle);
    }
    let gate = line.words().last().and_then(|container| container.to_str()).map(gate);
    if let Some(gate) = gate.filter(|gate| line.command() == "restore" && gate.exists()) {
        command.env(GATE, gate);
    }
    Err(OciError::at("executing", &runtime)(command.exec()))
}

/// The bundle of a container, as runc or crun has it in its state: both are files of JSON.
fn bundle_of(line: &CommandLine, container: &OsStr) -> Option<PathBuf> {
    let given = line.root().map(|root| vec![PathBuf::from(root)]);
    let roots = given.unwrap_or_else(|| RUNTIMES.iter().map(|name| Path::new("/run").join(name)).collect());
    let read = |path: PathBuf| serde_json::from_slice::<Value>(&fs::read(path).ok()?).ok();
    roots.iter().map(|root| root.join(container)).find_map(|directory| {
        if let Some(status) = read(directory.join("status")) {
            return Some(PathBuf::from(status.get("bundle")?.as_str()?));
        }
        let state = read(directory.join("state.json"))?;
        let labels = state.pointer("/config/labels")?.as_array()?;
        labels.iter().find_map(|label| label.as_str()?.strip_prefix("bundle=").map(PathBuf::from))
    })
}

/// The first process of a container that runs.
pub(crate) fn first_process(global: &[OsString], container: &OsStr) -> Result<u32> {
    let failed = |why: &str| OciError::io(format!("asking for the state of {}", container.display()), why);
    let mut command = Command::new(runtime()?);
    let output = command.args(global).arg("state").arg(container).output();
    let output = output.map_err(|why| failed(&why.to_string()))?;
    if !output.status.success() {
        return Err(failed(String::from_utf8_lossy(&output.stderr).trim()));
    }
    let state: Value = serde_json::from_slice(&output.stdout).map_err(|why| failed(&why.to_string()))?;
    let pid = state.get("pid").and_then(Value::as_u64).and_then(|pid| u32::try_from(pid).ok());
    pid.filter(|pid| *pid != 0).ok_or_else(|| failed("it does not run"))
}

fn runtime() -> Result<PathBuf> {
    match std::env::var_os(RUNTIME) {
        Some(path) => Ok(PathBuf::from(path)),
        None => RUNTIMES.iter().find_map(|name| find(name)).ok_or_else(|| OciError::NoProgram {
            name: RUNTIMES.join(" or "),
            remedy: "install one, or name it in $TRANSHIP_RUNTIME",
        }),
    }
}

/// The program `name` in the search path that is not this one.
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    let ourselves = fs::metadata("/proc/self/exe").ok();
    let is_other = |path: &PathBuf| {
        let Ok(found) = fs::metadata(path) else { return false };
        let is_same = |own: &fs::Metadata| (own.dev(), own.ino()) == (found.dev(), found.ino());
        found.is_file() && found.permissions().mode() & 0o111 != 0 && !ourselves.as_ref().is_some_and(is_same)
    };
    search_path().map(|directory| directory.join(name)).find(is_other)
}

fn search_path() -> impl Iterator<Item = PathBuf> {
    let own = std::env::var_os("PATH").unwrap_or_default();
    let own: Vec<PathBuf> = std::env::split_paths(&own).collect();
    own.into_iter().chain(std::env::split_paths(SYSTEM_PATH))
}

/// The search path with `directory` in front.
fn path_with(directory: &Path) -> OsString {
    let path = std::iter::once(directory.to_owned()).chain(search_path());
    std::env::join_paths(path.filter(|part| !part.as_os_str().is_empty()))
        .unwrap_or_else(|_| SYSTEM_PATH.into())
}

/// The directory in which `criu` is this program.
fn link() -> Result<PathBuf> {
    let ourselves = std::env::current_exe().map_err(|why| OciError::io("finding our own program", why))?;
    let directory = PathBuf::from(LINKS);
    let link = directory.join(CRIU);
    if fs::read_link(&link).is_ok_and(|target| target == ourselves) {
        return Ok(directory);
    }
    fs::create_dir_all(&directory).map_err(OciError::at("making", &directory))?;
    // Others may make it at the same time: it is there at every moment.
    let new = directory.join(OsStr::new(&format!("{CRIU}.{}", std::process::id())));
    std::os::unix::fs::symlink(&ourselves, &new).map_err(OciError::at("making", &new))?;
    fs::rename(&new, &link).map_err(OciError::at("making", &link))?;
    Ok(directory)
}
