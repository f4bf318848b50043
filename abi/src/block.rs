//! The layout of a translated process: what lies in the *hole*, the address range that the guest does not
//! use. The runtime lives by it, compiled code addresses it, the node agent polls it and recode reads and
//! writes it in checkpoints, so it is versioned ([`VERSION`]) and little-endian on every host.
//!
//! ```text
//! hole base ─► ProcessBlock                      one anonymous rw mapping, the *state area*
//!              ThreadBlock 0
//!              ThreadBlock 1 …                   MAX_THREADS of them, zero when free
//!              residue                           bytes that recode keeps for itself
//!              filters                           the guest's own, of seccomp(2)
//!              ─ guard ─
//!              host stack 0, guard, host stack 1 …      throw-away: never in a checkpoint
//!              runtime blob                      file mapping, started afresh after every restore
//!              translated objects                file mappings, one per guest ELF
//!              scratch 0, scratch 1 …            the runtime's own, throw-away
//!              arena                             objects that came while the process runs, throw-away
//!              entry table                       the runtime's own, of those; throw-away
//! ```
//!
//! Durable fields (`state`) are exact at every safepoint and are all that a checkpoint needs; everything
//! else is rebuilt by the runtime after a restore.

use crate::seccomp::FilterStore;
use core::mem::offset_of;
use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64};
use tranship_isa::x86_64::{Cpu, LazyState};

/// First bytes of a state area.
pub const MAGIC: [u8; 16] = *b"tranship state\n\0";
/// Layout version. A runtime and a recode of another version refuse each other's state by name.
pub const VERSION: u32 = 9;
/// Thread slots of a process.
pub const MAX_THREADS: usize = 256;
/// Bytes of the residue area.
pub const RESIDUE_BYTES: usize = 1 << 20;
/// Bytes of one host stack, guard page not counted.
pub const HOST_STACK_BYTES: usize = 1 << 20;
/// Guest-executable ranges that a process may have at a time.
pub const MAX_EXEC_RANGES: usize = 1024;
/// Translated objects that a process may have mapped at a time.
pub const MAX_OBJECTS: usize = 128;
/// Entries of a thread's indirect-branch cache; a power of two.
pub const BRANCH_CACHE_ENTRIES: usize = 1024;

/// Wanted addresses that are kept for the supplier of code.
pub const MAX_WANTED: usize = 256;
/// Supplied objects that the runtime may still have to take.
pub const MAX_SUPPLIED: usize = 64;

/// Machines, as [`Header`] numbers them: the ELF `e_machine` values.
pub mod machine_id {
    /// EM_X86_64.
    pub const X86_64: u32 = 62;
    /// EM_AARCH64.
    pub const AARCH64: u32 = 183;
    /// EM_RISCV.
    pub const RISCV64: u32 = 243;
}

/// How the state area opens.
#[repr(C)]
#[derive(Debug)]
pub struct Header {
    /// [`MAGIC`].
    pub magic: [u8; 16],
    /// [`VERSION`].
    pub version: u32,
    /// Guest machine, see [`machine_id`].
    pub guest: u32,
    /// Host machine, see [`machine_id`].
    pub host: u32,
    /// Zero.
    pub reserved: u32,
    /// Address of this header, so that a state area that was moved is noticed.
    pub base: u64,
    /// Bytes from `base` to the end of everything in the hole.
    pub hole_bytes: u64,
}

/// A half-open range of guest addresses.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// First address.
    pub start: u64,
    /// First address after.
    pub end: u64,
}

/// Guest memory that the guest may execute.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeRange {
    /// First address.
    pub start: u64,
    /// First address after.
    pub end: u64,
    /// 1: the guest may write there as well, even where the host may not just now: what is written where code was
    /// compiled from is noticed by that.
    pub writable: u64,
}

/// A signal's disposition in the guest's own terms (the guest's `struct kernel_sigaction`).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SigAction {
    /// Handler address, SIG_DFL or SIG_IGN.
    pub handler: u64,
    /// SA_* flags, guest numbering.
    pub flags: u64,
    /// Restorer address, where the guest has one.
    pub restorer: u64,
    /// Signals blocked while it runs; bit n is signal n + 1.
    pub mask: u64,
}

/// A translated object that is mapped.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectRef {
    /// Where its [`ObjectHeader`] is mapped.
    pub header: u64,
    /// Load bias of the guest ELF file it belongs to: guest run-time minus link-time address.
    pub guest_bias: u64,
}

/// Durable state of a process.
#[repr(C)]
#[derive(Debug)]
pub struct ProcessState {
    /// Guest heap: as `brk` started.
    pub brk_start: u64,
    /// Guest heap: current end.
    pub brk: u64,
    /// Guest's vDSO address or 0; abroad its pages hold stubs that make the real system call.
    pub vdso: u64,
    /// Guest entry point and program headers etc. are in the guest's own auxv; this is where that lies.
    pub auxv: Range,
    /// Dispositions of signals 1..=64.
    pub sigactions: [SigAction; 64],
    /// How many of `exec_ranges` are in use; they are sorted and disjoint.
    pub exec_range_count: u64,
    /// Guest memory that the guest may execute. The host maps it without that right.
    pub exec_ranges: [CodeRange; MAX_EXEC_RANGES],
    /// How many of `objects` are in use.
    pub object_count: u64,
    /// Translated objects.
    pub objects: [ObjectRef; MAX_OBJECTS],
    /// Bytes of the residue area in use.
    pub residue_len: u64,
}

/// What a thread slot is doing; the values of [`ThreadBlock::phase`].
pub mod phase {
    /// Slot is free.
    pub const FREE: u32 = 0;
    /// Running guest code or the runtime.
    pub const RUNNING: u32 = 1;
    /// Parked at a safepoint: the durable state is exact and stays so until `pending` is cleared.
    pub const PARKED: u32 = 2;
}

/// Durable state of a thread.
#[repr(C)]
#[derive(Debug)]
pub struct ThreadState {
    /// Registers. Exact at safepoints.
    pub cpu: Cpu,
    /// Blocked signals; bit n is signal n + 1.
    pub signal_mask: u64,
    /// Alternate signal stack: ss_sp.
    pub altstack_base: u64,
    /// Alternate signal stack: ss_size.
    pub altstack_size: u64,
    /// Alternate signal stack: ss_flags.
    pub altstack_flags: u32,
    /// Thread id in its PID namespace.
    pub tid: u32,
    /// set_tid_address(2).
    pub clear_tid: u64,
    /// set_robust_list(2) head.
    pub robust_list: u64,
    /// set_robust_list(2) length.
    pub robust_list_len: u64,
    /// rseq(2) area or 0. Registered with the kernel at home only.
    pub rseq: u64,
    /// rseq(2) length.
    pub rseq_len: u32,
    /// rseq(2) signature.
    pub rseq_signature: u32,
    /// Its seccomp filters, by the number of the latest in the [`FilterStore`]; 0 for none, or [`crate::seccomp::STRICT`].
    pub seccomp: u32,
    /// Zero.
    pub reserved: u32,
}

/// One line of a thread's indirect-branch cache, indexed by the low bits of `guest`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct BranchCacheEntry {
    /// Guest target; [`UNWIND`] when empty.
    pub guest: u64,
    /// Host code of that entry.
    pub host: u64,
}

impl BranchCacheEntry {
    /// A line that no branch hits: guests do jump to address 0.
    pub const EMPTY: BranchCacheEntry = BranchCacheEntry { guest: UNWIND, host: 0 };
}

/// Functions of the runtime that compiled code calls, all with the host's C convention. `ThreadBlock` is
/// passed by address as the first argument.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RuntimeCalls {
    /// `fn(thread) -> u64`: execute the system call in `cpu` (whose `rip` is already behind the
    /// instruction). Non-zero: unwind to the dispatcher.
    pub syscall: u64,
    /// `fn(thread) -> u64`: look at `pending`; may park or deliver a signal. `cpu` is exact. Non-zero: unwind.
    pub safepoint: u64,
    /// `fn(thread) -> u64`: `cpu.rip` has no compiled entry: execute it as a call, interpreting, until it
    /// returns to its caller (then 0 and `cpu.rip` is where it returned to) or must unwind (non-zero).
    pub interpret_call: u64,
    /// `fn(thread, guest: u64) -> u64`: host code of the entry at `guest`, entered into the branch cache, or 0.
    pub lookup: u64,
    /// `fn(thread, operation: u32, operands: *mut [u128; 2])`: coprocessor; the result replaces operand 0.
    pub coprocessor: u64,
    /// `fn(thread)`: execute exactly the one instruction at `cpu.rip` in the interpreter. Returns non-zero
    /// to unwind.
    pub interpret_one: u64,
    /// `fn(thread, trap: u32) -> u64`: raise [`tranship_isa::machine::Trap`] number `trap` at `cpu.rip`.
    pub trap: u64,
    /// `fn(thread)`: add the exception flags in the host's FP status to `cpu`'s FP control and status register.
    pub fp_collect: u64,
    /// `fn(thread)`: put `cpu`'s FP control (rounding, flush modes) in force on the host.
    pub fp_apply: u64,
    /// Room for more, zero.
    pub reserved: [u64; 7],
}

/// One thread: compiled code has its address in a register throughout.
#[repr(C, align(4096))]
pub struct ThreadBlock {
    /// All that a checkpoint needs of it.
    pub state: ThreadState,
    /// See [`phase`].
    pub phase: AtomicU32,
    /// Zero.
    pub reserved: u32,
    /// Lowest host stack address that compiled code may reach, little-endian; below it, it unwinds. With `pending` as its
    /// highest byte it is a 64-bit word: one comparison with the stack pointer sees both.
    pub host_stack_limit: [u8; 7],
    /// Non-zero: leave compiled code at the next safepoint.
    pub pending: AtomicU8,
    /// Highest address of the host stack.
    pub host_stack_top: u64,
    /// The process it belongs to.
    pub process: u64,
    /// What compiled code keeps otherwise than `state`, flags with [`FAULTS_EXACT`] only. Settled wherever it is left.
    pub lazy: LazyState,
    /// Functions of the runtime.
    pub calls: RuntimeCalls,
    /// Where indirect branches went lately.
    pub branch_cache: [BranchCacheEntry; BRANCH_CACHE_ENTRIES],
    /// The runtime's own; compiled code does not look.
    pub runtime_private: [u64; 64],
}

const _: () = {
    let limit = offset_of!(ThreadBlock, host_stack_limit);
    assert!(limit.is_multiple_of(8) && offset_of!(ThreadBlock, pending) == limit + 7);
};

impl ThreadBlock {
    /// Lowest host stack address that compiled code may reach.
    pub fn host_stack_limit(&self) -> u64 {
        let [a, b, c, d, e, f, g] = self.host_stack_limit;
        u64::from_le_bytes([a, b, c, d, e, f, g, 0])
    }

    /// Have it be `address`, below 2^56.
    pub fn set_host_stack_limit(&mut self, address: u64) {
        let [low @ .., _] = address.to_le_bytes();
        self.host_stack_limit = low;
    }
}

/// How code comes while a process runs: the runtime says here which guest addresses it interprets often, and whoever
/// supplies code, from outside through `/proc/PID/mem`, writes objects into the arena and says so here. Throw-away.
///
/// An object in the arena is the memory image of a translated object whose bias slot is set, from its first byte to its
/// last: position-independent, and nothing in it is written any more.
#[repr(C)]
pub struct Supply {
    /// Not 0 once the arena is mapped, and another number for each program that a process starts.
    pub generation: AtomicU64,
    /// How many addresses have been written to `wanted` so far; the runtime's.
    pub wanted_count: AtomicU64,
    /// Guest addresses that should be entries; the `n`th is at `n % MAX_WANTED`.
    pub wanted: [AtomicU64; MAX_WANTED],
    /// Bytes of the arena that are in use, a multiple of [`ARENA_ALIGNMENT`]; the supplier's.
    pub arena_used: AtomicU64,
    /// How many objects have been written to `supplied` so far; the supplier's.
    pub supplied_count: AtomicU64,
    /// Where objects are in the arena; the `n`th is at `n % MAX_SUPPLIED`.
    pub supplied: [Supplied; MAX_SUPPLIED],
    /// How many of them the runtime has taken; the supplier leaves those behind it alone.
    pub taken_count: AtomicU64,
    /// 1: only objects with [`FAULTS_EXACT`] are of use; the runtime's.
    pub exact: AtomicU64,
}

/// An object in the arena.
#[repr(C)]
pub struct Supplied {
    /// Its first address.
    pub start: AtomicU64,
    /// Its bytes.
    pub bytes: AtomicU64,
    /// The address of its [`ObjectHeader`].
    pub header: AtomicU64,
}

/// One process: the start of the state area.
#[repr(C, align(4096))]
pub struct ProcessBlock {
    /// What and where this is.
    pub header: Header,
    /// All that a checkpoint needs of it.
    pub state: ProcessState,
    /// 0: not started; 1: a thread is starting the runtime; 2: started. Recode writes 0. Only from 2 on may
    /// the agent send signal 64, which ends a process that has no handler for it yet.
    pub started: AtomicU32,
    /// Non-zero asks every thread to park; the agent writes it and then sets each thread's `pending`.
    pub quiesce: AtomicU32,
    /// Threads parked. The agent may wait on it as a futex.
    pub parked: AtomicU32,
    /// Zero.
    pub reserved: u32,
    /// How many thread slots need to be looked at: none behind has ever been in use.
    pub slots: AtomicU64,
    /// Interpreted instructions so far, for reports.
    pub interpreted: AtomicU64,
    /// Base address of the runtime blob.
    pub blob: u64,
    /// Code that comes while it runs.
    pub supply: Supply,
    /// The runtime's own.
    pub runtime_private: [u64; 64],
}

/// Offset of the first thread block from the hole base.
pub const THREADS_OFFSET: u64 = size_of::<ProcessBlock>() as u64;
/// Offset of the residue from the hole base.
pub const RESIDUE_OFFSET: u64 = THREADS_OFFSET + (MAX_THREADS * size_of::<ThreadBlock>()) as u64;
/// Offset of the [`FilterStore`] from the hole base.
pub const FILTERS_OFFSET: u64 =
    (RESIDUE_OFFSET + RESIDUE_BYTES as u64).next_multiple_of(align_of::<FilterStore>() as u64);
/// Bytes of the state area.
pub const STATE_AREA_BYTES: u64 = FILTERS_OFFSET + size_of::<FilterStore>() as u64;
/// Offset of the host stacks from the hole base; slot `n`'s guard page comes first, then its stack.
pub const HOST_STACKS_OFFSET: u64 = STATE_AREA_BYTES.next_multiple_of(1 << 16);
/// Distance between host stacks.
pub const HOST_STACK_STRIDE: u64 = HOST_STACK_BYTES as u64 + (1 << 16);
/// Offset of the runtime blob from the hole base.
pub const BLOB_OFFSET: u64 = HOST_STACKS_OFFSET + MAX_THREADS as u64 * HOST_STACK_STRIDE;
/// Room for the blob; translated objects follow it.
pub const BLOB_BYTES: u64 = 16 << 20;
/// Offset of the first translated object from the hole base.
pub const OBJECTS_OFFSET: u64 = BLOB_OFFSET + BLOB_BYTES;
/// Room for translated objects.
pub const OBJECTS_BYTES: u64 = 2 << 30;
/// Offset of the runtime's scratch memory, a piece per thread slot; throw-away.
pub const SCRATCH_OFFSET: u64 = OBJECTS_OFFSET + OBJECTS_BYTES;
/// Bytes of scratch memory per thread slot.
pub const SCRATCH_BYTES: u64 = 1 << 20;
/// Offset of the arena from the hole base.
pub const ARENA_OFFSET: u64 = SCRATCH_OFFSET + MAX_THREADS as u64 * SCRATCH_BYTES;
/// Bytes of the arena.
pub const ARENA_BYTES: u64 = 512 << 20;
/// Objects in the arena start at multiples of this: a page.
pub const ARENA_ALIGNMENT: u64 = 4096;
/// Offset of the table of the arena's entries.
pub const ENTRY_TABLE_OFFSET: u64 = ARENA_OFFSET + ARENA_BYTES;
/// Bytes of that table.
pub const ENTRY_TABLE_BYTES: u64 = 16 << 20;
/// Offset of the room for the host's vDSO and its data; throw-away.
pub const VDSO_OFFSET: u64 = ENTRY_TABLE_OFFSET + ENTRY_TABLE_BYTES;
/// Bytes of that room.
pub const VDSO_BYTES: u64 = 64 << 10;
/// The size of the whole hole.
pub const HOLE_BYTES: u64 = VDSO_OFFSET + VDSO_BYTES;

/// What compiled code returns in place of the guest PC when every host frame is to be left: the guest
/// state is complete in the thread block, `cpu.rip` included. No guest address has this value.
pub const UNWIND: u64 = u64::MAX;

/// First bytes of a translated object's header.
pub const OBJECT_MAGIC: [u8; 16] = *b"tranship object\n";

/// The line of the branch cache that `guest` belongs in, as a byte offset from its start: one `and`. Function
/// entries are mostly 16 bytes apart.
pub const fn branch_cache_offset(guest: u64) -> u64 {
    const { assert!(size_of::<BranchCacheEntry>() == 16 && BRANCH_CACHE_ENTRIES.is_power_of_two()) };
    guest & (BRANCH_CACHE_ENTRIES as u64 - 1) << 4
}

/// Header of a translated object: an ELF shared object whose entry point (`e_entry`, exported symbol
/// `tranship_object`) this is. Offsets are from the header's own address, so the file needs no relocation.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ObjectHeader {
    /// [`OBJECT_MAGIC`].
    pub magic: [u8; 16],
    /// [`VERSION`].
    pub version: u32,
    /// Guest machine.
    pub guest: u32,
    /// Host machine.
    pub host: u32,
    /// Number of entries.
    pub entry_count: u32,
    /// SHA-256 of the guest ELF file.
    pub guest_digest: [u8; 32],
    /// Offset of `[ObjectEntry; entry_count]`, sorted by `guest`.
    pub entries: i64,
    /// Offset of `extern "C" fn(thread: *mut ThreadBlock, code: u64)`: loads guest registers from the
    /// thread block, calls `code` in the object's convention, stores them back and sets `cpu.rip` (unless
    /// it was [`UNWIND`]).
    pub enter: i64,
    /// Offset of a writable u64 that the loader sets to the guest load bias.
    pub bias_slot: i64,
    /// Offset of a region-convention function that does [`RuntimeCalls::interpret_call`]; `lookup` puts it in the
    /// branch cache for guest targets that have no compiled entry.
    pub interpret_call: i64,
    /// Number of sources; 0 where the guest file says all.
    pub source_count: u64,
    /// Offset of `[Source; source_count]`.
    pub sources: i64,
    /// What a guest's handler finds after a fault of a memory access in it: [`FAULTS_FATAL`] or [`FAULTS_EXACT`].
    pub faults: u64,
    /// Offset of its [`FaultEdge`]s, sorted by `access`.
    pub fault_edges: i64,
    /// Offset of what is behind the last of them.
    pub fault_edges_end: i64,
}

/// An instruction of compiled code that accesses guest memory, and the host code where a fault of it goes: that has the
/// instruction's effect on nothing, and has the interpreter execute it. Each is the distance from the field itself.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultEdge {
    /// The instruction's address.
    pub access: i32,
    /// Where to go on.
    pub landing: i32,
}

/// Guest memory that code was compiled from, as it was then.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    /// First address, as linked.
    pub start: u64,
    /// First address after.
    pub end: u64,
    /// [`SourceDigest`] of what was there.
    pub digest: u64,
}

/// A digest of guest code, by which a change is noticed; it is no protection from a guest that wants to harm itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct SourceDigest(u64);

impl SourceDigest {
    /// Pieces that code is digested in; the last one may be shorter.
    pub const PIECE: usize = 512;

    /// Add the next piece.
    pub fn add(&mut self, piece: &[u8]) {
        const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
        let mix = |digest: u64, word: u64| (digest.rotate_left(29) ^ word).wrapping_mul(MULTIPLIER);
        let mut digest = mix(self.0, piece.len() as u64);
        for word in piece.chunks(8) {
            digest = mix(digest, word.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)));
        }
        self.0 = digest ^ digest >> 32;
    }

    /// Of all of it.
    pub fn of(code: &[u8]) -> SourceDigest {
        let mut digest = SourceDigest::default();
        code.chunks(SourceDigest::PIECE).for_each(|piece| digest.add(piece));
        digest
    }

    /// The digest.
    pub const fn value(self) -> u64 {
        self.0
    }
}

/// Nothing exact: while the guest has such a handler the object is not used.
pub const FAULTS_FATAL: u64 = 0;
/// The guest's latest checkpoint is in the thread block: from there its instructions, interpreted, come to the fault.
pub const FAULTS_EXACT: u64 = 1;

/// A compiled entry.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectEntry {
    /// Guest address as linked.
    pub guest: u64,
    /// Offset of its host code from the object header.
    pub host: i64,
}
