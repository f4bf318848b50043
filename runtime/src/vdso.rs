//! Clocks without system calls: the host's vDSO, where the kernel maps it for a process that asks. The guest's own one is
//! another matter: abroad it has stubs with system calls, which come to be answered from here.

use crate::host;
use crate::image;
use crate::linux::Errno;
use core::sync::atomic::{AtomicU64, Ordering};

/// A `struct timespec`: seconds and nanoseconds.
pub type Timespec = [u64; 2];

/// Where the host's `clock_gettime` is; 0: nowhere.
static CLOCK_GETTIME: AtomicU64 = AtomicU64::new(0);

/// Look for it. The exec's own vDSO is gone by now, and so is the one of before a checkpoint.
pub fn start() {
    // SAFETY: the kernel has mapped it there.
    let found = host::map_vdso().and_then(|base| unsafe { image::exported(base, c"__vdso_clock_gettime") });
    CLOCK_GETTIME.store(found.unwrap_or(0), Ordering::Release);
}

/// What `clock` says, as clock_gettime(2) would; `None`: that has to be asked.
pub fn clock(clock: i32) -> Option<Result<Timespec, Errno>> {
    let function = match CLOCK_GETTIME.load(Ordering::Acquire) {
        0 => return None,
        function => function,
    };
    let mut time = [0; 2];
    // SAFETY: the kernel's function of that name, which fills the local.
    let outcome = unsafe {
        let function: extern "C" fn(i32, *mut Timespec) -> i32 = core::mem::transmute(function);
        function(clock, &mut time)
    };
    Some(if outcome == 0 { Ok(time) } else { Err(Errno(-outcome)) })
}
