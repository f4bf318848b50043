//! Compiled code for processes that run (`tranship_abi::block::Supply`), as seen from outside: what they want, what lies
//! there, and how they get it.

use super::namespace;
use super::proc::{self, Mapping};
use super::state_area::StateArea;
use crate::error::{NodeError, Result};
use crate::protocol::{Channel, CodePlace, CodeRequest, MappedFile, ProcessId, ProcessLook, WantedCode};
use crate::serve::{answer, answer_with_body};
use std::collections::HashMap;
use std::fs;
use std::mem::offset_of;
use std::os::unix::fs::MetadataExt;
use tranship_abi::block::{
    ARENA_ALIGNMENT, ARENA_BYTES, ARENA_OFFSET, MAX_SUPPLIED, MAX_WANTED, ObjectEntry, ObjectHeader,
    ProcessBlock, Supplied, Supply,
};

/// Looks after which is looked for new processes.
const MEMBER_LOOKS: u64 = 4;
/// How much of memory before and after an address belongs to it.
const BEFORE: u64 = 64 << 10;
const AFTER: u64 = 256 << 10;
/// Most that is read at a time.
const LARGEST_READ: u64 = 1 << 30;

/// Offset of a field of [`Supply`] from the state area's start.
macro_rules! field {
    ($field:ident) => {
        (offset_of!(ProcessBlock, supply) + offset_of!(Supply, $field)) as u64
    };
}

/// Translated processes that belong together.
#[derive(Debug)]
pub struct Consumers {
    group: Group,
    members: Vec<u32>,
    looks: u64,
    known: HashMap<u32, Consumer>,
}

/// Why they belong together.
#[derive(Debug)]
enum Group {
    /// They descend from this process.
    Tree(u32),
    /// They are in the PID namespace with this number, and no unit's.
    Namespace(u64),
}

impl Consumers {
    /// Those of the tree that starts with process `root`.
    pub fn of(root: u32) -> Consumers {
        Consumers::in_group(Group::Tree(root))
    }

    /// Those in the PID namespace `number` that are no unit's.
    pub fn of_namespace(number: u64) -> Consumers {
        Consumers::in_group(Group::Namespace(number))
    }

    fn in_group(group: Group) -> Consumers {
        Consumers { group, members: Vec::new(), looks: 0, known: HashMap::new() }
    }

    /// Do what `client` asks; an object is the body of its request.
    pub(crate) fn serve(&mut self, client: &mut Channel, request: CodeRequest, body: u64) -> Result<()> {
        match request {
            CodeRequest::Look => answer(client, self.look()),
            CodeRequest::ReadMemory { process, start, end } => {
                answer_with_body(client, self.read(process, start, end))
            }
            CodeRequest::ReadMapped { process, file } => {
                answer_with_body(client, self.read_file(process, &file))
            }
            CodeRequest::Supply { process, header } => {
                let image = Image { bytes: client.read_body(body)?, header };
                answer(client, self.supply(process, &image))
            }
        }
    }

    /// What has happened since the last look; `None` once the first process of the tree, or all in the namespace, have
    /// ended.
    pub fn look(&mut self) -> Result<Option<Vec<ProcessLook>>> {
        if let Group::Tree(root) = self.group
            && !proc::is_alive(root)
        {
            return Ok(None);
        }
        if self.looks.is_multiple_of(MEMBER_LOOKS) {
            self.members = self.members();
            let members = &self.members;
            self.known.retain(|pid, _| members.contains(pid));
        }
        if matches!(self.group, Group::Namespace(_)) && self.members.is_empty() {
            return Ok(None);
        }
        self.looks += 1;
        let mut looks = Vec::new();
        for pid in self.members.clone() {
            match self.look_at(pid) {
                Ok(look) => looks.extend(look),
                // One that ends while it is looked at is no error.
                Err(_) if !proc::has_memory(pid) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Some(looks))
    }

    fn members(&self) -> Vec<u32> {
        match self.group {
            Group::Tree(root) => proc::tree(root).unwrap_or_default(),
            Group::Namespace(number) => {
                let mut members = namespace::members(number).unwrap_or_default();
                members.retain(|pid| self.known.contains_key(pid) || namespace::is_translated(*pid));
                members
            }
        }
    }

    fn look_at(&mut self, pid: u32) -> Result<Option<ProcessLook>> {
        if !self.known.get(&pid).is_some_and(Consumer::is_current) {
            self.known.remove(&pid);
            let Some(consumer) = Consumer::open(pid)? else { return Ok(None) };
            self.known.insert(pid, consumer);
        }
        let Some(consumer) = self.known.get_mut(&pid) else { return Ok(None) };
        let wanted = consumer.wanted()?;
        let exact = consumer.area.long(consumer.area.base() + field!(exact))? != 0;
        let is_new = consumer.exact.replace(exact) != Some(exact);
        if !is_new && wanted.is_empty() {
            return Ok(None);
        }
        let places = Places { pid, mappings: proc::maps(pid)? };
        let files = if is_new { places.files().collect() } else { Vec::new() };
        let wanted = wanted.into_iter().map(|address| WantedCode { address, place: places.find(address) });
        let process = ProcessId { pid, generation: consumer.generation };
        Ok(Some(ProcessLook { process, exact, files, wanted: wanted.collect() }))
    }

    fn consumer(&self, process: ProcessId) -> Result<&Consumer> {
        let known = self.known.get(&process.pid).filter(|known| known.generation == process.generation);
        known.ok_or(NodeError::ProcessGone { pid: process.pid })
    }

    /// The outcome of looking at a process, or that it is gone, if that is why.
    fn unless_gone<T>(&self, process: ProcessId, outcome: Result<T>) -> Result<T> {
        let is_there =
            || proc::is_alive(process.pid) && self.consumer(process).is_ok_and(Consumer::is_current);
        match outcome {
            Err(_) if !is_there() => Err(NodeError::ProcessGone { pid: process.pid }),
            outcome => outcome,
        }
    }

    /// Guest memory.
    pub fn read(&self, process: ProcessId, start: u64, end: u64) -> Result<Vec<u8>> {
        let bytes = end.checked_sub(start).filter(|bytes| *bytes <= LARGEST_READ);
        let bytes = bytes.ok_or_else(|| NodeError::protocol("a range of memory is too large"))?;
        let mut memory = vec![0; bytes as usize];
        let read = self.consumer(process)?.area.read(start, &mut memory);
        self.unless_gone(process, read).map(|()| memory)
    }

    /// The whole of a file that the process has mapped, whatever has become of its name.
    pub fn read_file(&self, process: ProcessId, file: &MappedFile) -> Result<Vec<u8>> {
        let path = map_file(self.consumer(process)?.area.pid(), file.start, file.end);
        let read = fs::read(path).map_err(|why| NodeError::io(format!("reading {}", file.name), why));
        self.unless_gone(process, read)
    }

    /// Put an object into the arena of a process. False if there is no room.
    pub fn supply(&self, process: ProcessId, image: &Image) -> Result<bool> {
        self.unless_gone(process, self.consumer(process)?.supply(image))
    }
}

/// A path of the file that is mapped from `start` to `end`.
fn map_file(pid: u32, start: u64, end: u64) -> String {
    format!("/proc/{pid}/map_files/{start:x}-{end:x}")
}

/// What a process has mapped.
struct Places {
    pid: u32,
    mappings: Vec<Mapping>,
}

impl Places {
    /// Where `address` is.
    fn find(&self, address: u64) -> CodePlace {
        let after = self.mappings.partition_point(|m| m.start <= address);
        let mapping = after.checked_sub(1).and_then(|n| self.mappings.get(n)).filter(|m| address < m.end);
        let Some(mapping) = mapping else { return CodePlace::Nowhere };
        match self.file(mapping) {
            Some(file) => CodePlace::File(file),
            None => CodePlace::Memory {
                start: mapping.start.max(address.saturating_sub(BEFORE)),
                end: mapping.end.min(address + AFTER),
            },
        }
    }

    /// What is mapped of files and cannot be written.
    fn files(&self) -> impl Iterator<Item = MappedFile> {
        self.mappings.iter().filter_map(|mapping| self.file(mapping))
    }

    fn file(&self, mapping: &Mapping) -> Option<MappedFile> {
        if !mapping.name.starts_with('/') || mapping.rights.contains('w') {
            return None;
        }
        let data = fs::metadata(map_file(self.pid, mapping.start, mapping.end)).ok()?;
        let modified = [data.mtime(), data.mtime_nsec()].map(|time| time as u64);
        let &Mapping { start, end, offset, .. } = mapping;
        let identity = [data.dev(), data.ino(), data.size(), modified[0], modified[1]];
        Some(MappedFile { name: mapping.name.clone(), identity, start, end, offset })
    }
}

/// A translated process that code can be supplied to.
#[derive(Debug)]
struct Consumer {
    area: StateArea,
    generation: u64,
    /// How many wanted addresses have been seen.
    seen: u64,
    /// What kind of objects was of use to it when it was looked at last.
    exact: Option<bool>,
}

/// A translated object as it is to lie in the arena, all offsets being relative.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Where in them the object's header is.
    pub header: usize,
}

impl Image {
    /// Where the object can be entered, in guest addresses as linked.
    pub fn entries(&self) -> impl Iterator<Item = u64> {
        self.rows()
            .unwrap_or_default()
            .iter()
            .map(|row| row.first_chunk().map_or(0, |guest| u64::from_le_bytes(*guest)))
    }

    fn rows(&self) -> Option<&[[u8; size_of::<ObjectEntry>()]]> {
        let header = self.bytes.get(self.header..)?;
        let count = header.get(offset_of!(ObjectHeader, entry_count)..)?.first_chunk()?;
        let table = header.get(offset_of!(ObjectHeader, entries)..)?.first_chunk()?;
        let table = self.header.checked_add_signed(isize::try_from(i64::from_le_bytes(*table)).ok()?)?;
        let (rows, _) = self.bytes.get(table..)?.as_chunks();
        rows.get(..u32::from_le_bytes(*count) as usize)
    }
}

impl Consumer {
    /// Process `pid`, if it is translated and has started.
    fn open(pid: u32) -> Result<Option<Consumer>> {
        let Some(area) = StateArea::find(pid)? else { return Ok(None) };
        let generation = area.long(area.base() + field!(generation))?;
        Ok((generation != 0).then_some(Consumer { area, generation, seen: 0, exact: None }))
    }

    /// Whether it still runs the program that it ran when it was opened.
    fn is_current(&self) -> bool {
        self.area.long(self.area.base() + field!(generation)).is_ok_and(|now| now == self.generation)
    }

    /// What has been wanted since this was asked last; the oldest are lost if there were too many.
    fn wanted(&mut self) -> Result<Vec<u64>> {
        let count = self.area.long(self.area.base() + field!(wanted_count))?;
        let first = self.seen.max(count.saturating_sub(MAX_WANTED as u64));
        self.seen = count;
        let place = |n: u64| self.area.base() + field!(wanted) + n % MAX_WANTED as u64 * 8;
        (first..count).map(|n| self.area.long(place(n))).collect()
    }

    /// Put an object into the arena, for the process to take. False if there is no room.
    fn supply(&self, image: &Image) -> Result<bool> {
        let base = self.area.base();
        let (count, taken) =
            (self.area.long(base + field!(supplied_count))?, self.area.long(base + field!(taken_count))?);
        let used = self.area.long(base + field!(arena_used))?;
        let end = used.saturating_add(image.bytes.len() as u64).next_multiple_of(ARENA_ALIGNMENT);
        if end > ARENA_BYTES || count.wrapping_sub(taken) >= MAX_SUPPLIED as u64 {
            return Ok(false);
        }
        if image.header >= image.bytes.len() {
            return Err(NodeError::io("supplying an object", "its header is outside of it"));
        }
        // In this order a child that is forked meanwhile finds nothing that is half there.
        self.area.set_long(base + field!(arena_used), end)?;
        let start = base + ARENA_OFFSET + used;
        self.area.write(start, &image.bytes)?;
        let place = base + field!(supplied) + count % MAX_SUPPLIED as u64 * size_of::<Supplied>() as u64;
        let words = [start, image.bytes.len() as u64, start + image.header as u64];
        self.area.write(place, words.map(u64::to_le_bytes).as_flattened())?;
        self.area.set_long(base + field!(supplied_count), count + 1)?;
        Ok(true)
    }
}
