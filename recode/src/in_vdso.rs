//! Threads that were dumped inside of the vDSO, whose code reads the data of the kernel that the process ran on: the rest of
//! the function is interpreted while that kernel is still there to be read, so that the thread is as if it had been dumped a
//! few instructions later. The images stay those of a native process, of which nobody sees the difference.

use crate::catalogue::image_type;
use crate::error::{RecodeError, Result};
use crate::image;
use crate::memory::{Memory, PAGE};
use crate::process::{Process, core_name, machine_of, pagemap_name};
use crate::proto::criu_core::Core_entry;
use crate::proto::mm::Mm_entry;
use crate::proto::timens::Timens_entry;
use crate::proto::vma::Vma_entry;
use crate::set::ImageSet;
use crate::vdso::Stubs;
use crate::vma::{Mapping, protection, status};
use crate::x86_64;
use protobuf::MessageDyn;
use std::collections::BTreeMap;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use tranship_abi::host::Host as Machine;
use tranship_isa::interpret::{self, Fault, Step, Unshared};
use tranship_isa::x86_64::{Cpu, decode};

/// Instructions that a function may take: a clock's take hundreds, 64 bytes of random numbers about 1500.
const PATIENCE: u32 = 1 << 18;
/// The longest instruction.
const INSN_BYTES: usize = 15;
/// In nanoseconds.
const SECOND: u64 = 1_000_000_000;

/// The kernel that the processes ran on, as far as its vDSO shows it.
pub trait Kernel {
    /// The bytes of its vDSO.
    fn vdso(&self) -> &[u8];
    /// Read its data from `offset` on, counted from the start of the vDSO; false if there is none. It is read at once, as a load
    /// instruction would.
    fn data(&self, offset: i64, into: &mut [u8]) -> bool;
    /// The CPU's time-stamp counter.
    fn counter(&self) -> u64;
    /// Nanoseconds of CLOCK_MONOTONIC and CLOCK_BOOTTIME in the processes' time namespace.
    fn clocks(&self) -> Option<[u64; 2]>;
}

/// What a set's images become when its threads have left the vDSO.
#[derive(Debug, Default)]
pub struct Left {
    /// New contents of whole images.
    images: Vec<(PathBuf, Vec<u8>)>,
    /// New contents of pages: where they are.
    pages: Vec<(PathBuf, u64, Page)>,
}

type Page = Box<[u8; PAGE as usize]>;

/// Execute what is left of the vDSO's function in each thread in `from` that is inside of one, with what `kernel` says. Nothing is
/// written yet. [`RecodeError::Passing`]: one of them cannot do without its own process.
pub fn leave_vdso(from: &Path, kernel: &dyn Kernel) -> Result<Left> {
    let set = ImageSet::open(from)?;
    let mut left = Left::default();
    for mut process in Process::all(&set)? {
        let Some(mm) = process.mm.take() else { continue };
        for vma in mm.vmas.iter().filter(|vma| vma.is(status::VDSO)) {
            let threads = process.threads.iter_mut();
            let inside: Vec<_> = threads.filter(|(_, core)| vma.range().contains(&position(core))).collect();
            if inside.is_empty() {
                continue;
            }
            let memory = Memory::open(&set, &pagemap_name(process.pid))?;
            let stubs = Stubs::of(kernel.vdso(), process.pid)?;
            let mut space = Space { mm: &mm, vdso: vma.range(), stubs, memory, new: BTreeMap::new(), kernel };
            if !space.has_this_vdso()? {
                return Err(passing(inside[0].0, "is inside the vDSO of another kernel"));
            }
            for (tid, core) in inside {
                left.images
                    .extend(space.finish(*tid, core)?.map(|image| (from.join(core_name(*tid)), image)));
            }
            left.pages.extend(space.into_pages());
        }
    }
    if !left.images.is_empty() {
        left.images.extend(later_clocks(&set, kernel)?);
    }
    Ok(left)
}

/// A restore has the clocks go on from where CRIU has seen them during the dump. Threads may have read them since.
fn later_clocks(set: &ImageSet, kernel: &dyn Kernel) -> Result<Vec<(PathBuf, Vec<u8>)>> {
    let names = set.files().map(|(name, _)| name).filter(|name| name.starts_with("timens-"));
    let later = names.map(|name| {
        let mut clocks: Timens_entry = set.message(name)?;
        let now =
            kernel.clocks().ok_or_else(|| RecodeError::passing(name, "has clocks that cannot be read"))?;
        for (clock, now) in [&mut clocks.monotonic, &mut clocks.boottime].into_iter().zip(now) {
            let clock = clock.mut_or_insert_default();
            if (clock.tv_sec(), clock.tv_nsec()) < (now / SECOND, now % SECOND) {
                (clock.tv_sec, clock.tv_nsec) = (Some(now / SECOND), Some(now % SECOND));
            }
        }
        Ok((set.directory().join(name), encoded(name, &clocks)?))
    });
    later.collect()
}

impl Left {
    /// Write it. After an error the set is worth nothing.
    pub fn write(self) -> Result<()> {
        for (path, contents) in self.images {
            std::fs::write(&path, contents).map_err(|e| RecodeError::io("writing", &path, e))?;
        }
        for (path, offset, page) in self.pages {
            let opened = File::options().write(true).open(&path);
            let written = opened.and_then(|file| file.write_all_at(&page[..], offset));
            written.map_err(|e| RecodeError::io("writing", &path, e))?;
        }
        Ok(())
    }
}

/// The address of a thread's next instruction; of one of another machine, none that a vDSO is at.
fn position(core: &Core_entry) -> u64 {
    match machine_of(core) {
        Some(Machine::X86_64) => core.thread_info.get_or_default().gpregs.get_or_default().ip(),
        _ => 0,
    }
}

fn passing(tid: u32, why: &str) -> RecodeError {
    RecodeError::passing(format!("thread {tid}"), why)
}

/// The memory of a process as code of its vDSO sees it.
struct Space<'a> {
    mm: &'a Mm_entry,
    vdso: Range<u64>,
    stubs: Stubs,
    memory: Memory<'a>,
    /// Pages that were written to, by address.
    new: BTreeMap<u64, Page>,
    kernel: &'a dyn Kernel,
}

impl Space<'_> {
    fn has_this_vdso(&self) -> Result<bool> {
        let ours = self.kernel.vdso();
        let mut bytes = vec![0; ours.len()];
        let is_there = self.memory.read(self.vdso.start, &mut bytes)? == ours.len() as u64;
        Ok(is_there && ours.len() as u64 == self.vdso.end - self.vdso.start && bytes == ours)
    }

    /// Execute until the thread is where it can go on anywhere. Returns its image, if that is elsewhere than where it was.
    fn finish(&mut self, tid: u32, core: &mut Core_entry) -> Result<Option<Vec<u8>>> {
        let name = core_name(tid);
        let info = core.thread_info.as_mut();
        let info = info.ok_or_else(|| RecodeError::damaged(&name, 0, "has no x86 registers"))?;
        let before = x86_64::cpu_of(info, &name)?;
        let mut cpu = before;
        for _ in 0..PATIENCE {
            if self.can_go_on(cpu.rip) {
                if cpu == before {
                    return Ok(None);
                }
                x86_64::go_on(info, &before, &cpu);
                return encoded(&name, core).map(Some);
            }
            match self.step(&mut cpu) {
                Some(Step::Next | Step::Jumped | Step::Called { .. } | Step::Returned) => {}
                Some(Step::Faulted(fault)) => {
                    let what = format!(
                        "is inside the vDSO and needs {:#x}, which is in no image of this dump",
                        fault.address
                    );
                    return Err(passing(tid, &what));
                }
                _ => return Err(passing(tid, "is inside the vDSO, at an instruction that is not known")),
            }
        }
        Err(passing(tid, "is inside the vDSO, and for long"))
    }

    fn can_go_on(&self, at: u64) -> bool {
        !self.vdso.contains(&at) || self.stubs.let_go_on(self.kernel.vdso(), at - self.vdso.start)
    }

    fn step(&mut self, cpu: &mut Cpu) -> Option<Step> {
        let code = self.kernel.vdso().get((cpu.rip - self.vdso.start) as usize..)?;
        let insn = decode(&code[..code.len().min(INSN_BYTES)], cpu.rip).ok()?;
        Some(interpret::step(cpu, self, &insn))
    }

    /// The mapping that all of these addresses are in, if it has these rights.
    fn mapping(&self, address: u64, bytes: usize, rights: u32) -> Option<&Vma_entry> {
        let end = address.checked_add(bytes as u64)?;
        let is_it = |vma: &&Vma_entry| vma.start() <= address && end <= vma.end() && !vma.is(status::GUARD);
        self.mm.vmas.iter().find(is_it).filter(|vma| vma.prot() & rights == rights)
    }

    /// Fill `into`; `None` if anything of it is in no image.
    fn read(&self, address: u64, into: &mut [u8]) -> Option<()> {
        let vma = self.mapping(address, into.len(), protection::READ)?;
        if vma.is(status::VVAR) {
            return self.kernel.data(address.wrapping_sub(self.vdso.start) as i64, into).then_some(());
        }
        for (address, part) in by_page(address, into) {
            let within = (address % PAGE) as usize;
            match self.new.get(&(address - within as u64)) {
                Some(page) => part.copy_from_slice(&page[within..within + part.len()]),
                None => {
                    let found = self.memory.read(address, part).ok()?;
                    (found == part.len() as u64).then_some(())?;
                }
            }
        }
        Some(())
    }

    /// Nothing is written if not all of it can be.
    fn write(&mut self, address: u64, bytes: &[u8]) -> Option<()> {
        let vma = self.mapping(address, bytes.len(), protection::WRITE)?;
        if vma.is_kernels() {
            return None;
        }
        let mut bytes = bytes.to_vec();
        let parts: Vec<_> = by_page(address, &mut bytes).collect();
        for (address, _) in &parts {
            let page = address / PAGE * PAGE;
            if !self.new.contains_key(&page) {
                self.memory.own(page)?;
                let mut contents = Box::new([0; PAGE as usize]);
                self.memory.read(page, &mut contents[..]).ok()?;
                self.new.insert(page, contents);
            }
        }
        for (address, part) in parts {
            let within = (address % PAGE) as usize;
            let page = self.new.get_mut(&(address - within as u64))?;
            page[within..within + part.len()].copy_from_slice(part);
        }
        Some(())
    }

    fn into_pages(self) -> impl Iterator<Item = (PathBuf, u64, Page)> {
        let Space { memory, new, .. } = self;
        new.into_iter().filter_map(move |(address, page)| {
            let (path, offset) = memory.own(address)?;
            Some((path.to_owned(), offset, page))
        })
    }
}

/// The parts of `bytes`, which are at `address`, that lie in one page each.
fn by_page(address: u64, bytes: &mut [u8]) -> impl Iterator<Item = (u64, &mut [u8])> {
    let first = bytes.len().min((PAGE - address % PAGE) as usize);
    let (head, rest) = bytes.split_at_mut(first);
    let rest_at = address + first as u64;
    let rest = rest.chunks_mut(PAGE as usize).enumerate();
    std::iter::once((address, head)).chain(rest.map(move |(n, part)| (rest_at + n as u64 * PAGE, part)))
}

fn encoded(name: &str, message: &dyn MessageDyn) -> Result<Vec<u8>> {
    let of = image_type(name).ok_or_else(|| RecodeError::UnknownImage { file: name.to_owned() })?;
    let mut bytes = image::start(of);
    image::append(&mut bytes, message).map_err(|e| RecodeError::io("encoding", name.as_ref(), e))?;
    Ok(bytes)
}

// The process's other threads stand still.
impl Unshared for Space<'_> {
    fn read_bytes(&mut self, address: u64, into: &mut [u8]) -> std::result::Result<(), Fault> {
        self.read(address, into).ok_or(Fault { address, write: false })
    }

    fn write_bytes(&mut self, address: u64, bytes: &[u8]) -> std::result::Result<(), Fault> {
        self.write(address, bytes).ok_or(Fault { address, write: true })
    }

    fn counter(&mut self) -> u64 {
        self.kernel.counter()
    }
}
