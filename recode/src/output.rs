//! The directory that a recoding writes: rewritten images, and links to those that stay as they are.

use crate::catalogue::{Layout, Part, Rule, image_type};
use crate::error::{RecodeError, Result};
use crate::image;
use crate::memory::NewMemory;
use crate::proto::pagemap::{Pagemap_entry, Pagemap_head};
use crate::set::{ImageSet, PARENT};
use protobuf::MessageDyn;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// What a recoding did, in bytes and files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Processes with an address space.
    pub processes: usize,
    /// Their threads.
    pub threads: usize,
    /// Bytes read from images, pages included.
    pub bytes_read: u64,
    /// Bytes written to new images.
    pub bytes_written: u64,
    /// Images written.
    pub files_written: usize,
    /// Images linked.
    pub files_linked: usize,
    /// Bytes copied because the new directory is on another file system than the old.
    pub bytes_copied: u64,
}

/// Images to come, kept in memory until all of them are known to be good.
pub(crate) struct Output<'s> {
    set: &'s ImageSet,
    /// New contents of images; `None` leaves one out.
    pub(crate) images: BTreeMap<String, Option<Vec<u8>>>,
    /// New pages of processes, by the names of their pagemap images.
    pub(crate) memories: BTreeMap<String, NewMemory>,
    next_pages_id: u32,
}

impl<'s> Output<'s> {
    /// The set with nothing changed yet.
    pub(crate) fn new(set: &'s ImageSet) -> Output<'s> {
        let ids = set.files().filter_map(|(name, _)| pages_id(name));
        let next_pages_id = ids.max().unwrap_or(0) + 1;
        Output { set, images: BTreeMap::new(), memories: BTreeMap::new(), next_pages_id }
    }

    /// A number for a new pages image.
    pub(crate) fn new_pages_id(&mut self) -> u32 {
        self.next_pages_id += 1;
        self.next_pages_id - 1
    }

    /// Replace or add an image that holds these messages.
    pub(crate) fn messages<'m>(
        &mut self,
        name: &str,
        messages: impl IntoIterator<Item = &'m dyn MessageDyn>,
    ) -> Result<()> {
        let of = image_type(name).ok_or_else(|| RecodeError::UnknownImage { file: name.to_owned() })?;
        let mut bytes = image::start(of);
        for message in messages {
            image::append(&mut bytes, message).map_err(|e| RecodeError::io("encoding", name.as_ref(), e))?;
        }
        self.images.insert(name.to_owned(), Some(bytes));
        Ok(())
    }

    /// Replace a pagemap and add its pages image.
    pub(crate) fn pages(&mut self, pagemap: String, memory: NewMemory) {
        self.memories.insert(pagemap, memory);
    }

    /// Leave an image out.
    pub(crate) fn leave(&mut self, name: &str) {
        self.images.insert(name.to_owned(), None);
    }

    /// Write the directory `to`, which must be new or empty. On an error what was written is removed again.
    pub(crate) fn write(mut self, to: &Path) -> Result<Report> {
        let links = self.links()?;
        let needs_parent = self.memories.values().any(NewMemory::needs_parent);
        for (pagemap, memory) in std::mem::take(&mut self.memories) {
            self.images.insert(pagemap, Some(memory.pagemap_over_parent()?));
            self.images.insert(memory.name(), Some(memory.new_pages().to_vec()));
        }
        std::fs::create_dir_all(to).map_err(|e| RecodeError::io("creating", to, e))?;
        let mut there = std::fs::read_dir(to).map_err(|e| RecodeError::io("listing", to, e))?;
        if there.next().is_some() {
            return Err(RecodeError::refused(to.display().to_string(), "is not empty; name a new directory"));
        }
        let written = self.fill(to, &links, needs_parent);
        if written.is_err() {
            let names = self.images.keys().map(String::as_str).chain(links.iter().copied()).chain([PARENT]);
            names.for_each(|name| drop(std::fs::remove_file(to.join(name))));
        }
        written
    }

    fn fill(&self, to: &Path, links: &[&str], needs_parent: bool) -> Result<Report> {
        let mut report = Report::default();
        for (name, bytes) in self.images.iter().filter_map(|(name, bytes)| Some((name, bytes.as_ref()?))) {
            let path = to.join(name);
            std::fs::write(&path, bytes).map_err(|e| RecodeError::io("writing", &path, e))?;
            report.bytes_written += bytes.len() as u64;
            report.files_written += 1;
        }
        for name in links {
            report.bytes_copied += link_or_copy(&self.set.directory().join(name), &to.join(name))?;
            report.files_linked += 1;
        }
        if needs_parent {
            let link = to.join(PARENT);
            let parent = path_between(to, self.set.directory())?;
            let linked = std::os::unix::fs::symlink(parent, &link);
            linked.map_err(|e| RecodeError::io("linking", &link, e))?;
        }
        report.bytes_read = self.set.bytes_read();
        Ok(report)
    }

    /// Names of the images that stay as they are. Each is looked through, so that a damaged one is found now.
    pub(crate) fn links(&self) -> Result<Vec<&'s str>> {
        let shared = self.shared_pages()?;
        let mut links = Vec::new();
        for (name, of) in self.set.files() {
            let stays = match of.rule {
                _ if self.images.contains_key(name) || self.memories.contains_key(name) => false,
                Rule::Copy => true,
                Rule::Leave => false,
                Rule::Remap(Part::Pages) => pages_id(name).is_some_and(|id| shared.contains(&id)),
                Rule::Remap(Part::CpuInfo | Part::Seccomp | Part::Files) => true,
                Rule::Remap(Part::Process) => {
                    return Err(RecodeError::refused(name, "belongs to no process of pstree.img"));
                }
                Rule::Refuse(why) => return Err(RecodeError::refused(name, why)),
            };
            if stays {
                self.set.image(name)?;
                links.push(name);
            }
        }
        Ok(links)
    }

    /// Numbers of the pages images that shared memory is in.
    fn shared_pages(&self) -> Result<BTreeSet<u32>> {
        let maps = self
            .set
            .files()
            .filter(|(_, of)| matches!((of.layout, of.rule), (Layout::Headed(..), Rule::Copy)));
        let heads = maps.map(|(name, _)| {
            let (head, _): (Pagemap_head, Vec<Pagemap_entry>) = self.set.headed(name)?;
            Ok(head.pages_id())
        });
        heads.collect()
    }
}

/// The number of a pages image.
fn pages_id(name: &str) -> Option<u32> {
    name.strip_prefix("pages-")?.strip_suffix(".img")?.parse().ok()
}

/// Returns how many bytes had to be copied.
fn link_or_copy(from: &Path, to: &Path) -> Result<u64> {
    match std::fs::hard_link(from, to) {
        Ok(()) => Ok(0),
        Err(e) if e.kind() == std::io::ErrorKind::CrossesDevices => {
            std::fs::copy(from, to).map_err(|e| RecodeError::io("copying", from, e))
        }
        Err(e) => Err(RecodeError::io("linking", from, e)),
    }
}

/// The path that leads from directory `from` to directory `to`: it stays right where both are seen under another
/// root.
fn path_between(from: &Path, to: &Path) -> Result<PathBuf> {
    let canonical = |path: &Path| path.canonicalize().map_err(|e| RecodeError::io("resolving", path, e));
    let (from, to) = (canonical(from)?, canonical(to)?);
    let shared = from.components().zip(to.components()).take_while(|(a, b)| a == b).count();
    let up = from.components().skip(shared).map(|_| Path::new(".."));
    let down = to.components().skip(shared).map(|part| Path::new(part.as_os_str()).to_owned());
    Ok(up.map(Path::to_owned).chain(down).collect())
}
