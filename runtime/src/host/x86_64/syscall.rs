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
    // SAFETY: the kernel clobbers rcx and r11 only; memory is the caller's business.
    unsafe {
        asm!("syscall",
            inlateout("rax") u64::from(number) => result,
            in("rdi") args[0], in("rsi") args[1], in("rdx") args[2],
            in("r10") args[3], in("r8") args[4], in("r9") args[5],
            lateout("rcx") _, lateout("r11") _, options(nostack));
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
    "mov rax, rdi",
    "mov rcx, rsi",
    "mov r11, rdx",
    "mov rdi, [rcx]",
    "mov rsi, [rcx + 8]",
    "mov rdx, [rcx + 16]",
    "mov r10, [rcx + 24]",
    "mov r8, [rcx + 32]",
    "mov r9, [rcx + 40]",
    "tranship_syscall_begin:",
    "cmp byte ptr [r11], 0",
    "jne tranship_syscall_not_made",
    "syscall",
    "tranship_syscall_end:",
    "ret",
    "tranship_syscall_not_made:",
    "mov rax, {not_made}",
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
        "mov r10, rcx", // child_tid; rdx has parent_tid
        "and rsi, -16",
        "mov eax, 56",
        "syscall",
        "test rax, rax",
        "jz 2f",
        "ret",
        "2: xor ebp, ebp",
        "mov rdi, r9",
        "call r8",
        "ud2",
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
        "mov r8, rsi",
        "mov r9, rdx",
        "mov esi, 88",
        "mov eax, 435",
        "syscall",
        "test rax, rax",
        "jz 2f",
        "ret",
        "2: xor ebp, ebp",
        "mov rdi, r9",
        "call r8",
        "ud2",
    )
}

/// Give up the thread slot whose phase is at `phase`, and end the thread, without touching the stack.
///
/// # Safety
/// Nothing uses the slot any more.
#[unsafe(naked)]
pub unsafe extern "C" fn leave_thread(phase: *const AtomicU32, status: u64) -> ! {
    naked_asm!("mov dword ptr [rdi], 0", "mov rdi, rsi", "mov eax, 60", "syscall", "ud2")
}
