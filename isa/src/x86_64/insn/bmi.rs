//! BMI1, BMI2 and ADX: bit manipulation with VEX encodings, and additions with a carry of their own.
//! SDM vol. 2.

use crate::machine::{BinOp, CmpOp, UnOp, Width};
use crate::x86_64::flags::set_result_flags;
use crate::x86_64::operand::{X86, gpr, operand_width, read, read_part, write};
use crate::x86_64::{Flag, Insn, coprocessor};
use iced_x86::Mnemonic;

extension! { "bmi";
    /// Second operand where the first has zeros.
    [Andn], exact (m, i) {
        let (a, b) = (read(m, i, 1), read(m, i, 2));
        let a = m.un(UnOp::Not, a);
        let result = m.bin(BinOp::And, a, b);
        write(m, i, 0, result);
        set_result_flags(m, result);
        m.put_known(&[Flag::Cf, Flag::Of, Flag::Af, Flag::Pf], false);
    }
    "andn eax,ebx,ecx" = "c4e260f2c1", "andn rax,rbx,[rdi]" = "c4e2e0f207";

    /// A field of bits, start and length from bytes of the last operand.
    [Bextr], exact (m, i) {
        let (value, control) = (read(m, i, 1), read(m, i, 2));
        let start = m.bin_const(BinOp::And, control, 0xff);
        let length = m.bin_const(BinOp::LShr, control, 8);
        let length = m.bin_const(BinOp::And, length, 0xff);
        let field = shift_or_zero(m, BinOp::LShr, value, start);
        let result = low_bits(m, field, length);
        write(m, i, 0, result);
        let zero = m.is_zero(result);
        m.put(Flag::Zf, zero);
        m.put_known(&[Flag::Cf, Flag::Of, Flag::Sf, Flag::Af, Flag::Pf], false);
    }
    "bextr eax,ebx,ecx" = "c4e270f7c3", "bextr rax,[rdi],rcx" = "c4e2f0f707";

    /// The lowest set bit.
    [Blsi], exact (m, i) {
        let value = read(m, i, 1);
        let negated = m.un(UnOp::Neg, value);
        let result = m.bin(BinOp::And, value, negated);
        let carry = m.is_nonzero(value);
        write_lowest_bit(m, i, result, carry);
    }
    "blsi eax,ebx" = "c4e278f3db", "blsi rax,[rdi]" = "c4e2f8f31f";

    /// The lowest set bit cleared.
    [Blsr], exact (m, i) {
        let value = read(m, i, 1);
        let less = m.bin_const(BinOp::Sub, value, 1);
        let result = m.bin(BinOp::And, value, less);
        let carry = m.is_zero(value);
        write_lowest_bit(m, i, result, carry);
    }
    "blsr eax,ebx" = "c4e278f3cb", "blsr rax,[rdi]" = "c4e2f8f30f";

    /// All bits up to the lowest set one.
    [Blsmsk], exact (m, i) {
        let value = read(m, i, 1);
        let less = m.bin_const(BinOp::Sub, value, 1);
        let result = m.bin(BinOp::Xor, value, less);
        let carry = m.is_zero(value);
        write_lowest_bit(m, i, result, carry);
    }
    "blsmsk eax,ebx" = "c4e278f3d3", "blsmsk rax,[rdi]" = "c4e2f8f317";

    /// Bits from an index up cleared.
    [Bzhi], exact (m, i) {
        let (value, index) = (read(m, i, 1), read(m, i, 2));
        let index = m.bin_const(BinOp::And, index, 0xff);
        let result = low_bits(m, value, index);
        write(m, i, 0, result);
        let last = m.like(index, u64::from(operand_width(i, 0).bits()) - 1);
        let beyond = m.cmp(CmpOp::Ult, last, index);
        set_result_flags(m, result);
        m.put(Flag::Cf, beyond);
        m.put_known(&[Flag::Of, Flag::Af, Flag::Pf], false);
    }
    "bzhi eax,ebx,ecx" = "c4e270f5c3", "bzhi rax,[rdi],rcx" = "c4e2f0f507";

    /// Deposit bits at the ones of a mask.
    [Pdep], exact (m, i) { permute(m, i, coprocessor::DEPOSIT); }
    "pdep eax,ebx,ecx" = "c4e263f5c1", "pdep rax,rbx,[rdi]" = "c4e2e3f507";

    /// Extract the bits at the ones of a mask.
    [Pext], exact (m, i) { permute(m, i, coprocessor::EXTRACT); }
    "pext eax,ebx,ecx" = "c4e262f5c1", "pext rax,rbx,[rdi]" = "c4e2e2f507";

    /// Unsigned product with rdx, no flags; the high half is written last.
    [Mulx], exact (m, i) {
        let width = operand_width(i, 0);
        let (a, b) = (read_part(m, gpr::RDX, width), read(m, i, 2));
        let (a, b) = (m.zext(a, width.double()), m.zext(b, width.double()));
        let product = m.bin(BinOp::Mul, a, b);
        let low = m.trunc(product, width);
        let high = m.bin_const(BinOp::LShr, product, width.bits().into());
        let high = m.trunc(high, width);
        write(m, i, 1, low);
        write(m, i, 0, high);
    }
    "mulx eax,ebx,ecx" = "c4e263f6c1", "mulx rax,rbx,[rdi]" = "c4e2e3f607", "mulx rcx,rcx,rdx" = "c4e2f3f6ca";

    /// Right rotate, no flags.
    [Rorx], exact (m, i) {
        let value = read(m, i, 1);
        let bits = u64::from(operand_width(i, 0).bits());
        let count = u64::from(i.immediate8()) & (bits - 1);
        let right = m.bin_const(BinOp::LShr, value, count);
        let left = m.bin_const(BinOp::Shl, value, (bits - count) & (bits - 1));
        let result = m.bin(BinOp::Or, right, left);
        write(m, i, 0, result);
    }
    "rorx eax,ebx,5" = "c4e37bf0c305", "rorx rax,[rdi],0x21" = "c4e3fbf00721",
    "rorx ecx,edx,0" = "c4e37bf0ca00";

    /// Shifts, no flags.
    [Sarx, Shlx, Shrx], exact (m, i) {
        let (value, count) = (read(m, i, 1), read(m, i, 2));
        let count = m.bin_const(BinOp::And, count, u64::from(operand_width(i, 0).bits()) - 1);
        let op = match i.mnemonic() {
            Mnemonic::Sarx => BinOp::AShr,
            Mnemonic::Shlx => BinOp::Shl,
            _ => BinOp::LShr,
        };
        let result = m.bin(op, value, count);
        write(m, i, 0, result);
    }
    "sarx eax,ebx,ecx" = "c4e272f7c3", "sarx rax,[rdi],rcx" = "c4e2f2f707", "shlx eax,ebx,ecx" = "c4e271f7c3",
    "shlx rax,[rdi],rcx" = "c4e2f1f707", "shrx eax,ebx,ecx" = "c4e273f7c3",
    "shrx rax,[rdi],rcx" = "c4e2f3f707";

    /// Sum and carry, with CF and nothing else.
    [Adcx], exact (m, i) { add_with(m, i, Flag::Cf); }
    "adcx eax,ebx" = "660f38f6c3", "adcx rax,[rdi]" = "66480f38f607";

    /// Sum and carry, with OF as the carry and nothing else.
    [Adox], exact (m, i) { add_with(m, i, Flag::Of); }
    "adox eax,ebx" = "f30f38f6c3", "adox rax,[rdi]" = "f3480f38f607";
}

/// `v` shifted by `count`; zero where the count reaches the width.
fn shift_or_zero<M: X86>(m: &mut M, op: BinOp, v: M::Int, count: M::Int) -> M::Int {
    let bits = u64::from(m.width(v).bits());
    let limit = m.like(count, bits);
    let below = m.cmp(CmpOp::Ult, count, limit);
    let count = m.bin_const(BinOp::And, count, bits - 1);
    let shifted = m.bin(op, v, count);
    let zero = m.like(v, 0);
    m.select(below, shifted, zero)
}

/// The low `count` bits of `v`: all of them from its width on.
fn low_bits<M: X86>(m: &mut M, v: M::Int, count: M::Int) -> M::Int {
    let ones = m.like(v, u64::MAX);
    let above = shift_or_zero(m, BinOp::Shl, ones, count);
    let mask = m.un(UnOp::Not, above);
    m.bin(BinOp::And, v, mask)
}

fn write_lowest_bit<M: X86>(m: &mut M, i: &Insn, result: M::Int, carry: M::Bool) {
    write(m, i, 0, result);
    set_result_flags(m, result);
    m.put(Flag::Cf, carry);
    m.put_known(&[Flag::Of, Flag::Af, Flag::Pf], false);
}

fn permute<M: X86>(m: &mut M, i: &Insn, operation: u32) {
    let (value, mask) = (read(m, i, 1), read(m, i, 2));
    let (value, mask) = (m.zext(value, Width::W128), m.zext(mask, Width::W128));
    let result = m.coprocessor(operation, value, mask);
    let result = m.trunc(result, operand_width(i, 0));
    write(m, i, 0, result);
}

fn add_with<M: X86>(m: &mut M, i: &Insn, flag: Flag) {
    let (a, b) = (read(m, i, 0), read(m, i, 1));
    let carry = m.get(flag);
    let carry = m.bool_to_int(carry, operand_width(i, 0));
    let without = m.bin(BinOp::Add, a, b);
    let sum = m.bin(BinOp::Add, without, carry);
    let first = m.cmp(CmpOp::Ult, without, a);
    let second = m.cmp(CmpOp::Ult, sum, without);
    let carry = m.or(first, second);
    write(m, i, 0, sum);
    m.put(flag, carry);
}
