//! The memory functions that compilers expect of a C library.

use core::arch::naked_asm;

#[unsafe(no_mangle)]
#[unsafe(naked)]
unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, len: usize) -> *mut u8 {
    naked_asm!(
        "mov x3, x0",
        "2: cmp x2, #16",
        "b.lo 3f",
        "ldp x4, x5, [x1], #16",
        "stp x4, x5, [x3], #16",
        "sub x2, x2, #16",
        "b 2b",
        "3: cbz x2, 4f",
        "ldrb w4, [x1], #1",
        "strb w4, [x3], #1",
        "sub x2, x2, #1",
        "b 3b",
        "4: ret",
    )
}

#[unsafe(no_mangle)]
#[unsafe(naked)]
unsafe extern "C" fn memmove(to: *mut u8, from: *const u8, len: usize) -> *mut u8 {
    naked_asm!(
        "sub x3, x0, x1",
        "cmp x3, x2", // does `to` lie inside `from`?
        "b.hs {memcpy}",
        "2: cbz x2, 3f",
        "sub x2, x2, #1",
        "ldrb w4, [x1, x2]",
        "strb w4, [x0, x2]",
        "b 2b",
        "3: ret",
        memcpy = sym memcpy,
    )
}

#[unsafe(no_mangle)]
#[unsafe(naked)]
unsafe extern "C" fn memset(to: *mut u8, byte: i32, len: usize) -> *mut u8 {
    naked_asm!(
        "mov x3, x0",
        "and x1, x1, #0xff",
        "mov x4, #0x0101010101010101",
        "mul x1, x1, x4",
        "2: cmp x2, #16",
        "b.lo 3f",
        "stp x1, x1, [x3], #16",
        "sub x2, x2, #16",
        "b 2b",
        "3: cbz x2, 4f",
        "strb w1, [x3], #1",
        "sub x2, x2, #1",
        "b 3b",
        "4: ret",
    )
}

#[unsafe(no_mangle)]
#[unsafe(naked)]
unsafe extern "C" fn memcmp(a: *const u8, b: *const u8, len: usize) -> i32 {
    naked_asm!(
        "2: cbz x2, 3f",
        "ldrb w3, [x0], #1",
        "ldrb w4, [x1], #1",
        "sub x2, x2, #1",
        "cmp w3, w4",
        "b.eq 2b",
        "sub w0, w3, w4",
        "ret",
        "3: mov w0, wzr",
        "ret",
    )
}

#[unsafe(no_mangle)]
#[unsafe(naked)]
unsafe extern "C" fn bcmp(a: *const u8, b: *const u8, len: usize) -> i32 {
    naked_asm!("b {memcmp}", memcmp = sym memcmp)
}

#[unsafe(no_mangle)]
#[unsafe(naked)]
unsafe extern "C" fn strlen(string: *const u8) -> usize {
    naked_asm!("mov x1, x0", "2: ldrb w2, [x1], #1", "cbnz w2, 2b", "sub x0, x1, x0", "sub x0, x0, #1", "ret")
}
