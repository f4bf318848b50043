//! Nodes on this kernel.

use crate::error::{LabError, Result};
use crate::process;
use crate::state::{CONSOLE, Kind, NodeEntry};
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use tranship_node::trust::MEMBERSHIP_FILE;

/// Start a node with its state in `directory`, which has joined as `membership` says.
pub(crate) fn start(root: &Path, directory: &Path, installed: &Path, membership: &[u8]) -> Result<NodeEntry> {
    let port = free_port()?;
    let state = directory.join("state");
    fs::create_dir_all(&state).map_err(LabError::at("making", &state))?;
    let joined = state.join(MEMBERSHIP_FILE);
    let write = || {
        fs::write(&joined, membership)?;
        fs::set_permissions(&joined, fs::Permissions::from_mode(0o600))
    };
    write().map_err(LabError::at("writing", &joined))?;
    let listen = format!("127.0.0.1:{port}");
    let program = installed.join("node-x86_64");
    let options =
        [("--root", root), ("--state", &state), ("--installed", installed), ("--listen", Path::new(&listen))];
    let mut line = vec![program.into_os_string(), "boot".into()];
    line.extend(options.into_iter().flat_map(|(name, value)| [name.into(), value.as_os_str().to_owned()]));
    line.push("--allow-execute".into());
    let process = process::detached(&line, &[], &directory.join(CONSOLE))?;
    Ok(NodeEntry { kind: Kind::Local, port, process })
}

/// A port that is free now.
pub(crate) fn free_port() -> Result<u16> {
    let failed =
        |why: std::io::Error| LabError::Io { doing: "finding a free port".to_owned(), why: why.to_string() };
    let listener = TcpListener::bind("127.0.0.1:0").map_err(failed)?;
    Ok(listener.local_addr().map_err(failed)?.port())
}
