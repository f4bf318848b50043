//! System calls: the plain instruction, the one that a signal can still stop, and clone.

use core::arch::{asm, global_asm, naked_asm};
use core::sync::atomic::{AtomicU8, AtomicU32};

/// Make a system call.
///
/// # Safety
/// As the call itself.
#[inline]
pub unsafe fn syscall(number: u32, args: [u64; 6]) -> i64 {
    let result;
    // SAFETY: the kernel keeps all registers but x0; memory is the caller's business.
    unsafe {
        asm!("svc #0",
            in("x8") u64::from(number),
            inlateout("x0") args[0] => result,
            in("x1") args[1], in("x2") args[2], in("x3") args[3], in("x4") args[4], in("x5") args[5],
            options(nostack));
    }
    result
}

unsafe extern "C" {
    /// Make a system call unless `pending` is set: then, or if a signal interrupts it in a way that lets
    /// it be made again, [`super::super::NOT_MADE`].
    #[link_name = "tranship_syscall_unless"]
    pub fn syscall_unless(number: u64, args: *const [u64; 6], pending: *const AtomicU8) -> i64;
    static tranship_syscall_begin: u8;
    static tranship_syscall_end: u8;
    static tranship_syscall_not_made: u8;
}

// Between `begin` and `end` the call has not been made, or the kernel has set the PC back to make it again.
global_asm!(
    ".globl tranship_syscall_unless, tranship_syscall_begin, tranship_syscall_end, tranship_syscall_not_made",
    ".hidden tranship_syscall_unless, tranship_syscall_begin, tranship_syscall_end, tranship_syscall_not_made",
    "tranship_syscall_unless:",
    "mov x8, x0",
    "mov x9, x2",
    "mov x10, x1",
    "ldp x0, x1, [x10]",
    "ldp x2, x3, [x10, #16]",
    "ldp x4, x5, [x10, #32]",
    "tranship_syscall_begin:",
    "ldrb w10, [x9]",
    "cbnz w10, tranship_syscall_not_made",
    "svc #0",
    "tranship_syscall_end:",
    "ret",
    "tranship_syscall_not_made:",
    "mov x0, #{not_made}",
    "ret",
    not_made = const super::super::NOT_MADE,
);

/// Where a thread that a signal found at `pc` goes on: out of a system call that it has not made.
pub fn without_syscall(pc: u64) -> u64 {
    let begin = (&raw const tranship_syscall_begin) as u64;
    let end = (&raw const tranship_syscall_end) as u64;
    if (begin..end).contains(&pc) { (&raw const tranship_syscall_not_made) as u64 } else { pc }
}

/// clone(2) with a new stack: the child calls `function(argument)` on it. Returns as clone does, in the
/// parent.
///
/// # Safety
/// The stack is mapped and nobody else's; `function` may have `argument`.
#[unsafe(naked)]
pub unsafe extern "C" fn clone_thread(
    flags: u64,
    stack_top: u64,
    parent_tid: u64,
    child_tid: u64,
    function: unsafe extern "C" fn(*mut u8) -> !,
    argument: *mut u8,
) -> i64 {
    naked_asm!(
        "mov x9, x4",
        "mov x10, x5",
        "mov x4, x3", // arm64: flags, stack, parent_tid, tls, child_tid
        "mov x3, xzr",
        "and x1, x1, #-16",
        "mov x8, #220",
        "svc #0",
        "cbz x0, 2f",
        "ret",
        "2: mov x29, xzr",
        "mov x30, xzr",
        "mov x0, x10",
        "blr x9",
        "brk #1",
    )
}

/// The same by clone3(2): `args` is its structure of 11 words, whose stack is the one.
///
/// # Safety
/// The stack is mapped and nobody else's; `function` may have `argument`.
#[unsafe(naked)]
pub unsafe extern "C" fn clone3_thread(
    args: *const [u64; 11],
    function: unsafe extern "C" fn(*mut u8) -> !,
    argument: *mut u8,
) -> i64 {
    naked_asm!(
        "mov x9, x1",
        "mov x10, x2",
        "mov x1, #88",
        "mov x8, #435",
        "svc #0",
        "cbz x0, 2f",
        "ret",
        "2: mov x29, xzr",
        "mov x30, xzr",
        "mov x0, x10",
        "blr x9",
        "brk #1",
    )
}

/// Give up the thread slot whose phase is at `phase`, and end the thread, without touching the stack.
///
/// # Safety
/// Nothing uses the slot any more.
#[unsafe(naked)]
pub unsafe extern "C" fn leave_thread(phase: *const AtomicU32, status: u64) -> ! {
    naked_asm!("stlr wzr, [x0]", "mov x0, x1", "mov x8, #93", "svc #0", "brk #1")
}
