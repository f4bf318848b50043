//! Compiled code that comes while the guest runs (`tranship_abi::block::Supply`). The interpreter says which addresses
//! are worth it; objects appear in the arena, are checked against the guest code that they were made from, and their
//! entries are found from then on, for as long as that code stays as it is.

use crate::exact;
use crate::hole;
use crate::interpret;
use crate::linux::{self, PAGE, map, prot};
use crate::memory::{self, Locked, access, code, watch};
use crate::object::{self, Entry};
use crate::thread::{self, Thread};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use tranship_abi::block::{
    ARENA_BYTES, ARENA_OFFSET, ENTRY_TABLE_BYTES, ENTRY_TABLE_OFFSET, FAULTS_EXACT, FAULTS_FATAL,
    MAX_SUPPLIED, MAX_WANTED, ObjectEntry, ObjectHeader, Source, SourceDigest, Supply,
};

/// Places for entries; a power of two, at most half of which are used.
const PLACES: usize = 1 << 19;
/// Objects that a process can take.
const OBJECTS: usize = 1 << 15;

/// Where the arena's entries are: a hash table that one thread at a time writes and all read. Zero at first.
#[repr(C)]
struct Tables {
    places: [Place; PLACES],
    used: AtomicU64,
    objects: [Object; OBJECTS],
    object_count: AtomicU64,
}

const _: () = assert!(size_of::<Tables>() as u64 <= ENTRY_TABLE_BYTES);

/// A guest address (0: a free place) and the code for it (0: none just now).
#[repr(C)]
struct Place {
    guest: AtomicU64,
    code: AtomicU64,
}

/// An object that was taken.
#[repr(C)]
struct Object {
    start: AtomicU64,
    end: AtomicU64,
    header: AtomicU64,
    /// Its sources are as they were, and its entries are in the table.
    is_live: AtomicU32,
}

fn supply() -> &'static Supply {
    &hole::process().supply
}

/// The tables, once they are mapped.
fn tables() -> Option<&'static Tables> {
    if supply().generation.load(Ordering::Acquire) == 0 {
        return None;
    }
    // SAFETY: mapped before the generation was set, for the process's life; all fields are atomic.
    Some(unsafe { &*((hole::base() + ENTRY_TABLE_OFFSET) as *const Tables) })
}

/// Map arena and tables. Without them the process runs as well, but no code comes.
pub fn start() {
    let flags = map::PRIVATE | map::ANONYMOUS | map::NORESERVE | map::FIXED_NOREPLACE;
    let bytes = ARENA_BYTES + ENTRY_TABLE_BYTES;
    const { assert!(ARENA_OFFSET + ARENA_BYTES == ENTRY_TABLE_OFFSET) };
    // SAFETY: replaces nothing.
    let mapped =
        unsafe { linux::mmap(hole::base() + ARENA_OFFSET, bytes, prot::READ | prot::WRITE, flags, -1, 0) };
    if mapped.is_ok() {
        exact::look_again();
        supply().generation.store(linux::monotonic_ns() | 1, Ordering::Release);
    }
}

// ---- what is wanted ----

/// From now on only exact objects are of use, and only their code is found.
pub fn turn_exact() {
    let held = memory::lock();
    let say = || supply().exact.store(1, Ordering::Release);
    let Some(tables) = tables() else { return say() };
    let objects = tables.objects();
    objects.iter().filter(|object| object.is_live()).for_each(|object| object.end_life(tables));
    say();
    for object in objects {
        object.make_live(&held, tables);
    }
}

/// Held by the thread that writes to `wanted`.
static WANTING: AtomicBool = AtomicBool::new(false);

/// Ask for an entry at `guest`. False: not now.
pub fn want(guest: u64) -> bool {
    if revive_for(guest) {
        return true;
    }
    if WANTING.swap(true, Ordering::Acquire) {
        return false;
    }
    let supply = supply();
    let count = supply.wanted_count.load(Ordering::Relaxed);
    supply.wanted[count as usize % MAX_WANTED].store(guest, Ordering::Relaxed);
    supply.wanted_count.store(count + 1, Ordering::Release);
    WANTING.store(false, Ordering::Release);
    true
}

// ---- what comes ----

/// Has something come that nobody has taken?
#[inline]
pub fn has_come() -> bool {
    let supply = supply();
    supply.supplied_count.load(Ordering::Acquire) != supply.taken_count.load(Ordering::Relaxed)
}

/// Take what has come.
#[cold]
pub fn take() {
    let held = memory::lock();
    let supply = supply();
    let Some(tables) = tables() else { return };
    for n in supply.taken_count.load(Ordering::Acquire)..supply.supplied_count.load(Ordering::Acquire) {
        let supplied = &supply.supplied[n as usize % MAX_SUPPLIED];
        let [start, bytes, header] =
            [&supplied.start, &supplied.bytes, &supplied.header].map(|word| word.load(Ordering::Relaxed));
        if let Some(object) = tables.add(start, bytes, header) {
            object.make_live(&held, tables);
        }
        supply.taken_count.store(n + 1, Ordering::Release);
    }
    drop(held);
    // Branches go to the interpreter, or to what was there before.
    thread::used().for_each(Thread::forget_branches);
    interpret::entries_changed();
}

impl Tables {
    fn objects(&self) -> &[Object] {
        &self.objects[..(self.object_count.load(Ordering::Acquire) as usize).min(OBJECTS)]
    }

    /// Make the object executable and list it.
    fn add(&self, start: u64, bytes: u64, header: u64) -> Option<&Object> {
        let end = start.checked_add(bytes)?;
        let arena = hole::base() + ARENA_OFFSET;
        if start < arena || end > arena + ARENA_BYTES || header < start || header >= end {
            return None;
        }
        // SAFETY: in the arena, and nothing writes there any more.
        unsafe { linux::mprotect(start, bytes.next_multiple_of(PAGE), prot::READ | prot::EXEC) }.ok()?;
        object::check(header).ok()?;
        let count = self.object_count.load(Ordering::Relaxed);
        let object = self.objects.get(count as usize)?;
        object.start.store(start, Ordering::Relaxed);
        object.end.store(end, Ordering::Relaxed);
        object.header.store(header, Ordering::Relaxed);
        self.object_count.store(count + 1, Ordering::Release);
        Some(object)
    }

    /// The place of `guest`, or the free one that it would be put in; `None` if the table is full.
    fn place(&self, guest: u64) -> Option<&Place> {
        let first = (guest.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize;
        let places = (0..64).map(|n| &self.places[(first + n) % PLACES]);
        places
            .into_iter()
            .find(|place| matches!(place.guest.load(Ordering::Acquire), g if g == guest || g == 0))
    }

    fn code(&self, guest: u64) -> Option<u64> {
        let place = self.place(guest)?;
        let found = place.guest.load(Ordering::Acquire) == guest && guest != 0;
        Some(place.code.load(Ordering::Acquire)).filter(|&code| found && code != 0)
    }

    fn set_code(&self, guest: u64, code: u64) {
        if guest == 0 || self.used.load(Ordering::Relaxed) as usize > PLACES / 2 {
            return;
        }
        if let Some(place) = self.place(guest) {
            place.code.store(code, Ordering::Release);
            if place.guest.swap(guest, Ordering::AcqRel) == 0 {
                self.used.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

impl Object {
    fn header(&self) -> &'static ObjectHeader {
        // SAFETY: checked when it was added; the arena stays.
        unsafe { &*(self.header.load(Ordering::Acquire) as *const ObjectHeader) }
    }

    fn bias(&self) -> u64 {
        let header = self.header();
        let slot = object::place(header, header.bias_slot);
        // SAFETY: the object's own word.
        unsafe { *(slot as *const u64) }
    }

    /// Its sources, where they are now.
    fn sources(&self) -> impl Iterator<Item = Source> {
        let (header, bias) = (self.header(), self.bias());
        let first = object::place(header, header.sources);
        // SAFETY: the header says where they are and how many.
        let sources =
            unsafe { core::slice::from_raw_parts(first as *const Source, header.source_count as usize) };
        let here = move |address: u64| address.wrapping_add(bias);
        sources.iter().map(move |s| Source { start: here(s.start), end: here(s.end), digest: s.digest })
    }

    fn touches(&self, start: u64, end: u64) -> bool {
        self.sources().any(|source| source.start < end && source.end > start)
    }

    /// Its entries: guest address now, and code.
    fn entries(&self) -> impl Iterator<Item = (u64, u64)> {
        let (header, bias) = (self.header(), self.bias());
        object::entries(header).iter().map(move |entry: &ObjectEntry| {
            (entry.guest.wrapping_add(bias), object::place(header, entry.host))
        })
    }

    fn has_entry(&self, guest: u64) -> bool {
        self.entries().any(|(entry, _)| entry == guest)
    }

    fn is_live(&self) -> bool {
        self.is_live.load(Ordering::Acquire) != 0
    }

    /// Have its entries found, if it is of use and all that it was made from is there, unchanged.
    fn make_live(&self, _: &Locked, tables: &Tables) -> bool {
        if !exact::admits(self.header().faults) || !self.sources().all(|source| is_unchanged(&source)) {
            return false;
        }
        self.is_live.store(1, Ordering::Release);
        for (guest, code) in self.entries() {
            tables.set_code(guest, code);
        }
        // It may have been written to meanwhile, when there was nothing to end yet.
        let stays = self.sources().all(|source| is_protected(&source));
        if !stays {
            self.end_life(tables);
        }
        stays
    }

    fn end_life(&self, tables: &Tables) {
        self.is_live.store(0, Ordering::Release);
        for (guest, code) in self.entries() {
            if tables.code(guest) == Some(code) {
                tables.set_code(guest, 0);
            }
        }
    }
}

/// May the guest write to the place of `source`?
fn is_writable(source: &Source) -> bool {
    code::protection_of(source.start) & prot::WRITE != 0
}

/// Is nothing written there without our knowing?
fn is_protected(source: &Source) -> bool {
    !is_writable(source) || watch::is_watched(source.start, source.end)
}

/// Is the code there that `source` was made from? If the guest may write to it, it is watched from now on.
fn is_unchanged(source: &Source) -> bool {
    if !code::covers(source.start, source.end) {
        return false;
    }
    if is_writable(source) && watch::watch(source.start, source.end).is_err() {
        return false;
    }
    let (mut digest, mut piece) = (SourceDigest::default(), [0; SourceDigest::PIECE]);
    for at in (source.start..source.end).step_by(piece.len()) {
        let piece = &mut piece[..((source.end - at) as usize).min(SourceDigest::PIECE)];
        if access::read_bytes(at, piece).is_err() {
            return false;
        }
        digest.add(piece);
    }
    digest.value() == source.digest
}

// ---- what is there ----

/// Code for `guest` that has come.
pub fn find(guest: u64) -> Option<Entry> {
    let faults = if exact::is_on() { FAULTS_EXACT } else { FAULTS_FATAL };
    let code = tables()?.code(guest)?;
    any().map(|header| Entry::new(header, code, faults))
}

/// Some object that has come: they all enter code alike.
pub fn any() -> Option<&'static ObjectHeader> {
    tables()?.objects().first().map(Object::header)
}

/// All objects that have come.
pub fn headers() -> impl Iterator<Item = &'static ObjectHeader> {
    tables().into_iter().flat_map(|tables| tables.objects().iter().map(Object::header))
}

// ---- what changes ----

/// The guest's mappings in `[start, end)` have changed: what was compiled from there is not to be used, unless the code
/// is there again.
pub fn code_changed(held: &Locked, start: u64, end: u64) {
    object::forget(start, end);
    let Some(tables) = tables() else { return };
    let (mut ended, mut begun) = (false, false);
    for object in tables.objects().iter().filter(|object| object.touches(start, end)) {
        if object.is_live() {
            object.end_life(tables);
            ended = true;
        }
        begun |= object.make_live(held, tables);
    }
    if ended {
        leave_compiled_code();
    }
    if begun {
        interpret::entries_changed();
    }
}

/// The guest writes to `address`, where it may. True if that was prevented to see it, and is possible now.
pub fn written(address: u64) -> bool {
    if !watch::release(address) {
        return false;
    }
    let page = address / PAGE * PAGE;
    if let Some(tables) = tables() {
        let lost = |object: &&Object| object.is_live() && object.touches(page, page + PAGE);
        tables.objects().iter().filter(lost).for_each(|object| object.end_life(tables));
    }
    leave_compiled_code();
    true
}

/// The kernel could not write for the guest: let it write wherever the guest can. False if it could.
pub fn all_written() -> bool {
    let mut any = false;
    while let Some(page) = watch::any() {
        any |= written(page);
    }
    any
}

/// An object that has an entry at `guest` and whose code is there again.
fn revive_for(guest: u64) -> bool {
    let Some(tables) = tables() else { return false };
    let held = memory::lock();
    let dormant = |object: &&Object| !object.is_live() && object.has_entry(guest);
    let revived = tables.objects().iter().rev().filter(dormant).any(|object| object.make_live(&held, tables));
    drop(held);
    if revived {
        interpret::entries_changed();
    }
    revived
}

/// Have all threads forget what they know of compiled code, and leave it at their next safepoint.
pub fn leave_compiled_code() {
    interpret::cool();
    thread::used().for_each(Thread::leave_compiled_code);
}
