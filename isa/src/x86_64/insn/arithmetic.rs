//! Integer addition, subtraction and comparison. SDM vol. 2A and 2B.

use crate::machine::{BinOp, CmpOp, UnOp};
use crate::x86_64::flags::{
    set_add_flags, set_borrow_flags, set_compare_flags, set_difference_flags, set_sub_flags, set_sum_flags,
};
use crate::x86_64::operand::{X86, memory_address, operand_width, read, update, write};
use crate::x86_64::{Flag, Insn};

extension! { "arithmetic";
    /// Sum.
    [Add], exact (m, i) {
        let b = read(m, i, 1);
        let (a, sum) = update(m, i, BinOp::Add, b);
        set_sum_flags(m, a, b, sum);
    }
    "add eax,ebx" = "01d8", "add [rdi],al" = "0007", "add r8w,0x1234" = "664181c03412",
    "add rax,[rsi+rcx*8-8]" = "480344cef8", "add ah,bl" = "00dc", "add qword ptr [rdi],-1" = "488307ff",
    "lock add [rdi],ecx" = "f0010f", "add al,0x7f" = "047f", "add eax,[r12d+r13d*2+4]" = "674303446c04",
    "add rcx,fs:[0x10]" = "6448030c2510000000";

    /// Sum and carry.
    [Adc], exact (m, i) {
        let b = read(m, i, 1);
        let carry = m.get(Flag::Cf);
        let carry = m.bool_to_int(carry, operand_width(i, 1));
        let addend = m.bin(BinOp::Add, b, carry);
        let (a, sum) = update(m, i, BinOp::Add, addend);
        let without = m.bin(BinOp::Add, a, b);
        let first = m.cmp(CmpOp::Ult, without, a);
        let second = m.cmp(CmpOp::Ult, sum, without);
        let carry = m.or(first, second);
        m.put(Flag::Cf, carry);
        set_add_flags(m, a, b, sum);
    }
    "adc rax,rbx" = "4811d8", "adc byte ptr [rdi],5" = "801705", "adc cx,-1" = "6683d1ff",
    "lock adc [rsi],edx" = "f01116", "adc dl,bh" = "10fa";

    /// Difference.
    [Sub], exact (m, i) {
        let b = read(m, i, 1);
        let (a, difference) = update(m, i, BinOp::Sub, b);
        set_difference_flags(m, a, b, difference);
    }
    "sub eax,ebx" = "29d8", "sub rsp,0x28" = "4883ec28", "sub [rdi],ax" = "662907", "sub cl,[rsi]" = "2a0e",
    "lock sub qword ptr [rdi],1" = "f048832f01";

    /// Difference less the borrow.
    [Sbb], exact (m, i) {
        let b = read(m, i, 1);
        let borrow = m.get(Flag::Cf);
        let borrow = m.bool_to_int(borrow, operand_width(i, 1));
        let subtrahend = m.bin(BinOp::Add, b, borrow);
        let (a, difference) = update(m, i, BinOp::Sub, subtrahend);
        let without = m.bin(BinOp::Sub, a, b);
        let first = m.cmp(CmpOp::Ult, a, b);
        let second = m.cmp(CmpOp::Ult, without, borrow);
        let borrow = m.or(first, second);
        m.put(Flag::Cf, borrow);
        set_borrow_flags(m, a, b, difference);
    }
    "sbb eax,eax" = "19c0", "sbb rdx,rcx" = "4819ca", "sbb [rdi],al" = "1807", "sbb bx,-0x80" = "6683db80",
    "lock sbb [rsi],rdx" = "f0481916";

    /// Difference, for its flags only.
    [Cmp], exact (m, i) {
        let (a, b) = (read(m, i, 0), read(m, i, 1));
        set_compare_flags(m, a, b);
    }
    "cmp eax,ebx" = "39d8", "cmp byte ptr [rdi],0" = "803f00", "cmp r9,[rsi]" = "4c3b0e",
    "cmp ax,-0x8000" = "663d0080", "cmp ch,dl" = "38d5";

    /// Negation.
    [Neg], exact (m, i) {
        if i.has_lock_prefix() {
            locked_negate(m, i);
        } else {
            let a = read(m, i, 0);
            let negated = m.un(UnOp::Neg, a);
            write(m, i, 0, negated);
            set_negate_flags(m, a);
        }
    }
    "neg eax" = "f7d8", "neg byte ptr [rdi]" = "f61f", "neg r8" = "49f7d8", "neg cx" = "66f7d9",
    "neg ah" = "f6dc", "lock neg dword ptr [rsi]" = "f0f71e";

    /// Plus one; CF stays.
    [Inc], exact (m, i) {
        let one = m.int(operand_width(i, 0), 1);
        let (a, sum) = update(m, i, BinOp::Add, one);
        set_add_flags(m, a, one, sum);
        m.flags_follow_result(sum);
    }
    "inc eax" = "ffc0", "inc byte ptr [rdi]" = "fe07", "inc r15" = "49ffc7", "inc dx" = "66ffc2",
    "lock inc qword ptr [rdi]" = "f048ff07";

    /// Minus one; CF stays.
    [Dec], exact (m, i) {
        let one = m.int(operand_width(i, 0), 1);
        let (a, difference) = update(m, i, BinOp::Sub, one);
        set_sub_flags(m, a, one, difference);
        m.flags_follow_result(difference);
    }
    "dec eax" = "ffc8", "dec word ptr [rdi]" = "66ff0f", "dec rcx" = "48ffc9", "dec bh" = "fecf",
    "lock dec dword ptr [rsi]" = "f0ff0e";
}

/// There is no atomic negation: compare and exchange until nobody came in between.
fn locked_negate<M: X86>(m: &mut M, i: &Insn) {
    let address = memory_address(m, i);
    let width = operand_width(i, 0);
    m.repeat(&mut |m| {
        let a = m.load(address, width);
        let negated = m.un(UnOp::Neg, a);
        let seen = m.compare_exchange(address, a, negated);
        set_negate_flags(m, a);
        m.cmp(CmpOp::Ne, seen, a)
    });
}

fn set_negate_flags<M: X86>(m: &mut M, a: M::Int) {
    let zero = m.like(a, 0);
    set_compare_flags(m, zero, a);
}
