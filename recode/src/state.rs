//! The state area (`tranship_abi::block`) of a checkpoint, read from and written to pages, field by field, so that the
//! machine that recodes need not have laid it out.

use crate::error::{RecodeError, Result};
use crate::memory::{Memory, NewPages};
use crate::seccomp::Store;
use std::mem::{offset_of, size_of};
use tranship_abi::block::{
    self, CodeRange, Header, ObjectRef, ProcessBlock, Range, SigAction, ThreadBlock, ThreadState, phase,
};
use tranship_abi::host::Host;
use tranship_abi::seccomp::{FilterStore, MAX_WORDS};
use tranship_isa::x86_64::{Cpu, X87};

/// A process's durable state.
pub(crate) struct State {
    /// Where the state area is.
    pub(crate) base: u64,
    /// Bytes of the hole, from `base`.
    pub(crate) hole_bytes: u64,
    /// Host that it runs on.
    pub(crate) host: Host,
    /// Start of the guest's heap.
    pub(crate) brk_start: u64,
    /// End of the guest's heap.
    pub(crate) brk: u64,
    /// The guest's vDSO, or 0.
    pub(crate) vdso: u64,
    /// Where the guest's auxiliary vector is.
    pub(crate) auxv: Range,
    /// Dispositions of signals 1..=64.
    pub(crate) sigactions: Vec<SigAction>,
    /// What the guest may execute.
    pub(crate) exec_ranges: Vec<CodeRange>,
    /// Mapped objects.
    pub(crate) objects: Vec<ObjectRef>,
    /// Threads, by slot.
    pub(crate) threads: Vec<Thread>,
    /// Recode's own bytes.
    pub(crate) residue: Vec<u8>,
    /// The guest's own seccomp filters.
    pub(crate) filters: Store,
    /// Where the runtime blob is.
    pub(crate) blob: u64,
}

/// A thread's durable state.
pub(crate) struct Thread {
    /// See [`phase`].
    pub(crate) phase: u32,
    /// Thread id.
    pub(crate) tid: u32,
    /// Registers.
    pub(crate) cpu: Cpu,
    /// Blocked signals.
    pub(crate) signal_mask: u64,
    /// Alternate signal stack: ss_sp, ss_size.
    pub(crate) altstack: (u64, u64),
    /// Alternate signal stack: ss_flags.
    pub(crate) altstack_flags: u32,
    /// set_tid_address(2).
    pub(crate) clear_tid: u64,
    /// Robust futex list: head and length.
    pub(crate) robust_list: (u64, u64),
    /// rseq(2): area, 0 where not registered.
    pub(crate) rseq: u64,
    /// rseq(2): length and signature.
    pub(crate) rseq_length_signature: (u32, u32),
    /// Number of its latest seccomp filter in the store, see `ThreadState`.
    pub(crate) seccomp: u32,
}

/// Address of slot `slot`'s block.
pub(crate) fn thread_block(base: u64, slot: usize) -> u64 {
    base + block::THREADS_OFFSET + (slot * size_of::<ThreadBlock>()) as u64
}

/// Lowest and highest address of slot `slot`'s host stack.
pub(crate) fn host_stack(base: u64, slot: usize) -> std::ops::Range<u64> {
    let top = base + block::HOST_STACKS_OFFSET + (slot as u64 + 1) * block::HOST_STACK_STRIDE;
    top - block::HOST_STACK_BYTES as u64..top
}

/// Writes fields at their offsets from an address.
struct Writer<'p> {
    pages: &'p mut NewPages,
    base: u64,
}

impl Writer<'_> {
    fn bytes(&mut self, offset: usize, bytes: &[u8]) {
        self.pages.write(self.base + offset as u64, bytes);
    }

    fn u64(&mut self, offset: usize, value: u64) {
        self.bytes(offset, &value.to_le_bytes());
    }

    fn u32(&mut self, offset: usize, value: u32) {
        self.bytes(offset, &value.to_le_bytes());
    }

    fn u16(&mut self, offset: usize, value: u16) {
        self.bytes(offset, &value.to_le_bytes());
    }

    fn u64s(&mut self, offset: usize, values: impl IntoIterator<Item = u64>) {
        let bytes: Vec<u8> = values.into_iter().flat_map(u64::to_le_bytes).collect();
        self.bytes(offset, &bytes);
    }
}

impl State {
    /// Lay the state area out in `pages`: durable fields as they are here, everything else zero, not started.
    pub(crate) fn write(&self, pages: &mut NewPages) {
        let mut to = Writer { pages, base: self.base };
        to.bytes(offset_of!(ProcessBlock, header.magic), &block::MAGIC);
        to.u32(offset_of!(ProcessBlock, header.version), block::VERSION);
        to.u32(offset_of!(ProcessBlock, header.guest), Host::X86_64.machine_id());
        to.u32(offset_of!(ProcessBlock, header.host), self.host.machine_id());
        to.u64(offset_of!(ProcessBlock, header.base), self.base);
        to.u64(offset_of!(ProcessBlock, header.hole_bytes), self.hole_bytes);
        to.u64(offset_of!(ProcessBlock, state.brk_start), self.brk_start);
        to.u64(offset_of!(ProcessBlock, state.brk), self.brk);
        to.u64(offset_of!(ProcessBlock, state.vdso), self.vdso);
        to.u64s(offset_of!(ProcessBlock, state.auxv), [self.auxv.start, self.auxv.end]);
        let actions = self.sigactions.iter().flat_map(|a| [a.handler, a.flags, a.restorer, a.mask]);
        to.u64s(offset_of!(ProcessBlock, state.sigactions), actions);
        to.u64(offset_of!(ProcessBlock, state.exec_range_count), self.exec_ranges.len() as u64);
        let ranges = self.exec_ranges.iter().flat_map(|range| [range.start, range.end, range.writable]);
        to.u64s(offset_of!(ProcessBlock, state.exec_ranges), ranges);
        to.u64(offset_of!(ProcessBlock, state.object_count), self.objects.len() as u64);
        let objects = self.objects.iter().flat_map(|object| [object.header, object.guest_bias]);
        to.u64s(offset_of!(ProcessBlock, state.objects), objects);
        to.u64(offset_of!(ProcessBlock, state.residue_len), self.residue.len() as u64);
        to.u64(offset_of!(ProcessBlock, slots), self.threads.len() as u64);
        to.u64(offset_of!(ProcessBlock, blob), self.blob);
        to.bytes(block::RESIDUE_OFFSET as usize, &self.residue);
        if !self.filters.0.is_empty() {
            let mut to = Writer { pages, base: self.base + block::FILTERS_OFFSET };
            to.u64(offset_of!(FilterStore, used), self.filters.0.len() as u64);
            to.u64s(offset_of!(FilterStore, words), self.filters.0.iter().copied());
        }
        for (slot, thread) in self.threads.iter().enumerate() {
            let stack = host_stack(self.base, slot);
            let mut to = Writer { pages, base: thread_block(self.base, slot) };
            thread.write(&mut to);
            to.u64(offset_of!(ThreadBlock, host_stack_limit), stack.start);
            to.u64(offset_of!(ThreadBlock, host_stack_top), stack.end);
            to.u64(offset_of!(ThreadBlock, process), self.base);
        }
    }

    /// The state area at `base` of process `pid`, or `None` if there is none.
    pub(crate) fn read(memory: &Memory, base: u64, pid: u32) -> Result<Option<State>> {
        let mut magic = block::MAGIC;
        memory.read(base, &mut magic)?;
        if magic != block::MAGIC {
            return Ok(None);
        }
        let mut bytes = vec![0; size_of::<ProcessBlock>()];
        memory.read(base, &mut bytes)?;
        let from = Reader(&bytes);
        let host = check_header(&from, base, pid)?;
        let mut state = State {
            base,
            hole_bytes: from.u64(offset_of!(ProcessBlock, header.hole_bytes)),
            host,
            brk_start: from.u64(offset_of!(ProcessBlock, state.brk_start)),
            brk: from.u64(offset_of!(ProcessBlock, state.brk)),
            vdso: from.u64(offset_of!(ProcessBlock, state.vdso)),
            auxv: from.range(offset_of!(ProcessBlock, state.auxv)),
            sigactions: (0..64).map(|n| from.sigaction(n)).collect(),
            exec_ranges: Vec::new(),
            objects: Vec::new(),
            threads: Vec::new(),
            residue: Vec::new(),
            filters: Store::default(),
            blob: from.u64(offset_of!(ProcessBlock, blob)),
        };
        let ranges =
            from.count(offset_of!(ProcessBlock, state.exec_range_count), block::MAX_EXEC_RANGES, pid)?;
        let at = offset_of!(ProcessBlock, state.exec_ranges);
        state.exec_ranges = (0..ranges).map(|n| from.code_range(at + n * size_of::<CodeRange>())).collect();
        let residue = from.count(offset_of!(ProcessBlock, state.residue_len), block::RESIDUE_BYTES, pid)?;
        state.residue = vec![0; residue];
        memory.read(base + block::RESIDUE_OFFSET, &mut state.residue)?;
        state.filters = read_filters(memory, base + block::FILTERS_OFFSET, pid)?;
        let slots = from.count(offset_of!(ProcessBlock, slots), block::MAX_THREADS, pid)?;
        for slot in 0..slots {
            state.threads.extend(Thread::read(memory, thread_block(base, slot))?);
        }
        Ok(Some(state))
    }
}

fn read_filters(memory: &Memory, at: u64, pid: u32) -> Result<Store> {
    let mut used = [0; 8];
    memory.read(at + offset_of!(FilterStore, used) as u64, &mut used)?;
    let used = Reader(&used).count(0, MAX_WORDS, pid)?;
    let mut bytes = vec![0; 8 * used];
    memory.read(at + offset_of!(FilterStore, words) as u64, &mut bytes)?;
    let (words, _) = bytes.as_chunks();
    Ok(Store(words.iter().map(|word| u64::from_le_bytes(*word)).collect()))
}

fn check_header(from: &Reader, base: u64, pid: u32) -> Result<Host> {
    let version = from.u32(offset_of!(Header, version));
    if version != block::VERSION {
        let expected = block::VERSION;
        return Err(RecodeError::state(pid, format!("has version {version}, this is version {expected}")));
    }
    let found = from.u64(offset_of!(Header, base));
    if found != base {
        return Err(RecodeError::state(pid, format!("was moved from {found:#x} to {base:#x}")));
    }
    let guest = from.u32(offset_of!(Header, guest));
    if guest != block::machine_id::X86_64 {
        return Err(RecodeError::state(pid, format!("guest machine {guest} is none that is known")));
    }
    let host = from.u32(offset_of!(Header, host));
    Host::from_machine_id(host)
        .ok_or_else(|| RecodeError::state(pid, format!("host machine {host} is none that is known")))
}

impl Thread {
    fn write(&self, to: &mut Writer) {
        const STATE: usize = offset_of!(ThreadBlock, state);
        write_cpu(to, STATE + offset_of!(ThreadState, cpu), &self.cpu);
        to.u64(STATE + offset_of!(ThreadState, signal_mask), self.signal_mask);
        to.u64(STATE + offset_of!(ThreadState, altstack_base), self.altstack.0);
        to.u64(STATE + offset_of!(ThreadState, altstack_size), self.altstack.1);
        to.u32(STATE + offset_of!(ThreadState, altstack_flags), self.altstack_flags);
        to.u32(STATE + offset_of!(ThreadState, tid), self.tid);
        to.u64(STATE + offset_of!(ThreadState, clear_tid), self.clear_tid);
        to.u64(STATE + offset_of!(ThreadState, robust_list), self.robust_list.0);
        to.u64(STATE + offset_of!(ThreadState, robust_list_len), self.robust_list.1);
        to.u64(STATE + offset_of!(ThreadState, rseq), self.rseq);
        to.u32(STATE + offset_of!(ThreadState, rseq_len), self.rseq_length_signature.0);
        to.u32(STATE + offset_of!(ThreadState, rseq_signature), self.rseq_length_signature.1);
        to.u32(STATE + offset_of!(ThreadState, seccomp), self.seccomp);
        to.u32(offset_of!(ThreadBlock, phase), self.phase);
    }

    /// The thread whose block is at `address`, or `None` if the slot is free.
    fn read(memory: &Memory, address: u64) -> Result<Option<Thread>> {
        let mut word = [0; 4];
        memory.read(address + offset_of!(ThreadBlock, phase) as u64, &mut word)?;
        let phase = u32::from_le_bytes(word);
        if phase == phase::FREE {
            return Ok(None);
        }
        let mut bytes = vec![0; size_of::<ThreadState>()];
        memory.read(address + offset_of!(ThreadBlock, state) as u64, &mut bytes)?;
        let from = Reader(&bytes);
        let u64 = |offset| from.u64(offset);
        let u32 = |offset| from.u32(offset);
        Ok(Some(Thread {
            phase,
            tid: u32(offset_of!(ThreadState, tid)),
            cpu: read_cpu(&from, offset_of!(ThreadState, cpu)),
            signal_mask: u64(offset_of!(ThreadState, signal_mask)),
            altstack: (
                u64(offset_of!(ThreadState, altstack_base)),
                u64(offset_of!(ThreadState, altstack_size)),
            ),
            altstack_flags: u32(offset_of!(ThreadState, altstack_flags)),
            clear_tid: u64(offset_of!(ThreadState, clear_tid)),
            robust_list: (
                u64(offset_of!(ThreadState, robust_list)),
                u64(offset_of!(ThreadState, robust_list_len)),
            ),
            rseq: u64(offset_of!(ThreadState, rseq)),
            rseq_length_signature: (
                u32(offset_of!(ThreadState, rseq_len)),
                u32(offset_of!(ThreadState, rseq_signature)),
            ),
            seccomp: u32(offset_of!(ThreadState, seccomp)),
        }))
    }
}

fn write_cpu(to: &mut Writer, at: usize, cpu: &Cpu) {
    to.u64s(at + offset_of!(Cpu, gpr), cpu.gpr);
    to.u64(at + offset_of!(Cpu, rip), cpu.rip);
    to.bytes(at + offset_of!(Cpu, flags), &cpu.flags);
    to.u64(at + offset_of!(Cpu, other_flags), cpu.other_flags);
    to.u64(at + offset_of!(Cpu, fs_base), cpu.fs_base);
    to.u64(at + offset_of!(Cpu, gs_base), cpu.gs_base);
    to.u32(at + offset_of!(Cpu, mxcsr), cpu.mxcsr);
    to.u32(at + offset_of!(Cpu, pkru), cpu.pkru);
    to.u64s(at + offset_of!(Cpu, opmask), cpu.opmask);
    let x87 = at + offset_of!(Cpu, x87);
    to.u64s(x87 + offset_of!(X87, significand), cpu.x87.significand);
    for (n, value) in cpu.x87.sign_exponent.iter().enumerate() {
        to.u16(x87 + offset_of!(X87, sign_exponent) + 2 * n, *value);
    }
    to.u16(x87 + offset_of!(X87, control), cpu.x87.control);
    to.u16(x87 + offset_of!(X87, status), cpu.x87.status);
    to.bytes(x87 + offset_of!(X87, valid), &[cpu.x87.valid]);
    to.u16(x87 + offset_of!(X87, opcode), cpu.x87.opcode);
    to.u64(x87 + offset_of!(X87, instruction), cpu.x87.instruction);
    to.u64(x87 + offset_of!(X87, data), cpu.x87.data);
    to.bytes(at + offset_of!(Cpu, vec), cpu.vec.as_flattened());
}

fn read_cpu(from: &Reader, at: usize) -> Cpu {
    let x87 = at + offset_of!(Cpu, x87);
    let mut cpu = Cpu::at_exec(from.u64(at + offset_of!(Cpu, rip)), 0);
    cpu.gpr = std::array::from_fn(|n| from.u64(at + offset_of!(Cpu, gpr) + 8 * n));
    cpu.flags = std::array::from_fn(|n| from.0[at + offset_of!(Cpu, flags) + n] & 1);
    cpu.other_flags = from.u64(at + offset_of!(Cpu, other_flags));
    cpu.fs_base = from.u64(at + offset_of!(Cpu, fs_base));
    cpu.gs_base = from.u64(at + offset_of!(Cpu, gs_base));
    cpu.mxcsr = from.u32(at + offset_of!(Cpu, mxcsr));
    cpu.pkru = from.u32(at + offset_of!(Cpu, pkru));
    cpu.opmask = std::array::from_fn(|n| from.u64(at + offset_of!(Cpu, opmask) + 8 * n));
    cpu.x87 = X87 {
        significand: std::array::from_fn(|n| from.u64(x87 + offset_of!(X87, significand) + 8 * n)),
        sign_exponent: std::array::from_fn(|n| from.u16(x87 + offset_of!(X87, sign_exponent) + 2 * n)),
        control: from.u16(x87 + offset_of!(X87, control)),
        status: from.u16(x87 + offset_of!(X87, status)),
        valid: from.0[x87 + offset_of!(X87, valid)],
        reserved: 0,
        opcode: from.u16(x87 + offset_of!(X87, opcode)),
        instruction: from.u64(x87 + offset_of!(X87, instruction)),
        data: from.u64(x87 + offset_of!(X87, data)),
    };
    let vec = at + offset_of!(Cpu, vec);
    cpu.vec = std::array::from_fn(|n| std::array::from_fn(|byte| from.0[vec + 64 * n + byte]));
    cpu
}

/// Reads fields at their offsets in bytes that are as long as the structure.
struct Reader<'b>(&'b [u8]);

impl Reader<'_> {
    fn array<const N: usize>(&self, offset: usize) -> [u8; N] {
        std::array::from_fn(|n| self.0[offset + n])
    }

    fn u64(&self, offset: usize) -> u64 {
        u64::from_le_bytes(self.array(offset))
    }

    fn u32(&self, offset: usize) -> u32 {
        u32::from_le_bytes(self.array(offset))
    }

    fn u16(&self, offset: usize) -> u16 {
        u16::from_le_bytes(self.array(offset))
    }

    fn range(&self, offset: usize) -> Range {
        Range { start: self.u64(offset), end: self.u64(offset + 8) }
    }

    fn code_range(&self, offset: usize) -> CodeRange {
        let word = |n: usize| self.u64(offset + 8 * n);
        CodeRange { start: word(0), end: word(1), writable: word(2) }
    }

    fn sigaction(&self, n: usize) -> SigAction {
        let at = offset_of!(ProcessBlock, state.sigactions) + n * size_of::<SigAction>();
        SigAction {
            handler: self.u64(at + offset_of!(SigAction, handler)),
            flags: self.u64(at + offset_of!(SigAction, flags)),
            restorer: self.u64(at + offset_of!(SigAction, restorer)),
            mask: self.u64(at + offset_of!(SigAction, mask)),
        }
    }

    /// A count that has to be at most `limit`.
    fn count(&self, offset: usize, limit: usize, pid: u32) -> Result<usize> {
        let count = self.u64(offset);
        usize::try_from(count)
            .ok()
            .filter(|count| *count <= limit)
            .ok_or_else(|| RecodeError::state(pid, format!("has {count} entries where {limit} is the limit")))
    }
}
