//! The gate that an agent has put before a container which it moves to this machine: behind it the restored processes run.

use crate::delegate::GATE;
use crate::error::{OciError, Result};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;
use tranship_node::container::GO;

/// A container that has gone through. The agent sees when this is dropped.
pub(super) struct Through(#[allow(dead_code)] UnixStream);

/// Wait until the container whose first process is `pid`, and whose recoding took so long, may go on; at once if there is no
/// gate.
pub(super) fn pass(pid: i32, recoding: Duration) -> Result<Option<Through>> {
    let Some(path) = std::env::var_os(GATE).map(PathBuf::from) else { return Ok(None) };
    let failed = |why: std::io::Error| OciError::at("waiting at", &path)(why);
    let mut stream = UnixStream::connect(&path).map_err(failed)?;
    stream.write_all(format!("{pid} {}\n", recoding.as_micros()).as_bytes()).map_err(failed)?;
    let mut heard = vec![0; GO.len()];
    match stream.read_exact(&mut heard) {
        Ok(()) if heard == GO => Ok(Some(Through(stream))),
        _ => Err(OciError::TurnedAway),
    }
}
