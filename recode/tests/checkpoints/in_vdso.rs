//! Threads that were dumped in the vDSO and leave it in the images. Mostly a small vDSO takes the place of the kernel's in a
//! real dump, and threads are put where a test wants them.

use crate::abroad::this_host;
use crate::images::encodes_to_itself;
use crate::support::{Criu, Program, Scratch, compile};
use std::collections::BTreeMap;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use tranship_recode::catalogue::image_type;
use tranship_recode::proto::core_x86::User_x86_regs_entry;
use tranship_recode::proto::criu_core::Core_entry;
use tranship_recode::proto::mm::Mm_entry;
use tranship_recode::proto::pstree::Pstree_entry;
use tranship_recode::proto::timens::Timens_entry;
use tranship_recode::{Extent, ImageSet, Kernel, Memory, PAGE, RecodeError, check, image, leave_vdso};

/// What the small vDSO's data is.
const DATA: u64 = 0x1122_3344_5566_7788;
/// In nanoseconds.
const SECOND: u64 = 1_000_000_000;
/// Its clocks: one far ahead of this machine's, one behind.
const CLOCKS: [u64; 2] = [4_000_000_000 * SECOND + 7, 1];
/// Where the functions return to.
const CALLER: u64 = 0x40_1000;
/// Length of the first instruction of each.
const FIRST: u64 = 1;
/// CRIU's `VMA_AREA_VDSO`, and PROT_READ | PROT_WRITE.
const VDSO: u32 = 1 << 3;
const READ_WRITE: u32 = 3;

/// A kernel with the small vDSO.
struct Small {
    vdso: Vec<u8>,
    has_data: bool,
}

impl Kernel for Small {
    fn vdso(&self) -> &[u8] {
        &self.vdso
    }

    fn data(&self, offset: i64, into: &mut [u8]) -> bool {
        assert_eq!((offset, into.len()), (-(PAGE as i64), 8));
        into.copy_from_slice(&DATA.to_le_bytes());
        self.has_data
    }

    fn counter(&self) -> u64 {
        0
    }

    fn clocks(&self) -> Option<[u64; 2]> {
        Some(CLOCKS)
    }
}

/// Dumped processes with the small vDSO.
struct Dumped {
    _scratch: Scratch,
    images: PathBuf,
    kernel: Small,
    functions: BTreeMap<String, u64>,
    place: Range<u64>,
    process: Pstree_entry,
}

/// A process of five threads.
fn dumped(test: &str) -> Dumped {
    let scratch = Scratch::new(test);
    let binary = compile(&scratch, "threads.c", &["-static", "-pthread"]);
    let layout = "-Wl,-z,noseparate-code,-z,max-page-size=4096,--build-id=none,-s";
    let vdso = compile(&scratch, "vdso.S", &["-shared", "-nostdlib", layout]);
    let images = scratch.path("images");
    let criu = Criu::get();
    let program = Program::start(&scratch, &binary, &["100000"]);
    program.wait_for_lines(2);
    criu.dump(program.pid, &images);
    std::mem::forget(program);

    let set = ImageSet::open(&images).unwrap();
    let process: Pstree_entry = set.message("pstree.img").unwrap();
    let place = vdso_of(&set, process.pid());
    let mut code = std::fs::read(&vdso).unwrap();
    assert!(code.len() as u64 <= place.end - place.start);
    code.resize((place.end - place.start) as usize, 0);
    let kernel = Small { vdso: code, has_data: true };
    let dumped = Dumped { _scratch: scratch, images, kernel, functions: functions(&vdso), place, process };
    dumped.put(dumped.place.start, &dumped.kernel.vdso);
    dumped
}

/// Where the vDSO of process `pid` is.
fn vdso_of(set: &ImageSet, pid: u32) -> Range<u64> {
    let mm: Mm_entry = set.message(&format!("mm-{pid}.img")).unwrap();
    let vma = mm.vmas.iter().find(|vma| vma.status() & VDSO != 0).unwrap();
    vma.start()..vma.end()
}

/// Offsets of the functions that the library `path` exports.
fn functions(path: &Path) -> BTreeMap<String, u64> {
    let output = Command::new("nm").arg("-D").arg(path).output().unwrap();
    let line = |line: &str| {
        let (address, name) = line.split_once(" T __vdso_")?;
        Some((name.to_owned(), u64::from_str_radix(address, 16).unwrap()))
    };
    String::from_utf8(output.stdout).unwrap().lines().filter_map(line).collect()
}

fn core_name(tid: u32) -> String {
    format!("core-{tid}.img")
}

fn registers(images: &Path, tid: u32) -> User_x86_regs_entry {
    let core: Core_entry = ImageSet::open(images).unwrap().message(&core_name(tid)).unwrap();
    core.thread_info.unwrap().gpregs.unwrap()
}

/// The contents of all images.
fn contents(images: &Path) -> BTreeMap<String, Vec<u8>> {
    let set = ImageSet::open(images).unwrap();
    set.files().map(|(name, _)| (name.to_owned(), std::fs::read(images.join(name)).unwrap())).collect()
}

impl Dumped {
    /// Write `bytes` at `address`, a page that is in the images.
    fn put(&self, address: u64, bytes: &[u8]) {
        let set = ImageSet::open(&self.images).unwrap();
        let memory = Memory::open(&set, &format!("pagemap-{}.img", self.process.pid())).unwrap();
        for (at, byte) in (address..).zip(bytes) {
            let is_there = |extent: &&Extent| (extent.start..extent.end).contains(&at);
            let extent = memory.extents().iter().find(is_there).unwrap();
            let file = File::options().write(true).open(memory.files().nth(extent.file).unwrap()).unwrap();
            file.write_all_at(&[*byte], extent.offset + (at - extent.start)).unwrap();
        }
    }

    fn word(&self, address: u64) -> u64 {
        let set = ImageSet::open(&self.images).unwrap();
        let memory = Memory::open(&set, &format!("pagemap-{}.img", self.process.pid())).unwrap();
        let mut word = [0; 8];
        assert_eq!(memory.read(address, &mut word).unwrap(), 8);
        u64::from_le_bytes(word)
    }

    /// A page that the process may write to, and that is in no image.
    fn untouched(&self) -> u64 {
        let set = ImageSet::open(&self.images).unwrap();
        let pid = self.process.pid();
        let mm: Mm_entry = set.message(&format!("mm-{pid}.img")).unwrap();
        let memory = Memory::open(&set, &format!("pagemap-{pid}.img")).unwrap();
        let writable = mm.vmas.iter().filter(|vma| vma.prot() == READ_WRITE);
        let mut pages = writable.flat_map(|vma| (vma.start()..vma.end()).step_by(PAGE as usize));
        pages.find(|page| memory.read(*page, &mut [0; PAGE as usize]).unwrap() == 0).unwrap()
    }

    /// Have thread `tid` be `bytes` behind the start of `function`, which was called with a pointer. Returns the registers that it
    /// has then.
    fn enter(&self, tid: u32, function: &str, bytes: u64, pointer: Option<u64>) -> User_x86_regs_entry {
        let name = core_name(tid);
        let set = ImageSet::open(&self.images).unwrap();
        let mut core: Core_entry = set.message(&name).unwrap();
        let registers = core.thread_info.as_mut().unwrap().gpregs.as_mut().unwrap();
        let stack = registers.sp() / PAGE * PAGE;
        registers.ip = Some(self.place.start + self.functions[function] + bytes);
        registers.sp = Some(stack + PAGE / 2);
        registers.di = Some(pointer.unwrap_or(stack));
        registers.orig_ax = Some(u64::MAX);
        let registers = registers.clone();
        self.put(registers.sp(), &CALLER.to_le_bytes());
        let mut bytes = image::start(image_type(&name).unwrap());
        image::append(&mut bytes, &core).unwrap();
        std::fs::write(self.images.join(name), bytes).unwrap();
        registers
    }

    fn leader(&self) -> u32 {
        self.process.pid()
    }

    fn leave(&self) {
        leave_vdso(&self.images, &self.kernel).unwrap().write().unwrap();
    }

    /// The threads cannot leave, for a reason that has to do with `why`.
    fn stays(&self, why: &str) {
        let before = contents(&self.images);
        match leave_vdso(&self.images, &self.kernel) {
            Err(RecodeError::Passing { why: said, .. }) => assert!(said.contains(why), "{said}"),
            other => panic!("{other:?}"),
        }
        assert!(contents(&self.images) == before, "something was written");
    }
}

#[test]
fn what_a_function_does_is_written_back() {
    let dumped = dumped("what_a_function_does_is_written_back");
    let before = dumped.enter(dumped.leader(), "time", FIRST, None);
    let images = contents(&dumped.images);
    dumped.leave();
    let after = registers(&dumped.images, dumped.leader());
    assert_eq!((after.ip(), after.sp(), after.ax()), (CALLER, before.sp() + 8, DATA));
    let others = |registers: &User_x86_regs_entry| User_x86_regs_entry {
        ip: None,
        sp: None,
        ax: None,
        ..registers.clone()
    };
    assert_eq!(others(&after), others(&before));
    assert_eq!(dumped.word(before.di()), DATA);
    let now = contents(&dumped.images);
    let changed: Vec<_> = now.iter().filter(|(name, bytes)| images[*name] != **bytes).collect();
    let names: Vec<_> = changed.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, [&core_name(dumped.leader()), "pages-1.img", "timens-0.img"]);
    encodes_to_itself(&dumped.images);
}

#[test]
fn clocks_that_a_thread_has_read_do_not_go_back() {
    let dumped = dumped("clocks_that_a_thread_has_read_do_not_go_back");
    let clocks =
        || -> Timens_entry { ImageSet::open(&dumped.images).unwrap().message("timens-0.img").unwrap() };
    let before = clocks();
    assert!(before.boottime.tv_sec() > 0);
    dumped.enter(dumped.leader(), "time", FIRST, None);
    dumped.leave();
    let after = clocks();
    assert_eq!((after.monotonic.tv_sec(), after.monotonic.tv_nsec()), (CLOCKS[0] / SECOND, 7));
    assert_eq!(after.boottime, before.boottime);
}

#[test]
fn a_thread_stops_at_a_system_call() {
    let dumped = dumped("a_thread_stops_at_a_system_call");
    let tid = dumped.process.threads[1];
    let before = dumped.enter(tid, "getcpu", FIRST, None);
    dumped.leave();
    let after = registers(&dumped.images, tid);
    let call = dumped.kernel.vdso.get((after.ip() - dumped.place.start) as usize..).unwrap();
    assert!(call.starts_with(&[0x0f, 0x05]));
    assert_eq!((after.sp(), after.ax(), after.orig_ax()), (before.sp(), 309, u64::MAX));
}

#[test]
fn a_thread_at_a_function_s_start_is_left_alone() {
    let dumped = dumped("a_thread_at_a_function_s_start_is_left_alone");
    dumped.enter(dumped.leader(), "gettimeofday", 0, None);
    let before = contents(&dumped.images);
    dumped.leave();
    assert!(contents(&dumped.images) == before);
}

#[test]
fn a_function_without_a_system_call_stays() {
    let mut dumped = dumped("a_function_without_a_system_call_stays");
    dumped.kernel.has_data = false;
    dumped.enter(dumped.leader(), "futex_robust_list64_try_unlock", FIRST, None);
    dumped.leave();
    let after = registers(&dumped.images, dumped.leader());
    assert_eq!((after.ip(), dumped.word(after.di())), (CALLER, 0));
}

#[test]
fn memory_that_is_in_no_image_keeps_a_thread() {
    let mut dumped = dumped("memory_that_is_in_no_image_keeps_a_thread");
    dumped.enter(dumped.leader(), "time", FIRST, Some(dumped.untouched()));
    dumped.stays("in no image");
    dumped.enter(dumped.leader(), "time", FIRST, None);
    dumped.kernel.has_data = false;
    dumped.stays("in no image");
    dumped.kernel.has_data = true;
    dumped.leave();
}

#[test]
fn another_kernel_s_vdso_keeps_a_thread() {
    let mut dumped = dumped("another_kernel_s_vdso_keeps_a_thread");
    dumped.enter(dumped.leader(), "time", FIRST, None);
    *dumped.kernel.vdso.last_mut().unwrap() = 1;
    dumped.stays("another kernel");
    *dumped.kernel.vdso.last_mut().unwrap() = 0;
    dumped.kernel.vdso.push(0);
    dumped.stays("another kernel");
}

#[test]
fn an_endless_loop_is_noticed() {
    let dumped = dumped("an_endless_loop_is_noticed");
    dumped.enter(dumped.leader(), "gettimeofday", FIRST, None);
    dumped.stays("for long");
}

#[test]
fn threads_leave_together_or_not_at_all() {
    let dumped = dumped("threads_leave_together_or_not_at_all");
    let threads = &dumped.process.threads;
    dumped.enter(threads[1], "time", FIRST, None);
    dumped.enter(threads[2], "gettimeofday", FIRST, None);
    dumped.stays("for long");
    dumped.enter(threads[2], "time", FIRST, None);
    dumped.leave();
    for tid in &threads[1..3] {
        assert_eq!(registers(&dumped.images, *tid).ip(), CALLER);
    }
}

/// This machine's kernel, as this process sees it.
struct Here {
    vdso: Vec<u8>,
    start: u64,
}

impl Here {
    fn new() -> Here {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let line = maps.lines().find(|line| line.ends_with("[vdso]")).unwrap();
        let (start, end) = line.split(' ').next().unwrap().split_once('-').unwrap();
        let [start, end] = [start, end].map(|address| u64::from_str_radix(address, 16).unwrap());
        let mut vdso = vec![0; (end - start) as usize];
        File::open("/proc/self/mem").unwrap().read_exact_at(&mut vdso, start).unwrap();
        Here { vdso, start }
    }
}

impl Kernel for Here {
    fn vdso(&self) -> &[u8] {
        &self.vdso
    }

    fn data(&self, offset: i64, into: &mut [u8]) -> bool {
        let address = self.start.wrapping_add_signed(offset);
        // SAFETY: the vDSO's own code reads this data, in these widths.
        let word = unsafe {
            match into.len() {
                4 => u64::from((address as *const u32).read_volatile()),
                8 => (address as *const u64).read_volatile(),
                _ => return false,
            }
        };
        into.copy_from_slice(&word.to_le_bytes()[..into.len()]);
        true
    }

    fn counter(&self) -> u64 {
        // SAFETY: every x86-64 CPU has both instructions.
        unsafe {
            std::arch::x86_64::_mm_lfence();
            std::arch::x86_64::_rdtsc()
        }
    }

    fn clocks(&self) -> Option<[u64; 2]> {
        Some([libc::CLOCK_MONOTONIC, libc::CLOCK_BOOTTIME].map(|clock| {
            let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
            // SAFETY: clock_gettime(2) writes `time`.
            assert_eq!(unsafe { libc::clock_gettime(clock, &mut time) }, 0);
            time.tv_sec as u64 * SECOND + time.tv_nsec as u64
        }))
    }
}

/// Threads that read clocks all the time, dumped and restored by a stock CRIU, with the kernel's own vDSO. A restore gives them
/// a time namespace of their own, whose data this process does not see: each program is dumped once.
#[test]
fn readers_of_clocks_leave_the_kernel_s_vdso() {
    let scratch = Scratch::new("readers_of_clocks_leave_the_kernel_s_vdso");
    let binary = compile(&scratch, "clocks.c", &["-static", "-pthread"]);
    let (criu, kernel, host) = (Criu::get(), Here::new(), this_host());
    let mut inside = 0;
    for round in 0..3 {
        let images = scratch.path(format!("images-{round}"));
        let program = Program::start(&scratch, &binary, &["100"]);
        program.wait_for_lines(3);
        criu.dump(program.pid, &images);
        let set = ImageSet::open(&images).unwrap();
        let process: Pstree_entry = set.message("pstree.img").unwrap();
        let vdso = vdso_of(&set, program.pid);
        let is_inside = |tid: &&u32| vdso.contains(&registers(&images, **tid).ip());
        inside += process.threads.iter().filter(is_inside).count();
        leave_vdso(&images, &kernel).unwrap().write().unwrap();
        encodes_to_itself(&images);
        check(&images, &host).unwrap();
        criu.restore(&images);
        assert!(program.output().lines().count() < 100, "dumped too late");
        assert_eq!(program.finish().lines().count(), 100);
    }
    assert!(inside > 0, "no thread was dumped in the vDSO");
}
