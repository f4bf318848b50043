//! Mappings as CRIU describes them (`vma_entry`; status bits from CRIU's `image.h`).

use crate::proto::vma::Vma_entry;
use std::ops::Range;

/// PROT_* bits.
pub(crate) mod protection {
    /// PROT_READ.
    pub(crate) const READ: u32 = 1;
    /// PROT_WRITE.
    pub(crate) const WRITE: u32 = 2;
    /// PROT_EXEC.
    pub(crate) const EXEC: u32 = 4;
}

/// Bits of a mapping's status.
pub(crate) mod status {
    /// An ordinary mapping: dumped and restored.
    pub(crate) const REGULAR: u32 = 1 << 0;
    /// A stack, for information.
    pub(crate) const STACK: u32 = 1 << 1;
    /// The x86-64 vsyscall page.
    pub(crate) const VSYSCALL: u32 = 1 << 2;
    /// The vDSO.
    pub(crate) const VDSO: u32 = 1 << 3;
    /// The heap, for information.
    pub(crate) const HEAP: u32 = 1 << 5;
    /// Private mapping of a file.
    pub(crate) const FILE_PRIVATE: u32 = 1 << 6;
    /// Shared mapping of a file.
    pub(crate) const FILE_SHARED: u32 = 1 << 7;
    /// Private anonymous memory.
    pub(crate) const ANON_PRIVATE: u32 = 1 << 9;
    /// System V shared memory.
    pub(crate) const SYSVIPC: u32 = 1 << 10;
    /// The kernel's data for the vDSO.
    pub(crate) const VVAR: u32 = 1 << 12;
    /// An x86-64 shadow stack.
    pub(crate) const SHADOW_STACK: u32 = 1 << 15;
    /// Not a mapping: a range of guard pages inside one. Last in the list, whatever the address.
    pub(crate) const GUARD: u32 = 1 << 16;
    /// The kernel's page for uprobes.
    pub(crate) const UPROBES: u32 = 1 << 17;
}

const MAP_PRIVATE: u32 = 0x02;
const MAP_ANONYMOUS: u32 = 0x20;
const MAP_GROWSDOWN: u32 = 0x100;

/// What one asks of a mapping.
pub(crate) trait Mapping {
    /// Its addresses.
    fn range(&self) -> Range<u64>;
    /// Whether it has any of these [`status`] bits.
    fn is(&self, bits: u32) -> bool;
    /// Whether it grows towards lower addresses.
    fn grows_down(&self) -> bool;
    /// Whether the guest's kernel alone makes it.
    fn is_kernels(&self) -> bool {
        self.is(status::VDSO | status::VVAR | status::VSYSCALL)
    }
    /// Id of the file that it maps.
    fn file(&self) -> Option<u32>;
}

impl Mapping for Vma_entry {
    fn range(&self) -> Range<u64> {
        self.start()..self.end()
    }

    fn is(&self, bits: u32) -> bool {
        self.status() & bits != 0
    }

    fn grows_down(&self) -> bool {
        self.flags() & MAP_GROWSDOWN != 0 || self.is(status::STACK)
    }

    fn file(&self) -> Option<u32> {
        let maps = self.is(status::FILE_PRIVATE | status::FILE_SHARED);
        maps.then(|| self.shmid() as u32)
    }
}

/// Private anonymous memory.
pub(crate) fn anonymous(range: Range<u64>, protection: u32) -> Vma_entry {
    Vma_entry {
        start: Some(range.start),
        end: Some(range.end),
        pgoff: Some(0),
        shmid: Some(0),
        prot: Some(protection),
        flags: Some(MAP_PRIVATE | MAP_ANONYMOUS),
        status: Some(status::REGULAR | status::ANON_PRIVATE),
        fd: Some(-1),
        ..Default::default()
    }
}

/// A private mapping of file `id` from byte `offset` on.
pub(crate) fn of_file(range: Range<u64>, protection: u32, id: u32, offset: u64) -> Vma_entry {
    Vma_entry {
        pgoff: Some(offset),
        shmid: Some(u64::from(id)),
        flags: Some(MAP_PRIVATE),
        status: Some(status::REGULAR | status::FILE_PRIVATE),
        fdflags: Some(0),
        ..anonymous(range, protection)
    }
}

/// The order that CRIU wants: by address, guard ranges last.
pub(crate) fn sort(vmas: &mut [Vma_entry]) {
    vmas.sort_by_key(|vma| (vma.is(status::GUARD), vma.start()));
}

/// The part of `vma` that is in `range`, with the file offset that goes with it.
pub(crate) fn clip(vma: &Vma_entry, range: &Range<u64>) -> Option<Vma_entry> {
    let (start, end) = (vma.start().max(range.start), vma.end().min(range.end));
    if start >= end {
        return None;
    }
    let mut part = vma.clone();
    if vma.file().is_some() {
        part.pgoff = Some(vma.pgoff() + (start - vma.start()));
    }
    (part.start, part.end) = (Some(start), Some(end));
    Some(part)
}

/// Sorted ranges, the neighbouring ones joined.
pub(crate) fn joined(ranges: impl IntoIterator<Item = Range<u64>>) -> Vec<Range<u64>> {
    let mut ranges: Vec<_> = ranges.into_iter().collect();
    ranges.sort_by_key(|range| range.start);
    ranges.dedup_by(|next, previous| {
        let touches = next.start <= previous.end;
        if touches {
            previous.end = previous.end.max(next.end);
        }
        touches
    });
    ranges
}

/// What is in `whole` and in none of `holes`, which are sorted and disjoint.
pub(crate) fn outside(whole: Range<u64>, holes: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut parts = Vec::new();
    let mut start = whole.start;
    for hole in holes.iter().filter(|hole| hole.end > whole.start && hole.start < whole.end) {
        parts.push(start..hole.start);
        start = hole.end;
    }
    parts.push(start..whole.end);
    parts.retain(|range| range.start < range.end);
    parts
}
