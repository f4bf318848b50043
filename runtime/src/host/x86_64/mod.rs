//! The runtime on AMD64.

mod access;
mod entry;
#[cfg(feature = "blob")]
mod memory;
mod signal;
mod syscall;
#[cfg(test)]
mod tests;
mod vdso;

pub use access::*;
pub use entry::*;
pub use signal::*;
pub use syscall::*;
pub use vdso::*;

use tranship_abi::host::Host;

/// What this host is.
pub const HOST: Host = Host::X86_64;
/// R_X86_64_RELATIVE.
pub const RELOC_RELATIVE: u64 = 8;
/// Where to look first for room for the hole: clear of programs (0x400000, 0x55…), the mmap area and the
/// stack (0x7f…), and of the fixed places of sanitizers (0x1000…) and Go (0xc0…).
pub const HOLE_CANDIDATES: &[u64] = &[0x3000_0000_0000, 0x2800_0000_0000, 0x3800_0000_0000, 0x4800_0000_0000];

/// Add the exception flags raised in the host's MXCSR to the guest's.
pub fn fp_collect(mxcsr: &mut u32) {
    let mut host = 0_u32;
    // SAFETY: stores the control register to a local.
    unsafe { core::arch::asm!("stmxcsr [{}]", in(reg) &mut host, options(nostack, preserves_flags)) };
    *mxcsr |= host & 0x3f;
}

/// Put the guest's MXCSR in force, all exceptions masked, none raised.
pub fn fp_apply(mxcsr: u32) {
    let host = (mxcsr & 0xe040) | 0x1f80;
    // SAFETY: loads the control register from a local; no reserved bit is set.
    unsafe { core::arch::asm!("ldmxcsr [{}]", in(reg) &host, options(nostack, preserves_flags)) };
}

/// The current stack pointer, near enough.
pub fn stack_pointer() -> u64 {
    let sp;
    // SAFETY: reads a register.
    unsafe { core::arch::asm!("mov {}, rsp", out(reg) sp, options(nomem, nostack, preserves_flags)) };
    sp
}

/// The time-stamp counter.
pub fn timestamp() -> u64 {
    // SAFETY: reads a counter.
    unsafe { core::arch::x86_64::_rdtsc() }
}
