//! The runtime on arm64.

mod access;
mod entry;
#[cfg(feature = "blob")]
mod memory;
mod signal;
mod syscall;

pub use access::*;
pub use entry::*;
pub use signal::*;
pub use syscall::*;

use core::arch::asm;
use tranship_abi::host::Host;

/// What this host is.
pub const HOST: Host = Host::Aarch64;
/// R_AARCH64_RELATIVE.
pub const RELOC_RELATIVE: u64 = 1027;
/// Where to look first for room for the hole: above all that an x86-64 guest can use, then (39- and 42-bit
/// kernels, user-mode emulation) in quiet places below.
pub const HOLE_CANDIDATES: &[u64] = &[0xa000_0000_0000, 0x3000_0000_0000, 0x2800_0000_0000, 0x3800_0000_0000];

/// MXCSR exception flags and the FPSR bits that say the same: IE IOC, DE IDC, ZE DZC, OE OFC, UE UFC, PE IXC.
const STATUS_BITS: [(u32, u32); 6] = [(0, 0), (1, 7), (2, 1), (3, 2), (4, 3), (5, 4)];

/// Add the exception flags raised in the host's FPSR to the guest's MXCSR.
pub fn fp_collect(mxcsr: &mut u32) {
    let fpsr: u64;
    // SAFETY: reads a register.
    unsafe { asm!("mrs {}, fpsr", out(reg) fpsr, options(nomem, nostack)) };
    for (x86, arm) in STATUS_BITS {
        *mxcsr |= (fpsr as u32 >> arm & 1) << x86;
    }
}

/// Put the guest's MXCSR in force: rounding, and flushing to zero where both FTZ and DAZ ask for it.
pub fn fp_apply(mxcsr: u32) {
    // x86: nearest, down, up, zero; arm: nearest, up, down, zero.
    let rounding = match mxcsr >> 13 & 3 {
        1 => 2,
        2 => 1,
        same => same,
    };
    let flush = mxcsr >> 15 & mxcsr >> 6 & 1;
    let fpcr = u64::from(rounding << 22 | flush << 24);
    // SAFETY: rounding and flush bits only, no trap is enabled.
    unsafe { asm!("msr fpcr, {}", "msr fpsr, xzr", in(reg) fpcr, options(nomem, nostack)) };
}

/// The kernel maps its vDSO at exec only.
pub fn map_vdso() -> Option<u64> {
    None
}

/// The current stack pointer, near enough.
pub fn stack_pointer() -> u64 {
    let sp;
    // SAFETY: reads a register.
    unsafe { asm!("mov {}, sp", out(reg) sp, options(nomem, nostack)) };
    sp
}

/// The virtual counter, scaled to about a nanosecond per step.
pub fn timestamp() -> u64 {
    let (count, hertz): (u64, u64);
    // SAFETY: reads registers.
    unsafe {
        asm!("mrs {}, cntvct_el0", "mrs {}, cntfrq_el0", out(reg) count, out(reg) hertz, options(nomem, nostack))
    };
    (u128::from(count) * 1_000_000_000 / u128::from(hertz.max(1))) as u64
}
