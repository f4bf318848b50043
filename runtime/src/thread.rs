//! A thread of the guest, as the runtime holds it: its block, and the runtime's own words in there.

use crate::dispatch;
use crate::hole;
use crate::host::{self, PageFault};
use crate::linux;
use core::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use tranship_abi::block::{
    BRANCH_CACHE_ENTRIES, BranchCacheEntry, MAX_THREADS, Range, SCRATCH_BYTES, SCRATCH_OFFSET, ThreadBlock,
    ThreadState, phase,
};
use tranship_abi::signal::{SigInfo, TrapFrame};
use tranship_isa::x86_64::Cpu;

/// Host stack that the runtime keeps for itself below `host_stack_limit`: the interpreter, a system call,
/// and a signal frame of the host on top.
const RESERVED_STACK: u64 = 128 << 10;

/// The runtime's own words in a thread block. Throw-away.
#[repr(C)]
pub struct Private {
    /// A signal that has arrived and is to be delivered at the next safepoint; signo 0 for none. While
    /// there is one, the host blocks all others.
    pub queued: SigInfo,
    /// The latest exception that the guest raised.
    pub trap: TrapFrame,
    /// The latest fault of a `host::guest_*` access.
    pub fault: PageFault,
    /// An interrupted sleep that is made again ends at this CLOCK_MONOTONIC time, in ns; 0 for none.
    pub sleep_until: u64,
    /// 1 once the scratch memory is mapped.
    pub scratch_mapped: u32,
    /// 1 if the compiled code on the host stack may be such as knows no exact state.
    pub inexact: u32,
    /// 1: its maker waits until it has ended or executed another program, and then frees its slot.
    pub vforked: u32,
    /// 1: it starts with no handlers.
    pub clear_handlers: u32,
    /// 1: it has to set its no_new_privs before its next call.
    pub no_new_privs_due: u32,
    /// 1: the host frames below the dispatcher's are of code that is not to be run any more.
    pub stale: AtomicU32,
    /// Address of the dispositions of a process that shares its maker's memory; 0 for those in the process block.
    pub dispositions: u64,
    /// The guest's stack pointer when the innermost interpreted call entered compiled code; 0 if there is none.
    pub entered_at: u64,
    /// Memory that an exec left: the arguments that the kernel read.
    pub left_by_exec: Range,
}

const _: () = assert!(size_of::<Private>() <= 64 * 8);

/// A thread by its block. Only the thread itself reads and writes all of it.
#[derive(Clone, Copy)]
pub struct Thread(*mut ThreadBlock);

impl Thread {
    /// By block address.
    ///
    /// # Safety
    /// `block` is a thread block of this process.
    pub const unsafe fn at(block: *mut ThreadBlock) -> Thread {
        Thread(block)
    }

    /// The calling thread, by its host stack.
    pub fn current() -> Thread {
        Thread(hole::thread_block(hole::slot_of_stack(host::stack_pointer())))
    }

    /// Address of the block.
    pub const fn address(self) -> *mut ThreadBlock {
        self.0
    }

    /// The whole block.
    pub fn block(self) -> &'static mut ThreadBlock {
        // SAFETY: mapped for the process's life; only its own thread asks, apart from atomics.
        unsafe { &mut *self.0 }
    }

    /// The durable state.
    pub fn state(self) -> &'static mut ThreadState {
        &mut self.block().state
    }

    /// The registers.
    pub fn cpu(self) -> &'static mut Cpu {
        &mut self.state().cpu
    }

    /// The runtime's words.
    pub fn private(self) -> &'static mut Private {
        // SAFETY: large enough (asserted above), aligned to 8, any bits are valid.
        unsafe { &mut *(&raw mut self.block().runtime_private).cast() }
    }

    /// What makes compiled code and system calls stop.
    pub fn pending(self) -> &'static AtomicU8 {
        // SAFETY: as for `block`.
        unsafe { &(*self.0).pending }
    }

    /// Is there something to look at?
    #[inline]
    pub fn is_pending(self) -> bool {
        self.pending().load(Ordering::Relaxed) != 0
    }

    /// Is there a thread in this slot?
    pub fn is_used(self) -> bool {
        self.block().phase.load(Ordering::Acquire) != phase::FREE
    }

    /// Empty the branch cache of the thread, which may be another one.
    pub fn forget_branches(self) {
        for line in &mut self.block().branch_cache {
            // SAFETY: compiled code looks at the address first, and no guest has this one.
            unsafe { (&raw mut line.guest).write_volatile(BranchCacheEntry::EMPTY.guest) };
        }
    }

    /// Have the thread, which may be another one, leave compiled code at its next safepoint, for good.
    pub fn leave_compiled_code(self) {
        self.forget_branches();
        self.private().stale.store(1, Ordering::Release);
        self.pending().store(1, Ordering::Release);
    }

    /// Are the host frames below the dispatcher's to be given up?
    pub fn is_stale(self) -> bool {
        self.private().stale.load(Ordering::Acquire) != 0
    }

    /// Slot number.
    pub fn slot(self) -> usize {
        (self.0 as u64 - hole::thread_block(0) as u64) as usize / size_of::<ThreadBlock>()
    }

    /// Make everything afresh that is not durable.
    pub fn prepare(self) {
        let block = self.block();
        let (low, top) = hole::host_stack(self.slot());
        block.set_host_stack_limit(low + RESERVED_STACK);
        block.host_stack_top = top;
        block.process = hole::base();
        block.calls = dispatch::calls();
        block.branch_cache = [BranchCacheEntry::EMPTY; BRANCH_CACHE_ENTRIES];
        block.runtime_private = [0; 64];
        block.phase.store(phase::RUNNING, Ordering::Relaxed);
        hole::process().slots.fetch_max(self.slot() as u64 + 1, Ordering::Release);
    }

    /// Is the host stack nearly used up?
    pub fn is_deep(self) -> bool {
        host::stack_pointer() < self.block().host_stack_limit()
    }

    /// This thread's scratch memory, zero at first; `None` if the kernel has no memory.
    pub fn scratch(self) -> Option<*mut u8> {
        let at = hole::base() + SCRATCH_OFFSET + self.slot() as u64 * SCRATCH_BYTES;
        if self.private().scratch_mapped == 0 {
            // A slot's earlier thread may have left its own, which is as good.
            match linux::map_anonymous(at, SCRATCH_BYTES) {
                Ok(_) | Err(linux::Errno::EEXIST) => self.private().scratch_mapped = 1,
                Err(_) => return None,
            }
        }
        Some(at as *mut u8)
    }
}

/// The first `count` thread slots.
fn slots(count: usize) -> impl Iterator<Item = Thread> {
    (0..count).map(|slot| Thread(hole::thread_block(slot)))
}

/// All threads.
pub fn used() -> impl Iterator<Item = Thread> {
    let known = hole::process().slots.load(Ordering::Acquire) as usize;
    slots(known.min(MAX_THREADS)).filter(|thread| thread.is_used())
}

/// Take a free slot, its phase set to running and its host stack mapped.
pub fn claim_slot() -> Option<Thread> {
    let free = |thread: &Thread| {
        let phase = &thread.block().phase;
        phase.compare_exchange(phase::FREE, phase::RUNNING, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    };
    let thread = slots(MAX_THREADS).find(free)?;
    let (low, top) = hole::host_stack(thread.slot());
    match linux::map_anonymous(low, top - low) {
        Ok(_) | Err(linux::Errno::EEXIST) => Some(thread),
        Err(_) => {
            thread.block().phase.store(phase::FREE, Ordering::Release);
            None
        }
    }
}
