//! /proc/cpuinfo: the host's processors by number, each the guest's by what it can do (`arch/x86/kernel/cpu/proc.c`).

use super::text::{Lines, Output};
use core::fmt::{self, Write};
use tranship_isa::x86_64::cpuid;

const EAX: u32 = 0;
const EBX: u32 = 1;
const ECX: u32 = 2;
const EDX: u32 = 3;

/// Registers (leaf, subleaf, number) in the order in which the kernel lists their bits, with names from bit 0 on; `-`
/// for those that it does not show.
#[rustfmt::skip]
const NAMES: &[(u32, u32, u32, &str)] = &[
    (1, 0, EDX, "fpu vme de pse tsc msr pae mce cx8 apic - sep mtrr pge mca cmov pat pse36 pn clflush - dts acpi mmx \
        fxsr sse sse2 ss ht tm ia64 pbe"),
    (0x8000_0001, 0, EDX, "- - - - - - - - - - - syscall - - - - - - - mp nx - mmxext - - fxsr_opt pdpe1gb rdtscp - lm \
        3dnowext 3dnow"),
    (1, 0, ECX, "pni pclmulqdq dtes64 monitor ds_cpl vmx smx est tm2 ssse3 cid sdbg fma cx16 xtpr pdcm - pcid dca \
        sse4_1 sse4_2 x2apic movbe popcnt tsc_deadline_timer aes xsave - avx f16c rdrand hypervisor"),
    (0x8000_0001, 0, ECX, "lahf_lm cmp_legacy svm extapic cr8_legacy abm sse4a misalignsse 3dnowprefetch osvw ibs xop \
        skinit wdt - lwp fma4 tce - nodeid_msr - tbm topoext perfctr_core perfctr_nb - bpext ptsc perfctr_llc mwaitx"),
    (7, 0, EBX, "fsgsbase tsc_adjust sgx bmi1 hle avx2 - smep bmi2 erms invpcid rtm cqm - mpx rdt_a avx512f avx512dq \
        rdseed adx smap avx512ifma - clflushopt clwb intel_pt avx512pf avx512er avx512cd sha_ni avx512bw avx512vl"),
    (13, 1, EAX, "xsaveopt xsavec xgetbv1 xsaves"),
    (7, 0, ECX, "- avx512vbmi umip pku ospke waitpkg avx512_vbmi2 - gfni vaes vpclmulqdq avx512_vnni avx512_bitalg tme \
        avx512_vpopcntdq - la57 - - - - - rdpid - bus_lock_detect cldemote - movdiri movdir64b enqcmd"),
    (7, 0, EDX, "- - - - fsrm - - - avx512_vp2intersect"),
    (7, 1, EAX, "- - - - avx_vnni avx512_bf16"),
];

/// Write a block for each processor that the host's file, open at `kernel`, tells of.
pub(super) fn write(output: &mut Output, kernel: i32) -> fmt::Result {
    let mut count = 0;
    let mut lines = Lines::of(kernel);
    while let Some(line) = lines.next() {
        count += u32::from(line.starts_with(b"processor"));
    }
    (0..count.max(1)).try_for_each(|number| write_processor(output, number, count.max(1)))
}

fn register(leaf: u32, subleaf: u32, register: u32) -> u32 {
    (cpuid::query(leaf, subleaf) >> (32 * register)) as u32
}

fn write_processor(output: &mut Output, number: u32, count: u32) -> fmt::Result {
    let signature = register(1, 0, EAX);
    let family = signature >> 8 & 0xf;
    let model = signature >> 4 & 0xf | (signature >> 16 & 0xf) << 4;
    let vendor: [u32; 3] = [EBX, EDX, ECX].map(|n| register(0, 0, n));
    let brand: [u32; 12] = core::array::from_fn(|n| register(0x8000_0002 + n as u32 / 4, 0, n as u32 % 4));
    writeln!(output, "processor\t: {number}")?;
    write_text(output, "vendor_id\t: ", &vendor)?;
    writeln!(output, "cpu family\t: {family}\nmodel\t\t: {model}")?;
    write_text(output, "model name\t: ", &brand)?;
    let cache = (register(0x8000_0006, 0, ECX) >> 16) & 0xffff;
    writeln!(output, "stepping\t: {}\nmicrocode\t: 0x1\ncpu MHz\t\t: 1000.000", signature & 0xf)?;
    writeln!(
        output,
        "cache size\t: {cache} KB\nphysical id\t: 0\nsiblings\t: {count}\ncore id\t\t: {number}"
    )?;
    writeln!(output, "cpu cores\t: {count}\napicid\t\t: {number}\ninitial apicid\t: {number}")?;
    writeln!(
        output,
        "fpu\t\t: yes\nfpu_exception\t: yes\ncpuid level\t: {}\nwp\t\t: yes",
        register(0, 0, EAX)
    )?;
    write!(output, "flags\t\t:")?;
    write_flags(output)?;
    let line = (register(1, 0, EBX) >> 8 & 0xff) * 8;
    writeln!(output, "\nbugs\t\t:\nbogomips\t: 2000.00\nclflush size\t: {line}\ncache_alignment\t: {line}")?;
    let sizes = register(0x8000_0008, 0, EAX);
    let (physical, linear) = (sizes & 0xff, sizes >> 8 & 0xff);
    writeln!(output, "address sizes\t: {physical} bits physical, {linear} bits virtual\npower management:\n")
}

fn write_text(output: &mut Output, label: &str, words: &[u32]) -> fmt::Result {
    output.write_str(label)?;
    for byte in words.iter().flat_map(|word| word.to_le_bytes()).take_while(|&byte| byte != 0) {
        output.bytes(&[byte])?;
    }
    output.write_str("\n")
}

fn write_flags(output: &mut Output) -> fmt::Result {
    for &(leaf, subleaf, number, names) in NAMES {
        let value = register(leaf, subleaf, number);
        for (bit, name) in names.split_whitespace().enumerate() {
            if value >> bit & 1 != 0 && name != "-" {
                write!(output, " {name}")?;
            }
        }
        // What the kernel makes up after the second word of AMD's: it is always so.
        if (leaf, number) == (0x8000_0001, EDX) {
            output.write_str(" constant_tsc rep_good nopl nonstop_tsc cpuid")?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_feature_has_a_name() {
        for feature in cpuid::FEATURES {
            let row = NAMES.iter().find(|row| (row.0, row.2) == (feature.leaf, feature.register as u32));
            let name = row.and_then(|row| row.3.split_whitespace().nth(feature.bit as usize));
            // OSXSAVE is for programs to ask, not to read.
            let hidden = (feature.leaf, feature.register, feature.bit) == (1, 2, 27);
            assert!(hidden || name.is_some_and(|name| name != "-"), "{feature:?} {}", name.unwrap_or(""));
        }
    }
}
