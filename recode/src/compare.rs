//! Whether two canonical checkpoints are the same to the guest. Everything that a process could tell apart is compared;
//! what a dump numbers as it goes (file ids) or joins and splits as it likes (neighbouring mappings, zero pages) is not.

use crate::error::Result;
use crate::files::Files;
use crate::memory::{Memory, PAGE};
use crate::process::{Process, core_name, pagemap_name};
use crate::proto::criu_core::{Core_entry, Task_kobj_ids_entry};
use crate::proto::fdinfo::Fdinfo_entry;
use crate::proto::mm::Mm_entry;
use crate::proto::vma::Vma_entry;
use crate::set::ImageSet;
use crate::vma::{Mapping, status};
use crate::x86_64;
use protobuf::text_format::print_to_string;
use protobuf::{MessageField, MessageFull};
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use tranship_isa::x86_64::Cpu;

/// One difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Process.
    pub pid: u32,
    /// What differs, as in "thread 7: registers".
    pub what: String,
    /// As the first set has it; empty if it has it not.
    pub first: String,
    /// As the second set has it; empty if it has it not.
    pub second: String,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "process {}: {}: {} became {}", self.pid, self.what, self.first, self.second)
    }
}

/// What there is to say about a process: subject, statement.
type Facts = BTreeMap<String, String>;

/// Differences between the canonical image sets in two directories. A page of a file mapping that only one of them has is
/// compared with the file.
pub fn compare(first: &Path, second: &Path) -> Result<Vec<Difference>> {
    let (first, second) = (Side::open(first)?, Side::open(second)?);
    let mut pids: Vec<u32> =
        first.processes.iter().chain(&second.processes).map(|process| process.pid).collect();
    pids.sort_unstable();
    pids.dedup();
    let mut differences = Vec::new();
    for pid in pids {
        let (mut a, mut b) = (first.facts(pid)?, second.facts(pid)?);
        differing_pages(&first, &second, pid, &mut a, &mut b)?;
        for what in a.keys().chain(b.keys().filter(|what| !a.contains_key(*what))) {
            let statement = |facts: &Facts| facts.get(what).cloned().unwrap_or_default();
            let (first, second) = (statement(&a), statement(&b));
            if first != second {
                differences.push(Difference { pid, what: what.clone(), first, second });
            }
        }
    }
    Ok(differences)
}

struct Side {
    set: ImageSet,
    processes: Vec<Process>,
    files: Files,
}

impl Side {
    fn open(directory: &Path) -> Result<Side> {
        let set = ImageSet::open(directory)?;
        let (processes, files) = (Process::all(&set)?, Files::load(&set)?);
        Ok(Side { set, processes, files })
    }

    fn mm(&self, pid: u32) -> Option<&Mm_entry> {
        self.processes.iter().find(|process| process.pid == pid)?.mm.as_ref()
    }

    fn facts(&self, pid: u32) -> Result<Facts> {
        let mut facts = Facts::new();
        let Some(process) = self.processes.iter().find(|process| process.pid == pid) else {
            return Ok(facts);
        };
        if let Some(mm) = &process.mm {
            self.address_space(mm, &mut facts);
        }
        for (tid, core) in &process.threads {
            thread(*tid, core, &mut facts)?;
        }
        let ids = format!("ids-{pid}.img");
        if self.set.contains(&ids) {
            let ids: Task_kobj_ids_entry = self.set.message(&ids)?;
            self.open_files(ids.files_id(), &mut facts)?;
        }
        Ok(facts)
    }

    fn address_space(&self, mm: &Mm_entry, facts: &mut Facts) {
        let mut rest = mm.clone();
        rest.vmas.clear();
        rest.exe_file_id = None;
        facts.insert("memory descriptor".into(), print_to_string(&rest));
        facts.insert("program".into(), self.path(mm.exe_file_id()));
        for vma in joined(&mm.vmas) {
            let mut rest = vma.clone();
            let (what, file) = (format!("mapping at {:#x}", vma.start()), vma.file());
            let path = file.map(|id| self.path(id)).unwrap_or_default();
            rest.shmid = rest.shmid.filter(|_| file.is_none());
            facts.insert(what, format!("{} {path}", print_to_string(&rest)));
        }
    }

    fn path(&self, id: u32) -> String {
        self.files.path(id).unwrap_or_default().to_owned()
    }

    fn open_files(&self, table: u32, facts: &mut Facts) -> Result<()> {
        let entries: Vec<Fdinfo_entry> = self.set.messages(&format!("fdinfo-{table}.img"))?;
        for entry in entries {
            let file = self.files.entries().iter().find(|file| file.id() == entry.id());
            let mut text = format!("{:?} {}", entry.type_(), entry.flags());
            if let Some(regular) = file.and_then(|file| file.reg.as_ref()) {
                text += &format!(" {} flags {:#x} at {}", regular.name(), regular.flags(), regular.pos());
            }
            facts.insert(format!("descriptor {}", entry.fd()), text);
        }
        Ok(())
    }
}

/// Mappings with those joined that the kernel may join: neighbours that differ in nothing but their place.
fn joined(vmas: &[Vma_entry]) -> Vec<Vma_entry> {
    let mut vmas: Vec<Vma_entry> = vmas.to_vec();
    vmas.dedup_by(|next, previous| {
        let mut alike = next.clone();
        (alike.start, alike.end) = (previous.start, previous.end);
        let distance = next.start().wrapping_sub(previous.start());
        if next.file().is_some() {
            alike.pgoff = Some(next.pgoff().wrapping_sub(distance));
        }
        let one = next.start() == previous.end() && alike == *previous;
        if one {
            previous.end = next.end;
        }
        one
    });
    vmas
}

fn thread(tid: u32, core: &Core_entry, facts: &mut Facts) -> Result<()> {
    let mut rest = core.clone();
    let mut add = |what: &str, text: String| facts.insert(format!("thread {tid}: {what}"), text);
    if let Some(info) = core.thread_info.as_ref() {
        add("registers", registers(&x86_64::cpu_of(info, &core_name(tid))?));
        add("tid address", format!("{:#x}", info.clear_tid_addr()));
        add("segments", {
            let r = info.gpregs.get_or_default();
            format!("{:x} {:x} {:x} {:x} {:x} {:x}", r.cs(), r.ss(), r.ds(), r.es(), r.fs(), r.gs())
        });
    }
    rest.thread_info = MessageField::none();
    if let Some(task) = rest.tc.as_mut() {
        // Timers run on between dumps, and the flags are the kernel's own (PF_*).
        task.flags = None;
        let timers = task.timers.take();
        add("timers", timers.map_or(String::new(), |timers| format!("{} posix", timers.posix.len())));
        for (signal, action) in task.sigactions.drain(..).enumerate() {
            add(&format!("signal action {signal}"), print_to_string(&action));
        }
    }
    if let Some(more) = rest.thread_core.as_mut() {
        let message = |what: &str, text: String| (what.to_owned(), text);
        let parts = [
            message("alternate stack", text(&more.sas)),
            message("restartable sequences", text(&more.rseq_entry)),
            message("robust list", format!("{:#x} {}", more.futex_rla(), more.futex_rla_len())),
            message("credentials", text(&more.creds)),
        ];
        more.sas.take();
        more.rseq_entry.take();
        more.creds.take();
        parts.into_iter().for_each(|(what, text)| drop(add(&what, text)));
    }
    add("everything else", print_to_string(&rest));
    Ok(())
}

fn text<M: MessageFull>(message: &MessageField<M>) -> String {
    message.as_ref().map_or_else(|| "none".into(), |message| print_to_string(message))
}

fn registers(cpu: &Cpu) -> String {
    let hex = |bytes: &[u8]| bytes.iter().rev().fold(String::new(), |text, byte| format!("{text}{byte:02x}"));
    let vec: Vec<String> = cpu.vec.iter().map(|vec| hex(vec)).collect();
    format!(
        "rip {:x} gpr {:x?} rflags {:x} fs {:x} gs {:x} mxcsr {:x} pkru {:x} k {:x?} x87 {:x?} zmm {vec:?}",
        cpu.rip,
        cpu.gpr,
        cpu.rflags(),
        cpu.fs_base,
        cpu.gs_base,
        cpu.mxcsr,
        cpu.pkru,
        cpu.opmask,
        cpu.x87
    )
}

/// Pages read at a time.
const CHUNK: u64 = 256 * PAGE;

/// Note each run of pages that has other contents in one set than in the other.
fn differing_pages(first: &Side, second: &Side, pid: u32, a: &mut Facts, b: &mut Facts) -> Result<()> {
    let (Some(mm), true) = (first.mm(pid), second.mm(pid).is_some()) else { return Ok(()) };
    let name = pagemap_name(pid);
    let (left, right) = (Memory::open(&first.set, &name)?, Memory::open(&second.set, &name)?);
    for vma in mm.vmas.iter().filter(|vma| !vma.is(status::GUARD | status::VSYSCALL)) {
        let file = vma.file().and_then(|id| File::open(first.files.path(id)?).ok());
        for extent in left.extents().iter().chain(right.extents()) {
            let (mut at, end) = (extent.start.max(vma.start()), extent.end.min(vma.end()));
            while at < end {
                let bytes = CHUNK.min(end - at) as usize;
                let read = |memory: &Memory| contents(memory, vma, file.as_ref(), at, bytes);
                let (x, y) = (read(&left)?, read(&right)?);
                let pages = x.chunks(PAGE as usize).zip(y.chunks(PAGE as usize)).enumerate();
                for (n, (x, y)) in pages.filter(|(_, (x, y))| x != y) {
                    let (what, byte) = first_byte(at + n as u64 * PAGE, x, y);
                    a.insert(what.clone(), format!("{:02x}", x[byte]));
                    b.insert(what, format!("{:02x}", y[byte]));
                }
                at += bytes as u64;
            }
        }
    }
    Ok(())
}

/// A page's first byte that differs: what to call it, and where in the page it is.
fn first_byte(page: u64, x: &[u8], y: &[u8]) -> (String, usize) {
    let byte = x.iter().zip(y).position(|(x, y)| x != y).unwrap_or(0);
    (format!("memory: page {page:#x} from byte {byte:#x}"), byte)
}

/// `bytes` bytes of a mapping: from the images, and where they have none, from the mapped file.
fn contents(memory: &Memory, vma: &Vma_entry, file: Option<&File>, at: u64, bytes: usize) -> Result<Vec<u8>> {
    let mut buffer = vec![0; bytes];
    if let Some(file) = file {
        let offset = vma.pgoff() + (at - vma.start());
        let mut filled = 0;
        while let Ok(count @ 1..) = file.read_at(&mut buffer[filled..], offset + filled as u64) {
            filled += count;
        }
    }
    memory.read_over(at, &mut buffer)?;
    Ok(buffer)
}
