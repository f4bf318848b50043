//! Operations on AVX-512's mask registers. SDM vol. 2A.

use crate::machine::{BinOp, UnOp, Width};
use crate::x86_64::operand::{X86, memory_address, read, write};
use crate::x86_64::vector::{in_memory, last, number};
use crate::x86_64::{Flag, Insn, Reg};
use BinOp::{Add, And, LShr, Or, Shl, Xor};
use Width::{W8, W16, W32, W64};

extension! { "opmask";
    /// Move the low 8 bits of a mask.
    [Kmovb], exact (m, i) { move_mask(m, i, W8) }
    "kmovb k1,k2" = "c5f990ca", "kmovb k1,eax" = "c5f992c8", "kmovb eax,k2" = "c5f993c2", "kmovb k1,[rdi]" = "c5f9900f", "kmovb [rdi],k2" = "c5f99117";
    /// Masks of bytes, and.
    [Kandb], exact (m, i) { combine_masks(m, i, W8, And) }
    "kandb k1,k2,k3" = "c5ed41cb";
    /// Masks of bytes, or.
    [Korb], exact (m, i) { combine_masks(m, i, W8, Or) }
    "korb k1,k2,k3" = "c5ed45cb";
    /// Masks of bytes, exclusive or.
    [Kxorb], exact (m, i) { combine_masks(m, i, W8, Xor) }
    "kxorb k1,k2,k3" = "c5ed47cb";
    /// A mask of bytes and not another.
    [Kandnb], exact (m, i) { 
        let (a, b) = masks(m, i, W8);
        let a = m.un(UnOp::Not, a);
        let result = m.bin(And, a, b);
        put_mask(m, i, result);
     }
    "kandnb k1,k2,k3" = "c5ed42cb";
    /// Masks of bytes, where they are equal.
    [Kxnorb], exact (m, i) { 
        let (a, b) = masks(m, i, W8);
        let differ = m.bin(Xor, a, b);
        let result = m.un(UnOp::Not, differ);
        put_mask(m, i, result);
     }
    "kxnorb k1,k2,k3" = "c5ed46cb";
    /// A mask of bytes inverted.
    [Knotb], exact (m, i) { 
        let a = mask(m, i, 1, W8);
        let result = m.un(UnOp::Not, a);
        put_mask(m, i, result);
     }
    "knotb k1,k2" = "c5f944ca";
    /// Sum of two masks of bytes.
    [Kaddb], exact (m, i) { combine_masks(m, i, W8, Add) }
    "kaddb k1,k2,k3" = "c5ed4acb";
    /// ZF where the or of two masks of bytes is zero, CF where it is all ones.
    [Kortestb], exact (m, i) { test_or(m, i, W8) }
    "kortestb k1,k2" = "c5f998ca";
    /// ZF where two masks of bytes have nothing in common, CF where the second has nothing outside the first.
    [Ktestb], exact (m, i) { test_and(m, i, W8) }
    "ktestb k1,k2" = "c5f999ca";
    /// A mask of bytes shifted left.
    [Kshiftlb], exact (m, i) { shift_mask(m, i, W8, Shl) }
    "kshiftlb k1,k2,3" = "c4e37932ca03", "kshiftlb k1,k2,0x46" = "c4e37932ca46";
    /// A mask of bytes shifted right.
    [Kshiftrb], exact (m, i) { shift_mask(m, i, W8, LShr) }
    "kshiftrb k1,k2,3" = "c4e37930ca03";
    /// Move the low 16 bits of a mask.
    [Kmovw], exact (m, i) { move_mask(m, i, W16) }
    "kmovw k1,k2" = "c5f890ca", "kmovw k1,eax" = "c5f892c8", "kmovw eax,k2" = "c5f893c2", "kmovw k1,[rdi]" = "c5f8900f", "kmovw [rdi],k2" = "c5f89117";
    /// Masks of words, and.
    [Kandw], exact (m, i) { combine_masks(m, i, W16, And) }
    "kandw k1,k2,k3" = "c5ec41cb";
    /// Masks of words, or.
    [Korw], exact (m, i) { combine_masks(m, i, W16, Or) }
    "korw k1,k2,k3" = "c5ec45cb";
    /// Masks of words, exclusive or.
    [Kxorw], exact (m, i) { combine_masks(m, i, W16, Xor) }
    "kxorw k1,k2,k3" = "c5ec47cb";
    /// A mask of words and not another.
    [Kandnw], exact (m, i) { 
        let (a, b) = masks(m, i, W16);
        let a = m.un(UnOp::Not, a);
        let result = m.bin(And, a, b);
        put_mask(m, i, result);
     }
    "kandnw k1,k2,k3" = "c5ec42cb";
    /// Masks of words, where they are equal.
    [Kxnorw], exact (m, i) { 
        let (a, b) = masks(m, i, W16);
        let differ = m.bin(Xor, a, b);
        let result = m.un(UnOp::Not, differ);
        put_mask(m, i, result);
     }
    "kxnorw k1,k2,k3" = "c5ec46cb";
    /// A mask of words inverted.
    [Knotw], exact (m, i) { 
        let a = mask(m, i, 1, W16);
        let result = m.un(UnOp::Not, a);
        put_mask(m, i, result);
     }
    "knotw k1,k2" = "c5f844ca";
    /// Sum of two masks of words.
    [Kaddw], exact (m, i) { combine_masks(m, i, W16, Add) }
    "kaddw k1,k2,k3" = "c5ec4acb";
    /// ZF where the or of two masks of words is zero, CF where it is all ones.
    [Kortestw], exact (m, i) { test_or(m, i, W16) }
    "kortestw k1,k2" = "c5f898ca";
    /// ZF where two masks of words have nothing in common, CF where the second has nothing outside the first.
    [Ktestw], exact (m, i) { test_and(m, i, W16) }
    "ktestw k1,k2" = "c5f899ca";
    /// A mask of words shifted left.
    [Kshiftlw], exact (m, i) { shift_mask(m, i, W16, Shl) }
    "kshiftlw k1,k2,3" = "c4e3f932ca03", "kshiftlw k1,k2,0x46" = "c4e3f932ca46";
    /// A mask of words shifted right.
    [Kshiftrw], exact (m, i) { shift_mask(m, i, W16, LShr) }
    "kshiftrw k1,k2,3" = "c4e3f930ca03";
    /// Move the low 32 bits of a mask.
    [Kmovd], exact (m, i) { move_mask(m, i, W32) }
    "kmovd k1,k2" = "c4e1f990ca", "kmovd k1,eax" = "c5fb92c8", "kmovd eax,k2" = "c5fb93c2", "kmovd k1,[rdi]" = "c4e1f9900f", "kmovd [rdi],k2" = "c4e1f99117";
    /// Masks of double words, and.
    [Kandd], exact (m, i) { combine_masks(m, i, W32, And) }
    "kandd k1,k2,k3" = "c4e1ed41cb";
    /// Masks of double words, or.
    [Kord], exact (m, i) { combine_masks(m, i, W32, Or) }
    "kord k1,k2,k3" = "c4e1ed45cb";
    /// Masks of double words, exclusive or.
    [Kxord], exact (m, i) { combine_masks(m, i, W32, Xor) }
    "kxord k1,k2,k3" = "c4e1ed47cb";
    /// A mask of double words and not another.
    [Kandnd], exact (m, i) { 
        let (a, b) = masks(m, i, W32);
        let a = m.un(UnOp::Not, a);
        let result = m.bin(And, a, b);
        put_mask(m, i, result);
     }
    "kandnd k1,k2,k3" = "c4e1ed42cb";
    /// Masks of double words, where they are equal.
    [Kxnord], exact (m, i) { 
        let (a, b) = masks(m, i, W32);
        let differ = m.bin(Xor, a, b);
        let result = m.un(UnOp::Not, differ);
        put_mask(m, i, result);
     }
    "kxnord k1,k2,k3" = "c4e1ed46cb";
    /// A mask of double words inverted.
    [Knotd], exact (m, i) { 
        let a = mask(m, i, 1, W32);
        let result = m.un(UnOp::Not, a);
        put_mask(m, i, result);
     }
    "knotd k1,k2" = "c4e1f944ca";
    /// Sum of two masks of double words.
    [Kaddd], exact (m, i) { combine_masks(m, i, W32, Add) }
    "kaddd k1,k2,k3" = "c4e1ed4acb";
    /// ZF where the or of two masks of double words is zero, CF where it is all ones.
    [Kortestd], exact (m, i) { test_or(m, i, W32) }
    "kortestd k1,k2" = "c4e1f998ca";
    /// ZF where two masks of double words have nothing in common, CF where the second has nothing outside the first.
    [Ktestd], exact (m, i) { test_and(m, i, W32) }
    "ktestd k1,k2" = "c4e1f999ca";
    /// A mask of double words shifted left.
    [Kshiftld], exact (m, i) { shift_mask(m, i, W32, Shl) }
    "kshiftld k1,k2,3" = "c4e37933ca03", "kshiftld k1,k2,0x46" = "c4e37933ca46";
    /// A mask of double words shifted right.
    [Kshiftrd], exact (m, i) { shift_mask(m, i, W32, LShr) }
    "kshiftrd k1,k2,3" = "c4e37931ca03";
    /// Move the low 64 bits of a mask.
    [Kmovq], exact (m, i) { move_mask(m, i, W64) }
    "kmovq k1,k2" = "c4e1f890ca", "kmovq k1,rax" = "c4e1fb92c8", "kmovq rax,k2" = "c4e1fb93c2", "kmovq k1,[rdi]" = "c4e1f8900f", "kmovq [rdi],k2" = "c4e1f89117";
    /// Masks of quad words, and.
    [Kandq], exact (m, i) { combine_masks(m, i, W64, And) }
    "kandq k1,k2,k3" = "c4e1ec41cb";
    /// Masks of quad words, or.
    [Korq], exact (m, i) { combine_masks(m, i, W64, Or) }
    "korq k1,k2,k3" = "c4e1ec45cb";
    /// Masks of quad words, exclusive or.
    [Kxorq], exact (m, i) { combine_masks(m, i, W64, Xor) }
    "kxorq k1,k2,k3" = "c4e1ec47cb";
    /// A mask of quad words and not another.
    [Kandnq], exact (m, i) { 
        let (a, b) = masks(m, i, W64);
        let a = m.un(UnOp::Not, a);
        let result = m.bin(And, a, b);
        put_mask(m, i, result);
     }
    "kandnq k1,k2,k3" = "c4e1ec42cb";
    /// Masks of quad words, where they are equal.
    [Kxnorq], exact (m, i) { 
        let (a, b) = masks(m, i, W64);
        let differ = m.bin(Xor, a, b);
        let result = m.un(UnOp::Not, differ);
        put_mask(m, i, result);
     }
    "kxnorq k1,k2,k3" = "c4e1ec46cb";
    /// A mask of quad words inverted.
    [Knotq], exact (m, i) { 
        let a = mask(m, i, 1, W64);
        let result = m.un(UnOp::Not, a);
        put_mask(m, i, result);
     }
    "knotq k1,k2" = "c4e1f844ca";
    /// Sum of two masks of quad words.
    [Kaddq], exact (m, i) { combine_masks(m, i, W64, Add) }
    "kaddq k1,k2,k3" = "c4e1ec4acb";
    /// ZF where the or of two masks of quad words is zero, CF where it is all ones.
    [Kortestq], exact (m, i) { test_or(m, i, W64) }
    "kortestq k1,k2" = "c4e1f898ca";
    /// ZF where two masks of quad words have nothing in common, CF where the second has nothing outside the first.
    [Ktestq], exact (m, i) { test_and(m, i, W64) }
    "ktestq k1,k2" = "c4e1f899ca";
    /// A mask of quad words shifted left.
    [Kshiftlq], exact (m, i) { shift_mask(m, i, W64, Shl) }
    "kshiftlq k1,k2,3" = "c4e3f933ca03", "kshiftlq k1,k2,0x46" = "c4e3f933ca46";
    /// A mask of quad words shifted right.
    [Kshiftrq], exact (m, i) { shift_mask(m, i, W64, LShr) }
    "kshiftrq k1,k2,3" = "c4e3f931ca03";
    /// Two masks side by side.
    [Kunpckbw], exact (m, i) { join_masks(m, i, W8) }
    "kunpckbw k1,k2,k3" = "c5ed4bcb";
    /// Two masks side by side.
    [Kunpckwd], exact (m, i) { join_masks(m, i, W16) }
    "kunpckwd k1,k2,k3" = "c5ec4bcb";
    /// Two masks side by side.
    [Kunpckdq], exact (m, i) { join_masks(m, i, W32) }
    "kunpckdq k1,k2,k3" = "c4e1ec4bcb";
}

/// Operand `op`, a mask register, in `width`.
fn mask<M: X86>(m: &mut M, i: &Insn, op: u32, width: Width) -> M::Int {
    let mask = m.reg(Reg::Opmask(number(i, op) as u8));
    m.trunc(mask, width)
}

fn masks<M: X86>(m: &mut M, i: &Insn, width: Width) -> (M::Int, M::Int) {
    (mask(m, i, last(i) - 1, width), mask(m, i, last(i), width))
}

/// Write the mask register that operand 0 is; what is above is cleared.
fn put_mask<M: X86>(m: &mut M, i: &Insn, value: M::Int) {
    let value = m.zext(value, W64);
    m.set_reg(Reg::Opmask(number(i, 0) as u8), value);
}

fn combine_masks<M: X86>(m: &mut M, i: &Insn, width: Width, op: BinOp) {
    let (a, b) = masks(m, i, width);
    let result = m.bin(op, a, b);
    put_mask(m, i, result);
}

/// KMOV: between mask registers, general registers and memory.
fn move_mask<M: X86>(m: &mut M, i: &Insn, width: Width) {
    let value = match i.op1_register() {
        register if register.is_k() => mask(m, i, 1, width),
        _ => {
            let value = read(m, i, 1);
            m.resize(value, width)
        }
    };
    if i.op0_register().is_k() {
        put_mask(m, i, value);
    } else if in_memory(i, 0) {
        let address = memory_address(m, i);
        m.store(address, value);
    } else {
        let wide = m.resize(value, if width == W64 { W64 } else { W32 });
        write(m, i, 0, wide);
    }
}

fn shift_mask<M: X86>(m: &mut M, i: &Insn, width: Width, op: BinOp) {
    let count = u32::from(i.immediate8());
    let result = if count < width.bits() {
        let value = mask(m, i, 1, width);
        m.bin_const(op, value, count.into())
    } else {
        m.int(width, 0)
    };
    put_mask(m, i, result);
}

/// KUNPCK: the first above the second.
fn join_masks<M: X86>(m: &mut M, i: &Insn, width: Width) {
    let (high, low) = masks(m, i, width);
    let (high, low) = (m.zext(high, W64), m.zext(low, W64));
    let high = m.bin_const(Shl, high, width.bits().into());
    let result = m.bin(Or, high, low);
    put_mask(m, i, result);
}

fn put_flags<M: X86>(m: &mut M, zf: M::Bool, cf: M::Bool) {
    m.put(Flag::Zf, zf);
    m.put(Flag::Cf, cf);
    m.put_known(&[Flag::Of, Flag::Sf, Flag::Af, Flag::Pf], false);
}

fn test_or<M: X86>(m: &mut M, i: &Insn, width: Width) {
    let (a, b) = masks(m, i, width);
    let any = m.bin(Or, a, b);
    let missing = m.un(UnOp::Not, any);
    let (zf, cf) = (m.is_zero(any), m.is_zero(missing));
    put_flags(m, zf, cf);
}

fn test_and<M: X86>(m: &mut M, i: &Insn, width: Width) {
    let (a, b) = masks(m, i, width);
    let common = m.bin(And, a, b);
    let outside = m.un(UnOp::Not, a);
    let outside = m.bin(And, outside, b);
    let (zf, cf) = (m.is_zero(common), m.is_zero(outside));
    put_flags(m, zf, cf);
}
