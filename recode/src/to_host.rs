//! Canonical checkpoint → host checkpoint: what the guest had on its own CPU goes into the state area, the runtime and its
//! objects are mapped in the hole, and every thread is pointed at "resume the guest".

use crate::elf::Elf;
use crate::error::{RecodeError, Result};
use crate::files::{Files, Renumbering};
use crate::layout::{self, GuestObject, HostLayout};
use crate::memory::{Memory, NewMemory, NewPages, PAGE};
use crate::mounts::{Mounts, Waiting};
use crate::output::Output;
use crate::process::{Process, core_name, machine_of_all, mm_name, pagemap_name};
use crate::proto::core_x86::Thread_info_x86;
use crate::proto::criu_core::core_entry::March;
use crate::proto::criu_core::{Core_entry, Task_core_entry};
use crate::proto::criu_sa::Sa_entry;
use crate::proto::mm::Mm_entry;
use crate::proto::seccomp::Seccomp_filter;
use crate::proto::vma::Vma_entry;
use crate::residue::Residue;
use crate::seccomp::{Confinement, Filters, NewFilters, Own, Store};
use crate::set::ImageSet;
use crate::state::{self, State, Thread};
use crate::to_canonical::find_state;
use crate::vdso::Stubs;
use crate::vma::{self, Mapping, protection, status};
use crate::{aarch64, x86_64};
use protobuf::{MessageDyn, MessageField};
use std::collections::BTreeMap;
use tranship_abi::block::{self, CodeRange, ObjectRef, Range, SigAction, phase};
use tranship_abi::host::Host;

/// Symbol of the runtime at which restored threads start.
const RESUME: &str = "tranship_resume";
/// Alignment of what is mapped in the hole: the largest page size of any host.
const ALIGN: u64 = 1 << 16;
/// Linux's personality bit for "readable memory is executable".
const READ_IMPLIES_EXEC: u32 = 0x040_0000;
const SIG_IGN: u64 = 1;
const SIGKILL: u32 = 9;
const SIGSTOP: u32 = 19;
const SS_DISABLE: u32 = 2;
const AT_SYSINFO_EHDR: u64 = 33;

/// The output of recoding `set` to `layout`'s host, and the processes in it.
pub(crate) fn recode<'s>(set: &'s ImageSet, layout: &HostLayout) -> Result<(Output<'s>, Vec<Process>)> {
    let mut processes = Process::all(set)?;
    check_home(&processes)?;
    let mut output = Output::new(set);
    let mut files = Files::load(set)?;
    let parts = Parts::new(layout, &mut files)?;
    let filters = Filters::load(set)?;
    let mut new_filters = NewFilters::default();
    let mut mounts = Mounts::load(set, processes.iter().map(|process| process.pid))?;
    let mut waiting = match &layout.kernel {
        Some(kernel) => mounts.leave_out(kernel)?,
        None => BTreeMap::new(),
    };
    mounts.write(&mut output)?;
    for process in &mut processes {
        let pid = process.pid;
        let mounts = waiting.remove(&pid).unwrap_or_default();
        let confinements = filters.of(process, layout.filter.is_some())?;
        for ((_, core), at_home) in process.threads.iter_mut().zip(&confinements) {
            new_filters.confine(core, &on_host(at_home, layout));
        }
        let mut journey = Journey { set, layout, parts: &parts, files: &files, pid, confinements, mounts };
        journey.process(process, &mut output)?;
    }
    new_filters.write(&mut output)?;
    files.renumber(Renumbering::ToHost(layout.machine));
    output.messages("files.img", files.entries().iter().map(|entry| entry as &dyn MessageDyn))?;
    if layout.machine != Host::X86_64 {
        output.leave("cpuinfo.img");
    }
    Ok((output, processes))
}

fn check_home(processes: &[Process]) -> Result<()> {
    let found = machine_of_all(processes)?;
    if found != Host::X86_64 {
        return Err(RecodeError::WrongMachine {
            file: core_name(processes[0].pid),
            found: found.name().to_owned(),
            expected: "x86_64, the only guest machine so far; recode host checkpoints to canonical first"
                .into(),
        });
    }
    Ok(())
}

/// What a thread's kernel has of it on the host: the engine's filter for that, and nothing of the program's own.
fn on_host(at_home: &Confinement, layout: &HostLayout) -> Confinement {
    let engine = at_home.engine.as_ref().zip(layout.filter.as_ref());
    let engine = engine.map(|(home, host)| Seccomp_filter { filter: Some(host.clone()), ..home.clone() });
    Confinement { engine, own: Own::default() }
}

/// The files that are mapped in every process, parsed once.
struct Parts<'l> {
    runtime: Elf<'l>,
    runtime_id: u32,
    resume: u64,
    objects: Vec<(&'l GuestObject, Elf<'l>, u32)>,
}

impl<'l> Parts<'l> {
    fn new(layout: &'l HostLayout, files: &mut Files) -> Result<Parts<'l>> {
        let mut add = |file: &'l layout::MappedFile| {
            let elf = Elf::of(layout.machine, &file.path, &file.elf)?;
            let id = files.add(&file.path, elf.length());
            Ok((elf, id))
        };
        let (runtime, runtime_id) = add(&layout.runtime)?;
        let resume = runtime.symbol(RESUME)?;
        let objects = layout.objects.iter().map(|object| {
            let (elf, id) = add(&object.object)?;
            Ok((object, elf, id))
        });
        Ok(Parts { runtime, runtime_id, resume, objects: objects.collect::<Result<_>>()? })
    }
}

/// One process on its way to a host.
struct Journey<'a> {
    set: &'a ImageSet,
    layout: &'a HostLayout,
    parts: &'a Parts<'a>,
    files: &'a Files,
    pid: u32,
    /// What its threads are under at home.
    confinements: Vec<Confinement>,
    /// The mounts that it will see at home only.
    mounts: Vec<Waiting>,
}

impl Journey<'_> {
    fn process(&mut self, process: &mut Process, output: &mut Output) -> Result<()> {
        if let Some(mm) = &mut process.mm {
            let pagemap = pagemap_name(process.pid);
            let memory = Memory::open(self.set, &pagemap)?;
            if find_state(mm, &memory, process.pid)?.is_some() {
                return Err(self.refused("is a host checkpoint already; recode it to canonical first"));
            }
            let mut pages = NewPages::default();
            let mut state = self.state(mm, &process.threads, &memory)?;
            let filter = self.confinements.iter().find_map(|one| one.engine.clone());
            let mounts = self.mounts.clone();
            let threads = registers(&process.threads);
            let mut residue = Residue { threads, filter, mounts, ..Residue::default() };
            self.take_from_guest(mm, &mut state, &mut residue, &memory, &mut pages)?;
            state.residue = residue.encode(self.pid)?;
            let resume = self.fill_hole(mm, &mut state, &mut pages)?;
            state.write(&mut pages);
            vma::sort(&mut mm.vmas);
            output.messages(&mm_name(process.pid), [mm as &dyn MessageDyn])?;
            let id = output.new_pages_id();
            let everything = 0..u64::MAX / PAGE * PAGE;
            output.pages(pagemap, NewMemory::of(&memory, &[everything], &pages, id));
            for (slot, (tid, core)) in process.threads.iter_mut().enumerate() {
                self.thread(core, slot, *tid, resume, &state)?;
            }
        }
        for (tid, core) in &mut process.threads {
            core.mtype = Some(march(self.layout.machine).into());
            output.messages(&core_name(*tid), [core as &dyn MessageDyn])?;
        }
        Ok(())
    }

    fn refused(&self, why: impl Into<String>) -> RecodeError {
        RecodeError::refused(format!("process {}", self.pid), why)
    }

    /// The state of the guest as the images have it, still without a place and without what is mapped in the hole.
    fn state(&self, mm: &Mm_entry, threads: &[(u32, Core_entry)], memory: &Memory) -> Result<State> {
        if threads.len() > block::MAX_THREADS {
            return Err(self.refused(format!(
                "{} threads, {} are the limit",
                threads.len(),
                block::MAX_THREADS
            )));
        }
        let leader = threads[0].1.tc.get_or_default();
        if leader.personality() & READ_IMPLIES_EXEC != 0 {
            return Err(self.refused("its personality makes all readable memory executable"));
        }
        let auxv =
            |key| mm.mm_saved_auxv.chunks_exact(2).find(|pair| pair[0] == key).map_or(0, |pair| pair[1]);
        let mut filters = Store::default();
        let threads = threads.iter().zip(&self.confinements).map(|((tid, core), confinement)| {
            self.guest_thread(*tid, core, filters.add(&confinement.own, self.pid)?)
        });
        let threads = threads.collect::<Result<_>>()?;
        Ok(State {
            base: 0,
            hole_bytes: 0,
            host: self.layout.machine,
            brk_start: mm.mm_start_brk(),
            brk: mm.mm_brk(),
            vdso: auxv(AT_SYSINFO_EHDR),
            auxv: find_auxv(mm, memory)?,
            sigactions: guest_sigactions(leader),
            exec_ranges: Vec::new(),
            objects: Vec::new(),
            threads,
            residue: Vec::new(),
            filters,
            blob: 0,
        })
    }

    fn guest_thread(&self, tid: u32, core: &Core_entry, seccomp: u32) -> Result<Thread> {
        let name = core_name(tid);
        let info = core.thread_info.as_ref();
        let info = info.ok_or_else(|| RecodeError::damaged(&name, 0, "has no x86 registers"))?;
        let more = core.thread_core.get_or_default();
        let rseq = more.rseq_entry.get_or_default();
        if rseq.rseq_cs_pointer() != 0 {
            return Err(RecodeError::passing(name, "the thread is in a restartable sequence"));
        }
        let altstack = more.sas.get_or_default();
        Ok(Thread {
            phase: phase::RUNNING,
            tid,
            cpu: x86_64::cpu_of(info, &name)?,
            signal_mask: signal_mask(core),
            altstack: (altstack.ss_sp(), altstack.ss_size()),
            altstack_flags: if more.sas.is_some() { altstack.ss_flags() } else { SS_DISABLE },
            clear_tid: info.clear_tid_addr(),
            robust_list: (more.futex_rla(), u64::from(more.futex_rla_len())),
            rseq: rseq.rseq_abi_pointer(),
            rseq_length_signature: (rseq.rseq_abi_size(), rseq.signature()),
            seccomp,
        })
    }

    /// Take from the guest's mappings what the host must not have: the right to execute, and what the kernel of the
    /// guest's machine alone makes, which goes into the residue.
    fn take_from_guest(
        &self,
        mm: &mut Mm_entry,
        state: &mut State,
        residue: &mut Residue,
        memory: &Memory,
        pages: &mut NewPages,
    ) -> Result<()> {
        let refused = mm.vmas.iter().find(|vma| vma.is(status::SHADOW_STACK | status::UPROBES));
        if let Some(vma) = refused {
            return Err(self.refused(format!("has a shadow stack or uprobes mapped at {:#x}", vma.start())));
        }
        residue.vmas.extend(mm.vmas.iter().filter(|vma| vma.is_kernels()).cloned());
        mm.vmas.retain(|vma| !vma.is(status::VSYSCALL));
        state.exec_ranges = code_ranges(&mm.vmas);
        if state.exec_ranges.len() > block::MAX_EXEC_RANGES {
            let (found, limit) = (state.exec_ranges.len(), block::MAX_EXEC_RANGES);
            return Err(self.refused(format!("{found} executable ranges, {limit} are the limit")));
        }
        for vma in &mut mm.vmas {
            if vma.is(status::VDSO) {
                residue.pages.push(self.replace_vdso(vma, state, memory, pages)?);
            }
            if is_guest_code(vma) {
                vma.prot = Some(vma.prot() & !protection::EXEC);
            }
            vma.status = Some(vma.status() & !(status::VDSO | status::VVAR));
            Renumbering::ToHost(self.layout.machine).apply(&mut vma.fdflags);
        }
        Ok(())
    }

    /// Put stubs in the vDSO. Returns its address and what it was.
    fn replace_vdso(
        &self,
        vma: &Vma_entry,
        state: &State,
        memory: &Memory,
        pages: &mut NewPages,
    ) -> Result<(u64, Vec<u8>)> {
        let range = vma.range();
        let mut image = vec![0; (range.end - range.start) as usize];
        memory.read(range.start, &mut image)?;
        let original = image.clone();
        let stubs = Stubs::of(&original, self.pid)?;
        stubs.put(&mut image, self.pid)?;
        for thread in state.threads.iter().filter(|thread| range.contains(&thread.cpu.rip)) {
            if !stubs.let_go_on(&original, thread.cpu.rip - range.start) {
                let thread = format!("thread {}", thread.tid);
                return Err(RecodeError::passing(thread, "is inside the vDSO"));
            }
        }
        pages.write(range.start, &image);
        Ok((range.start, original))
    }

    /// Choose the hole and map what belongs in it. Returns the address that threads resume at.
    fn fill_hole(&self, mm: &mut Mm_entry, state: &mut State, pages: &mut NewPages) -> Result<u64> {
        let mapped: Vec<_> =
            self.parts.objects.iter().filter_map(|part| Some((part, self.bias(mm, part.0)?))).collect();
        if mapped.len() > block::MAX_OBJECTS {
            return Err(self.refused(format!(
                "{} objects, {} are the limit",
                mapped.len(),
                block::MAX_OBJECTS
            )));
        }
        let mut offsets = Vec::new();
        let mut end = block::OBJECTS_OFFSET;
        for ((_, elf, _), _) in &mapped {
            let span = layout::span(elf)?;
            offsets.push(end);
            end = (end + (span.end - span.start)).next_multiple_of(ALIGN);
        }
        let span = layout::span(&self.parts.runtime)?;
        if span.end - span.start > block::BLOB_BYTES {
            return Err(self.parts.runtime.bad(format!("is larger than {} bytes", block::BLOB_BYTES)));
        }
        // Room for objects that come later, where the address space has it.
        let choose = |bytes| {
            layout::choose_hole(self.layout.machine, &mm.vmas, bytes, self.pid).map(|base| (base, bytes))
        };
        (state.base, state.hole_bytes) = choose(end.max(block::HOLE_BYTES)).or_else(|_| choose(end))?;
        mm.vmas.extend(layout::state_area(state.base, state.threads.len()));
        state.blob = state.base + block::BLOB_OFFSET;
        let bias = layout::map(&self.parts.runtime, self.parts.runtime_id, state.blob, &mut mm.vmas, pages)?;
        for (((_, elf, id), guest_bias), offset) in mapped.into_iter().zip(offsets) {
            let bias = layout::map(elf, *id, state.base + offset, &mut mm.vmas, pages)?;
            let header = bias.wrapping_add(elf.symbol("tranship_object")?);
            state.objects.push(ObjectRef { header, guest_bias });
        }
        Ok(bias.wrapping_add(self.parts.resume))
    }

    /// Load bias of an object's guest file, where the process maps it.
    fn bias(&self, mm: &Mm_entry, object: &GuestObject) -> Option<u64> {
        let maps_it = |id: u32| self.files.path(id) == Some(object.guest_path.as_str());
        let first = mm.vmas.iter().find(|vma| vma.pgoff() == 0 && vma.file().is_some_and(maps_it))?;
        Some(first.start().wrapping_sub(object.guest_base))
    }

    /// Point a thread at the runtime.
    fn thread(&self, core: &mut Core_entry, slot: usize, tid: u32, resume: u64, state: &State) -> Result<()> {
        let block = state::thread_block(state.base, slot);
        let stack = state::host_stack(state.base, slot).end;
        let clear_tid = state.threads[slot].clear_tid;
        core.thread_info = MessageField::none();
        match self.layout.machine {
            Host::X86_64 => {
                let info = x86_64::host_thread_info(resume, block, stack, clear_tid);
                core.thread_info = MessageField::some(info);
            }
            Host::Aarch64 => {
                let info = aarch64::host_thread_info(resume, block, stack, clear_tid);
                core.ti_aarch64 = MessageField::some(info);
            }
            Host::Riscv64 => {
                return Err(RecodeError::refused(core_name(tid), "there is no runtime for riscv64 yet"));
            }
        }
        // All signals wait until the runtime has its handlers in place.
        if let Some(task) = core.tc.as_mut() {
            task.blk_sigset = Some(u64::MAX);
            task.sigactions.iter_mut().for_each(neutral);
        }
        if let Some(more) = core.thread_core.as_mut() {
            more.blk_sigset = more.blk_sigset.map(|_| u64::MAX);
            more.rseq_entry = MessageField::none();
            if let Some(altstack) = more.sas.as_mut() {
                (altstack.ss_sp, altstack.ss_size) = (Some(0), Some(0));
                altstack.ss_flags = Some(SS_DISABLE);
            }
        }
        Ok(())
    }
}

/// CRIU's number of a machine.
pub(crate) fn march(machine: Host) -> March {
    match machine {
        Host::X86_64 => March::X86_64,
        Host::Aarch64 => March::AARCH64,
        Host::Riscv64 => March::RISCV64,
    }
}

fn registers(threads: &[(u32, Core_entry)]) -> BTreeMap<u32, Thread_info_x86> {
    threads.iter().filter_map(|(tid, core)| Some((*tid, core.thread_info.as_ref()?.clone()))).collect()
}

/// Whether it is memory that the guest may execute. (System V shared memory has that bit for another meaning.)
fn is_guest_code(vma: &Vma_entry) -> bool {
    vma.prot() & protection::EXEC != 0 && !vma.is(status::VSYSCALL | status::SYSVIPC | status::GUARD)
}

/// What of `vmas` the guest may execute, by address.
fn code_ranges(vmas: &[Vma_entry]) -> Vec<CodeRange> {
    let of = |writable: bool| {
        let is_writable = |vma: &Vma_entry| vma.prot() & protection::WRITE != 0;
        let chosen = vmas.iter().filter(|vma| is_guest_code(vma) && is_writable(vma) == writable);
        let ranges = vma::joined(chosen.map(Mapping::range));
        ranges.into_iter().map(move |r| CodeRange { start: r.start, end: r.end, writable: writable.into() })
    };
    let mut ranges: Vec<CodeRange> = of(false).chain(of(true)).collect();
    ranges.sort_by_key(|range| range.start);
    ranges
}

/// Blocked signals: the leader's are the task's.
fn signal_mask(core: &Core_entry) -> u64 {
    match core.tc.as_ref() {
        Some(task) => task.blk_sigset(),
        None => core.thread_core.get_or_default().blk_sigset(),
    }
}

/// The signals whose dispositions CRIU dumps, in its order.
pub(crate) fn dumped_signals() -> impl Iterator<Item = u32> {
    (1..=64).filter(|signal| ![SIGKILL, SIGSTOP].contains(signal))
}

fn guest_sigactions(task: &Task_core_entry) -> Vec<SigAction> {
    let mut actions = vec![SigAction { handler: 0, flags: 0, restorer: 0, mask: 0 }; 64];
    for (signal, action) in dumped_signals().zip(&task.sigactions) {
        actions[signal as usize - 1] = SigAction {
            handler: action.sigaction(),
            flags: action.flags(),
            restorer: action.restorer(),
            mask: action.mask(),
        };
    }
    actions
}

/// A disposition without guest code: what is ignored stays so, the rest is left to the runtime.
fn neutral(action: &mut Sa_entry) {
    let ignored = action.sigaction() == SIG_IGN;
    action.sigaction = Some(if ignored { SIG_IGN } else { 0 });
    action.flags = Some(0);
    action.restorer = Some(0);
    action.mask = Some(0);
}

/// Where the auxiliary vector is: behind the environment on the initial stack. Nowhere, if the program has overwritten
/// that.
fn find_auxv(mm: &Mm_entry, memory: &Memory) -> Result<Range> {
    let nowhere = Range { start: 0, end: 0 };
    let Some(room) = mm.mm_arg_start().checked_sub(mm.mm_start_stack()).filter(|room| *room < 1 << 24) else {
        return Ok(nowhere);
    };
    let mut bytes = vec![0; room as usize / 8 * 8];
    memory.read(mm.mm_start_stack(), &mut bytes)?;
    let saved: Vec<u8> = mm.mm_saved_auxv.iter().flat_map(|word| word.to_le_bytes()).collect();
    let at = (0..bytes.len()).step_by(8).find(|at| !saved.is_empty() && bytes[*at..].starts_with(&saved));
    Ok(at.map_or(nowhere, |at| {
        let start = mm.mm_start_stack() + at as u64;
        Range { start, end: start + saved.len() as u64 }
    }))
}
