//! The CPU baseline: features that programs at home are told not to choose, so that what they choose when they start
//! can be run everywhere they may go later. It is what the CPU that they would see elsewhere says it has
//! ([`tranship_isa::x86_64::cpuid`]).
//!
//! glibc and OpenSSL pick code by CPUID once, at start, and honour settings in the environment. Other programs that ask
//! CPUID themselves cannot be stopped.

use crate::record::Isa;
use tranship_abi::host::Host;
use tranship_isa::x86_64::cpuid;

const EBX: usize = 1;
const ECX: usize = 2;

/// glibc's names (sysdeps/x86/cpu-features.c, `TUNABLE_CALLBACK (set_hwcaps)`) of what lies above x86-64-v1 and is
/// chosen by its string functions, its mathematics or its dynamic linker, with leaf, register and bit in CPUID.
const GLIBC_NAMES: &[(&str, u32, usize, u32)] = &[
    ("AVX", 1, ECX, 28),
    ("AVX2", 7, EBX, 5),
    ("AVX512F", 7, EBX, 16),
    ("AVX512VL", 7, EBX, 31),
    ("AVX512BW", 7, EBX, 30),
    ("AVX512CD", 7, EBX, 28),
    ("AVX512DQ", 7, EBX, 17),
    ("AVX512ER", 7, EBX, 27),
    ("AVX512PF", 7, EBX, 26),
    ("BMI1", 7, EBX, 3),
    ("BMI2", 7, EBX, 8),
    ("FMA", 1, ECX, 12),
    ("FMA4", 0x8000_0001, ECX, 16),
    ("LZCNT", 0x8000_0001, ECX, 5),
    ("MOVBE", 1, ECX, 22),
    ("POPCNT", 1, ECX, 23),
    ("RTM", 7, EBX, 11),
    ("SSSE3", 1, ECX, 9),
    ("SSE4_1", 1, ECX, 19),
    ("SSE4_2", 1, ECX, 20),
    ("XSAVE", 1, ECX, 26),
];

/// Environment settings that put the baseline of `home` in force.
pub fn environment(home: Isa) -> Vec<String> {
    match home.0 {
        Host::X86_64 => vec![for_glibc(), for_openssl()],
        Host::Aarch64 | Host::Riscv64 => vec![],
    }
}

fn for_glibc() -> String {
    let absent = GLIBC_NAMES.iter().filter(|(_, leaf, register, bit)| !cpuid::has(*leaf, *register, *bit));
    let off: Vec<String> = absent.map(|(name, ..)| format!("-{name}")).collect();
    format!("GLIBC_TUNABLES=glibc.cpu.hwcaps={}", off.join(","))
}

/// OpenSSL clears the bits behind `~`: of leaf 1 (edx, then ecx), and of leaf 7 (ebx, then ecx).
fn for_openssl() -> String {
    /// What OpenSSL keeps in bits that are reserved: that the CPU is Intel's.
    const INTEL: u64 = 1 << 30;
    let leaf_1 = cpuid::query(1, 0) >> 64;
    let leaf_1 = (leaf_1 >> 32) as u32 as u64 | (leaf_1 as u32 as u64) << 32;
    let leaf_7 = (cpuid::query(7, 0) >> 32) as u64;
    format!("OPENSSL_ia32cap=~{:#x}:~{:#x}", !(leaf_1 | INTEL), !leaf_7)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// What glibc's loader says of itself in environment `settings`: the line about `what`.
    fn diagnosis(settings: &[String], what: &str) -> String {
        let loader = "/lib64/ld-linux-x86-64.so.2";
        let settings = settings.iter().map(|setting| setting.split_once('=').unwrap());
        let output = Command::new(loader).arg("--list-diagnostics").env_clear().envs(settings).output();
        let text = String::from_utf8(output.unwrap().stdout).unwrap();
        text.lines().find(|line| line.starts_with(what)).unwrap().to_owned()
    }

    #[test]
    fn no_library_variant_above_the_baseline_is_chosen() {
        let variants = "dl_hwcaps_subdirs_active=";
        let settings = environment(Isa(Host::X86_64));
        // A bit for each of x86-64-v4, v3 and v2.
        let active = diagnosis(&settings, variants);
        let active = u32::from_str_radix(active.trim_start_matches(&format!("{variants}0x")), 16).unwrap();
        assert_eq!(active & 1, 0, "x86-64-v4");
        assert_ne!(active & 4, 0, "x86-64-v2");
    }
}
