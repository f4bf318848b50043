//! What code can be compiled for on a machine: its ISA, and how much more its CPU has than the oldest.

use crate::error::{NodeError, Result};
use crate::record::Isa;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::str::FromStr;
use tranship_abi::host::Host;

/// A CPU as people and files write it: `x86_64`, `x86_64-v3+aes+sha`, `aarch64+aes`, `riscv64`. Without a level it is the
/// oldest that is supported.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cpu {
    /// Its instruction set.
    pub isa: Isa,
    /// It has all of level 3 of the x86-64 psABI: AVX2, BMI, FMA and so on.
    pub is_v3: bool,
    /// It has instructions for rounds of AES, and for carry-less products.
    pub has_aes: bool,
    /// It has SHA-1's and SHA-256's rounds as x86-64 defines them.
    pub has_sha: bool,
}

/// What x86-64 and aarch64 have for AES, as `/proc/cpuinfo` names it.
const AES: [&[&str]; 2] = [&["aes", "pclmulqdq"], &["aes", "pmull"]];

/// Level 3, as `/proc/cpuinfo` names what it has beyond level 2.
const V3: [&str; 8] = ["abm", "avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe"];

impl Cpu {
    /// This machine's. What cannot be found out it does not have.
    pub fn here() -> Result<Cpu> {
        let isa = Isa::here()?;
        Ok(Cpu::described(isa, &fs::read_to_string("/proc/cpuinfo").unwrap_or_default()))
    }

    /// That of which `info`, the text of `/proc/cpuinfo`, says what every processor has.
    fn described(isa: Isa, info: &str) -> Cpu {
        let is_x86 = isa == Isa(Host::X86_64);
        Cpu {
            isa,
            is_v3: is_x86 && all_have(info, &V3),
            has_aes: AES.iter().any(|aes| all_have(info, aes)),
            has_sha: is_x86 && all_have(info, &["sha_ni"]),
        }
    }

    /// What it has beyond its level, by name.
    fn extensions(&mut self) -> [(&'static str, &mut bool); 2] {
        [("aes", &mut self.has_aes), ("sha", &mut self.has_sha)]
    }
}

/// Whether every processor in the text of `/proc/cpuinfo` has all `wanted` flags.
fn all_have(info: &str, wanted: &[&str]) -> bool {
    let flags = |line| ["flags", "Features"].iter().find_map(|&name| str::strip_prefix(line, name));
    let mut processors = info.lines().filter_map(flags).peekable();
    let has = |flags: &str| {
        let flags: BTreeSet<&str> = flags.split_whitespace().collect();
        wanted.iter().all(|flag| flags.contains(flag))
    };
    processors.peek().is_some() && processors.all(has)
}

impl fmt::Display for Cpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.isa, if self.is_v3 { "-v3" } else { "" })?;
        let mut cpu = *self;
        cpu.extensions().iter().filter(|(_, has)| **has).try_for_each(|(name, _)| write!(f, "+{name}"))
    }
}

impl FromStr for Cpu {
    type Err = NodeError;

    fn from_str(name: &str) -> Result<Cpu> {
        let malformed = |what: String| Err(NodeError::Malformed { what });
        let mut parts = name.split('+');
        let level = parts.next().unwrap_or_default();
        let (isa, is_v3) = level.strip_suffix("-v3").map_or((level, false), |isa| (isa, true));
        let mut cpu = Cpu { isa: isa.parse()?, is_v3, has_aes: false, has_sha: false };
        for part in parts {
            match cpu.extensions().into_iter().find(|(name, _)| *name == part) {
                Some((_, has)) => *has = true,
                None => return malformed(format!("no CPU is known to have {part}; there are aes and sha")),
            }
        }
        if cpu.isa != Isa(Host::X86_64) && (is_v3 || cpu.has_sha) {
            return malformed(format!("{isa} has no level 3 and no use for sha; x86_64 has"));
        }
        Ok(cpu)
    }
}

impl Serialize for Cpu {
    fn serialize<S: Serializer>(&self, to: S) -> std::result::Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Cpu {
    fn deserialize<D: Deserializer<'de>>(from: D) -> std::result::Result<Cpu, D::Error> {
        String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_processor_must_have_the_level() {
        let new = "processor : 0\nflags\t: fpu abm avx avx2 bmi1 bmi2 f16c fma movbe\n";
        assert!(all_have(new, &V3));
        assert!(!all_have(&format!("{new}processor : 1\nflags\t: fpu avx\n"), &V3));
        assert!(!all_have("", &V3));
    }

    #[test]
    fn extensions_are_found_on_both_machines() {
        let described = |isa, info| Cpu::described(Isa(isa), info).to_string();
        let x86_64 = "flags\t: fpu aes pclmulqdq sha_ni\n";
        assert_eq!(described(Host::X86_64, x86_64), "x86_64+aes+sha");
        assert_eq!(described(Host::X86_64, "flags\t: fpu aes\n"), "x86_64");
        assert_eq!(described(Host::Aarch64, "Features\t: fp asimd aes pmull sha1 sha2\n"), "aarch64+aes");
    }

    #[test]
    fn names_are_read_back() {
        for name in ["x86_64", "x86_64-v3", "x86_64-v3+aes+sha", "aarch64", "aarch64+aes"] {
            assert_eq!(name.parse::<Cpu>().unwrap().to_string(), name);
        }
        assert!("aarch64-v3".parse::<Cpu>().is_err());
        assert!("aarch64+sha".parse::<Cpu>().is_err());
        assert!("x86_64+ai".parse::<Cpu>().is_err());
        assert!("sparc".parse::<Cpu>().is_err());
    }
}
