//! Going on after a restore: the durable state and guest memory are as they were at a safepoint, everything
//! else is built anew.

use crate::dispatch;
use crate::hole;
use crate::host;
use crate::image;
use crate::linux;
use crate::object;
use crate::report;
use crate::signal;
use crate::supply;
use crate::syscall;
use crate::thread::Thread;
use crate::vdso;
use core::sync::atomic::Ordering;
use tranship_abi::block::{MAGIC, ThreadBlock, VERSION};
use tranship_abi::syscall::nr;

/// Values of `ProcessBlock::started`.
const NOT_STARTED: u32 = 0;
const STARTING: u32 = 1;
/// From here on signal 64 may come.
pub const STARTED: u32 = 2;

/// Where `tranship_resume` goes. Until the first thread has relocated the blob nothing that needs
/// relocation may be touched.
///
/// # Safety
/// Called by a restored thread with its own block, on its own host stack.
pub unsafe extern "C" fn resume(block: *mut ThreadBlock) -> ! {
    let started = &hole::process().started;
    match started.compare_exchange(NOT_STARTED, STARTING, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => {
            // SAFETY: this thread alone runs the blob until it says otherwise.
            unsafe { image::relocate(host::image_base()) };
            start_process();
            started.store(STARTED, Ordering::Release);
        }
        Err(_) => {
            while started.load(Ordering::Acquire) != STARTED {
                core::hint::spin_loop();
            }
        }
    }
    // SAFETY: by contract.
    let thread = unsafe { Thread::at(block) };
    start_thread(thread);
    dispatch::run(thread)
}

/// What is the process's: objects know their guest's place, signals come to us.
fn start_process() {
    let process = hole::process();
    let header = &process.header;
    if header.magic != MAGIC || header.version != VERSION || header.base != hole::base() {
        report::fatal(format_args!(
            "state area at {:#x} is not one of layout version {VERSION} at its own place",
            hole::base()
        ));
    }
    if header.host != host::HOST.machine_id() {
        report::fatal(format_args!("state area is for host machine {}", header.host));
    }
    process.blob = host::image_base();
    object::take_up_all();
    signal::install_all();
    supply::start();
    vdso::start();
}

/// What is the thread's.
fn start_thread(thread: Thread) {
    thread.prepare();
    let state = thread.state();
    state.tid = linux::gettid();
    // SAFETY: the guest's own registrations; the kernel writes there only when the thread ends.
    unsafe {
        let _ = linux::call(nr::set_tid_address, [state.clear_tid, 0, 0, 0, 0, 0]);
        if state.robust_list_len != 0 {
            let _ = linux::call(nr::set_robust_list, [state.robust_list, state.robust_list_len, 0, 0, 0, 0]);
        }
    }
    // A request to park that came with the checkpoint is looked at before the first instruction.
    thread.pending().store(1, Ordering::Release);
    signal::apply_mask(thread);
    if state.rseq != 0 {
        // Where its area is no more, the kernel at home will say so.
        let _ = syscall::forget_cpu(state.rseq);
    }
}
