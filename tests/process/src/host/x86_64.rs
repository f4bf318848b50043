//! AMD64: System V calling convention, signal frames of its kernel.

use crate::guard::Recovery;
use libc::{c_void, ucontext_t};
use std::arch::naked_asm;
use tranship_abi::block::ThreadBlock;

/// Code that was written can be executed as it is.
pub(crate) fn code_was_written(_start: u64, _bytes: u64) {}

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
        "push rbp",
        "push rbx",
        "push r12",
        "push r13",
        "push r14",
        "push r15",
        "push rax",
        "mov [rcx], rsp",
        "lea rax, [rip + 2f]",
        "mov [rcx + 8], rax",
        "mov rax, rdi",
        "mov rdi, rsi",
        "mov rsi, rdx",
        "call rax",
        "2:",
        "pop rax",
        "pop r15",
        "pop r14",
        "pop r13",
        "pop r12",
        "pop rbx",
        "pop rbp",
        "cld",
        "ret",
    )
}

/// Have the interrupted thread go on where `recovery` says.
///
/// # Safety
/// `context` is a frame that the kernel made.
pub(crate) unsafe fn go_on(context: *mut c_void, recovery: &Recovery) {
    // SAFETY: as the caller says.
    let registers = unsafe { &mut (*context.cast::<ucontext_t>()).uc_mcontext.gregs };
    registers[libc::REG_RSP as usize] = recovery.stack as i64;
    registers[libc::REG_RIP as usize] = recovery.pc as i64;
}
