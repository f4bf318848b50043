//! Translated processes on the node that are no unit's: those of containers, which engines start and restore without
//! asking us. They are told apart by PID namespace, which a program that is executed in a container shares with the
//! container's first process, whose child it is not.

use super::state_area::StateArea;
use super::{proc, supervisor};
use crate::error::Result;
use crate::protocol::PidNamespace;
use std::collections::BTreeMap;
use tranship_abi::block::ARENA_BYTES;

/// The PID namespaces that have some.
pub fn list() -> Result<Vec<PidNamespace>> {
    let first = |(number, pids): (u64, Vec<u32>)| {
        let pid = pids.into_iter().find(|pid| is_translated(*pid))?;
        Some(PidNamespace { number, pid })
    };
    Ok(candidates()?.into_iter().filter_map(first).collect())
}

/// Those in the namespace `number`, and other processes as large.
pub(super) fn members(number: u64) -> Result<Vec<u32>> {
    Ok(candidates()?.remove(&number).unwrap_or_default())
}

/// Whether process `pid` is translated by a runtime that we know to talk to.
pub(super) fn is_translated(pid: u32) -> bool {
    matches!(StateArea::find(pid), Ok(Some(_)))
}

/// Processes that could be translated, as each has an arena to itself, and are no unit's; by namespace, in order.
fn candidates() -> Result<BTreeMap<u64, Vec<u32>>> {
    let mut found: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
    for pid in proc::all()? {
        if proc::mapped_bytes(pid) >= ARENA_BYTES
            && !is_units(pid)
            && let Some(number) = proc::pid_namespace(pid)
        {
            found.entry(number).or_default().push(pid);
        }
    }
    Ok(found)
}

/// Whether process `pid` descends from a supervisor, which looks after it.
fn is_units(pid: u32) -> bool {
    std::iter::successors(proc::parent(pid), |pid| proc::parent(*pid)).any(supervisor::is_supervisor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_in_the_namespace_of_its_parent() {
        let own = std::process::id();
        let parent = proc::parent(own).unwrap();
        assert_eq!(proc::pid_namespace(own), proc::pid_namespace(parent));
        assert!(proc::all().unwrap().contains(&own));
        assert!(proc::mapped_bytes(own) > 1 << 20);
        assert!(!is_units(own) && !is_translated(own));
    }
}
