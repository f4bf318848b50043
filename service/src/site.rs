//! Where the processes are that are supplied: on this machine, or on a node.

use crate::Result;
use tranship_node::client::Tunnel;
use tranship_node::protocol::{MappedFile, ProcessId, ProcessLook};
use tranship_node::unit::supply::{Consumers, Image};

/// Translated processes of one tree.
pub trait Site {
    /// What has happened since the last look; `None` once the first process has ended.
    fn look(&mut self) -> Result<Option<Vec<ProcessLook>>>;
    /// Guest memory.
    fn read_memory(&mut self, process: ProcessId, start: u64, end: u64) -> Result<Vec<u8>>;
    /// The whole of a file that the process has mapped.
    fn read_file(&mut self, process: ProcessId, file: &MappedFile) -> Result<Vec<u8>>;
    /// Give a process an object. False if there was no room for it.
    fn supply(&mut self, process: ProcessId, image: &Image) -> Result<bool>;
}

impl Site for Consumers {
    fn look(&mut self) -> Result<Option<Vec<ProcessLook>>> {
        Ok(Consumers::look(self)?)
    }

    fn read_memory(&mut self, process: ProcessId, start: u64, end: u64) -> Result<Vec<u8>> {
        Ok(self.read(process, start, end)?)
    }

    fn read_file(&mut self, process: ProcessId, file: &MappedFile) -> Result<Vec<u8>> {
        Ok(Consumers::read_file(self, process, file)?)
    }

    fn supply(&mut self, process: ProcessId, image: &Image) -> Result<bool> {
        Ok(Consumers::supply(self, process, image)?)
    }
}

impl Site for Tunnel {
    fn look(&mut self) -> Result<Option<Vec<ProcessLook>>> {
        Ok(Tunnel::look(self)?)
    }

    fn read_memory(&mut self, process: ProcessId, start: u64, end: u64) -> Result<Vec<u8>> {
        Ok(Tunnel::read_memory(self, process, start, end)?)
    }

    fn read_file(&mut self, process: ProcessId, file: &MappedFile) -> Result<Vec<u8>> {
        Ok(self.read_mapped(process, file)?)
    }

    fn supply(&mut self, process: ProcessId, image: &Image) -> Result<bool> {
        Ok(Tunnel::supply(self, process, image)?)
    }
}
