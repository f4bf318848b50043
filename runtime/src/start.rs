//! Starting a program: from the kernel's exec of the blob to the guest's first instruction.
//!
//! First part, where the kernel put the blob: choose the hole and move there. Second part, in the hole: map
//! objects, change root, load the program, clear away what the exec left, run.

use crate::dispatch;
use crate::hole;
use crate::host;
use crate::image;
use crate::linux::{self, AT_FDCWD, Errno, O_RDONLY_CLOEXEC, PAGE};
use crate::load::program::{self, Loaded};
use crate::load::stack::Strings;
use crate::object;
use crate::options::{self, MAX_OBJECTS, OptionError, Options};
use crate::report;
use crate::resume;
use crate::seccomp;
use crate::signal::{self, action};
use crate::supply;
use crate::thread::{self, Thread};
use crate::vdso;
use core::ffi::{CStr, c_char};
use core::sync::atomic::Ordering;
use tranship_abi::block::{BLOB_OFFSET, ObjectHeader};
use tranship_abi::signal::{bit, number::INTERRUPT};
use tranship_abi::syscall::nr;
use tranship_isa::x86_64::Cpu;

/// What the kernel leaves on the stack at exec.
#[derive(Clone, Copy)]
struct Initial(*const u64);

impl Initial {
    fn args(self) -> *const *const c_char {
        // SAFETY: argv follows argc.
        unsafe { self.0.add(1).cast() }
    }

    fn count(self) -> usize {
        // SAFETY: argc is what the stack pointer points to.
        unsafe { *self.0 as usize }
    }

    fn env(self) -> *const *const c_char {
        // SAFETY: envp follows argv's NULL.
        unsafe { self.args().add(self.count() + 1) }
    }

    fn arg(self, n: usize) -> &'static CStr {
        // SAFETY: `n` is below argc; the strings stay until the stack is unmapped.
        unsafe { CStr::from_ptr(*self.args().add(n)) }
    }

    fn program(self, options: &Options<'static>) -> &'static CStr {
        options.program.unwrap_or_else(|| self.arg(options.guest_args))
    }

    fn options(self) -> Options<'static> {
        match options::parse((0..self.count()).map(|n| self.arg(n))) {
            Ok(options) => options,
            Err(help @ OptionError::Help) => report::answer(format_args!("{help}")),
            Err(error) => report::fatal(format_args!("{error}")),
        }
    }
}

/// Where `_start` goes.
///
/// # Safety
/// Called once, with the stack pointer that the kernel passed.
pub unsafe extern "C" fn start(stack: *const u64) -> ! {
    let here = host::image_base();
    // SAFETY: nothing that needs relocation has been touched.
    unsafe { image::relocate(here) };
    let options = Initial(stack).options();
    let base = match hole::create(options.hole) {
        Ok(base) => base,
        Err(error) => report::fatal(format_args!("{error}")),
    };
    let there = base + BLOB_OFFSET;
    if let Err(error) = image::copy_to(there) {
        report::fatal(format_args!("the runtime cannot be copied to {there:#x} ({error})"));
    }
    let (_, top) = hole::host_stack_in(base, 0);
    let begin = begin as *const () as u64 - here + there;
    // SAFETY: the copy has the same function at the same offset, and its stack was mapped with the hole.
    unsafe { host::run_on_stack(stack.cast_mut().cast(), top, core::mem::transmute::<u64, Begin>(begin)) }
}

type Begin = unsafe extern "C" fn(*mut u8) -> !;

/// The second part.
unsafe extern "C" fn begin(stack: *mut u8) -> ! {
    let initial = Initial(stack.cast());
    let options = initial.options();
    let leftovers = Leftovers::find();
    let thread = match thread::claim_slot() {
        Some(thread) => thread,
        None => report::fatal(format_args!("no thread slot")),
    };
    if let Some(fd) = options.stats_fd {
        report::set_stats_fd(fd);
    }
    if let Some(fd) = options.own_fd {
        linux::close(fd);
    }
    let filters = options.seccomp_fd;
    let mut objects = [None; MAX_OBJECTS];
    map_objects(&options, &mut objects);
    if let Some(fd) = options.root_fd {
        change_root(fd);
    }
    let loaded = load(initial, &options, &objects);
    program::set_name(options.name.unwrap_or_else(|| initial.program(&options)));
    leftovers.unmap();
    loaded.tell_kernel();
    run(thread, &loaded, filters)
}

fn map_objects(options: &Options<'_>, objects: &mut [Option<&'static ObjectHeader>; MAX_OBJECTS]) {
    for (slot, &fd) in objects.iter_mut().zip(options.objects()) {
        match object::map(fd) {
            Ok(header) => *slot = Some(header),
            Err(error) => report::fatal(format_args!("--object {fd}: {error}")),
        }
        linux::close(fd);
    }
}

fn change_root(fd: i32) {
    // SAFETY: no memory but the constant path is involved.
    let changed = unsafe {
        linux::call(nr::fchdir, [fd as u64, 0, 0, 0, 0, 0])
            .and_then(|_| linux::call(nr::chroot, [c".".as_ptr() as u64, 0, 0, 0, 0, 0]))
    };
    if let Err(error) = changed {
        report::fatal(format_args!("--root-fd {fd}: cannot become the root directory ({error})"));
    }
    linux::close(fd);
}

fn load(
    initial: Initial,
    options: &Options<'static>,
    objects: &[Option<&'static ObjectHeader>; MAX_OBJECTS],
) -> Loaded {
    let path = initial.program(options);
    // SAFETY: within argv.
    let args = unsafe { initial.args().add(options.guest_args) };
    let strings = Strings { args, env: initial.env(), path, script: None };
    let mut mapped = [None; MAX_OBJECTS];
    let count = objects.iter().flatten().zip(&mut mapped).map(|(object, slot)| *slot = Some(*object)).count();
    let mut list: [&'static ObjectHeader; MAX_OBJECTS] = match mapped[0] {
        Some(first) => [first; MAX_OBJECTS],
        None => return load_or_die(path, options.program_fd, &strings, &[]),
    };
    for (slot, object) in list.iter_mut().zip(mapped.iter().flatten()) {
        *slot = object;
    }
    let loaded = load_or_die(path, options.program_fd, &strings, &list[..count]);
    if hole::process().state.object_count < count as u64 {
        report::complain(format_args!(
            "a translated object was made from another file than {}",
            printable(path)
        ));
    }
    loaded
}

fn load_or_die(
    path: &CStr,
    fd: Option<i32>,
    strings: &Strings<'_>,
    objects: &[&'static ObjectHeader],
) -> Loaded {
    match program::load(path, fd, strings, objects) {
        Ok(loaded) => loaded,
        Err(error) => report::fatal(format_args!("{}: {error}", printable(path))),
    }
}

fn printable(path: &CStr) -> &str {
    path.to_str().unwrap_or("(not UTF-8)")
}

/// Set the first thread up and run it.
fn run(thread: Thread, loaded: &Loaded, filters: Option<i32>) -> ! {
    thread.prepare();
    if let Some(fd) = filters
        && let Err(error) = seccomp::take_over(thread, fd)
    {
        report::fatal(format_args!("--seccomp-fd {fd}: the filters cannot be read ({error})"));
    }
    let state = thread.state();
    state.cpu = Cpu::at_exec(loaded.entry, loaded.stack.stack_pointer);
    state.tid = linux::gettid();
    state.altstack_flags = tranship_abi::signal::SS_DISABLE;
    // SAFETY: the kernel fills the mask.
    let _ = unsafe { linux::call(nr::rt_sigprocmask, [0, 0, (&raw mut state.signal_mask) as u64, 8, 0, 0]) };
    action::inherit();
    state.signal_mask &= !bit(INTERRUPT);
    signal::install_all();
    signal::apply_mask(thread);
    supply::start();
    vdso::start();
    hole::process().started.store(resume::STARTED, Ordering::Release);
    dispatch::run(thread)
}

/// Mappings that the exec made and that nothing needs once the program is loaded: the blob as the kernel
/// mapped it, the stack, the vDSO.
struct Leftovers {
    ranges: [(u64, u64); 32],
    count: usize,
}

impl Leftovers {
    /// Whatever is mapped outside the hole now. Without /proc only the blob is known.
    fn find() -> Leftovers {
        let mut found = Leftovers { ranges: [(0, 0); 32], count: 0 };
        match linux::openat(AT_FDCWD, b"/proc/self/maps\0", O_RDONLY_CLOEXEC) {
            Ok(fd) => {
                found.read(fd);
                linux::close(fd);
            }
            Err(Errno(error)) => {
                report::complain(format_args!("/proc/self/maps: error {error}; the exec's mappings stay"));
            }
        }
        found
    }

    fn read(&mut self, fd: i32) {
        let mut text = [0; 16 << 10];
        let got = linux::read(fd, &mut text).unwrap_or(0);
        for line in text[..got].split(|&byte| byte == b'\n') {
            let mut bounds = line.split(|&byte| byte == b'-' || byte == b' ').map(hexadecimal);
            if let (Some(Some(start)), Some(Some(end))) = (bounds.next(), bounds.next())
                && !hole::overlaps(start, end - start)
                && let Some(slot) = self.ranges.get_mut(self.count)
            {
                *slot = (start, end);
                self.count += 1;
            }
        }
    }

    fn unmap(&self) {
        for &(start, end) in &self.ranges[..self.count] {
            // SAFETY: nothing of ours is there any more. (x86-64's vsyscall page cannot be unmapped.)
            let _ = unsafe { linux::munmap(start, (end - start).next_multiple_of(PAGE)) };
        }
    }
}

fn hexadecimal(digits: &[u8]) -> Option<u64> {
    u64::from_str_radix(core::str::from_utf8(digits).ok()?, 16).ok()
}
