//! arm64: AAPCS64, signal frames of its kernel.

use crate::guard::Recovery;
use libc::{c_void, ucontext_t};
use std::arch::{asm, naked_asm};
use tranship_abi::block::ThreadBlock;

/// Make instruction fetches see code that was written.
pub(crate) fn code_was_written(start: u64, bytes: u64) {
    // The smallest line that the architecture allows.
    const LINE: u64 = 16;
    for line in (start / LINE..=(start + bytes) / LINE).map(|n| n * LINE) {
        // SAFETY: cache maintenance of mapped memory.
        unsafe { asm!("dc cvau, {0}", "dsb ish", "ic ivau, {0}", in(reg) line, options(nostack)) };
    }
    // SAFETY: barriers.
    unsafe { asm!("dsb ish", "isb", options(nostack)) };
}

/// Call `enter(thread, code)`, having noted in `recovery` how to come back without a return.
///
/// # Safety
/// `enter` is such a function. After [`go_on`] nothing that it began is finished.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn enter_guarded(
    enter: u64,
    thread: *mut ThreadBlock,
    code: u64,
    recovery: *mut Recovery,
) {
    naked_asm!(
        "stp x29, x30, [sp, #-160]!",
        "stp x19, x20, [sp, #16]",
        "stp x21, x22, [sp, #32]",
        "stp x23, x24, [sp, #48]",
        "stp x25, x26, [sp, #64]",
        "stp x27, x28, [sp, #80]",
        "stp d8, d9, [sp, #96]",
        "stp d10, d11, [sp, #112]",
        "stp d12, d13, [sp, #128]",
        "stp d14, d15, [sp, #144]",
        "mov x9, sp",
        "adr x10, 2f",
        "stp x9, x10, [x3]",
        "mov x9, x0",
        "mov x0, x1",
        "mov x1, x2",
        "blr x9",
        "2:",
        "ldp x19, x20, [sp, #16]",
        "ldp x21, x22, [sp, #32]",
        "ldp x23, x24, [sp, #48]",
        "ldp x25, x26, [sp, #64]",
        "ldp x27, x28, [sp, #80]",
        "ldp d8, d9, [sp, #96]",
        "ldp d10, d11, [sp, #112]",
        "ldp d12, d13, [sp, #128]",
        "ldp d14, d15, [sp, #144]",
        "ldp x29, x30, [sp], #160",
        "ret",
    )
}

/// Have the interrupted thread go on where `recovery` says.
///
/// # Safety
/// `context` is a frame that the kernel made.
pub(crate) unsafe fn go_on(context: *mut c_void, recovery: &Recovery) {
    // SAFETY: as the caller says.
    let registers = unsafe { &mut (*context.cast::<ucontext_t>()).uc_mcontext };
    registers.sp = recovery.stack;
    registers.pc = recovery.pc;
}
