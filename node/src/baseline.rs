//! The CPU baseline: features that programs at home are told not to choose, so that what they choose when they start
//! can be run everywhere they may go later.
//!
//! glibc picks code by CPUID once, at start. It honours `GLIBC_TUNABLES=glibc.cpu.hwcaps`; programs that ask CPUID
//! themselves cannot be stopped.

use crate::record::Isa;
use tranship_abi::host::Host;

/// glibc's names (sysdeps/x86/cpu-features.c, `TUNABLE_CALLBACK (set_hwcaps)`) of what lies above x86-64-v1 and is
/// chosen by its string functions, its mathematics or its dynamic linker.
const X86_64_OFF: &[&str] = &[
    "AVX",
    "AVX2",
    "AVX512F",
    "AVX512VL",
    "AVX512BW",
    "AVX512CD",
    "AVX512DQ",
    "AVX512ER",
    "AVX512PF",
    "BMI1",
    "BMI2",
    "FMA",
    "FMA4",
    "LZCNT",
    "MOVBE",
    "POPCNT",
    "SSSE3",
    "SSE4_1",
    "SSE4_2",
    "XSAVE",
    "XSAVEC",
    "RTM",
    "AVX_Fast_Unaligned_Load",
];

/// Environment settings that put the baseline of `home` in force.
pub fn environment(home: Isa) -> Vec<String> {
    match home.0 {
        Host::X86_64 => {
            let off: Vec<String> = X86_64_OFF.iter().map(|name| format!("-{name}")).collect();
            vec![format!("GLIBC_TUNABLES=glibc.cpu.hwcaps={}", off.join(","))]
        }
        Host::Aarch64 | Host::Riscv64 => vec![],
    }
}
