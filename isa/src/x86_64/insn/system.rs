//! No-operations, barriers, traps, system calls and what the CPU says about itself. SDM vol. 2.

use crate::machine::{BinOp, CmpOp, Machine, Trap, Width};
use crate::x86_64::flags::rflags;
use crate::x86_64::operand::{gpr, memory_address, operand_width, read, read_part, write, write_part};
use crate::x86_64::{Insn, Reg, coprocessor};
use iced_x86::Mnemonic;

extension! { "system";
    /// Nothing. RDSSP does nothing because shadow stacks are off.
    [
        Nop, Endbr64, Endbr32, Pause, Prefetchnta, Prefetcht0, Prefetcht1, Prefetcht2, Prefetchw, Prefetch,
        Prefetchwt1, Rdsspd, Rdsspq, Cldemote,
    ], exact (_m, _i) {}
    "nop" = "90", "nop [rax]" = "0f1f00", "endbr64" = "f30f1efa", "endbr32" = "f30f1efb",
    "prefetchnta [rdi]" = "0f1807", "prefetcht1 [rdi]" = "0f1817", "prefetcht2 [rdi]" = "0f181f",
    "prefetch_exclusive [rdi]" = "0f0d07", "prefetchwt1 [rdi]" = "0f0d17", "rdsspd eax" = "f30f1ec8",
    "cldemote [rdi]" = "0f1c07", "pause" = "f390", "prefetcht0 [rdi]" = "0f180f",
    "prefetchw [rsi]" = "0f0d0e", "rdsspq rax" = "f3480f1ec8";

    /// Memory barrier.
    [Lfence, Mfence, Sfence], exact (m, _i) { m.fence(); }
    "lfence" = "0faee8", "mfence" = "0faef0", "sfence" = "0faef8";

    /// Write back a cache line: to the program, a byte load.
    [Clflush, Clflushopt, Clwb], exact (m, i) {
        let address = memory_address(m, i);
        m.load(address, Width::W8);
    }
    "clflush [rdi]" = "0fae3f", "clflushopt [rdi]" = "660fae3f", "clwb [rdi]" = "660fae37";

    /// Undefined by definition: #UD.
    [Ud1, Ud2], exact (m, _i) { raise(m, Trap::Undefined); }
    "ud2" = "0f0b", "ud1 eax,ecx" = "0fb9c1";

    /// Shadow stacks, protection keys and transactions, which CPUID does not offer: #UD.
    [Incsspd, Incsspq, Rdpkru, Wrpkru, Xtest, Xabort, Xend], exact (m, _i) { raise(m, Trap::Undefined); }
    "incsspd eax" = "f30faee8", "incsspq rax" = "f3480faee8", "rdpkru" = "0f01ee", "wrpkru" = "0f01ef", "xtest" = "0f01d6", "xabort 1" = "c6f801", "xend" = "0f01d5";

    /// Breakpoint: #BP.
    [Int3], exact (m, _i) { raise(m, Trap::Breakpoint); }
    "int3" = "cc";

    /// Debug exception: #DB.
    [Int1], exact (m, _i) { raise(m, Trap::Debug); }
    "int1" = "f1";

    /// Privileged: #GP.
    [Hlt, Cli, Sti, In, Out, Clts, Invd, Wbinvd, Rdmsr, Wrmsr, Swapgs], exact (m, _i) { raise(m, Trap::GeneralProtection); }
    "hlt" = "f4", "sti" = "fb", "out dx,al" = "ee", "clts" = "0f06", "invd" = "0f08", "wbinvd" = "0f09",
    "wrmsr" = "0f30", "swapgs" = "0f01f8", "cli" = "fa", "in al,dx" = "ec", "rdmsr" = "0f32";

    /// System call: rcx and r11 take rip and RFLAGS.
    [Syscall], exact (m, i) {
        let other = m.reg(Reg::OtherFlags);
        let flags = rflags(m, other);
        let next = m.address(i.next_ip());
        m.set_gpr(gpr::RCX, next);
        m.set_gpr(gpr::R11, flags);
        m.syscall();
    }
    "syscall" = "0f05";

    /// What the CPU can do; see the module `cpuid`.
    [Cpuid], approximate("the answer is that of the CPU this project presents, not of the machine") (m, _i) {
        let (leaf, subleaf) = (read_part(m, gpr::RAX, Width::W32), read_part(m, gpr::RCX, Width::W32));
        let (leaf, subleaf) = (m.zext(leaf, Width::W128), m.zext(subleaf, Width::W128));
        let answer = m.coprocessor(coprocessor::CPUID, leaf, subleaf);
        for (n, number) in [gpr::RAX, gpr::RBX, gpr::RCX, gpr::RDX].into_iter().enumerate() {
            let part = m.bin_const(BinOp::LShr, answer, 32 * n as u64);
            let part = m.trunc(part, Width::W32);
            write_part(m, number, part);
        }
    }
    "cpuid" = "0fa2";

    /// Time-stamp counter in edx:eax; RDTSCP also the processor's number in ecx.
    [Rdtsc, Rdtscp], approximate("the counter is the host's, and every processor has number 0") (m, i) {
        let none = m.int(Width::W128, 0);
        let time = m.coprocessor(coprocessor::TIMESTAMP, none, none);
        let low = m.trunc(time, Width::W32);
        let high = m.bin_const(BinOp::LShr, time, 32);
        let high = m.trunc(high, Width::W32);
        write_part(m, gpr::RAX, low);
        write_part(m, gpr::RDX, high);
        if i.mnemonic() == Mnemonic::Rdtscp {
            let processor = m.int(Width::W32, 0);
            write_part(m, gpr::RCX, processor);
        }
    }
    "rdtsc" = "0f31", "rdtscp" = "0f01f9";

    /// Read a segment base.
    [Rdfsbase, Rdgsbase], exact (m, i) {
        let base = m.reg(base_of(i));
        let base = m.trunc(base, operand_width(i, 0));
        write(m, i, 0, base);
    }
    "rdfsbase rax" = "f3480faec0", "rdgsbase ecx" = "f30faec9";

    /// Write a segment base; one that is not canonical is #GP.
    [Wrfsbase, Wrgsbase], exact (m, i) {
        let base = read(m, i, 0);
        let base = m.zext(base, Width::W64);
        let shifted = m.bin_const(BinOp::Shl, base, 16);
        let canonical = m.bin_const(BinOp::AShr, shifted, 16);
        let noncanonical = m.cmp(CmpOp::Ne, canonical, base);
        m.trap_if(noncanonical, Trap::GeneralProtection);
        m.set_reg(base_of(i), base);
    }
    "wrfsbase rax" = "f3480faed0", "wrgsbase ecx" = "f30faed9";
}

fn raise<M: Machine>(m: &mut M, trap: Trap) {
    let always = m.bool(true);
    m.trap_if(always, trap);
}

fn base_of(i: &Insn) -> Reg {
    match i.mnemonic() {
        Mnemonic::Rdfsbase | Mnemonic::Wrfsbase => Reg::FsBase,
        _ => Reg::GsBase,
    }
}
