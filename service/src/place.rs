//! Where an address of a process is: in a file that it has mapped, or in memory that it has written itself.

use std::path::PathBuf;
use tranship_node::unit::proc::{self, Mapping};

/// How much of memory before and after an address is read for it.
const BEFORE: u64 = 64 << 10;
const AFTER: u64 = 256 << 10;

/// What the process has mapped.
pub(crate) struct Places {
    pid: u32,
    mappings: Vec<Mapping>,
}

/// Where code is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// In a file.
    File {
        /// A path of the very file, whatever has become of its name.
        path: PathBuf,
        /// Its name.
        name: String,
        /// The mapping's address.
        start: u64,
        /// What is there, as an offset in the file.
        offset: u64,
    },
    /// In memory: this range should be looked at.
    Memory { start: u64, end: u64 },
}

impl Places {
    /// What process `pid` has mapped now.
    pub(crate) fn of(pid: u32) -> tranship_node::Result<Places> {
        Ok(Places { pid, mappings: proc::maps(pid)? })
    }

    /// What is mapped of files and cannot be written.
    pub(crate) fn files(&self) -> impl Iterator<Item = Place> {
        self.mappings.iter().filter_map(|mapping| self.file(mapping))
    }

    fn file(&self, mapping: &Mapping) -> Option<Place> {
        let path = format!("/proc/{}/map_files/{:x}-{:x}", self.pid, mapping.start, mapping.end);
        let (name, start, offset) = (mapping.name.clone(), mapping.start, mapping.offset);
        let is_file = name.starts_with('/') && !mapping.rights.contains('w');
        is_file.then(|| Place::File { path: path.into(), name, start, offset })
    }

    /// Where `address` is.
    pub(crate) fn find(&self, address: u64) -> Option<Place> {
        let after = self.mappings.partition_point(|m| m.start <= address);
        let mapping = self.mappings.get(after.checked_sub(1)?).filter(|m| address < m.end)?;
        if let Some(file) = self.file(mapping) {
            return Some(file);
        }
        let start = mapping.start.max(address.saturating_sub(BEFORE));
        Some(Place::Memory { start, end: mapping.end.min(address + AFTER) })
    }
}
