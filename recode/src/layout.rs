//! What a host adds to a guest's address space, and where: the hole, and what is mapped in it (`tranship_abi::block`).

use crate::elf::{Elf, Segment};
use crate::error::{RecodeError, Result};
use crate::memory::{NewPages, PAGE};
use crate::proto::vma::Vma_entry;
use crate::set::FileSource;
use crate::vma::{self, Mapping, protection, status};
use std::io::ErrorKind;
use std::ops::Range;
use std::path::{Path, PathBuf};
use tranship_abi::block;
use tranship_abi::host::Host;

/// What a checkpoint is recoded to.
pub enum Target {
    /// The canonical form: the guest's own machine, with nothing of ours in it.
    Canonical(Home),
    /// A host.
    Host(HostLayout),
}

/// What a checkpoint that is to go home does not say of it.
#[derive(Default)]
pub struct Home {
    /// The filter (seccomp(2), an array of `struct sock_filter`) for processes that are under one here and were not at home
    /// before. Without it such processes are refused.
    pub filter: Option<Vec<u8>>,
}

/// A host, and what is to be mapped there.
pub struct HostLayout {
    /// The machine.
    pub machine: Host,
    /// The runtime.
    pub runtime: MappedFile,
    /// Translated objects of the guest files; those of files that no process maps do no harm.
    pub objects: Vec<GuestObject>,
    /// The filter (seccomp(2), an array of `struct sock_filter`) that takes the place of the one that processes are under
    /// at home. Without it such processes are refused.
    pub filter: Option<Vec<u8>>,
    /// What the host's kernel has in /proc and /sys. Without it all that the home's has.
    pub kernel: Option<KernelFiles>,
}

/// The files of a host's kernel, where they can be looked for. Those of processes are in none of these directories.
#[derive(Clone, Debug)]
pub struct KernelFiles {
    /// Its procfs.
    pub proc: PathBuf,
    /// Its sysfs.
    pub sys: PathBuf,
}

impl KernelFiles {
    /// Those of the machine that this is.
    pub fn here() -> KernelFiles {
        KernelFiles { proc: "/proc".into(), sys: "/sys".into() }
    }

    /// Whether it has `path` in /proc, or that is a process's.
    pub(crate) fn has_proc(&self, path: &str) -> bool {
        let of_process = path.trim_start_matches('/').starts_with(|first: char| first.is_ascii_digit());
        of_process || has(&self.proc, path)
    }

    /// Whether it has `path` in /sys.
    pub(crate) fn has_sys(&self, path: &str) -> bool {
        has(&self.sys, path)
    }
}

/// Whether there is something at `path` in `directory`; not to be allowed to look means that there is.
fn has(directory: &Path, path: &str) -> bool {
    let found = directory.join(path.trim_start_matches('/')).symlink_metadata();
    !found.is_err_and(|why| why.kind() == ErrorKind::NotFound)
}

/// A file that is to be mapped.
pub struct MappedFile {
    /// Its path, as it is seen on the node by the restored process's mount namespace, or a name that CRIU is told the file of.
    pub path: String,
    /// The file itself, an ELF file for the host.
    pub elf: FileSource,
}

impl MappedFile {
    /// The file `file`, which is `path` to the restored process.
    pub fn open(file: &Path, path: String) -> Result<MappedFile> {
        Ok(MappedFile { path, elf: FileSource::open(file)? })
    }
}

/// The translated object of a guest file.
pub struct GuestObject {
    /// Path of the guest file, as the images have it.
    pub guest_path: String,
    /// Address at which the guest file's first byte is linked (see [`link_base`]).
    pub guest_base: u64,
    /// The object.
    pub object: MappedFile,
}

/// The address at which the first byte of the ELF file `elf`, called `path` in errors, is linked: 0 for a
/// position-independent one.
pub fn link_base(path: &str, elf: &FileSource) -> Result<u64> {
    let elf = Elf::new(path, elf)?;
    let segments = elf.segments()?;
    let first = segments.iter().find(|segment| segment.offset < PAGE);
    let first = first.ok_or_else(|| elf.bad("does not load its own header"))?;
    Ok(first.address - first.offset)
}

/// Where the guest's addresses end on its own machine (x86-64, 4-level paging).
pub(crate) const GUEST_END: u64 = 1 << 47;
/// Free space that is left between the hole and a mapping of the guest, in bytes.
const MARGIN: u64 = 1 << 16;
/// Free space that is left where a guest mapping can grow, a stack downwards or the heap upwards: more than any
/// usual RLIMIT_STACK.
const GROWTH: u64 = 1 << 30;

/// A free range of `bytes` for the hole of process `pid`, which has the mappings `vmas`: out of the guest's sight where
/// the host has more address space than the guest's machine, else as high as possible.
pub(crate) fn choose_hole(machine: Host, vmas: &[Vma_entry], bytes: u64, pid: u32) -> Result<u64> {
    if machine != Host::X86_64 {
        return Ok(GUEST_END);
    }
    let mapped = vma::joined(vmas.iter().filter(|v| v.start() < GUEST_END).map(Mapping::range));
    let mut gaps = vma::outside(MARGIN..GUEST_END - PAGE, &mapped);
    gaps.reverse();
    let base = gaps.iter().find_map(|gap| place_in(gap, vmas, bytes));
    base.ok_or(RecodeError::NoRoom { pid, bytes })
}

fn place_in(gap: &Range<u64>, vmas: &[Vma_entry], bytes: u64) -> Option<u64> {
    let grows_down = vmas.iter().any(|vma| vma.start() == gap.end && vma.grows_down());
    let grows_up = vmas.iter().any(|vma| vma.end() == gap.start && vma.is(status::HEAP));
    let margin = |grows: bool| if grows { GROWTH } else { MARGIN };
    let start = gap.start.checked_add(margin(grows_up))?.next_multiple_of(MARGIN);
    let end = gap.end.checked_sub(margin(grows_down))?;
    let base = end.checked_sub(bytes)? / MARGIN * MARGIN;
    (base >= start).then_some(base)
}

/// Bytes of address space that `elf`'s segments span, from the address that its first page is linked at.
pub(crate) fn span(elf: &Elf) -> Result<Range<u64>> {
    let segments = elf.segments()?;
    let start = segments.iter().map(|segment| segment.address / PAGE * PAGE).min();
    let end = segments.iter().map(|segment| segment.address + segment.memory_bytes).max();
    Ok(start.unwrap_or(0)..end.unwrap_or(0).next_multiple_of(PAGE))
}

/// Map `elf`, which is file `id`, with its first page at `base`. Returns what to add to linked addresses.
pub(crate) fn map(
    elf: &Elf,
    id: u32,
    base: u64,
    vmas: &mut Vec<Vma_entry>,
    pages: &mut NewPages,
) -> Result<u64> {
    let bias = base.wrapping_sub(span(elf)?.start);
    let mut last_page = 0;
    for segment in elf.segments()? {
        if segment.address % PAGE != segment.offset % PAGE || segment.address / PAGE < last_page {
            return Err(elf.bad("has segments that share a page"));
        }
        last_page = (segment.address + segment.memory_bytes).div_ceil(PAGE);
        map_segment(elf, &segment, id, bias, vmas, pages)?;
    }
    Ok(bias)
}

fn map_segment(
    elf: &Elf,
    segment: &Segment,
    id: u32,
    bias: u64,
    vmas: &mut Vec<Vma_entry>,
    pages: &mut NewPages,
) -> Result<()> {
    let start = bias.wrapping_add(segment.address);
    let (first, file_end, end) =
        (start / PAGE * PAGE, start + segment.file_bytes, start + segment.memory_bytes);
    let mut anonymous_from = first;
    if segment.file_bytes > 0 {
        anonymous_from = file_end.next_multiple_of(PAGE);
        vmas.push(vma::of_file(first..anonymous_from, segment.protection, id, segment.offset / PAGE * PAGE));
    }
    if end > anonymous_from {
        vmas.push(vma::anonymous(anonymous_from..end.next_multiple_of(PAGE), segment.protection));
    }
    // In the page where the file's part ends, zeros follow.
    let has_zeros = segment.file_bytes > 0 && segment.memory_bytes > segment.file_bytes;
    let copied = if has_zeros { file_end % PAGE } else { 0 };
    if copied != 0 {
        let contents = elf.file_range((segment.offset + segment.file_bytes).wrapping_sub(copied), copied)?;
        pages.write(file_end - copied, &contents);
    }
    Ok(())
}

/// The mappings of the state area and of the host stacks of `threads` threads.
pub(crate) fn state_area(base: u64, threads: usize) -> Vec<Vma_entry> {
    let writable = protection::READ | protection::WRITE;
    let area = base..(base + block::STATE_AREA_BYTES).next_multiple_of(PAGE);
    let stacks = (0..threads).map(|slot| crate::state::host_stack(base, slot));
    std::iter::once(area).chain(stacks).map(|range| vma::anonymous(range, writable)).collect()
}
