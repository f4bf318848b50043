//! The memory functions that compilers expect of a C library.

use core::arch::naked_asm;

#[unsafe(no_mangle)]
#[unsafe(naked)]
unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, len: usize) -> *mut u8 {
    naked_asm!("mov rax, rdi", "mov rcx, rdx", "rep movsb", "ret")
}

#[unsafe(no_mangle)]
#[unsafe(naked)]
unsafe extern "C" fn memmove(to: *mut u8, from: *const u8, len: usize) -> *mut u8 {
    naked_asm!(
        "mov rax, rdi",
        "mov rcx, rdx",
        "mov r8, rdi",
        "sub r8, rsi",
        "cmp r8, rdx", // does `to` lie inside `from`?
        "jb 2f",
        "rep movsb",
        "ret",
        "2: lea rdi, [rdi + rdx - 1]",
        "lea rsi, [rsi + rdx - 1]",
        "std",
        "rep movsb",
        "cld",
        "ret",
    )
}

#[unsafe(no_mangle)]
#[unsafe(naked)]
unsafe extern "C" fn memset(to: *mut u8, byte: i32, len: usize) -> *mut u8 {
    naked_asm!("mov r8, rdi", "mov eax, esi", "mov rcx, rdx", "rep stosb", "mov rax, r8", "ret")
}

#[unsafe(no_mangle)]
#[unsafe(naked)]
unsafe extern "C" fn memcmp(a: *const u8, b: *const u8, len: usize) -> i32 {
    naked_asm!(
        "mov rcx, rdx",
        "xor eax, eax", // also sets ZF, for a length of zero
        "repe cmpsb",
        "je 2f",
        "movzx eax, byte ptr [rdi - 1]",
        "movzx ecx, byte ptr [rsi - 1]",
        "sub eax, ecx",
        "2: ret",
    )
}

#[unsafe(no_mangle)]
#[unsafe(naked)]
unsafe extern "C" fn bcmp(a: *const u8, b: *const u8, len: usize) -> i32 {
    naked_asm!("jmp {memcmp}", memcmp = sym memcmp)
}

#[unsafe(no_mangle)]
#[unsafe(naked)]
unsafe extern "C" fn strlen(string: *const u8) -> usize {
    naked_asm!("xor eax, eax", "2: cmp byte ptr [rdi + rax], 0", "je 3f", "inc rax", "jmp 2b", "3: ret")
}
