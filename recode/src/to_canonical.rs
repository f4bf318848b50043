//! Host checkpoint → canonical checkpoint: the guest's registers and dispositions come out of the state area, what the host
//! added is dropped, and what only the guest's machine has is put back.

use crate::error::{RecodeError, Result};
use crate::files::{Files, Renumbering};
use crate::layout::{GUEST_END, Home};
use crate::memory::{Memory, NewMemory, NewPages, PAGE};
use crate::mounts::Mounts;
use crate::output::Output;
use crate::process::{Process, core_name, machine_of_all, mm_name, pagemap_name};
use crate::proto::core_x86::Thread_info_x86;
use crate::proto::criu_core::core_entry::March;
use crate::proto::criu_core::{Core_entry, Thread_sas_entry};
use crate::proto::criu_sa::Sa_entry;
use crate::proto::fdinfo::Fdinfo_entry;
use crate::proto::fs::Fs_entry;
use crate::proto::mm::Mm_entry;
use crate::proto::rseq::Rseq_entry;
use crate::proto::seccomp::Seccomp_filter;
use crate::proto::siginfo::Signal_queue_entry;
use crate::proto::vma::Vma_entry;
use crate::residue::Residue;
use crate::seccomp::{Confinement, Filters, NewFilters, Own};
use crate::set::ImageSet;
use crate::state::{State, Thread};
use crate::to_host::dumped_signals;
use crate::vdso::{Place, Stubs};
use crate::vma::{self, Mapping, protection, status};
use crate::x86_64;
use protobuf::{MessageDyn, MessageField};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use tranship_abi::block::{CodeRange, SigAction, phase};
use tranship_abi::host::Host;

/// The signal by which the agent interrupts system calls; a guest never sees it.
const AGENT_SIGNAL: u32 = 64;
const AT_ENTRY: u64 = 9;

/// The output of recoding `set`, a host checkpoint, and the processes in it.
pub(crate) fn recode<'s>(set: &'s ImageSet, to: &Home) -> Result<(Output<'s>, Vec<Process>)> {
    let mut processes = Process::all(set)?;
    let host = machine_of_all(&processes)?;
    let mut output = Output::new(set);
    let mut files = Files::load(set)?;
    let mut dropped = BTreeSet::new();
    let mut home = Vec::new();
    let mut mounts = Mounts::load(set, processes.iter().map(|process| process.pid))?;
    for process in &mut processes {
        let mut journey = Journey {
            set,
            host,
            pid: process.pid,
            files: &files,
            dropped: &mut dropped,
            own: BTreeMap::new(),
        };
        let residue = journey.process(process, &mut output)?;
        mounts.put_back(process.pid, &residue.mounts);
        home.push(AtHome { engine: residue.filter, own: journey.own });
    }
    mounts.write(&mut output)?;
    confine(set, to, &mut processes, &home, &mut output)?;
    for (tid, core) in processes.iter().flat_map(|process| &process.threads) {
        output.messages(&core_name(*tid), [core as &dyn MessageDyn])?;
    }
    let used = used_files(set, &processes)?;
    files.remove(&dropped.difference(&used).copied().collect());
    files.renumber(Renumbering::ToGuest(host));
    output.messages("files.img", files.entries().iter().map(|entry| entry as &dyn MessageDyn))?;
    Ok((output, processes))
}

/// The seccomp filters of a process at home.
struct AtHome {
    /// Its engine's, if it has been there.
    engine: Option<Seccomp_filter>,
    /// Its threads' own.
    own: BTreeMap<u32, Own>,
}

/// Put threads under what they are under at home: their own filters, and where they are under an engine's here, that one's for the
/// home. A process that has executed a program abroad has lost it, but there is one for the container.
fn confine(
    set: &ImageSet,
    to: &Home,
    processes: &mut [Process],
    home: &[AtHome],
    output: &mut Output,
) -> Result<()> {
    let filters = Filters::load(set)?;
    let mut new_filters = NewFilters::default();
    let any = home.iter().find_map(|one| one.engine.as_ref());
    for (process, at_home) in processes.iter_mut().zip(home) {
        let pid = process.pid;
        let here = filters.of(process, true)?;
        for ((tid, core), here) in process.threads.iter_mut().zip(here) {
            if here.own != Own::default() {
                let why = "is under seccomp filters that are neither its engine's nor its own";
                return Err(RecodeError::refused(format!("thread {tid}"), why));
            }
            let given =
                |here| to.filter.clone().map(|filter| Seccomp_filter { filter: Some(filter), ..here });
            let engine = here.engine.map(|here| {
                at_home.engine.as_ref().or(any).cloned().or_else(|| given(here)).ok_or_else(|| {
                    let why = "was started abroad under a seccomp filter, and its home's is not known; start it without one";
                    RecodeError::refused(format!("process {pid}"), why)
                })
            });
            let own = at_home.own.get(tid).cloned().unwrap_or_default();
            new_filters.confine(core, &Confinement { engine: engine.transpose()?, own });
        }
    }
    new_filters.write(output)
}

/// Ids of the files that processes have open, run, map, or have as a directory.
fn used_files(set: &ImageSet, processes: &[Process]) -> Result<BTreeSet<u32>> {
    let mut used = BTreeSet::new();
    for (name, _) in set.files() {
        if name.starts_with("fdinfo-") {
            let entries: Vec<Fdinfo_entry> = set.messages(name)?;
            used.extend(entries.iter().map(Fdinfo_entry::id));
        } else if name.starts_with("fs-") {
            let entries: Vec<Fs_entry> = set.messages(name)?;
            used.extend(entries.iter().flat_map(|fs| [fs.cwd_id(), fs.root_id()]));
        }
    }
    for mm in processes.iter().filter_map(|process| process.mm.as_ref()) {
        used.insert(mm.exe_file_id());
        used.extend(mm.vmas.iter().filter_map(Mapping::file));
    }
    Ok(used)
}

/// The state area of a process, wherever it is.
pub(crate) fn find_state(mm: &Mm_entry, memory: &Memory, pid: u32) -> Result<Option<State>> {
    let writable = protection::READ | protection::WRITE;
    for vma in mm.vmas.iter().filter(|vma| vma.is(status::ANON_PRIVATE) && vma.prot() == writable) {
        if let Some(state) = State::read(memory, vma.start(), pid)? {
            return Ok(Some(state));
        }
    }
    Ok(None)
}

/// One process on its way home.
struct Journey<'a> {
    set: &'a ImageSet,
    host: Host,
    pid: u32,
    files: &'a Files,
    /// Files that only the host had mapped.
    dropped: &'a mut BTreeSet<u32>,
    /// What its threads have put themselves under.
    own: BTreeMap<u32, Own>,
}

impl Journey<'_> {
    /// Returns what has waited for its home. What becomes of its cores is left to the caller.
    fn process(&mut self, process: &mut Process, output: &mut Output) -> Result<Residue> {
        let mut own = Residue::default();
        if let Some(mm) = &mut process.mm {
            let pagemap = pagemap_name(process.pid);
            let memory = Memory::open(self.set, &pagemap)?;
            let state = find_state(mm, &memory, self.pid)?;
            let mut state =
                state.ok_or_else(|| RecodeError::state(self.pid, "none found; was it dumped at home?"))?;
            self.check(&state, &process.threads)?;
            let residue = Residue::decode(&state.residue, self.pid)?;
            let mut pages = NewPages::default();
            let keep = self.address_space(mm, &state, &residue, &mut pages)?;
            self.program(mm);
            output.messages(&mm_name(process.pid), [mm as &dyn MessageDyn])?;
            let id = output.new_pages_id();
            output.pages(pagemap, NewMemory::of(&memory, &keep, &pages, id));
            for thread in &mut state.threads {
                self.leave_stub(thread, &residue, &memory)?;
                self.own.insert(thread.tid, state.filters.own(thread.seccomp, self.pid)?);
                let core = process.threads.iter_mut().find(|(tid, _)| *tid == thread.tid);
                if let Some((_, core)) = core {
                    restore_thread(core, thread, &state.sigactions, &residue);
                }
            }
            own = residue;
        }
        for (_, core) in &mut process.threads {
            core.mtype = Some(March::X86_64.into());
        }
        Ok(own)
    }

    /// The state must be of this host and describe exactly the threads that were dumped, all of them parked.
    fn check(&self, state: &State, threads: &[(u32, Core_entry)]) -> Result<()> {
        let wrong = |what: String| Err(RecodeError::state(self.pid, what));
        if state.host != self.host {
            return wrong(format!("is of a {:?} host, the cores are of {:?}", state.host, self.host));
        }
        for thread in &state.threads {
            if !threads.iter().any(|(tid, _)| *tid == thread.tid) {
                return wrong(format!("has thread {}, which was not dumped", thread.tid));
            }
            if thread.phase != phase::PARKED {
                let (pid, tid, phase) = (self.pid, thread.tid, thread.phase);
                return Err(RecodeError::NotParked { pid, tid, phase });
            }
        }
        let unknown = threads.iter().find(|(tid, _)| !state.threads.iter().any(|t| t.tid == *tid));
        match unknown {
            Some((tid, _)) => wrong(format!("does not have thread {tid}")),
            None => Ok(()),
        }
    }

    /// Make the guest's address space out of the host's. Returns the ranges whose pages stay.
    fn address_space(
        &mut self,
        mm: &mut Mm_entry,
        state: &State,
        residue: &Residue,
        pages: &mut NewPages,
    ) -> Result<Vec<Range<u64>>> {
        let hole = state.base..state.base.saturating_add(state.hole_bytes);
        let is_hosts = |vma: &Vma_entry| {
            vma.is_kernels()
                || vma.start() >= GUEST_END
                || hole.contains(&vma.start()) && vma.end() <= hole.end
        };
        let (hosts, mut guests): (Vec<_>, Vec<_>) =
            std::mem::take(&mut mm.vmas).into_iter().partition(is_hosts);
        self.dropped.extend(hosts.iter().filter_map(Mapping::file));

        let present = vma::joined(guests.iter().map(Mapping::range));
        let is_there =
            |vma: &Vma_entry| vma.is(status::VSYSCALL) || vma::outside(vma.range(), &present).is_empty();
        let kernels: Vec<Vma_entry> = residue.vmas.iter().filter(|vma| is_there(vma)).cloned().collect();
        let replaced = vma::joined(kernels.iter().map(Mapping::range));
        guests = guests.iter().flat_map(|vma| cut(vma, &replaced)).collect();
        guests = guests.iter().flat_map(|vma| with_execution(vma, &state.exec_ranges)).collect();
        guests.iter_mut().for_each(|vma| Renumbering::ToGuest(self.host).apply(&mut vma.fdflags));
        guests.extend(kernels);
        vma::sort(&mut guests);
        mm.vmas = guests;

        for (address, contents) in residue.pages.iter().filter(|(address, _)| within(&replaced, *address)) {
            pages.write(*address, contents);
        }
        (mm.mm_start_brk, mm.mm_brk) = (Some(state.brk_start), Some(state.brk));
        // A host whose kernel or CRIU keeps more of it dumps the end that the home's CRIU has no room for.
        mm.mm_saved_auxv.truncate(x86_64::SAVED_AUXV_WORDS);
        let gone = vma::joined(hosts.iter().map(Mapping::range).chain(replaced));
        Ok(vma::outside(0..u64::MAX / PAGE * PAGE, &gone))
    }

    /// A program that was executed where the kernel lets nobody say so has the runtime for its file, which is outside of the
    /// container: its own is the one that is mapped where it was entered.
    fn program(&mut self, mm: &mut Mm_entry) {
        let entry = mm.mm_saved_auxv.chunks_exact(2).find(|pair| pair[0] == AT_ENTRY).map(|pair| pair[1]);
        let Some(entry) = entry.filter(|_| self.files.is_external(mm.exe_file_id())) else { return };
        let entered = mm.vmas.iter().find(|vma| vma.range().contains(&entry));
        if let Some(file) = entered.and_then(Mapping::file) {
            self.dropped.insert(mm.exe_file_id());
            mm.exe_file_id = Some(file);
        }
    }

    /// A thread that is in a stub of the vDSO goes to where the vDSO itself would have it.
    fn leave_stub(&self, thread: &mut Thread, residue: &Residue, memory: &Memory) -> Result<()> {
        for (address, original) in &residue.pages {
            let Some(at) = thread.cpu.rip.checked_sub(*address) else { continue };
            match Stubs::of(original, self.pid)?.place_at_home(at) {
                Some(Place::Entry(entry)) => thread.cpu.rip = address + entry,
                Some(Place::Return) => {
                    let mut word = [0; 8];
                    memory.read(thread.cpu.gpr[RSP], &mut word)?;
                    thread.cpu.rip = u64::from_le_bytes(word);
                    thread.cpu.gpr[RSP] += 8;
                }
                None => {}
            }
        }
        Ok(())
    }
}

/// Encoding number of rsp.
const RSP: usize = 4;

fn within(ranges: &[Range<u64>], address: u64) -> bool {
    ranges.iter().any(|range| range.contains(&address))
}

/// What is left of `vma` outside `holes`.
fn cut(vma: &Vma_entry, holes: &[Range<u64>]) -> Vec<Vma_entry> {
    if vma.is(status::GUARD) {
        return vec![vma.clone()];
    }
    vma::outside(vma.range(), holes).iter().filter_map(|range| vma::clip(vma, range)).collect()
}

/// `vma` split where the right to execute begins or ends.
fn with_execution(vma: &Vma_entry, code: &[CodeRange]) -> Vec<Vma_entry> {
    if vma.is(status::GUARD | status::SYSVIPC) {
        return vec![vma.clone()];
    }
    let mut parts = Vec::new();
    for range in code {
        let writable = if range.writable != 0 { protection::WRITE } else { 0 };
        parts.extend(vma::clip(vma, &(range.start..range.end)).map(|mut part| {
            part.prot = Some(part.prot() | protection::EXEC | writable);
            part
        }));
    }
    let executable: Vec<_> = code.iter().map(|range| range.start..range.end).collect();
    parts.extend(cut(vma, &executable));
    parts
}

/// Give a thread its guest's registers, dispositions and kernel-side addresses back.
fn restore_thread(core: &mut Core_entry, thread: &Thread, actions: &[SigAction], residue: &Residue) {
    let template = template(residue, thread.tid);
    core.ti_aarch64 = MessageField::none();
    core.ti_riscv64 = MessageField::none();
    core.thread_info = MessageField::some(x86_64::thread_info_of(&thread.cpu, thread.clear_tid, template));
    let more = core.thread_core.mut_or_insert_default();
    more.futex_rla = Some(thread.robust_list.0);
    more.futex_rla_len = Some(thread.robust_list.1 as u32);
    more.sas = MessageField::some(Thread_sas_entry {
        ss_sp: Some(thread.altstack.0),
        ss_size: Some(thread.altstack.1),
        ss_flags: Some(thread.altstack_flags),
        ..Default::default()
    });
    more.rseq_entry = MessageField(rseq(thread).map(Box::new));
    more.signals_p.as_mut().map(drop_agent_signal);
    match core.tc.as_mut() {
        Some(task) => {
            task.blk_sigset = Some(thread.signal_mask);
            task.sigactions = sigactions(actions);
            task.signals_s.as_mut().map(drop_agent_signal);
        }
        None => more.blk_sigset = Some(thread.signal_mask),
    }
}

/// The thread as it left home; of a thread that was created abroad, what its siblings' CPU had; else what every CPU
/// has.
fn template(residue: &Residue, tid: u32) -> Thread_info_x86 {
    if let Some(own) = residue.threads.get(&tid) {
        return own.clone();
    }
    let sibling = residue.threads.values().next();
    sibling.map_or_else(x86_64::fresh_thread_info, |sibling| x86_64::blank(sibling.clone()))
}

fn rseq(thread: &Thread) -> Option<Rseq_entry> {
    let (length, signature) = thread.rseq_length_signature;
    (thread.rseq != 0).then(|| Rseq_entry {
        rseq_abi_pointer: Some(thread.rseq),
        rseq_abi_size: Some(length),
        signature: Some(signature),
        ..Default::default()
    })
}

fn sigactions(actions: &[SigAction]) -> Vec<Sa_entry> {
    let entry = |signal: u32| {
        let action = &actions[signal as usize - 1];
        Sa_entry {
            sigaction: Some(action.handler),
            flags: Some(action.flags),
            restorer: Some(action.restorer),
            mask: Some(action.mask),
            compat_sigaction: Some(false),
            ..Default::default()
        }
    };
    dumped_signals().map(entry).collect()
}

fn drop_agent_signal(queue: &mut Signal_queue_entry) {
    // struct siginfo opens with si_signo.
    queue.signals.retain(|info| info.siginfo().first_chunk() != Some(&AGENT_SIGNAL.to_le_bytes()));
}
