//! Accesses to guest memory. Each may fault; the signal handler then goes on at `tranship_access_faulted`
//! (see [`after_fault`]), which returns that to the caller. All are leaf functions that do not use the stack.

use super::super::Accessed;
use core::arch::global_asm;

unsafe extern "C" {
    /// Load 8 bits.
    #[link_name = "tranship_load8"]
    pub fn guest_load8(address: u64) -> Accessed;
    /// Load 16 bits.
    #[link_name = "tranship_load16"]
    pub fn guest_load16(address: u64) -> Accessed;
    /// Load 32 bits.
    #[link_name = "tranship_load32"]
    pub fn guest_load32(address: u64) -> Accessed;
    /// Load 64 bits.
    #[link_name = "tranship_load64"]
    pub fn guest_load64(address: u64) -> Accessed;
    /// Store 8 bits.
    #[link_name = "tranship_store8"]
    pub fn guest_store8(address: u64, value: u64) -> Accessed;
    /// Store 16 bits.
    #[link_name = "tranship_store16"]
    pub fn guest_store16(address: u64, value: u64) -> Accessed;
    /// Store 32 bits.
    #[link_name = "tranship_store32"]
    pub fn guest_store32(address: u64, value: u64) -> Accessed;
    /// Store 64 bits.
    #[link_name = "tranship_store64"]
    pub fn guest_store64(address: u64, value: u64) -> Accessed;
    /// Compare 8 bits and exchange them if equal; yields what was there.
    #[link_name = "tranship_cas8"]
    pub fn guest_cas8(address: u64, expected: u64, new: u64) -> Accessed;
    /// Compare 16 bits and exchange them if equal; yields what was there.
    #[link_name = "tranship_cas16"]
    pub fn guest_cas16(address: u64, expected: u64, new: u64) -> Accessed;
    /// Compare 32 bits and exchange them if equal; yields what was there.
    #[link_name = "tranship_cas32"]
    pub fn guest_cas32(address: u64, expected: u64, new: u64) -> Accessed;
    /// Compare 64 bits and exchange them if equal; yields what was there.
    #[link_name = "tranship_cas64"]
    pub fn guest_cas64(address: u64, expected: u64, new: u64) -> Accessed;
    /// `old` has the expected value and gets the one found; `new` is two words as well.
    #[link_name = "tranship_cas128"]
    pub fn guest_cas128(address: u64, old: *mut u128, new: *const u128) -> Accessed;
    /// Copy `len` bytes upwards; either side may be the guest's. On a fault some may have been copied.
    #[link_name = "tranship_copy"]
    pub fn guest_copy(to: u64, from: u64, len: u64) -> Accessed;
    static tranship_access_begin: u8;
    static tranship_access_end: u8;
    static tranship_access_faulted: u8;
}

global_asm!(
    ".globl tranship_load8, tranship_load16, tranship_load32, tranship_load64",
    ".globl tranship_store8, tranship_store16, tranship_store32, tranship_store64",
    ".globl tranship_cas8, tranship_cas16, tranship_cas32, tranship_cas64, tranship_cas128, tranship_copy",
    ".globl tranship_access_begin, tranship_access_end, tranship_access_faulted",
    ".hidden tranship_load8, tranship_load16, tranship_load32, tranship_load64",
    ".hidden tranship_store8, tranship_store16, tranship_store32, tranship_store64",
    ".hidden tranship_cas8, tranship_cas16, tranship_cas32, tranship_cas64, tranship_cas128, tranship_copy",
    ".hidden tranship_access_begin, tranship_access_end, tranship_access_faulted",
    "tranship_access_begin:",
    "tranship_load8: movzx eax, byte ptr [rdi]",
    "xor edx, edx",
    "ret",
    "tranship_load16: movzx eax, word ptr [rdi]",
    "xor edx, edx",
    "ret",
    "tranship_load32: mov eax, [rdi]",
    "xor edx, edx",
    "ret",
    "tranship_load64: mov rax, [rdi]",
    "xor edx, edx",
    "ret",
    "tranship_store8: mov [rdi], sil",
    "xor edx, edx",
    "ret",
    "tranship_store16: mov [rdi], si",
    "xor edx, edx",
    "ret",
    "tranship_store32: mov [rdi], esi",
    "xor edx, edx",
    "ret",
    "tranship_store64: mov [rdi], rsi",
    "xor edx, edx",
    "ret",
    "tranship_cas8: mov eax, esi",
    "lock cmpxchg [rdi], dl",
    "movzx eax, al",
    "xor edx, edx",
    "ret",
    "tranship_cas16: mov eax, esi",
    "lock cmpxchg [rdi], dx",
    "movzx eax, ax",
    "xor edx, edx",
    "ret",
    "tranship_cas32: mov eax, esi",
    "lock cmpxchg [rdi], edx",
    "mov eax, eax",
    "xor edx, edx",
    "ret",
    "tranship_cas64: mov rax, rsi",
    "lock cmpxchg [rdi], rdx",
    "xor edx, edx",
    "ret",
    "tranship_cas128: mov r8, rdx",
    "mov r9, rbx", // rbx is the caller's: back on both ways out
    "mov rax, [rsi]",
    "mov rdx, [rsi + 8]",
    "mov rbx, [r8]",
    "mov rcx, [r8 + 8]",
    "tranship_cas128_access: lock cmpxchg16b [rdi]",
    "mov [rsi], rax",
    "mov [rsi + 8], rdx",
    "mov rbx, r9",
    "xor edx, edx",
    "ret",
    "tranship_copy: mov rcx, rdx",
    "cmp rdx, 64", // of less, `rep movsb` would be the slower way
    "ja 4f",
    "2: sub rcx, 8",
    "jb 3f",
    "mov rax, [rsi]",
    "mov [rdi], rax",
    "add rsi, 8",
    "add rdi, 8",
    "jmp 2b",
    "3: add rcx, 8",
    "jz 5f",
    "4: rep movsb",
    "5: xor edx, edx",
    "ret",
    "tranship_access_end:",
    "tranship_access_faulted:",
    "mov edx, 1",
    "ret",
    "tranship_cas128_faulted:",
    "mov rbx, r9",
    "mov edx, 1",
    "ret",
);

unsafe extern "C" {
    static tranship_cas128_access: u8;
    static tranship_cas128_faulted: u8;
}

/// Where a thread goes on whose access at `pc` has faulted, if that is one of these.
pub fn after_fault(pc: u64) -> Option<u64> {
    let begin = (&raw const tranship_access_begin) as u64;
    let end = (&raw const tranship_access_end) as u64;
    if pc == (&raw const tranship_cas128_access) as u64 {
        return Some((&raw const tranship_cas128_faulted) as u64);
    }
    (begin..end).contains(&pc).then_some((&raw const tranship_access_faulted) as u64)
}
