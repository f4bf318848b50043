//! Accesses to guest memory. Each may fault; the signal handler then goes on at `tranship_access_faulted`
//! (see [`after_fault`]), which returns that to the caller. All are leaf functions that do not use the stack.
//!
//! Loads and stores have the guest's total store order: a load is ordered before everything later, a store
//! after everything earlier.

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

/// One width of load, store and compare-exchange; the operand `$reg` is `w` or `x`, `$size` the suffix.
macro_rules! width {
    ($name:literal, $reg:literal, $size:literal) => {
        global_asm!(
            concat!(".globl tranship_load", $name, ", tranship_store", $name, ", tranship_cas", $name),
            concat!(".hidden tranship_load", $name, ", tranship_store", $name, ", tranship_cas", $name),
            ".pushsection .text.tranship_access, \"ax\"",
            concat!("tranship_load", $name, ": ldr", $size, " ", $reg, "0, [x0]"),
            "dmb ishld",
            "mov x1, xzr",
            "ret",
            concat!("tranship_store", $name, ": dmb ish"),
            concat!("str", $size, " ", $reg, "1, [x0]"),
            "mov x1, xzr",
            "ret",
            concat!("tranship_cas", $name, ": mov x3, x0"),
            concat!("2: ldaxr", $size, " ", $reg, "0, [x3]"),
            concat!("cmp ", $reg, "0, ", $reg, "1"),
            "b.ne 3f",
            concat!("stlxr", $size, " w4, ", $reg, "2, [x3]"),
            "cbnz w4, 2b",
            "dmb ish",
            "mov x1, xzr",
            "ret",
            "3: clrex",
            "dmb ish",
            "mov x1, xzr",
            "ret",
            ".popsection",
        );
    };
}

global_asm!(
    ".globl tranship_access_begin, tranship_access_end, tranship_access_faulted",
    ".hidden tranship_access_begin, tranship_access_end, tranship_access_faulted",
    ".pushsection .text.tranship_access, \"ax\"",
    "tranship_access_begin:",
    ".popsection",
);
width!("8", "w", "b");
width!("16", "w", "h");
width!("32", "w", "");
width!("64", "x", "");
global_asm!(
    ".globl tranship_cas128, tranship_copy",
    ".hidden tranship_cas128, tranship_copy",
    ".pushsection .text.tranship_access, \"ax\"",
    "tranship_cas128: ldp x4, x5, [x1]",
    "ldp x6, x7, [x2]",
    "2: ldaxp x8, x9, [x0]",
    "cmp x8, x4",
    "ccmp x9, x5, #0, eq",
    "b.ne 3f",
    "stlxp w10, x6, x7, [x0]",
    "cbnz w10, 2b",
    "dmb ish",
    "mov x1, xzr",
    "ret",
    "3: stlxp w10, x8, x9, [x0]", // makes sure that both halves were read at once
    "cbnz w10, 2b",
    "stp x8, x9, [x1]",
    "dmb ish",
    "mov x1, xzr",
    "ret",
    "tranship_copy: dmb ish",
    "2: cmp x2, #8",
    "b.lo 3f",
    "ldr x3, [x1], #8",
    "str x3, [x0], #8",
    "sub x2, x2, #8",
    "b 2b",
    "3: cbz x2, 4f",
    "ldrb w3, [x1], #1",
    "strb w3, [x0], #1",
    "sub x2, x2, #1",
    "b 3b",
    "4: dmb ish",
    "mov x1, xzr",
    "ret",
    "tranship_access_end:",
    "tranship_access_faulted:",
    "mov x1, #1",
    "ret",
    ".popsection",
);

/// Where a thread goes on whose access at `pc` has faulted, if that is one of these.
pub fn after_fault(pc: u64) -> Option<u64> {
    let begin = (&raw const tranship_access_begin) as u64;
    let end = (&raw const tranship_access_end) as u64;
    (begin..end).contains(&pc).then_some((&raw const tranship_access_faulted) as u64)
}
