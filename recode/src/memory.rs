//! A process's memory as an image set has it: which pages are in which file, and new pages laid over them.

use crate::catalogue::image_type;
use crate::error::{RecodeError, Result};
use crate::flatten::Piece;
use crate::image;
use crate::proto::pagemap::{Pagemap_entry, Pagemap_head};
use crate::set::ImageSet;
use std::collections::BTreeMap;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Bytes of a page: of every machine that is supported, and of CRIU's images.
pub const PAGE: u64 = 4096;

/// Longest chain of parent sets that is followed, so that a link that leads back to itself is noticed.
/// (Linux itself follows 40 links.)
const MAX_PARENTS: u32 = 32;

/// Flags of a pagemap entry (CRIU's `pagemap.h`).
mod flag {
    /// The pages are in the parent set.
    pub(super) const PARENT: u32 = 1;
    /// A lazy restore may bring them later.
    pub(super) const LAZY: u32 = 2;
    /// The pages are in this set's pages image.
    pub(super) const PRESENT: u32 = 4;
}

/// Consecutive pages that lie consecutively in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Address of the first page.
    pub start: u64,
    /// Address after the last page.
    pub end: u64,
    /// Whether a lazy restore may bring them later.
    pub lazy: bool,
    /// Index into [`Memory::files`].
    pub file: usize,
    /// Offset of the first page in that file.
    pub offset: u64,
}

impl Extent {
    /// The part of it that is in `range`.
    fn clip(&self, range: &Range<u64>) -> Option<Extent> {
        let (start, end) = (self.start.max(range.start), self.end.min(range.end));
        (start < end).then(|| Extent { start, end, offset: self.offset + (start - self.start), ..*self })
    }
}

/// The pages of a process that are in an image set or, through `parent` links, in earlier ones.
pub struct Memory<'s> {
    set: &'s ImageSet,
    files: Vec<(PathBuf, File)>,
    extents: Vec<Extent>,
}

impl<'s> Memory<'s> {
    /// Find the pages that the pagemap image called `name` lists.
    pub fn open(set: &'s ImageSet, name: &str) -> Result<Memory<'s>> {
        let mut memory = Memory { set, files: Vec::new(), extents: Vec::new() };
        memory.extents = memory.resolve(set, name, 0)?;
        Ok(memory)
    }

    /// The pages images that [`Extent::file`] counts.
    pub fn files(&self) -> impl Iterator<Item = &PathBuf> {
        self.files.iter().map(|(path, _)| path)
    }

    /// Where the pages are, by rising address.
    pub fn extents(&self) -> &[Extent] {
        &self.extents
    }

    /// Fill `buffer` from `address` on; what is in no image is zero. Returns how many bytes were in one.
    pub fn read(&self, address: u64, buffer: &mut [u8]) -> Result<u64> {
        buffer.fill(0);
        self.read_over(address, buffer)
    }

    /// The same, but what is in no image stays as it was.
    pub(crate) fn read_over(&self, address: u64, buffer: &mut [u8]) -> Result<u64> {
        let wanted = address..address.saturating_add(buffer.len() as u64);
        let mut found = 0;
        let first = self.extents.partition_point(|extent| extent.end <= wanted.start);
        for extent in self.extents[first..].iter().map_while(|extent| extent.clip(&wanted)) {
            let at = (extent.start - address) as usize;
            let bytes = (extent.end - extent.start) as usize;
            let (path, file) = &self.files[extent.file];
            let read = file.read_exact_at(&mut buffer[at..at + bytes], extent.offset);
            read.map_err(|e| RecodeError::io("reading", path, e))?;
            self.set.count_read(bytes as u64);
            found += bytes as u64;
        }
        Ok(found)
    }

    /// Where the page at `address` is, if it is in the set itself: a pages image and the offset in it.
    pub(crate) fn own(&self, address: u64) -> Option<(&Path, u64)> {
        let extent = within(&self.extents, &(address..address + PAGE)).pop()?;
        // The set's own pages image is the first to be opened.
        (extent.file == 0).then_some((self.files.first()?.0.as_path(), extent.offset))
    }

    fn resolve(&mut self, set: &ImageSet, name: &str, depth: u32) -> Result<Vec<Extent>> {
        let (head, entries): (Pagemap_head, Vec<Pagemap_entry>) = set.headed(name)?;
        let (file, length) = self.add_file(set, &pages_name(head.pages_id()))?;
        let mut parent: Option<Vec<Extent>> = None;
        let mut extents = Vec::with_capacity(entries.len());
        let (mut offset, mut last) = (0, 0);
        for (index, entry) in entries.iter().enumerate() {
            let damaged =
                |what: String| RecodeError::damaged(name, index as u64, format!("entry {index} {what}"));
            let range = page_range(entry).filter(|range| range.start >= last);
            let range = range.ok_or_else(|| damaged("is no range of pages behind the one before".into()))?;
            last = range.end;
            let flags = flags(entry);
            if flags & flag::PARENT != 0 {
                if parent.is_none() {
                    parent = Some(self.resolve_parent(set, name, depth)?);
                }
                let inherited = within(parent.as_deref().unwrap_or_default(), &range);
                let missing =
                    range.end - range.start - inherited.iter().map(|e| e.end - e.start).sum::<u64>();
                if missing != 0 {
                    return Err(damaged(format!(
                        "refers to the parent set, which lacks {missing} bytes of it"
                    )));
                }
                extents.extend(inherited);
            } else if flags & flag::PRESENT != 0 {
                let bytes = range.end - range.start;
                let lazy = flags & flag::LAZY != 0;
                extents.push(Extent { start: range.start, end: range.end, lazy, file, offset });
                offset += bytes;
            } else if flags & flag::LAZY != 0 {
                let what = "leaves memory with the process that was dumped (--lazy-pages)";
                return Err(RecodeError::refused(name, what));
            }
        }
        if offset > length {
            let what = format!("lists {offset} bytes of pages, the pages image has {length}");
            return Err(RecodeError::damaged(name, 0, what));
        }
        Ok(extents)
    }

    fn resolve_parent(&mut self, set: &ImageSet, name: &str, depth: u32) -> Result<Vec<Extent>> {
        if depth == MAX_PARENTS {
            return Err(RecodeError::refused(name, format!("has more than {MAX_PARENTS} parent sets")));
        }
        let link = set.parent().ok_or(RecodeError::Missing { file: crate::set::PARENT.into() })?;
        let parent = ImageSet::open(&link)?;
        let extents = self.resolve(&parent, name, depth + 1);
        set.count_read(parent.bytes_read());
        extents
    }

    fn add_file(&mut self, set: &ImageSet, name: &str) -> Result<(usize, u64)> {
        if !set.contains(name) {
            return Err(RecodeError::Missing { file: name.to_owned() });
        }
        let path = set.directory().join(name);
        let opened = File::open(&path).and_then(|file| Ok((file.metadata()?.len(), file)));
        let (length, file) = opened.map_err(|e| RecodeError::io("opening", &path, e))?;
        self.files.push((path, file));
        Ok((self.files.len() - 1, length))
    }
}

fn page_range(entry: &Pagemap_entry) -> Option<Range<u64>> {
    let pages = entry.nr_pages.unwrap_or(u64::from(entry.compat_nr_pages()));
    let end = pages.checked_mul(PAGE)?.checked_add(entry.vaddr())?;
    (pages > 0 && entry.vaddr().is_multiple_of(PAGE)).then_some(entry.vaddr()..end)
}

/// An entry's flags; images of older versions leave them out (CRIU's `init_compat_pagemap_entry`).
fn flags(entry: &Pagemap_entry) -> u32 {
    match (entry.in_parent(), entry.flags) {
        (true, flags) => flags.unwrap_or(0) | flag::PARENT,
        (false, Some(flags)) => flags,
        (false, None) => flag::PRESENT,
    }
}

fn within(extents: &[Extent], range: &Range<u64>) -> Vec<Extent> {
    let first = extents.partition_point(|extent| extent.end <= range.start);
    extents[first..].iter().map_while(|extent| extent.clip(range)).collect()
}

/// Pages whose contents a recoding decides, by address.
#[derive(Default)]
pub(crate) struct NewPages {
    pages: BTreeMap<u64, Box<[u8; PAGE as usize]>>,
}

impl NewPages {
    /// Write `bytes` at `address`; what a new page has besides is zero.
    pub(crate) fn write(&mut self, address: u64, bytes: &[u8]) {
        let mut at = 0;
        while at < bytes.len() {
            let here = address + at as u64;
            let (page, offset) = (here / PAGE * PAGE, (here % PAGE) as usize);
            let count = (bytes.len() - at).min(PAGE as usize - offset);
            let contents = self.pages.entry(page).or_insert_with(|| Box::new([0; PAGE as usize]));
            contents[offset..offset + count].copy_from_slice(&bytes[at..at + count]);
            at += count;
        }
    }
}

/// The pages of a process after a recoding: those that stay where they are, and new ones.
pub(crate) struct NewMemory {
    /// By rising address. A file past the last of `files` stands for `new`.
    extents: Vec<Extent>,
    files: Vec<PathBuf>,
    new: Vec<u8>,
    pages_id: u32,
}

impl NewMemory {
    /// The pages of `memory` that are in `keep` (sorted, disjoint), and `new` ones in the place of some and beside them; their
    /// pages image will have the number `pages_id`.
    pub(crate) fn of(memory: &Memory, keep: &[Range<u64>], new: &NewPages, pages_id: u32) -> NewMemory {
        let files: Vec<PathBuf> = memory.files().cloned().collect();
        let kept = keep.iter().flat_map(|range| within(memory.extents(), range));
        let mut extents: Vec<Extent> = kept.flat_map(|extent| without(extent, new)).collect();
        extents.extend(new.pages.keys().zip(0..).map(|(page, index)| Extent {
            start: *page,
            end: *page + PAGE,
            lazy: false,
            file: files.len(),
            offset: index * PAGE,
        }));
        extents.sort_by_key(|extent| extent.start);
        let new = new.pages.values().map(|page| &page[..]).collect::<Vec<_>>().concat();
        NewMemory { extents, files, new, pages_id }
    }

    /// Name of its pages image.
    pub(crate) fn name(&self) -> String {
        pages_name(self.pages_id)
    }

    /// Whether any page stays where it is.
    pub(crate) fn needs_parent(&self) -> bool {
        self.extents.iter().any(|extent| extent.file < self.files.len())
    }

    /// The pagemap image of a set that leaves what stays to its parent.
    pub(crate) fn pagemap_over_parent(&self) -> Result<Vec<u8>> {
        let flags = |extent: &Extent| match extent.file < self.files.len() {
            true => flag::PARENT,
            false => flag::PRESENT,
        };
        pagemap_of(&self.extents, flags, self.pages_id)
    }

    /// The pages image of such a set.
    pub(crate) fn new_pages(&self) -> &[u8] {
        &self.new
    }

    /// The pagemap image of a set that has no parent.
    pub(crate) fn pagemap(&self) -> Result<Vec<u8>> {
        without_parent(&self.extents, self.pages_id)
    }

    /// The pages image of such a set.
    pub(crate) fn pages(&self) -> Vec<Piece> {
        pieces(&self.extents, &self.files, &self.new)
    }
}

/// Name of the pages image with this number.
pub(crate) fn pages_name(id: u32) -> String {
    format!("pages-{id}.img")
}

/// All pages of `extents`, which are in these files, or in `new` if in none of them.
pub(crate) fn pieces(extents: &[Extent], files: &[PathBuf], new: &[u8]) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    for extent in extents {
        let bytes = extent.end - extent.start;
        match (files.get(extent.file), pieces.last_mut()) {
            (Some(file), Some(Piece::FileRange { path, offset, length }))
                if path == file && *offset + *length == extent.offset =>
            {
                *length += bytes;
            }
            (Some(file), _) => {
                let (path, offset) = (file.clone(), extent.offset);
                pieces.push(Piece::FileRange { path, offset, length: bytes });
            }
            (None, _) => {
                let range = extent.offset as usize..(extent.offset + bytes) as usize;
                pieces.push(Piece::Bytes(new.get(range).unwrap_or_default().to_vec()));
            }
        }
    }
    pieces
}

/// The pagemap image in which all of `extents` are in the pages image number `pages_id`, one after the other.
pub(crate) fn without_parent(extents: &[Extent], pages_id: u32) -> Result<Vec<u8>> {
    pagemap_of(extents, |extent| flag::PRESENT | if extent.lazy { flag::LAZY } else { 0 }, pages_id)
}

fn pagemap_of(extents: &[Extent], flags: impl Fn(&Extent) -> u32, pages_id: u32) -> Result<Vec<u8>> {
    let mut runs: Vec<_> = extents.iter().map(|extent| (extent.start..extent.end, flags(extent))).collect();
    join(&mut runs);
    pagemap_image(pages_id, &runs)
}

/// The pages of `extent` that are not new.
fn without(extent: Extent, new: &NewPages) -> Vec<Extent> {
    let mut left = Vec::new();
    let mut start = extent.start;
    for page in new.pages.range(extent.start..extent.end).map(|(page, _)| *page) {
        left.extend(extent.clip(&(start..page)));
        start = page + PAGE;
    }
    left.extend(extent.clip(&(start..extent.end)));
    left
}

/// Join neighbouring runs of the same kind.
fn join(runs: &mut Vec<(Range<u64>, u32)>) {
    runs.dedup_by(|next, previous| {
        let joined = previous.0.end == next.0.start && previous.1 == next.1;
        if joined {
            previous.0.end = next.0.end;
        }
        joined
    });
}

fn pagemap_image(pages_id: u32, runs: &[(Range<u64>, u32)]) -> Result<Vec<u8>> {
    let name = format!("pagemap of {}", pages_name(pages_id));
    let of = image_type("pagemap-1.img").ok_or(RecodeError::UnknownImage { file: name.clone() })?;
    let mut bytes = image::start(of);
    let encode = |bytes: &mut Vec<u8>, message: &dyn protobuf::MessageDyn| {
        image::append(bytes, message).map_err(|e| RecodeError::io("encoding", name.as_ref(), e))
    };
    let head = Pagemap_head { pages_id: Some(pages_id), ..Default::default() };
    encode(&mut bytes, &head)?;
    for (range, flags) in runs {
        let entry = Pagemap_entry {
            vaddr: Some(range.start),
            compat_nr_pages: Some(0),
            flags: Some(*flags),
            nr_pages: Some((range.end - range.start) / PAGE),
            ..Default::default()
        };
        encode(&mut bytes, &entry)?;
    }
    Ok(bytes)
}
