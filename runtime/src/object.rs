//! Translated objects: mapping them, and finding the compiled entry of a guest address.

use crate::dispatch;
use crate::exact;
use crate::hole;
use crate::host::HOST;
use crate::image::protection;
use crate::linux::{self, Errno, PAGE, map, prot};
use crate::report;
use crate::supply;
use crate::thread::Thread;
use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering};
use tranship_abi::block::{
    BranchCacheEntry, FAULTS_EXACT, FaultEdge, MAX_OBJECTS, OBJECT_MAGIC, OBJECTS_BYTES, OBJECTS_OFFSET,
    ObjectEntry, ObjectHeader, ObjectRef, VERSION, branch_cache_offset, machine_id,
};

/// Why a file is no translated object that can be used here.
#[derive(Debug)]
pub enum ObjectError {
    /// A system call on the file descriptor failed.
    Io(Errno),
    /// Not an ELF shared object for this machine.
    NotElf,
    /// What its entry point names does not begin as it should.
    NoHeader,
    /// Made for another layout of the state area.
    Version(u32),
    /// Made for another guest or host machine.
    Machine(u32, u32),
    /// No room in the hole, or too many objects.
    NoRoom,
}

impl fmt::Display for ObjectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ObjectError::Io(error) => write!(f, "cannot be mapped ({error})"),
            ObjectError::NotElf => write!(f, "is no ELF shared object"),
            ObjectError::NoHeader => write!(f, "has no translated object header"),
            ObjectError::Version(version) => {
                write!(f, "is of layout version {version}, this runtime's is {VERSION}: compile it again")
            }
            ObjectError::Machine(guest, host) => {
                write!(f, "is for guest machine {guest} on host machine {host}, not for this one")
            }
            ObjectError::NoRoom => write!(f, "does not fit"),
        }
    }
}

impl From<Errno> for ObjectError {
    fn from(error: Errno) -> Self {
        ObjectError::Io(error)
    }
}

/// Where the next object goes; 0 for the first place.
static NEXT: AtomicU64 = AtomicU64::new(0);

const PT_LOAD: u32 = 1;

fn u16_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 2).map_or(0, |b| u16::from_le_bytes([b[0], b[1]]).into())
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).map_or(0, |b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}

/// Map the object in file `fd` into the hole; yields its header, not yet bound to a guest file.
pub fn map(fd: i32) -> Result<&'static ObjectHeader, ObjectError> {
    let mut elf = [0; 64];
    if linux::pread(fd, &mut elf, 0)? < 64 || elf[..5] != *b"\x7fELF\x02" || u16_at(&elf, 16) != 3 {
        return Err(ObjectError::NotElf);
    }
    let mut headers = [0; 56 * 16];
    let bytes = (u16_at(&elf, 56) as usize * 56).min(headers.len());
    if linux::pread(fd, &mut headers[..bytes], u64_at(&elf, 32))? < bytes {
        return Err(ObjectError::NotElf);
    }
    let segments = || headers[..bytes].chunks_exact(56);
    let loads = || segments().filter(|h| u32_at(h, 0) == PT_LOAD);
    let end =
        loads().map(|h| u64_at(h, 16).saturating_add(u64_at(h, 40))).max().ok_or(ObjectError::NotElf)?;
    let base = take_room(end)?;
    for header in loads() {
        map_segment(fd, base, header)?;
    }
    let entry = u64_at(&elf, 24);
    if entry == 0 || entry + size_of::<ObjectHeader>() as u64 > end {
        return Err(ObjectError::NoHeader);
    }
    check(base + entry)
}

fn take_room(len: u64) -> Result<u64, ObjectError> {
    let first = hole::base() + OBJECTS_OFFSET;
    let base = NEXT.load(Ordering::Relaxed).max(first);
    // A gap of a page, so that running off an object's end is noticed.
    let next = base.checked_add(len).map(|end| end.next_multiple_of(PAGE) + PAGE);
    match next.filter(|&next| next <= first + OBJECTS_BYTES) {
        Some(next) => NEXT.store(next, Ordering::Relaxed),
        None => return Err(ObjectError::NoRoom),
    }
    Ok(base)
}

fn map_segment(fd: i32, base: u64, header: &[u8]) -> Result<(), ObjectError> {
    let prot = protection(u32_at(header, 4));
    let (offset, address) = (u64_at(header, 8), base + u64_at(header, 16));
    let (in_file, in_memory) = (u64_at(header, 32), u64_at(header, 40));
    let skew = address % PAGE;
    let file_end = address + in_file;
    let flags = map::PRIVATE | map::FIXED_NOREPLACE;
    if in_file > 0 {
        // SAFETY: replaces nothing.
        unsafe { linux::mmap(address - skew, in_file + skew, prot, flags, fd, offset.wrapping_sub(skew)) }?;
    }
    let zero_from = if in_file > 0 { file_end.next_multiple_of(PAGE) } else { address - skew };
    let end = (address + in_memory).next_multiple_of(PAGE);
    if end > zero_from {
        // SAFETY: replaces nothing.
        unsafe { linux::mmap(zero_from, end - zero_from, prot, flags | map::ANONYMOUS, -1, 0) }?;
    }
    if in_memory > in_file && prot & prot::WRITE != 0 && in_file > 0 {
        // SAFETY: the rest of the segment's last page, private and writable.
        unsafe { core::ptr::write_bytes(file_end as *mut u8, 0, (zero_from - file_end) as usize) };
    }
    Ok(())
}

/// The header at address `header` in the hole, if it is one for this machine and layout.
pub fn check(header: u64) -> Result<&'static ObjectHeader, ObjectError> {
    // SAFETY: inside the mapped object, or the object lies about itself, as it could in its code.
    let header = unsafe { &*(header as *const ObjectHeader) };
    if header.magic != OBJECT_MAGIC {
        return Err(ObjectError::NoHeader);
    }
    if header.version != VERSION {
        return Err(ObjectError::Version(header.version));
    }
    if (header.guest, header.host) != (machine_id::X86_64, HOST.machine_id()) {
        return Err(ObjectError::Machine(header.guest, header.host));
    }
    Ok(header)
}

/// Bind a mapped object to its guest file, loaded with `bias`: from now on its entries are found.
pub fn bind(header: &'static ObjectHeader, bias: u64) -> Result<(), ObjectError> {
    let state = &mut hole::process().state;
    let slot = state.objects.get_mut(state.object_count as usize).ok_or(ObjectError::NoRoom)?;
    *slot = ObjectRef { header: core::ptr::from_ref(header) as u64, guest_bias: bias };
    let object = *slot;
    state.object_count += 1;
    take_up(object);
    Ok(())
}

/// Tell an object its bias; for one that can say the exact state at faults, the process is to have no others.
fn take_up(object: ObjectRef) {
    let header = header_of(object);
    let slot = place(header, header.bias_slot) as *mut u64;
    // SAFETY: the object's own writable word.
    unsafe { *slot = object.guest_bias };
    if header.faults == FAULTS_EXACT {
        exact::turn_on();
    }
}

/// After a restore: objects are mapped, but fresh.
pub fn take_up_all() {
    objects().iter().copied().for_each(take_up);
}

fn objects() -> &'static [ObjectRef] {
    let state = &hole::process().state;
    &state.objects[..(state.object_count as usize).min(MAX_OBJECTS)]
}

fn header_of(object: ObjectRef) -> &'static ObjectHeader {
    // SAFETY: only mapped and checked objects are in the list.
    unsafe { &*(object.header as *const ObjectHeader) }
}

/// Is any code compiled at all?
pub fn any() -> bool {
    hole::process().state.object_count != 0 || supply::any().is_some()
}

/// The guest's mappings in `[start, end)` have changed: an object for what was there is of no use any more.
pub fn forget(start: u64, end: u64) {
    let touched = |object: &ObjectRef| {
        let here = |entry: Option<&ObjectEntry>| entry.map(|e| e.guest.wrapping_add(object.guest_bias));
        let entries = entries(header_of(*object));
        let (first, last) = (here(entries.first()), here(entries.last()));
        first.is_some_and(|first| first < end) && last.is_some_and(|last| last >= start)
    };
    let state = &mut hole::process().state;
    let mut n = 0;
    while n < objects().len() {
        if touched(&objects()[n]) {
            state.object_count -= 1;
            state.objects.copy_within(n + 1..=state.object_count as usize, n);
            supply::leave_compiled_code();
        } else {
            n += 1;
        }
    }
}

/// A compiled entry.
#[derive(Clone, Copy)]
pub struct Entry {
    enter: u64,
    code: u64,
    faults: u64,
}

impl Entry {
    /// Entry `code`, which the object with this header, or any other, enters; `faults` is [`ObjectHeader::faults`] of its
    /// own object.
    pub fn new(header: &'static ObjectHeader, code: u64, faults: u64) -> Entry {
        Entry { enter: place(header, header.enter), code, faults }
    }

    /// [`ObjectHeader::faults`] of its object.
    pub fn faults(self) -> u64 {
        self.faults
    }

    /// Run compiled code until the region returns to its caller, or unwinds.
    pub fn enter(self, thread: Thread) {
        report::count(&report::COUNTERS.entered);
        crate::host::fp_apply(thread.cpu().mxcsr);
        // SAFETY: the object's header says that this is such a function.
        unsafe {
            let enter: extern "C" fn(*mut tranship_abi::block::ThreadBlock, u64) =
                core::mem::transmute(self.enter);
            enter(thread.address(), self.code);
        }
        dispatch::arrive(thread);
    }
}

/// The compiled entry at the guest PC, if `thread` may run compiled code.
pub fn entry(thread: Thread) -> Option<Entry> {
    exact::admits_compiled(thread).then(|| entry_at(thread, thread.cpu().rip)).flatten()
}

/// The address that is `offset` from an object's header.
pub fn place(header: &'static ObjectHeader, offset: i64) -> u64 {
    (core::ptr::from_ref(header) as u64).wrapping_add_signed(offset)
}

/// An object's entries, sorted.
pub fn entries(header: &'static ObjectHeader) -> &'static [ObjectEntry] {
    let table = place(header, header.entries) as *const ObjectEntry;
    // SAFETY: the header of a checked object says where its table is and how long.
    unsafe { core::slice::from_raw_parts(table, header.entry_count as usize) }
}

/// Where the instruction of compiled code at `pc` goes on if it faults.
pub fn landing(pc: u64) -> Option<u64> {
    let mapped = objects().iter().map(|&object| header_of(object));
    mapped.chain(supply::headers()).find_map(|header| landing_in(header, pc))
}

/// The same for the object with this header.
pub fn landing_in(header: &'static ObjectHeader, pc: u64) -> Option<u64> {
    let first = place(header, header.fault_edges);
    let bytes = place(header, header.fault_edges_end) - first;
    // SAFETY: the header of a checked object says where they are.
    let edges = unsafe {
        core::slice::from_raw_parts(first as *const FaultEdge, bytes as usize / size_of::<FaultEdge>())
    };
    let target = |field: &i32| (core::ptr::from_ref(field) as u64).wrapping_add_signed((*field).into());
    let index = edges.binary_search_by(|edge| target(&edge.access).cmp(&pc)).ok()?;
    edges.get(index).map(|edge| target(&edge.landing))
}

/// The compiled entry at `guest`, for `thread` to run.
pub fn entry_at(thread: Thread, guest: u64) -> Option<Entry> {
    let entry = find(guest)?;
    exact::note(thread, entry.faults);
    Some(entry)
}

/// The compiled entry at guest address `guest` that may run as things are.
fn find(guest: u64) -> Option<Entry> {
    supply::find(guest).filter(|entry| exact::admits(entry.faults)).or_else(|| {
        objects().iter().find_map(|&object| {
            let (header, linked) = (header_of(object), guest.wrapping_sub(object.guest_bias));
            if !exact::admits(header.faults) {
                return None;
            }
            let entries = entries(header);
            let index = entries.binary_search_by_key(&linked, |entry| entry.guest).ok()?;
            Some(Entry::new(header, place(header, entries.get(index)?.host), header.faults))
        })
    })
}

/// Code for an indirect branch to `guest`: its entry, or a region that has it interpreted. It is put into
/// the thread's branch cache. 0: there is none, or the thread has to leave the code that it comes from.
pub fn branch_target(thread: Thread, guest: u64) -> u64 {
    if exact::must_leave(thread) {
        return 0;
    }
    let some_object = || objects().first().map(|&object| header_of(object)).or_else(supply::any);
    let host = match (entry_at(thread, guest), some_object()) {
        (Some(entry), _) => entry.code,
        (None, Some(header)) => {
            report::note_missing_entry(guest);
            place(header, header.interpret_call)
        }
        (None, None) => return 0,
    };
    let line = branch_cache_offset(guest) as usize / size_of::<BranchCacheEntry>();
    thread.block().branch_cache[line] = BranchCacheEntry { guest, host };
    host
}
