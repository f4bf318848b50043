//! The machine that the runtime runs on: the only place that asks which one that is. Every host offers the
//! same names:
//!
//! * [`HOST`], [`RELOC_RELATIVE`], [`image_base`]: what it is and where the blob lies;
//! * [`syscall`], [`syscall_unless`], [`clone_thread`], [`clone3_thread`], [`leave_thread`]: system calls;
//! * [`run_on_stack`], [`stack_pointer`]: host stacks;
//! * `guest_*`: accesses to guest memory that may fault, and [`after_fault`];
//! * [`SignalContext`], [`signal_return`]: the frame that the host's kernel builds for a signal;
//! * [`fp_collect`], [`fp_apply`]: SSE control and status in the host's terms;
//! * [`timestamp`], [`map_vdso`]: clocks;
//! * `mem*`: what compilers expect of a C library (in [`memory`]).

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "aarch64")]
pub use aarch64::*;
#[cfg(target_arch = "x86_64")]
mod x86_64;
#[cfg(target_arch = "x86_64")]
pub use x86_64::*;

/// What [`syscall_unless`] returns for a call that has not been made; no errno has this value.
pub const NOT_MADE: i64 = -4096;

/// What an access to guest memory gave.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Accessed {
    /// The value loaded, or the old value.
    pub value: u64,
    /// Non-zero: the access faulted, nothing has changed. See [`crate::signal::last_fault`].
    pub faulted: u64,
}

/// Why guest memory could not be accessed, in x86-64's terms.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PageFault {
    /// SIGSEGV or SIGBUS.
    pub signal: u32,
    /// `si_code`.
    pub code: i32,
    /// The address, CR2.
    pub address: u64,
    /// The page fault error code: bit 0 present, 1 write, 2 user.
    pub error: u64,
}
