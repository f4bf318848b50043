//! What the guest's CPU says it can do: the one place that decides which features programs see. It is
//! x86-64-v3: like an Intel Haswell, with SHA and newer general-register instructions, without RDRAND, whose random
//! numbers would be ours. A feature is listed when all of its instructions have blocks (a test looks).

use super::xsave::{COMPONENTS, EXTENDED, XCR0};
use iced_x86::CpuidFeature as F;

/// A feature bit of CPUID.
#[derive(Clone, Copy, Debug)]
pub struct Feature {
    /// Leaf; the subleaf is 0.
    pub leaf: u32,
    /// Register: 0 to 3 for eax, ebx, ecx, edx.
    pub register: usize,
    /// Bit.
    pub bit: u32,
    /// The instructions it stands for, as the decoder groups them; `None` for other promises.
    pub instructions: Option<F>,
}

const EBX: usize = 1;
const ECX: usize = 2;
const EDX: usize = 3;

const fn feature(leaf: u32, register: usize, bit: u32, instructions: F) -> Feature {
    Feature { leaf, register, bit, instructions: Some(instructions) }
}

const fn promise(leaf: u32, register: usize, bit: u32) -> Feature {
    Feature { leaf, register, bit, instructions: None }
}

/// Every feature bit that is set. SDM vol. 2A, CPUID.
pub const FEATURES: &[Feature] = &[
    feature(1, EDX, 0, F::FPU),
    feature(1, EDX, 4, F::TSC),
    feature(1, EDX, 8, F::CX8),
    feature(1, EDX, 15, F::CMOV),
    feature(1, EDX, 19, F::CLFSH),
    feature(1, EDX, 23, F::MMX),
    feature(1, EDX, 24, F::FXSR),
    feature(1, EDX, 25, F::SSE),
    feature(1, EDX, 26, F::SSE2),
    feature(1, ECX, 0, F::SSE3),
    feature(1, ECX, 1, F::PCLMULQDQ),
    feature(1, ECX, 9, F::SSSE3),
    feature(1, ECX, 12, F::FMA),
    feature(1, ECX, 13, F::CMPXCHG16B),
    feature(1, ECX, 19, F::SSE4_1),
    feature(1, ECX, 20, F::SSE4_2),
    feature(1, ECX, 22, F::MOVBE),
    feature(1, ECX, 23, F::POPCNT),
    feature(1, ECX, 25, F::AES),
    feature(1, ECX, 26, F::XSAVE),
    // The operating system has enabled it.
    promise(1, ECX, 27),
    feature(1, ECX, 28, F::AVX),
    feature(1, ECX, 29, F::F16C),
    feature(7, EBX, 0, F::FSGSBASE),
    feature(7, EBX, 3, F::BMI1),
    feature(7, EBX, 5, F::AVX2),
    feature(7, EBX, 8, F::BMI2),
    // Fast rep movsb and stosb: they become one copy.
    promise(7, EBX, 9),
    feature(7, EBX, 19, F::ADX),
    feature(7, EBX, 23, F::CLFLUSHOPT),
    feature(7, EBX, 24, F::CLWB),
    feature(7, EBX, 29, F::SHA),
    // LAHF and SAHF in 64-bit mode.
    promise(0x8000_0001, ECX, 0),
    feature(0x8000_0001, ECX, 5, F::LZCNT),
    feature(0x8000_0001, ECX, 8, F::PREFETCHW),
    feature(0x8000_0001, EDX, 11, F::SYSCALL),
    // No-execute pages.
    promise(0x8000_0001, EDX, 20),
    feature(0x8000_0001, EDX, 27, F::RDTSCP),
    // Long mode.
    promise(0x8000_0001, EDX, 29),
];

const VENDOR: &[u8; 12] = b"GenuineIntel";
const BRAND: &[u8; 48] = b"Tranship virtual x86-64 CPU\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
/// Family 6, model 0x3c, stepping 3.
const SIGNATURE: u32 = 0x0003_06c3;
const LAST_BASIC: u32 = 0xd;
const LAST_EXTENDED: u32 = 0x8000_0008;
const CACHE_LINE: u32 = 64;

/// CPUID's answer: eax, ebx, ecx, edx from low to high.
pub fn query(leaf: u32, subleaf: u32) -> u128 {
    let mut registers = fixed(leaf, subleaf);
    if subleaf == 0 || leaf != 7 {
        for feature in FEATURES.iter().filter(|feature| feature.leaf == leaf) {
            registers[feature.register] |= 1 << feature.bit;
        }
    }
    let [eax, ebx, ecx, edx] = registers.map(u128::from);
    eax | ebx << 32 | ecx << 64 | edx << 96
}

/// All but the feature bits; zero where there is nothing.
fn fixed(leaf: u32, subleaf: u32) -> [u32; 4] {
    match leaf {
        0 => [LAST_BASIC, word(VENDOR, 0), word(VENDOR, 2), word(VENDOR, 1)],
        // One logical processor, with APIC id 0.
        1 => [SIGNATURE, 1 << 16 | (CACHE_LINE / 8) << 8, 0, 0],
        // "See leaf 4".
        2 => [0x00ff_ff01, 0, 0, 0],
        4 => cache(subleaf),
        0xd => extended_state(subleaf),
        0x8000_0000 => [LAST_EXTENDED, 0, 0, 0],
        0x8000_0002..=0x8000_0004 => {
            let first = (leaf - 0x8000_0002) as usize * 4;
            core::array::from_fn(|n| word(BRAND, first + n))
        }
        // L2: 1 MiB, 16 ways.
        0x8000_0006 => [0, 0, 1024 << 16 | 8 << 12 | CACHE_LINE, 0],
        // Invariant time-stamp counter.
        0x8000_0007 => [0, 0, 0, 1 << 8],
        // 48 bits of physical and of linear address.
        0x8000_0008 => [48 << 8 | 48, 0, 0, 0],
        _ => [0; 4],
    }
}

/// The `n`th little-endian word of a string.
fn word(text: &[u8], n: usize) -> u32 {
    text.iter().skip(4 * n).take(4).rev().fold(0, |word, &byte| word << 8 | u32::from(byte))
}

/// Leaf 0xd: what XSAVE and its like have of the extended state, and where. XSAVEOPT, XSAVEC and XGETBV of 1 are there.
fn extended_state(index: u32) -> [u32; 4] {
    let enabled = || COMPONENTS.iter().filter(|component| XCR0 >> component.number & 1 != 0);
    let end = enabled().map(|component| component.end()).max().unwrap_or(EXTENDED) as u32;
    match index {
        0 => [XCR0 as u32, end, end, (XCR0 >> 32) as u32],
        1 => [0b111, end, 0, 0],
        _ => enabled()
            .find(|component| component.number == index)
            .map_or([0; 4], |component| [component.bytes as u32, component.offset as u32, 0, 0]),
    }
}

/// Whether the bit of a register of a leaf is set: by its subleaf 0.
pub fn has(leaf: u32, register: usize, bit: u32) -> bool {
    query(leaf, 0) >> (32 * register as u32 + bit) & 1 != 0
}

/// Leaf 4: the caches, which libraries size their copies by.
fn cache(index: u32) -> [u32; 4] {
    const DATA: u32 = 1;
    const CODE: u32 = 2;
    const UNIFIED: u32 = 3;
    let (kind, level, ways, sets) = match index {
        0 => (DATA, 1, 8, 64),
        1 => (CODE, 1, 8, 64),
        2 => (UNIFIED, 2, 16, 1024),
        3 => (UNIFIED, 3, 16, 8192),
        _ => return [0; 4],
    };
    let self_initialising = 1 << 8;
    [kind | level << 5 | self_initialising, (ways - 1) << 22 | (CACHE_LINE - 1), sets - 1, 0]
}
