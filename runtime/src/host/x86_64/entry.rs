//! How control enters the blob: at exec, and after a restore.

#[cfg(feature = "blob")]
use core::arch::global_asm;
use core::arch::{asm, naked_asm};

/// Address of the blob's ELF header, found without relocations.
pub fn image_base() -> u64 {
    let base;
    // SAFETY: computes an address.
    unsafe {
        asm!(".hidden __ehdr_start", "lea {}, [rip + __ehdr_start]", out(reg) base,
            options(nomem, nostack, preserves_flags));
    }
    base
}

// Entered by the kernel (psABI 3.4.1): rsp points to argc.
#[cfg(feature = "blob")]
global_asm!(
    ".globl _start",
    "_start:",
    "xor ebp, ebp",
    "mov rdi, rsp",
    "and rsp, -16",
    "call {start}",
    "ud2",
    start = sym crate::start::start,
);

// Entered by a restored thread: rdi is its block, rsp its host stack.
#[cfg(feature = "blob")]
global_asm!(
    ".globl tranship_resume",
    ".type tranship_resume, @function",
    "tranship_resume:",
    "xor ebp, ebp",
    "cld",
    "and rsp, -16",
    "call {resume}",
    "ud2",
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
    naked_asm!("mov rsp, rsi", "and rsp, -16", "xor ebp, ebp", "call rdx", "ud2")
}
