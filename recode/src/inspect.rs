//! What an image set is about: machines, processes, threads, and the files that they map.

use crate::error::Result;
use crate::files::Files;
use crate::memory::Memory;
use crate::process::{Process, machine_of_all, pagemap_name};
use crate::proto::cgroup::Cgroup_entry;
use crate::set::ImageSet;
use crate::to_canonical::find_state;
use crate::vma::{Mapping, protection, status};
use std::collections::BTreeSet;
use std::path::Path;
use tranship_abi::host::Host;

/// The image of control groups.
const CGROUP: &str = "cgroup.img";

/// An image set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Machine that its processes were dumped on.
    pub machine: Host,
    /// Whether they are ordinary processes of that machine; else our runtime executes a guest in them.
    pub canonical: bool,
    /// The processes.
    pub processes: Vec<ProcessSummary>,
}

/// A process of an image set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessSummary {
    /// Process id in its PID namespace.
    pub pid: u32,
    /// Name.
    pub name: String,
    /// Thread ids, the leader first.
    pub threads: Vec<u32>,
    /// Path of its program; none for a zombie.
    pub program: Option<String>,
    /// Mappings, by rising address.
    pub mappings: Vec<MappingSummary>,
    /// Bytes of its memory that are in the images.
    pub memory_bytes: u64,
}

/// A mapping of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MappingSummary {
    /// First address.
    pub start: u64,
    /// Address after the last.
    pub end: u64,
    /// PROT_* bits; in a host checkpoint those that the host has, without the guest's right to execute.
    pub protection: u32,
    /// Whether the guest may execute some of it.
    pub guest_executable: bool,
    /// Path of the mapped file, and offset in it.
    pub file: Option<(String, u64)>,
}

impl Summary {
    /// Paths of the files that some process has mapped as guest code: those worth translating.
    pub fn guest_code(&self) -> BTreeSet<&str> {
        let mappings = self.processes.iter().flat_map(|process| &process.mappings);
        let code = mappings.filter(|mapping| mapping.guest_executable);
        code.filter_map(|mapping| Some(mapping.file.as_ref()?.0.as_str())).collect()
    }
}

/// The hierarchies of control groups that the processes of the image set in `directory` were in: the controllers of each
/// (cgroups(7)), none for the unified one.
pub fn control_groups(directory: &Path) -> Result<Vec<Vec<String>>> {
    let set = ImageSet::open(directory)?;
    if !set.contains(CGROUP) {
        return Ok(Vec::new());
    }
    let groups: Cgroup_entry = set.message(CGROUP)?;
    let names = |names: &Vec<String>| names.iter().filter(|name| !name.is_empty()).cloned().collect();
    Ok(groups.controllers.iter().map(|hierarchy| names(&hierarchy.cnames)).collect())
}

/// The machine that the processes of the image set in `directory` were dumped on.
pub fn machine(directory: &Path) -> Result<Host> {
    machine_of_all(&Process::all(&ImageSet::open(directory)?)?)
}

/// Look at the image set in `directory`. Of its pages only those of state areas are read.
pub fn inspect(directory: &Path) -> Result<Summary> {
    let set = ImageSet::open(directory)?;
    let processes = Process::all(&set)?;
    let files = Files::load(&set)?;
    let mut summary =
        Summary { machine: machine_of_all(&processes)?, canonical: true, processes: Vec::new() };
    for process in &processes {
        let (process, translated) = summarise(&set, process, &files)?;
        summary.canonical &= !translated;
        summary.processes.push(process);
    }
    Ok(summary)
}

/// Also says whether it is executed by our runtime.
fn summarise(set: &ImageSet, process: &Process, files: &Files) -> Result<(ProcessSummary, bool)> {
    let task = process.threads[0].1.tc.get_or_default();
    let mut summary = ProcessSummary {
        pid: process.pid,
        name: task.comm().to_owned(),
        threads: process.threads.iter().map(|(tid, _)| *tid).collect(),
        program: None,
        mappings: Vec::new(),
        memory_bytes: 0,
    };
    let Some(mm) = &process.mm else { return Ok((summary, false)) };
    let memory = Memory::open(set, &pagemap_name(process.pid))?;
    let state = find_state(mm, &memory, process.pid)?;
    let guest_executable = |range: std::ops::Range<u64>, protection: u32| match &state {
        Some(state) => state.exec_ranges.iter().any(|e| e.start < range.end && range.start < e.end),
        None => protection & protection::EXEC != 0,
    };
    summary.program = files.path(mm.exe_file_id()).map(str::to_owned);
    summary.memory_bytes = memory.extents().iter().map(|extent| extent.end - extent.start).sum();
    let mappings = mm.vmas.iter().filter(|vma| !vma.is(status::GUARD));
    summary.mappings.extend(mappings.map(|vma| MappingSummary {
        start: vma.start(),
        end: vma.end(),
        protection: vma.prot(),
        guest_executable: guest_executable(vma.range(), vma.prot()),
        file: vma.file().and_then(|id| Some((files.path(id)?.to_owned(), vma.pgoff()))),
    }));
    Ok((summary, state.is_some()))
}
