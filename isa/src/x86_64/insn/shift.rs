//! Shifts and rotates. SDM vol. 2. The count is masked to 5 bits, 6 for 64-bit operands; a count of zero
//! leaves every flag. OF is defined for a count of one only; what current CPUs leave there otherwise
//! varies, here it follows the same formula.

use crate::machine::{BinOp, UnOp, Width};
use crate::x86_64::flags::set_result_flags;
use crate::x86_64::operand::{X86, operand_width, read, write};
use crate::x86_64::{Flag, Insn};
use iced_x86::OpKind;

extension! { "shift";
    /// Left shift.
    [Shl, Sal], exact (m, i) {
        let a = read(m, i, 0);
        let count = Count::read(m, i, 1);
        let wide = widen(m, a, false);
        let shifted = count.shift(m, BinOp::Shl, wide);
        let result = m.trunc(shifted, operand_width(i, 0));
        write(m, i, 0, result);
        let carry = match operand_width(i, 0) {
            narrow @ (Width::W8 | Width::W16) => m.bit(shifted, narrow.bits()),
            _ => {
                let last = count.shift_by_one_less(m, BinOp::Shl, wide);
                m.is_negative(last)
            }
        };
        let negative = m.is_negative(result);
        let overflow = m.xor(carry, negative);
        count.set_shift_flags(m, carry, overflow, result);
    }
    "shl eax,1" = "d1e0", "shl rax,5" = "48c1e005", "shl byte ptr [rdi],cl" = "d227", "shl cx,cl" = "66d3e1",
    "shl r9,cl" = "49d3e1", "shl edx,cl" = "d3e2", "shl ah,3" = "c0e403", "shl ebx,0" = "c1e300",
    "shl eax,5" = "c1f005";

    /// Logical right shift.
    [Shr], exact (m, i) {
        let a = read(m, i, 0);
        let count = Count::read(m, i, 1);
        let overflow = m.is_negative(a);
        shift_right(m, i, BinOp::LShr, a, count, overflow);
    }
    "shr eax,1" = "d1e8", "shr rax,0x3f" = "48c1e83f", "shr word ptr [rdi],cl" = "66d32f",
    "shr cl,cl" = "d2e9", "shr edx,cl" = "d3ea", "shr rsi,cl" = "48d3ee";

    /// Arithmetic right shift.
    [Sar], exact (m, i) {
        let a = read(m, i, 0);
        let count = Count::read(m, i, 1);
        let overflow = m.bool(false);
        shift_right(m, i, BinOp::AShr, a, count, overflow);
    }
    "sar eax,1" = "d1f8", "sar rax,0x3f" = "48c1f83f", "sar byte ptr [rdi],cl" = "d23f",
    "sar cx,cl" = "66d3f9", "sar edx,0x1f" = "c1fa1f", "sar rbx,cl" = "48d3fb";

    /// Left rotate.
    [Rol], exact (m, i) {
        let a = read(m, i, 0);
        let count = Count::read(m, i, 1);
        let result = rotate(m, a, &count, BinOp::Shl, BinOp::LShr);
        write(m, i, 0, result);
        let carry = m.low_bit(result);
        let top = m.is_negative(result);
        let overflow = m.xor(carry, top);
        count.set_carry_and_overflow(m, carry, overflow);
    }
    "rol eax,1" = "d1c0", "rol rax,0xd" = "48c1c00d", "rol byte ptr [rdi],cl" = "d207",
    "rol cx,8" = "66c1c108", "rol r11d,cl" = "41d3c3", "rol rdx,cl" = "48d3c2";

    /// Right rotate.
    [Ror], exact (m, i) {
        let a = read(m, i, 0);
        let count = Count::read(m, i, 1);
        let result = rotate(m, a, &count, BinOp::LShr, BinOp::Shl);
        write(m, i, 0, result);
        let carry = m.is_negative(result);
        let next = m.bit(result, operand_width(i, 0).bits() - 2);
        let overflow = m.xor(carry, next);
        count.set_carry_and_overflow(m, carry, overflow);
    }
    "ror eax,1" = "d1c8", "ror rax,0xd" = "48c1c80d", "ror byte ptr [rdi],cl" = "d20f",
    "ror cx,8" = "66c1c908", "ror r11d,cl" = "41d3cb", "ror rdx,cl" = "48d3ca";

    /// Left rotate through CF.
    [Rcl], exact (m, i) {
        let count = Count::read(m, i, 1);
        let (result, carry) = rotate_through_carry(m, i, &count, true);
        write(m, i, 0, result);
        let top = m.is_negative(result);
        let overflow = m.xor(carry, top);
        count.set_carry_and_overflow(m, carry, overflow);
    }
    "rcl eax,1" = "d1d0", "rcl rax,cl" = "48d3d0", "rcl byte ptr [rdi],cl" = "d217", "rcl cx,cl" = "66d3d1",
    "rcl edx,7" = "c1d207";

    /// Right rotate through CF.
    [Rcr], exact (m, i) {
        let count = Count::read(m, i, 1);
        let (result, carry) = rotate_through_carry(m, i, &count, false);
        write(m, i, 0, result);
        let (top, next) = (m.is_negative(result), m.bit(result, operand_width(i, 0).bits() - 2));
        let overflow = m.xor(top, next);
        count.set_carry_and_overflow(m, carry, overflow);
    }
    "rcr eax,1" = "d1d8", "rcr rax,cl" = "48d3d8", "rcr byte ptr [rdi],cl" = "d21f", "rcr cx,cl" = "66d3d9",
    "rcr edx,7" = "c1da07";

    /// Left shift that fills up from a second operand.
    [Shld], exact (m, i) {
        let (a, b) = (read(m, i, 0), read(m, i, 1));
        let count = Count::read(m, i, 2);
        let (result, carry) = match operand_width(i, 0) {
            Width::W16 => {
                let pair = concatenate(m, a, b);
                let shifted = count.shift(m, BinOp::Shl, pair);
                let high = m.bin_const(BinOp::LShr, shifted, 16);
                (m.trunc(high, Width::W16), m.bit(shifted, 32))
            }
            _ => {
                let last = count.shift_by_one_less(m, BinOp::Shl, a);
                (funnel(m, a, b, &count, BinOp::Shl, BinOp::LShr), m.is_negative(last))
            }
        };
        write(m, i, 0, result);
        set_double_shift_flags(m, &count, a, result, carry);
    }
    "shld eax,ebx,5" = "0fa4d805", "shld [rdi],rdx,cl" = "480fa517", "shld cx,dx,3" = "660fa4d103",
    "shld rax,rbx,cl" = "480fa5d8", "shld edx,esi,cl" = "0fa5f2";

    /// Right shift that fills up from a second operand.
    [Shrd], exact (m, i) {
        let (a, b) = (read(m, i, 0), read(m, i, 1));
        let count = Count::read(m, i, 2);
        let (result, last) = match operand_width(i, 0) {
            Width::W16 => {
                let pair = concatenate(m, b, a);
                let shifted = count.shift(m, BinOp::LShr, pair);
                (m.trunc(shifted, Width::W16), count.shift_by_one_less(m, BinOp::LShr, pair))
            }
            _ => {
                let last = count.shift_by_one_less(m, BinOp::LShr, a);
                (funnel(m, a, b, &count, BinOp::LShr, BinOp::Shl), last)
            }
        };
        let carry = m.low_bit(last);
        write(m, i, 0, result);
        set_double_shift_flags(m, &count, a, result, carry);
    }
    "shrd eax,ebx,5" = "0facd805", "shrd [rdi],rdx,cl" = "480fad17", "shrd cx,dx,3" = "660facd103",
    "shrd rax,rbx,cl" = "480fadd8", "shrd edx,esi,cl" = "0fadf2";
}

/// A masked shift count.
struct Count<M: X86> {
    value: M::Int,
    /// Whether it is not zero, where that is not known.
    nonzero: Option<M::Bool>,
}

impl<M: X86> Count<M> {
    /// The count in operand `op`, masked for the width of operand 0.
    fn read(m: &mut M, i: &Insn, op: u32) -> Self {
        let mask = if operand_width(i, 0) == Width::W64 { 63 } else { 31 };
        if i.op_kind(op) == OpKind::Immediate8 && i.immediate8() & mask != 0 {
            return Count { value: m.int(Width::W8, (i.immediate8() & mask).into()), nonzero: None };
        }
        let value = read(m, i, op);
        let value = m.bin_const(BinOp::And, value, mask.into());
        let nonzero = m.is_nonzero(value);
        Count { value, nonzero: Some(nonzero) }
    }

    /// `v` shifted by the count; `v` has at least 32 bits.
    fn shift(&self, m: &mut M, op: BinOp, v: M::Int) -> M::Int {
        let count = m.zext(self.value, m.width(v));
        m.bin(op, v, count)
    }

    /// `v` shifted by one less: the bit that then is outermost leaves next. Anything for a count of zero.
    fn shift_by_one_less(&self, m: &mut M, op: BinOp, v: M::Int) -> M::Int {
        let width = m.width(v);
        let count = m.bin_const(BinOp::Sub, self.value, 1);
        let count = m.bin_const(BinOp::And, count, (width.bits() - 1).into());
        let count = m.zext(count, width);
        m.bin(op, v, count)
    }

    /// Set `flag`, unless the count is zero.
    fn put(&self, m: &mut M, flag: Flag, value: M::Bool) {
        let value = match self.nonzero {
            None => value,
            Some(nonzero) => {
                let old = m.get(flag);
                m.select_bool(nonzero, value, old)
            }
        };
        m.put(flag, value);
    }

    fn set_carry_and_overflow(&self, m: &mut M, carry: M::Bool, overflow: M::Bool) {
        self.put(m, Flag::Cf, carry);
        self.put(m, Flag::Of, overflow);
    }

    /// All flags of a shift, unless the count is zero. AF is undefined.
    fn set_shift_flags(&self, m: &mut M, carry: M::Bool, overflow: M::Bool, result: M::Int) {
        let kept = self.nonzero.map(|nonzero| {
            (nonzero, [Flag::Sf, Flag::Zf, Flag::Pf, Flag::Af].map(|flag| (flag, m.get(flag))))
        });
        set_result_flags(m, result);
        m.put_known(&[Flag::Af], false);
        for (nonzero, (flag, old)) in kept.into_iter().flat_map(|(nonzero, kept)| kept.map(|k| (nonzero, k))) {
            let new = m.get(flag);
            let value = m.select_bool(nonzero, new, old);
            m.put(flag, value);
        }
        self.set_carry_and_overflow(m, carry, overflow);
        if self.nonzero.is_none() {
            m.flags_follow_result(result);
        }
    }
}

/// `v` in at least 32 bits, so that every masked count is below its width.
fn widen<M: X86>(m: &mut M, v: M::Int, signed: bool) -> M::Int {
    let width = m.width(v).max(Width::W32);
    if signed { m.sext(v, width) } else { m.zext(v, width) }
}

fn shift_right<M: X86>(m: &mut M, i: &Insn, op: BinOp, a: M::Int, count: Count<M>, overflow: M::Bool) {
    let wide = widen(m, a, op == BinOp::AShr);
    let shifted = count.shift(m, op, wide);
    let result = m.trunc(shifted, operand_width(i, 0));
    write(m, i, 0, result);
    let last = count.shift_by_one_less(m, op, wide);
    let carry = m.low_bit(last);
    count.set_shift_flags(m, carry, overflow, result);
}

/// `a` rotated in the direction of shift `along`; `against` is the other direction.
fn rotate<M: X86>(m: &mut M, a: M::Int, count: &Count<M>, along: BinOp, against: BinOp) -> M::Int {
    let width = m.width(a);
    let mask = u64::from(width.bits()) - 1;
    let by = m.resize(count.value, width);
    let by = m.bin_const(BinOp::And, by, mask);
    let rest = m.un(UnOp::Neg, by);
    let rest = m.bin_const(BinOp::And, rest, mask);
    let (out, back) = (m.bin(along, a, by), m.bin(against, a, rest));
    m.bin(BinOp::Or, out, back)
}

/// Operand 0 and CF above it rotated as one; yields both.
fn rotate_through_carry<M: X86>(m: &mut M, i: &Insn, count: &Count<M>, left: bool) -> (M::Int, M::Bool) {
    let width = operand_width(i, 0);
    let wide = if width == Width::W64 { Width::W128 } else { Width::W64 };
    let (a, carry) = (read(m, i, 0), m.get(Flag::Cf));
    let (a, carry) = (m.zext(a, wide), m.bool_to_int(carry, wide));
    let carry = m.bin_const(BinOp::Shl, carry, width.bits().into());
    let joined = m.bin(BinOp::Or, a, carry);

    let size = u64::from(width.bits()) + 1;
    let count = m.zext(count.value, wide);
    let by = if width < Width::W32 { m.bin_const(BinOp::URem, count, size) } else { count };
    let whole = m.int(wide, size);
    let rest = m.bin(BinOp::Sub, whole, by);
    let (up, down) = if left { (by, rest) } else { (rest, by) };
    let (high, low) = (m.bin(BinOp::Shl, joined, up), m.bin(BinOp::LShr, joined, down));
    let rotated = m.bin(BinOp::Or, high, low);
    (m.trunc(rotated, width), m.bit(rotated, width.bits()))
}

/// `a` shifted by `along`, filled up with what `against` shifts out of `b`; 32 or 64 bits. The second shift is
/// done in two steps because it is by the whole width for a count of zero.
fn funnel<M: X86>(
    m: &mut M,
    a: M::Int,
    b: M::Int,
    count: &Count<M>,
    along: BinOp,
    against: BinOp,
) -> M::Int {
    let width = m.width(a);
    let shifted = count.shift(m, along, a);
    let rest = m.zext(count.value, width);
    let rest = m.bin_const(BinOp::Xor, rest, u64::from(width.bits()) - 1);
    let filling = m.bin_const(against, b, 1);
    let filling = m.bin(against, filling, rest);
    m.bin(BinOp::Or, shifted, filling)
}

/// Two 16-bit integers in the low half of 64 bits.
fn concatenate<M: X86>(m: &mut M, high: M::Int, low: M::Int) -> M::Int {
    let (high, low) = (m.zext(high, Width::W64), m.zext(low, Width::W64));
    let high = m.bin_const(BinOp::Shl, high, 16);
    m.bin(BinOp::Or, high, low)
}

fn set_double_shift_flags<M: X86>(m: &mut M, count: &Count<M>, a: M::Int, result: M::Int, carry: M::Bool) {
    let changed = m.bin(BinOp::Xor, a, result);
    let overflow = m.is_negative(changed);
    count.set_shift_flags(m, carry, overflow, result);
}
