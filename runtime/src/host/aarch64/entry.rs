//! How control enters the blob: at exec, and after a restore.

#[cfg(feature = "blob")]
use core::arch::global_asm;
use core::arch::{asm, naked_asm};

/// Address of the blob's ELF header, found without relocations.
pub fn image_base() -> u64 {
    let base;
    // SAFETY: computes an address.
    unsafe {
        asm!(".hidden __ehdr_start", "adrp {0}, __ehdr_start", "add {0}, {0}, :lo12:__ehdr_start", out(reg) base,
            options(nomem, nostack, preserves_flags));
    }
    base
}

// Entered by the kernel: sp points to argc.
#[cfg(feature = "blob")]
global_asm!(
    ".globl _start",
    "_start:",
    "mov x29, xzr",
    "mov x30, xzr",
    "mov x0, sp",
    "and sp, x0, #-16",
    "bl {start}",
    "brk #1",
    start = sym crate::start::start,
);

// Entered by a restored thread: x0 is its block, sp its host stack.
#[cfg(feature = "blob")]
global_asm!(
    ".globl tranship_resume",
    ".type tranship_resume, %function",
    "tranship_resume:",
    "mov x29, xzr",
    "mov x30, xzr",
    "mov x1, sp",
    "and sp, x1, #-16",
    "bl {resume}",
    "brk #1",
    resume = sym crate::resume::resume,
);

/// Call `function(argument)` on the stack that ends at `stack_top`, for good.
///
/// # Safety
/// The stack is mapped and nobody else's; `function` may have `argument`.
#[unsafe(naked)]
pub unsafe extern "C" fn run_on_stack(
    argument: *mut u8,
    stack_top: u64,
    function: unsafe extern "C" fn(*mut u8) -> !,
) -> ! {
    naked_asm!("and sp, x1, #-16", "mov x29, xzr", "mov x30, xzr", "blr x2", "brk #1")
}
