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
        assert_eq!(diagnosis(&settings, variants), format!("{variants}0x0"));
    }
}
