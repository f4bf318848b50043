//! Integer addition, subtraction and comparison. SDM vol. 2A and 2B.

use crate::machine::{BinOp, CmpOp, UnOp, Width};
use crate::x86_64::operand::{X86, read, write};
use crate::x86_64::{Flag, Reg};

extension! { "arithmetic";
    /// Sum of both operands. ADD.
    [Add], exact (m, i) {
        let (a, b) = (read(m, i, 0), read(m, i, 1));
        let sum = m.bin(BinOp::Add, a, b);
        let carry = m.cmp(CmpOp::Ult, sum, a);
        set_arithmetic_flags(m, a, b, sum, carry);
        write(m, i, 0, sum);
    }
    "add eax,ebx" = "01d8", "add [rdi],al" = "0007";
}

/// CF as given; AF, OF from the operands of an addition; SF, ZF, PF from its result.
fn set_arithmetic_flags<M: X86>(m: &mut M, a: M::Int, b: M::Int, sum: M::Int, carry: M::Bool) {
    let zero = m.int(m.width(sum), 0);
    m.set_flag(Reg::Flag(Flag::Cf), carry);
    let negative = m.cmp(CmpOp::Slt, sum, zero);
    m.set_flag(Reg::Flag(Flag::Sf), negative);
    let is_zero = m.cmp(CmpOp::Eq, sum, zero);
    m.set_flag(Reg::Flag(Flag::Zf), is_zero);
    let (from_a, from_b) = (m.bin(BinOp::Xor, a, sum), m.bin(BinOp::Xor, b, sum));
    let overflow = m.bin(BinOp::And, from_a, from_b);
    let overflow = m.cmp(CmpOp::Slt, overflow, zero);
    m.set_flag(Reg::Flag(Flag::Of), overflow);
    let half = m.bin(BinOp::Xor, from_a, b);
    let bit = m.int(m.width(sum), 0x10);
    let half = m.bin(BinOp::And, half, bit);
    let half = m.cmp(CmpOp::Ne, half, zero);
    m.set_flag(Reg::Flag(Flag::Af), half);
    let low = m.trunc(sum, Width::W8);
    let ones = m.un(UnOp::CountOnes, low);
    let odd = m.int(Width::W8, 1);
    let odd = m.bin(BinOp::And, ones, odd);
    let none = m.int(Width::W8, 0);
    let even = m.cmp(CmpOp::Eq, odd, none);
    m.set_flag(Reg::Flag(Flag::Pf), even);
}
