//! Exchange, and compare and exchange. SDM vol. 2.

use crate::machine::{AtomicOp, BinOp, CmpOp, Width};
use crate::x86_64::flags::{set_compare_flags, set_sum_flags};
use crate::x86_64::operand::{
    X86, gpr, memory_address, operand_width, read, read_gpr, read_part, update, write, write_gpr, write_part,
};
use crate::x86_64::{Flag, Insn};
use iced_x86::OpKind;

extension! { "exchange";
    /// Exchange; with memory, always atomically.
    [Xchg], exact (m, i) {
        let b = read(m, i, 1);
        if i.op0_kind() == OpKind::Register {
            let a = read(m, i, 0);
            write(m, i, 0, b);
            write(m, i, 1, a);
        } else {
            let address = memory_address(m, i);
            let old = m.atomic(AtomicOp::Exchange, address, b);
            write(m, i, 1, old);
        }
    }
    "xchg ebx,eax" = "93", "xchg [rdi],rax" = "488707", "xchg ch,cl" = "86cd", "xchg r8,rax" = "4990",
    "xchg [rsi],dl" = "8616", "xchg cx,dx" = "6687d1";

    /// Exchange and add.
    [Xadd], exact (m, i) {
        let b = read(m, i, 1);
        if i.op0_kind() == OpKind::Register {
            let a = read(m, i, 0);
            let sum = m.bin(BinOp::Add, a, b);
            write(m, i, 1, a);
            write(m, i, 0, sum);
            set_sum_flags(m, a, b, sum);
        } else {
            let (a, sum) = update(m, i, BinOp::Add, b);
            write(m, i, 1, a);
            set_sum_flags(m, a, b, sum);
        }
    }
    "xadd eax,ebx" = "0fc1d8", "lock xadd [rdi],rax" = "f0480fc107", "xadd [rsi],cl" = "0fc00e",
    "xadd dx,dx" = "660fc1d2", "lock xadd [rdi],cx" = "66f00fc10f";

    /// Compare rax and exchange if equal.
    [Cmpxchg], exact (m, i) {
        let width = operand_width(i, 0);
        let (expected, new) = (read_part(m, gpr::RAX, width), read(m, i, 1));
        if i.op0_kind() == OpKind::Register {
            let old = read_gpr(m, i.op0_register());
            let equal = m.cmp(CmpOp::Eq, old, expected);
            m.when(equal, &mut |m| write_gpr(m, i.op0_register(), new));
            load_accumulator_unless(m, equal, old);
            set_compare_flags(m, expected, old);
        } else {
            let old = compare_and_exchange(m, i, expected, new);
            let equal = m.cmp(CmpOp::Eq, old, expected);
            load_accumulator_unless(m, equal, old);
            set_compare_flags(m, expected, old);
        }
    }
    "cmpxchg ebx,ecx" = "0fb1cb", "lock cmpxchg [rdi],rcx" = "f0480fb10f", "cmpxchg [rsi],bl" = "0fb01e",
    "cmpxchg dx,cx" = "660fb1ca", "lock cmpxchg [rdi],ecx" = "f00fb10f";

    /// Compare rdx:rax and exchange with rcx:rbx if equal.
    [Cmpxchg8b, Cmpxchg16b], exact (m, i) {
        let half = operand_width(i, 0).half();
        let expected = read_pair(m, gpr::RDX, gpr::RAX, half);
        let new = read_pair(m, gpr::RCX, gpr::RBX, half);
        if half == Width::W64 {
            let address = memory_address(m, i);
            m.require_aligned(address, 16);
        }
        let old = compare_and_exchange(m, i, expected, new);
        let equal = m.cmp(CmpOp::Eq, old, expected);
        let differs = m.not(equal);
        m.when(differs, &mut |m| {
            let low = m.trunc(old, half);
            write_part(m, gpr::RAX, low);
            let high = m.bin_const(BinOp::LShr, old, half.bits().into());
            let high = m.trunc(high, half);
            write_part(m, gpr::RDX, high);
        });
        m.put(Flag::Zf, equal);
    }
    "cmpxchg8b [rdi]" = "0fc70f", "lock cmpxchg8b [rsi]" = "f00fc70e", "cmpxchg16b [rdi]" = "480fc70f",
    "lock cmpxchg16b [rsi]" = "f0480fc70e";
}

/// Compare and exchange on the memory operand, which is written either way; yields the old value.
fn compare_and_exchange<M: X86>(m: &mut M, i: &Insn, expected: M::Int, new: M::Int) -> M::Int {
    let address = memory_address(m, i);
    if i.has_lock_prefix() {
        return m.compare_exchange(address, expected, new);
    }
    let old = m.load(address, operand_width(i, 0));
    let equal = m.cmp(CmpOp::Eq, old, expected);
    let stored = m.select(equal, new, old);
    m.store(address, stored);
    old
}

/// CMPXCHG that failed loads the accumulator; one that succeeded does not even clear its upper half.
fn load_accumulator_unless<M: X86>(m: &mut M, equal: M::Bool, old: M::Int) {
    let differs = m.not(equal);
    m.when(differs, &mut |m| write_part(m, gpr::RAX, old));
}

/// Two registers as one integer.
fn read_pair<M: X86>(m: &mut M, high: u8, low: u8, half: Width) -> M::Int {
    let (high, low) = (read_part(m, high, half), read_part(m, low, half));
    let (high, low) = (m.zext(high, half.double()), m.zext(low, half.double()));
    let high = m.bin_const(BinOp::Shl, high, half.bits().into());
    m.bin(BinOp::Or, high, low)
}
