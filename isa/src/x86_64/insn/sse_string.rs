//! Comparison of strings in vectors (SSE4.2). SDM vol. 1, 12.5; vol. 2B, 4.1.
//!
//! Operand 0 is what is looked for, operand 1 what it is looked for in. What is known of each of their lanes
//! is kept as an integer with a bit per lane.

use crate::machine::{BinOp, CmpOp, LaneOp, UnOp, Width};
use crate::x86_64::operand::{X86, gpr, write_part};
use crate::x86_64::vector::{BLOCK, constant, from_low, left, set_register, unaligned};
use crate::x86_64::{Flag, Insn};
use BinOp::{And, LShr, Or, Shl, Sub, Xor};
use Width::{W8, W16, W32, W64};

extension! { "sse_string";
    /// Where strings with a terminating zero match.
    [Pcmpistri, Vpcmpistri], exact (m, i) { index(m, i, Lengths::Implicit) }
    "pcmpistri xmm1,xmm2,0" = "660f3a63ca00", "pcmpistri xmm1,[rdi],5" = "660f3a630f05", "pcmpistri xmm1,xmm2,0xa" = "660f3a63ca0a",
    "pcmpistri xmm1,xmm2,0xf" = "660f3a63ca0f", "pcmpistri xmm1,xmm2,0x3a" = "660f3a63ca3a", "pcmpistri xmm1,xmm2,0x4c" = "660f3a63ca4c",
    "pcmpistri xmm1,xmm2,0x56" = "660f3a63ca56",
    "vpcmpistri xmm1,xmm2,0" = "c4e37963ca00";
    /// The mask of where strings with a terminating zero match.
    [Pcmpistrm, Vpcmpistrm], exact (m, i) { mask(m, i, Lengths::Implicit) }
    "pcmpistrm xmm1,xmm2,0" = "660f3a62ca00", "pcmpistrm xmm1,xmm2,0x44" = "660f3a62ca44", "pcmpistrm xmm1,[rdi],0x49" = "660f3a620f49",
    "pcmpistrm xmm1,xmm2,0x7d" = "660f3a62ca7d",
    "vpcmpistrm xmm1,xmm2,0" = "c4e37962ca00";
    /// Where strings of given lengths match.
    [Pcmpestri, Vpcmpestri], exact (m, i) { index(m, i, Lengths::Explicit(W32)) }
    "pcmpestri xmm1,xmm2,0" = "660f3a61ca00", "pcmpestri xmm1,[rdi],0xd" = "660f3a610f0d", "pcmpestri xmm1,xmm2,0x1a" = "660f3a61ca1a",
    "pcmpestri xmm1,xmm2,0x77" = "660f3a61ca77",
    "vpcmpestri xmm1,xmm2,0" = "c4e37961ca00";
    /// The mask of where strings of given lengths match.
    [Pcmpestrm, Vpcmpestrm], exact (m, i) { mask(m, i, Lengths::Explicit(W32)) }
    "pcmpestrm xmm1,xmm2,0" = "660f3a60ca00", "pcmpestrm xmm1,xmm2,0x4b" = "660f3a60ca4b", "pcmpestrm xmm1,[rdi],0x31" = "660f3a600f31",
    "vpcmpestrm xmm1,xmm2,0" = "c4e37960ca00";
    /// Where strings of given 64-bit lengths match.
    [Pcmpestri64, Vpcmpestri64], exact (m, i) { index(m, i, Lengths::Explicit(W64)) }
    "pcmpestri64 xmm1,xmm2,0" = "66480f3a61ca00", "vpcmpestri64 xmm1,xmm2,0" = "c4e3f961ca00";
    /// The mask of where strings of given 64-bit lengths match.
    [Pcmpestrm64, Vpcmpestrm64], exact (m, i) { mask(m, i, Lengths::Explicit(W64)) }
    "pcmpestrm64 xmm1,xmm2,0x40" = "66480f3a60ca40", "vpcmpestrm64 xmm1,xmm2,0x40" = "c4e3f960ca40";
}

/// Where a string's length comes from: its first zero, or rax and rdx in a width.
#[derive(Clone, Copy)]
enum Lengths {
    Implicit,
    Explicit(Width),
}

/// The immediate byte.
#[derive(Clone, Copy)]
struct Control(u8);

impl Control {
    fn lane(self) -> Width {
        if self.0 & 1 != 0 { W16 } else { W8 }
    }

    fn count(self) -> u32 {
        BLOCK / self.lane().bits()
    }

    /// A bit for every lane.
    fn all(self) -> u64 {
        (1 << self.count()) - 1
    }

    fn at_most(self) -> LaneOp {
        LaneOp::Cmp(if self.0 & 2 != 0 { CmpOp::Sle } else { CmpOp::Ule })
    }

    /// Bit 6: the last match rather than the first, lanes rather than bits.
    fn selects_other_output(self) -> bool {
        self.0 & 0x40 != 0
    }
}

/// PCMPxSTRI: to ecx.
fn index<M: X86>(m: &mut M, i: &Insn, lengths: Lengths) {
    let control = Control(i.immediate8());
    let matches = compare(m, i, control, lengths);
    let none = m.int(W32, control.count().into());
    let index = if control.selects_other_output() {
        let above = m.un(UnOp::LeadingZeros, matches);
        let last = m.int(W32, 31);
        let last = m.bin(Sub, last, above);
        let found = m.is_nonzero(matches);
        m.select(found, last, none)
    } else {
        let limited = m.bin_const(Or, matches, 1 << control.count());
        m.un(UnOp::TrailingZeros, limited)
    };
    write_part(m, gpr::RCX, index);
}

/// PCMPxSTRM: to xmm0.
fn mask<M: X86>(m: &mut M, i: &Insn, lengths: Lengths) {
    let control = Control(i.immediate8());
    let matches = compare(m, i, control, lengths);
    let mask = if control.selects_other_output() {
        lanes_of_bits(m, matches, control.lane())
    } else {
        from_low(m, matches)
    };
    set_register(m, i, 0, mask);
}

/// All ones in the lanes whose bits are set.
fn lanes_of_bits<M: X86>(m: &mut M, bits: M::Int, lane: Width) -> M::Vec {
    let half = m.trunc(bits, W16);
    let mut everywhere = m.vec_splat(half, BLOCK);
    let single = if lane == W8 {
        everywhere = m.shuffle(W8, everywhere, everywhere, &[0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1]);
        0x8040_2010_0804_0201_8040_2010_0804_0201
    } else {
        0x0080_0040_0020_0010_0008_0004_0002_0001
    };
    let single = constant(m, everywhere, single);
    let own = m.lanes(LaneOp::Int(And), lane, everywhere, single);
    m.lanes(LaneOp::Cmp(CmpOp::Eq), lane, own, single)
}

/// Do the comparison: flags, and a bit for each lane.
fn compare<M: X86>(m: &mut M, i: &Insn, control: Control, lengths: Lengths) -> M::Int {
    let (a, b) = (left(m, i), unaligned(m, i, 1));
    let (valid_a, valid_b) = match lengths {
        Lengths::Implicit => (before_zero(m, control, a), before_zero(m, control, b)),
        Lengths::Explicit(width) => {
            (below_length(m, control, gpr::RAX, width), below_length(m, control, gpr::RDX, width))
        }
    };
    let matches = match control.0 >> 2 & 3 {
        0 => equal_any(m, control, (a, valid_a), (b, valid_b)),
        1 => in_ranges(m, control, (a, valid_a), (b, valid_b)),
        2 => equal_each(m, control, (a, valid_a), (b, valid_b)),
        _ => equal_ordered(m, control, (a, valid_a), (b, valid_b)),
    };
    let matches = match control.0 >> 4 & 3 {
        1 => m.bin_const(Xor, matches, control.all()),
        3 => m.bin(Xor, matches, valid_b),
        _ => matches,
    };
    set_flags(m, control, matches, valid_a, valid_b);
    matches
}

fn set_flags<M: X86>(m: &mut M, control: Control, matches: M::Int, valid_a: M::Int, valid_b: M::Int) {
    let (any, first) = (m.is_nonzero(matches), m.low_bit(matches));
    let all = m.int(W32, control.all());
    let (short_a, short_b) = (m.cmp(CmpOp::Ne, valid_a, all), m.cmp(CmpOp::Ne, valid_b, all));
    for (flag, value) in [(Flag::Cf, any), (Flag::Zf, short_b), (Flag::Sf, short_a), (Flag::Of, first)] {
        m.put(flag, value);
    }
    m.put_known(&[Flag::Af, Flag::Pf], false);
}

/// The lanes before the first that is zero.
fn before_zero<M: X86>(m: &mut M, control: Control, v: M::Vec) -> M::Int {
    let zero = m.vec_zero(BLOCK);
    let zeros = bits_where(m, control, LaneOp::Cmp(CmpOp::Eq), v, zero);
    let below = m.bin_const(Sub, zeros, 1);
    let others = m.un(UnOp::Not, zeros);
    let before = m.bin(And, below, others);
    m.bin_const(And, before, control.all())
}

/// As many lanes as the magnitude of a register counts, or all.
fn below_length<M: X86>(m: &mut M, control: Control, register: u8, width: Width) -> M::Int {
    let length = m.gpr(register);
    let length = m.trunc(length, width);
    let length = m.sext(length, W64);
    let negative = m.is_negative(length);
    let opposite = m.un(UnOp::Neg, length);
    let length = m.select(negative, opposite, length);
    let count = m.int(W64, control.count().into());
    let fits = m.cmp(CmpOp::Ult, length, count);
    let length = m.select(fits, length, count);
    let one = m.int(W64, 1);
    let end = m.bin(Shl, one, length);
    let mask = m.bin_const(Sub, end, 1);
    m.trunc(mask, W32)
}

/// A bit for each lane where a comparison holds.
fn bits_where<M: X86>(m: &mut M, control: Control, comparison: LaneOp, a: M::Vec, b: M::Vec) -> M::Int {
    let mask = m.lanes(comparison, control.lane(), a, b);
    m.sign_mask(mask, control.lane(), W32)
}

/// Lane `n` of `v`, everywhere.
fn everywhere<M: X86>(m: &mut M, control: Control, v: M::Vec, n: u32) -> M::Vec {
    let value = m.lane(v, control.lane(), n);
    m.vec_splat(value, BLOCK)
}

/// `bits` if lane `n` is valid, else `otherwise`.
fn if_valid<M: X86>(m: &mut M, valid: M::Int, n: u32, bits: M::Int, otherwise: u64) -> M::Int {
    let is_valid = m.bit(valid, n);
    let otherwise = m.int(W32, otherwise);
    m.select(is_valid, bits, otherwise)
}

type Operand<M> = (<M as crate::machine::Machine>::Vec, <M as crate::machine::Machine>::Int);

/// Lanes of `b` that are among those of `a`.
fn equal_any<M: X86>(m: &mut M, control: Control, (a, valid_a): Operand<M>, (b, valid_b): Operand<M>) -> M::Int {
    let mut any = m.int(W32, 0);
    for n in 0..control.count() {
        let one = everywhere(m, control, a, n);
        let equal = bits_where(m, control, LaneOp::Cmp(CmpOp::Eq), one, b);
        let equal = if_valid(m, valid_a, n, equal, 0);
        any = m.bin(Or, any, equal);
    }
    m.bin(And, any, valid_b)
}

/// Lanes of `b` that are within one of the ranges which pairs of lanes of `a` give.
fn in_ranges<M: X86>(m: &mut M, control: Control, (a, valid_a): Operand<M>, (b, valid_b): Operand<M>) -> M::Int {
    let mut any = m.int(W32, 0);
    for n in (0..control.count()).step_by(2) {
        let (first, last) = (everywhere(m, control, a, n), everywhere(m, control, a, n + 1));
        let above = bits_where(m, control, control.at_most(), first, b);
        let below = bits_where(m, control, control.at_most(), b, last);
        let within = m.bin(And, above, below);
        // The second lane of a pair is valid only if the first is.
        let within = if_valid(m, valid_a, n + 1, within, 0);
        any = m.bin(Or, any, within);
    }
    m.bin(And, any, valid_b)
}

/// Lanes that are equal, or missing from both.
fn equal_each<M: X86>(m: &mut M, control: Control, (a, valid_a): Operand<M>, (b, valid_b): Operand<M>) -> M::Int {
    let equal = bits_where(m, control, LaneOp::Cmp(CmpOp::Eq), a, b);
    let both = m.bin(And, valid_a, valid_b);
    let equal = m.bin(And, equal, both);
    let either = m.bin(Or, valid_a, valid_b);
    let neither = m.bin_const(Xor, either, control.all());
    m.bin(Or, equal, neither)
}

/// Lanes of `b` at which all of `a` begins, as far as `b` goes.
fn equal_ordered<M: X86>(
    m: &mut M,
    control: Control,
    (a, valid_a): Operand<M>,
    (b, valid_b): Operand<M>,
) -> M::Int {
    let mut starts = m.int(W32, control.all());
    for n in 0..control.count() {
        let one = everywhere(m, control, a, n);
        let equal = bits_where(m, control, LaneOp::Cmp(CmpOp::Eq), one, b);
        let equal = m.bin(And, equal, valid_b);
        // What would be compared beyond the end is taken to be equal.
        let equal = m.bin_const(Or, equal, !control.all());
        let equal = m.bin_const(LShr, equal, n.into());
        let equal = if_valid(m, valid_a, n, equal, u64::MAX);
        starts = m.bin(And, starts, equal);
    }
    starts
}
