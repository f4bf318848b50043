//! The processes of an image set, with the images that describe each.

use crate::error::{RecodeError, Result};
use crate::proto::criu_core::{Core_entry, core_entry::March};
use crate::proto::mm::Mm_entry;
use crate::proto::pstree::Pstree_entry;
use crate::set::ImageSet;
use tranship_abi::host::Host;

/// A process.
pub(crate) struct Process {
    /// Process id, in its PID namespace; the number in its images' names.
    pub(crate) pid: u32,
    /// Address space; a zombie has none.
    pub(crate) mm: Option<Mm_entry>,
    /// Thread id and core of each thread, the leader first.
    pub(crate) threads: Vec<(u32, Core_entry)>,
}

impl Process {
    /// All processes of `set`, in the order of its process tree.
    pub(crate) fn all(set: &ImageSet) -> Result<Vec<Process>> {
        let tree: Vec<Pstree_entry> = set.messages("pstree.img")?;
        tree.iter().map(|entry| Process::load(set, entry)).collect()
    }

    fn load(set: &ImageSet, entry: &Pstree_entry) -> Result<Process> {
        let pid = entry.pid();
        let mm = mm_name(pid);
        let mm = set.contains(&mm).then(|| set.message(&mm)).transpose()?;
        // A zombie has its leader alone, whose number CRIU may leave out: what it writes then is whatever was there.
        let mut ids = if mm.is_some() { entry.threads.clone() } else { vec![pid] };
        ids.sort_by_key(|tid| *tid != pid);
        let core = |tid: u32| Ok((tid, set.message(&core_name(tid))?));
        let threads = ids.into_iter().map(core).collect::<Result<Vec<_>>>()?;
        if threads.first().is_none_or(|(tid, _)| *tid != pid) {
            return Err(RecodeError::damaged(
                "pstree.img",
                0,
                format!("process {pid} has no leading thread"),
            ));
        }
        Ok(Process { pid, mm, threads })
    }
}

/// Name of a thread's core image.
pub(crate) fn core_name(tid: u32) -> String {
    format!("core-{tid}.img")
}

/// Name of a process's address space image.
pub(crate) fn mm_name(pid: u32) -> String {
    format!("mm-{pid}.img")
}

/// Name of a process's pagemap image.
pub(crate) fn pagemap_name(pid: u32) -> String {
    format!("pagemap-{pid}.img")
}

/// The machine that a core is of, where it is one of ours.
pub(crate) fn machine_of(core: &Core_entry) -> Option<Host> {
    match core.mtype() {
        March::X86_64 => Some(Host::X86_64),
        March::AARCH64 => Some(Host::Aarch64),
        March::RISCV64 => Some(Host::Riscv64),
        _ => None,
    }
}

/// The machine of the whole set: every core's, and one of ours.
pub(crate) fn machine_of_all(processes: &[Process]) -> Result<Host> {
    let mut found: Option<Host> = None;
    for (tid, core) in processes.iter().flat_map(|process| &process.threads) {
        let machine = machine_of(core);
        let wrong = |expected: String| RecodeError::WrongMachine {
            file: core_name(*tid),
            found: machine.map_or(format!("{:?}", core.mtype()), |machine| machine.name().to_owned()),
            expected,
        };
        let machine = machine.ok_or_else(|| wrong("x86_64, aarch64 or riscv64".into()))?;
        if found.is_some_and(|found| found != machine) {
            return Err(wrong(format!("{} like the threads before", found.map_or("", Host::name))));
        }
        found = Some(machine);
    }
    found.ok_or_else(|| RecodeError::damaged("pstree.img", 0, "has no processes"))
}
