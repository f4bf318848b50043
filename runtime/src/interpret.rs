//! The interpreter at work in the process: guest memory is the process's own, decoded instructions are kept.

use crate::exact;
use crate::hole;
use crate::host::{self, Accessed, HOST, PageFault};
use crate::linux::PAGE;
use crate::memory::{access, code};
use crate::object::{self, Entry};
use crate::report;
use crate::signal::fault;
use crate::supply;
use crate::syscall;
use crate::thread::Thread;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tranship_abi::block::{CodeRange, SCRATCH_BYTES};
use tranship_abi::host::Host as Machine;
use tranship_isa::interpret::{self, Fault, Host, Step, step};
use tranship_isa::machine::{AtomicOp, Width};
use tranship_isa::x86_64::{DecodeError, Insn, decode};

/// Longest x86-64 instruction.
const MAX_INSN_BYTES: usize = 15;

/// Why the interpreter stopped.
pub enum Stop {
    /// There is a compiled entry at the guest PC.
    Compiled(Entry),
    /// `pending` is set.
    Pending,
    /// The call that was to be interpreted has returned, or been left.
    Left,
}

/// Have the state of `thread` where the interpreter looks.
pub fn settle(thread: Thread) {
    interpret::settle(thread.cpu(), &mut GuestMemory, &mut thread.block().lazy);
}

/// Interpret until one of [`Stop`]. `frame`: the stack pointer at which a callee was entered; once it is
/// above, the call is over.
pub fn run(thread: Thread, frame: Option<u64>) -> Stop {
    let mut fetcher = Fetcher::new(thread);
    let mut count = 0;
    let stop = loop {
        count += 1;
        let step = fetcher.step();
        if step == Step::Next {
            continue;
        }
        if step == Step::Syscall {
            // It may be the last one.
            note_interpreted(core::mem::take(&mut count));
        }
        conclude(thread, step);
        fetcher.refresh();
        if supply::has_come() {
            supply::take();
        }
        if frame.is_some_and(|sp| thread.cpu().gpr[4] > sp) {
            break Stop::Left;
        }
        if thread.is_pending() {
            break Stop::Pending;
        }
        if let Some(entry) = compiled_entry(thread) {
            break Stop::Compiled(entry);
        }
        if matches!(step, Step::Jumped | Step::Called { .. }) && exact::admits_compiled(thread) {
            note_target(thread.cpu().rip);
        }
    };
    note_interpreted(count);
    stop
}

fn note_interpreted(count: u64) {
    hole::process().interpreted.fetch_add(count, Ordering::Relaxed);
}

/// Execute exactly one instruction. True if it did more than fall through.
pub fn one(thread: Thread) -> bool {
    let step = Fetcher::new(thread).step();
    note_interpreted(1);
    let left = step != Step::Next;
    conclude(thread, step);
    left
}

/// Do what an instruction leaves to its surroundings.
fn conclude(thread: Thread, step: Step) {
    match step {
        Step::Next | Step::Jumped | Step::Called { .. } | Step::Returned => {}
        Step::Syscall => drop(syscall::perform(thread)),
        Step::Trapped(trap) => fault::raise_trap(thread, trap),
        Step::Faulted(Fault { write, .. }) => fault::raise_page_fault(thread, access::last_fault(), write),
        Step::Absent => report_absent(thread),
    }
}

/// No block covers the instruction at the guest PC: nothing that we could do would be right.
fn report_absent(thread: Thread) -> ! {
    let rip = thread.cpu().rip;
    let mut bytes = [0; MAX_INSN_BYTES];
    let _ = access::read_bytes(rip, &mut bytes[..(PAGE - rip % PAGE).min(MAX_INSN_BYTES as u64) as usize]);
    match decode(&bytes, rip) {
        Ok(insn) => report::complain(format_args!(
            "{rip:#x}: instruction {:?} (bytes {:02x?}) is not supported",
            insn.mnemonic(),
            &bytes[..insn.len()]
        )),
        Err(error) => report::complain(format_args!("{error}")),
    }
    fault::die_by(thread, tranship_abi::signal::number::SIGILL)
}

/// Guest addresses lately found to have no compiled entry.
static MISSES: [AtomicU64; 1024] = [const { AtomicU64::new(0) }; 1024];

/// The compiled entry at the guest PC, found quickly if there is none.
fn compiled_entry(thread: Thread) -> Option<Entry> {
    if !object::any() || !exact::admits_compiled(thread) {
        return None;
    }
    let guest = thread.cpu().rip;
    let miss = &MISSES[(guest ^ guest >> 10) as usize % MISSES.len()];
    if miss.load(Ordering::Relaxed) == guest {
        return None;
    }
    let entry = object::entry_at(thread, guest);
    if entry.is_none() {
        miss.store(guest, Ordering::Relaxed);
    }
    entry
}

/// Forget [`MISSES`]: an object was added.
pub fn entries_changed() {
    for miss in &MISSES {
        miss.store(0, Ordering::Relaxed);
    }
}

/// Times that a jump or call must have been interpreted for its target to be worth compiling: that takes as long as
/// some million interpreted instructions.
const HOT: u64 = 1 << 9;
/// After so many more times it is asked for again: what came may not have been enough.
const STILL_HOT: u64 = 1 << 12;

/// Lines of [`HEAT`] that a target may be in: where one is hot by turns with another, both are noticed.
const WAYS: usize = 4;

/// Targets of jumps and calls (from bit 16 on), and how often they have been interpreted lately.
static HEAT: [[AtomicU64; WAYS]; 1 << 11] = [const { [const { AtomicU64::new(0) }; WAYS] }; 1 << 11];

/// Control went to `guest`, which has no compiled entry.
#[inline]
pub fn note_target(guest: u64) {
    let lines = &HEAT[(guest ^ guest >> 11) as usize % HEAT.len()];
    let tag = guest << 16;
    let is_its = |line: &&AtomicU64| line.load(Ordering::Relaxed) & !0xffff == tag;
    let coldest = || lines.iter().min_by_key(|line| line.load(Ordering::Relaxed) & 0xffff);
    let Some(line) = lines.iter().find(is_its).or_else(coldest) else { return };
    let heat = line.load(Ordering::Relaxed);
    let count = if heat & !0xffff == tag { (heat & 0xffff) + 1 } else { 1 };
    let next = match count {
        HOT if !supply::want(guest) => HOT - 1,
        0x1_0000 => HOT + 1,
        _ if count % STILL_HOT == 0 && !supply::want(guest) => count - 1,
        _ => count,
    };
    line.store(tag | next, Ordering::Relaxed);
}

/// Forget what has been asked for: it may be needed anew.
pub fn cool() {
    for line in HEAT.iter().flatten() {
        line.store(0, Ordering::Relaxed);
    }
}

/// A decoded instruction and the bytes it was decoded from. It is used only while memory still holds those,
/// so that code may change at any time.
#[repr(C)]
struct Decoded {
    rip: u64,
    bytes: [u8; 16],
    insn: MaybeUninit<Insn>,
}

const DECODED: usize = 1 << 14;
const _: () = assert!(DECODED * size_of::<Decoded>() <= SCRATCH_BYTES as usize);

/// Fetches and executes one thread's instructions.
struct Fetcher {
    thread: Thread,
    cache: Option<*mut Decoded>,
    /// The executable range that the guest PC was in lately, and its epoch.
    range: CodeRange,
    epoch: u64,
}

const NOWHERE: CodeRange = CodeRange { start: 0, end: 0, writable: 0 };

/// Why there is no instruction at the guest PC.
enum NoInsn {
    NotExecutable { address: u64 },
    Invalid,
}

impl Fetcher {
    fn new(thread: Thread) -> Fetcher {
        let cache = thread.scratch().map(|memory| memory.cast());
        let mut fetcher = Fetcher { thread, cache, range: NOWHERE, epoch: 0 };
        fetcher.refresh();
        fetcher
    }

    /// Control went elsewhere.
    #[inline]
    fn refresh(&mut self) {
        let rip = self.thread.cpu().rip;
        let epoch = code::epoch();
        if self.epoch != epoch || !(self.range.start..self.range.end).contains(&rip) {
            self.epoch = epoch;
            self.range = code::range_of(rip).unwrap_or(NOWHERE);
        }
    }

    /// Execute the instruction at the guest PC.
    #[inline]
    fn step(&mut self) -> Step {
        let rip = self.thread.cpu().rip;
        match self.fetch(rip) {
            Ok(insn) => step(self.thread.cpu(), &mut GuestMemory, &insn),
            Err(NoInsn::NotExecutable { address }) => {
                self.thread.private().fault = fault::not_executable(address);
                Step::Faulted(Fault { address, write: false })
            }
            Err(NoInsn::Invalid) => Step::Trapped(tranship_isa::machine::Trap::Undefined),
        }
    }

    #[inline]
    fn fetch(&self, rip: u64) -> Result<Insn, NoInsn> {
        let left = self.range.end.wrapping_sub(rip);
        if rip < self.range.start || rip >= self.range.end {
            return Err(NoInsn::NotExecutable { address: rip });
        }
        let line = self.cache.map(|cache| {
            // SAFETY: the index is below the number of lines; only this thread uses its scratch memory.
            unsafe { &mut *cache.add((rip ^ rip >> 14) as usize % DECODED) }
        });
        if let Some(line) = &line
            && line.rip == rip
        {
            // SAFETY: a line with a PC has an instruction.
            let insn = unsafe { line.insn.assume_init() };
            if insn.len() as u64 <= left && still_there(rip, &line.bytes, insn.len()) {
                return Ok(insn);
            }
        }
        let (insn, bytes) = self.decode(rip, left)?;
        if let Some(line) = line {
            *line = Decoded { rip, bytes, insn: MaybeUninit::new(insn) };
        }
        Ok(insn)
    }

    #[cold]
    fn decode(&self, rip: u64, left: u64) -> Result<(Insn, [u8; 16]), NoInsn> {
        let mut bytes = [0; 16];
        let mut available = left.min(MAX_INSN_BYTES as u64) as usize;
        let in_page = (PAGE - rip % PAGE) as usize;
        if access::read_bytes(rip, &mut bytes[..available]).is_err() {
            // The next page may be beyond the end of its file.
            available = available.min(in_page);
            if access::read_bytes(rip, &mut bytes[..available]).is_err() {
                return Err(NoInsn::NotExecutable { address: rip });
            }
        }
        match decode(&bytes[..available], rip) {
            Ok(insn) => Ok((insn, bytes)),
            Err(DecodeError::Truncated { .. }) if available < MAX_INSN_BYTES => {
                Err(NoInsn::NotExecutable { address: rip + available as u64 })
            }
            Err(_) => Err(NoInsn::Invalid),
        }
    }
}

/// Does memory at `rip`, which is mapped, hold the first `len` of `bytes`?
#[inline]
fn still_there(rip: u64, bytes: &[u8; 16], len: usize) -> bool {
    // SAFETY: both sides have `len` bytes; each comparison reads within them.
    unsafe {
        let (memory, copy) = (rip as *const u8, bytes.as_ptr());
        let same = |at: usize, size: usize| {
            let (a, b) = (memory.add(at), copy.add(at));
            match size {
                8 => a.cast::<u64>().read_unaligned() == b.cast::<u64>().read_unaligned(),
                4 => a.cast::<u32>().read_unaligned() == b.cast::<u32>().read_unaligned(),
                2 => a.cast::<u16>().read_unaligned() == b.cast::<u16>().read_unaligned(),
                _ => a.read() == b.read(),
            }
        };
        let size = 1 << len.ilog2().min(3);
        same(0, size) && same(len - size, size)
    }
}

/// Guest memory, at its own addresses.
struct GuestMemory;

fn done(accessed: Accessed, address: u64, write: bool) -> Result<u64, Fault> {
    if accessed.faulted == 0 { Ok(accessed.value) } else { Err(Fault { address, write }) }
}

fn refused(_: PageFault, address: u64, write: bool) -> Fault {
    Fault { address, write }
}

impl Host for GuestMemory {
    #[inline]
    fn load(&mut self, address: u64, width: Width) -> Result<u128, Fault> {
        // SAFETY: a fault is caught, and the guest may read all that is mapped.
        let accessed = unsafe {
            match width {
                Width::W8 => host::guest_load8(address),
                Width::W16 => host::guest_load16(address),
                Width::W32 => host::guest_load32(address),
                Width::W64 => host::guest_load64(address),
                Width::W128 => {
                    let low = done(host::guest_load64(address), address, false)?;
                    let high = done(host::guest_load64(address.wrapping_add(8)), address, false)?;
                    return Ok(u128::from(low) | u128::from(high) << 64);
                }
            }
        };
        done(accessed, address, false).map(u128::from)
    }

    #[inline]
    fn store(&mut self, address: u64, width: Width, value: u128) -> Result<(), Fault> {
        let low = value as u64;
        // SAFETY: a fault is caught, and the guest may write all that is writable.
        let accessed = unsafe {
            match width {
                Width::W8 => host::guest_store8(address, low),
                Width::W16 => host::guest_store16(address, low),
                Width::W32 => host::guest_store32(address, low),
                Width::W64 => host::guest_store64(address, low),
                Width::W128 => {
                    // The upper half first: where the value crosses into a page that is not there, nothing
                    // has been written.
                    let high = (value >> 64) as u64;
                    done(host::guest_store64(address.wrapping_add(8), high), address, true)?;
                    host::guest_store64(address, low)
                }
            }
        };
        done(accessed, address, true).map(drop)
    }

    fn load_bytes(&mut self, address: u64, into: &mut [u8]) -> Result<(), Fault> {
        access::read_bytes(address, into).map_err(|fault| refused(fault, address, false))
    }

    fn store_bytes(&mut self, address: u64, bytes: &[u8]) -> Result<(), Fault> {
        let in_first_page = ((PAGE - address % PAGE) as usize).min(bytes.len());
        let (first, second) = bytes.split_at(in_first_page);
        // The second page first, as above.
        access::write_bytes(address + in_first_page as u64, second)
            .and_then(|()| access::write_bytes(address, first))
            .map_err(|fault| refused(fault, address, true))
    }

    fn atomic(&mut self, op: AtomicOp, address: u64, width: Width, value: u128) -> Result<u128, Fault> {
        let mut old = self.load(address, width)?;
        loop {
            let new = op.apply(old, value);
            let found = self.compare_exchange(address, width, old, new & width.mask())?;
            if found == old {
                return Ok(old);
            }
            old = found;
        }
    }

    fn compare_exchange(
        &mut self,
        address: u64,
        width: Width,
        expected: u128,
        new: u128,
    ) -> Result<u128, Fault> {
        if HOST != Machine::X86_64 && !address.is_multiple_of(width.bytes().into()) {
            return self.split_compare_exchange(address, width, expected, new);
        }
        let (old, low) = (expected as u64, new as u64);
        // SAFETY: as for stores.
        let accessed = unsafe {
            match width {
                Width::W8 => host::guest_cas8(address, old, low),
                Width::W16 => host::guest_cas16(address, old, low),
                Width::W32 => host::guest_cas32(address, old, low),
                Width::W64 => host::guest_cas64(address, old, low),
                Width::W128 => {
                    let mut found = expected;
                    done(host::guest_cas128(address, &mut found, &new), address, true)?;
                    return Ok(found);
                }
            }
        };
        done(accessed, address, true).map(u128::from)
    }

    fn fence(&mut self) {
        core::sync::atomic::fence(Ordering::SeqCst);
    }

    fn timestamp(&mut self) -> u64 {
        host::timestamp()
    }
}

/// Held by a compare-exchange that the host cannot do at once.
static SPLIT: AtomicBool = AtomicBool::new(false);

impl GuestMemory {
    /// A misaligned compare-exchange on a host that has none: atomic among its like only.
    fn split_compare_exchange(
        &mut self,
        address: u64,
        width: Width,
        expected: u128,
        new: u128,
    ) -> Result<u128, Fault> {
        while SPLIT.swap(true, Ordering::Acquire) {
            core::hint::spin_loop();
        }
        let result = self.load(address, width).and_then(|found| {
            self.store(address, width, if found == expected { new } else { found })?;
            Ok(found)
        });
        SPLIT.store(false, Ordering::Release);
        result
    }
}
