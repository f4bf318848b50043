//! Multiplication and division. SDM vol. 2.

use crate::machine::{BinOp, CmpOp, Trap, UnOp, Width};
use crate::x86_64::operand::{X86, gpr, operand_width, read, read_part, write, write_part};
use crate::x86_64::Flag;

extension! { "multiply";
    /// Unsigned product in rdx:rax.
    [Mul], exact (m, i) {
        let width = operand_width(i, 0);
        let (a, b) = (read_part(m, gpr::RAX, width), read(m, i, 0));
        let (a, b) = (m.zext(a, width.double()), m.zext(b, width.double()));
        let product = m.bin(BinOp::Mul, a, b);
        let high = write_pair(m, product);
        let overflow = m.is_nonzero(high);
        set_multiply_flags(m, overflow);
    }
    "mul ebx" = "f7e3", "mul byte ptr [rdi]" = "f627", "mul cx" = "66f7e1", "mul qword ptr [rsi]" = "48f726",
    "mul ah" = "f6e4";

    /// Signed product in rdx:rax.
    [Imul] if i.op_count() == 1, exact (m, i) {
        let width = operand_width(i, 0);
        let (a, b) = (read_part(m, gpr::RAX, width), read(m, i, 0));
        let (product, overflow) = signed_product(m, a, b);
        write_pair(m, product);
        set_multiply_flags(m, overflow);
    }
    "imul ebx" = "f7eb", "imul byte ptr [rdi]" = "f62f", "imul cx" = "66f7e9", "imul rcx" = "48f7e9",
    "imul bh" = "f6ef";

    /// Signed product of the last two operands, truncated.
    [Imul] if i.op_count() > 1, exact (m, i) {
        let last = i.op_count() - 1;
        let (a, b) = (read(m, i, last - 1), read(m, i, last));
        let (product, overflow) = signed_product(m, a, b);
        let low = m.trunc(product, operand_width(i, 0));
        write(m, i, 0, low);
        set_multiply_flags(m, overflow);
    }
    "imul eax,ebx" = "0fafc3", "imul rcx,[rdi]" = "480faf0f", "imul dx,[rsi],-7" = "666b16f9",
    "imul r8,r9,0x12345" = "4d69c145230100", "imul edx,ecx,3" = "6bd103";

    /// Unsigned division of rdx:rax; a zero divisor or a quotient too large is #DE.
    [Div], exact (m, i) {
        let divisor = read(m, i, 0);
        divide(m, divisor, false);
    }
    "div ebx" = "f7f3", "div byte ptr [rdi]" = "f637", "div cx" = "66f7f1", "div rcx" = "48f7f1",
    "div qword ptr [rsi]" = "48f736", "div ch" = "f6f5";

    /// Signed division of rdx:rax; a zero divisor or a quotient out of range is #DE.
    [Idiv], exact (m, i) {
        let divisor = read(m, i, 0);
        divide(m, divisor, true);
    }
    "idiv ebx" = "f7fb", "idiv byte ptr [rdi]" = "f63f", "idiv cx" = "66f7f9", "idiv rcx" = "48f7f9",
    "idiv dword ptr [rsi]" = "f73e", "idiv bl" = "f6fb";
}

/// Write a double-width value to rdx:rax, or to ax if it has 16 bits; yields its high half.
fn write_pair<M: X86>(m: &mut M, pair: M::Int) -> M::Int {
    let width = m.width(pair).half();
    let low = m.trunc(pair, width);
    let high = m.bin_const(BinOp::LShr, pair, width.bits().into());
    let high = m.trunc(high, width);
    write_high_low(m, high, low);
    high
}

/// Write rdx:rax, or ah:al, at the width of the halves.
fn write_high_low<M: X86>(m: &mut M, high: M::Int, low: M::Int) {
    if m.width(low) == Width::W8 {
        let (high, low) = (m.zext(high, Width::W16), m.zext(low, Width::W16));
        let high = m.bin_const(BinOp::Shl, high, 8);
        let pair = m.bin(BinOp::Or, high, low);
        write_part(m, gpr::RAX, pair);
    } else {
        write_part(m, gpr::RAX, low);
        write_part(m, gpr::RDX, high);
    }
}

/// The double-width product, and whether it needs more than single width.
fn signed_product<M: X86>(m: &mut M, a: M::Int, b: M::Int) -> (M::Int, M::Bool) {
    let width = m.width(a);
    let (a, b) = (m.sext(a, width.double()), m.sext(b, width.double()));
    let product = m.bin(BinOp::Mul, a, b);
    let low = m.trunc(product, width);
    let low = m.sext(low, width.double());
    (product, m.cmp(CmpOp::Ne, low, product))
}

/// CF and OF say that the high half matters; the others are undefined.
fn set_multiply_flags<M: X86>(m: &mut M, overflow: M::Bool) {
    m.put(Flag::Cf, overflow);
    m.put(Flag::Of, overflow);
    m.put_known(&[Flag::Sf, Flag::Zf, Flag::Af, Flag::Pf], false);
}

/// DIV and IDIV: rdx:rax, or ax, by `divisor`.
fn divide<M: X86>(m: &mut M, divisor: M::Int, signed: bool) {
    let width = m.width(divisor);
    let by_zero = m.is_zero(divisor);
    m.trap_if(by_zero, Trap::Divide);
    if width == Width::W8 {
        let dividend = read_part(m, gpr::RAX, Width::W16);
        divide_wide(m, dividend, divisor, signed);
        return;
    }
    let (high, low) = (read_part(m, gpr::RDX, width), read_part(m, gpr::RAX, width));
    if width < Width::W64 {
        let dividend = pair(m, high, low);
        divide_wide(m, dividend, divisor, signed);
        return;
    }
    // Hosts have no division of 128 bits, and compilers' code seldom needs it.
    let fits = if signed { fits_signed(m, high, low, divisor) } else { m.is_zero(high) };
    m.when(fits, &mut |m| {
        let (quotient, remainder) = quotient_and_remainder(m, low, divisor, signed);
        write_high_low(m, remainder, quotient);
    });
    let wide = m.not(fits);
    m.when(wide, &mut |m| {
        let dividend = pair(m, high, low);
        // Asked beforehand: a host that divides 128 bits stops at an overflow by itself.
        let overflow = quotient_overflows(m, dividend, divisor, signed);
        m.trap_if(overflow, Trap::Divide);
        let divisor = extend(m, divisor, Width::W128, signed);
        let (quotient, remainder) = quotient_and_remainder(m, dividend, divisor, signed);
        let (quotient, remainder) = (m.trunc(quotient, width), m.trunc(remainder, width));
        write_high_low(m, remainder, quotient);
    });
    m.put_known(&DIVIDE_FLAGS, false);
}

/// All are undefined.
const DIVIDE_FLAGS: [Flag; 6] = [Flag::Cf, Flag::Pf, Flag::Af, Flag::Zf, Flag::Sf, Flag::Of];

/// `high` is but the sign of `low`, and the quotient of `low` exists.
fn fits_signed<M: X86>(m: &mut M, high: M::Int, low: M::Int, divisor: M::Int) -> M::Bool {
    let sign = m.bin_const(BinOp::AShr, low, 63);
    let extends = m.cmp(CmpOp::Eq, high, sign);
    let exists = m.un(UnOp::Not, divisor);
    let exists = m.is_nonzero(exists);
    m.and(extends, exists)
}

/// `high:low` as one integer.
fn pair<M: X86>(m: &mut M, high: M::Int, low: M::Int) -> M::Int {
    let width = m.width(low);
    let (high, low) = (m.zext(high, width.double()), m.zext(low, width.double()));
    let high = m.bin_const(BinOp::Shl, high, width.bits().into());
    m.bin(BinOp::Or, high, low)
}

fn quotient_and_remainder<M: X86>(m: &mut M, a: M::Int, b: M::Int, signed: bool) -> (M::Int, M::Int) {
    let (quotient, remainder) =
        if signed { (BinOp::SDiv, BinOp::SRem) } else { (BinOp::UDiv, BinOp::URem) };
    (m.bin(quotient, a, b), m.bin(remainder, a, b))
}

/// Whether the quotient of 128 by 64 bits needs more than 64: the magnitude of the dividend is then at least 2^63
/// (or, where the quotient is negative, 2^63 + 1) times the divisor's.
fn quotient_overflows<M: X86>(m: &mut M, dividend: M::Int, divisor: M::Int, signed: bool) -> M::Bool {
    if !signed {
        let high = m.bin_const(BinOp::LShr, dividend, 64);
        let divisor = m.zext(divisor, Width::W128);
        return m.cmp(CmpOp::Ule, divisor, high);
    }
    let divisor = m.sext(divisor, Width::W128);
    let signs = m.bin(BinOp::Xor, dividend, divisor);
    let (negative, zero) = (is_negative(m, signs), m.int(Width::W128, 0));
    let (dividend, divisor) = (magnitude(m, dividend), magnitude(m, divisor));
    let once_more = m.select(negative, divisor, zero);
    let limit = m.bin_const(BinOp::Shl, divisor, 63);
    let limit = m.bin(BinOp::Add, limit, once_more);
    m.cmp(CmpOp::Ule, limit, dividend)
}

fn is_negative<M: X86>(m: &mut M, a: M::Int) -> M::Bool {
    let width = m.width(a);
    let zero = m.int(width, 0);
    m.cmp(CmpOp::Slt, a, zero)
}

fn magnitude<M: X86>(m: &mut M, a: M::Int) -> M::Int {
    let (negative, negated) = (is_negative(m, a), m.un(UnOp::Neg, a));
    m.select(negative, negated, a)
}

fn extend<M: X86>(m: &mut M, a: M::Int, width: Width, signed: bool) -> M::Int {
    if signed { m.sext(a, width) } else { m.zext(a, width) }
}

/// Divide a dividend of twice the divisor's width; the divisor is not zero.
fn divide_wide<M: X86>(m: &mut M, dividend: M::Int, divisor: M::Int, signed: bool) {
    let (width, double) = (m.width(divisor), m.width(dividend));
    let divisor = extend(m, divisor, double, signed);
    if signed {
        // The one quotient that does not even exist in double width.
        let top = m.int(double, 1);
        let top = m.bin_const(BinOp::Shl, top, u64::from(double.bits()) - 1);
        let lowest = m.cmp(CmpOp::Eq, dividend, top);
        let minus_one = m.un(UnOp::Not, divisor);
        let minus_one = m.is_zero(minus_one);
        let overflow = m.and(lowest, minus_one);
        m.trap_if(overflow, Trap::Divide);
    }
    let (quotient, remainder) = quotient_and_remainder(m, dividend, divisor, signed);
    let (low, remainder) = (m.trunc(quotient, width), m.trunc(remainder, width));
    let back = extend(m, low, double, signed);
    let overflow = m.cmp(CmpOp::Ne, back, quotient);
    m.trap_if(overflow, Trap::Divide);
    write_high_low(m, remainder, low);
    m.put_known(&DIVIDE_FLAGS, false);
}
