//! AVX-512's integer operations beside AVX2's: dot products (VNNI), double-width shifts and bit fields (VBMI, VBMI2,
//! BITALG), conflicts (CD), sliding differences. SDM vol. 2C.

use crate::machine::{BinOp, CmpOp, LaneOp, Width};
use crate::x86_64::operand::X86;
use crate::x86_64::vector::{
    bits, bitwise, lane_constants, lane_pair, lanes_at, number, operand, pair, set, set_lanes, set_register, shift, shuffle, splat,
    zero,
};
use crate::x86_64::{Insn, Reg};
use BinOp::{AShr, Add, And, LShr, Mul, Or, Shl, Sub, Xor};
use Width::{W8, W16, W32, W64};

extension! { "avx512_integer";
    /// Four products of unsigned with signed bytes added to each double word.
    [Vpdpbusd], exact (m, i) { dot_bytes(m, i, false) }
    "vpdpbusd zmm1{k1},zmm2,zmm3" = "62f26d4950cb", "vpdpbusd ymm1{k1}{z},ymm2,[rdi]" = "62f26da9500f", "vpdpbusd xmm1,xmm2,[rdi]{1to4}" = "62f26d18500f";
    /// Four products of unsigned with signed bytes added to each double word, clamped.
    [Vpdpbusds], exact (m, i) { dot_bytes(m, i, true) }
    "vpdpbusds zmm1{k1},zmm2,zmm3" = "62f26d4951cb", "vpdpbusds xmm21,xmm22,[rdi]" = "62e24d00512f";
    /// Two products of signed words added to each double word.
    [Vpdpwssd], exact (m, i) { dot_words(m, i, false) }
    "vpdpwssd zmm1{k1},zmm2,zmm3" = "62f26d4952cb", "vpdpwssd ymm1,ymm2,[rdi]{1to8}" = "62f26d38520f";
    /// Two products of signed words added to each double word, clamped.
    [Vpdpwssds], exact (m, i) { dot_words(m, i, true) }
    "vpdpwssds zmm1{k1},zmm2,zmm3" = "62f26d4953cb", "vpdpwssds xmm1,xmm2,[rdi]" = "62f26d08530f";

    /// The upper words of both operands' lanes, put together and shifted left by an immediate.
    [Vpshldw], exact (m, i) { shift_together(m, i, W16, true) }
    "vpshldw zmm1{k1},zmm2,zmm3,5" = "62f3ed4970cb05", "vpshldw xmm1,xmm2,[rdi],0x10" = "62f3ed08700f10";
    /// The upper double words of both operands' lanes, put together and shifted left by an immediate.
    [Vpshldd], exact (m, i) { shift_together(m, i, W32, true) }
    "vpshldd zmm1{k1},zmm2,zmm3,5" = "62f36d4971cb05", "vpshldd xmm1,xmm2,[rdi]{1to4},0x20" = "62f36d18710f20";
    /// The upper quad words of both operands' lanes, put together and shifted left by an immediate.
    [Vpshldq], exact (m, i) { shift_together(m, i, W64, true) }
    "vpshldq zmm1{k1},zmm2,zmm3,5" = "62f3ed4971cb05", "vpshldq ymm1,ymm2,[rdi],0" = "62f3ed28710f00";
    /// The lower words of both operands' lanes, put together and shifted right by an immediate.
    [Vpshrdw], exact (m, i) { shift_together(m, i, W16, false) }
    "vpshrdw zmm1{k1},zmm2,zmm3,5" = "62f3ed4972cb05", "vpshrdw xmm1,xmm2,[rdi],0x10" = "62f3ed08720f10";
    /// The lower double words of both operands' lanes, put together and shifted right by an immediate.
    [Vpshrdd], exact (m, i) { shift_together(m, i, W32, false) }
    "vpshrdd zmm1{k1},zmm2,zmm3,5" = "62f36d4973cb05", "vpshrdd xmm1,xmm2,[rdi]{1to4},0x20" = "62f36d18730f20";
    /// The lower quad words of both operands' lanes, put together and shifted right by an immediate.
    [Vpshrdq], exact (m, i) { shift_together(m, i, W64, false) }
    "vpshrdq zmm1{k1},zmm2,zmm3,5" = "62f3ed4973cb05", "vpshrdq ymm1,ymm2,[rdi],0" = "62f3ed28730f00";
    /// The upper words of the first two operands' lanes, put together and shifted left by the third's.
    [Vpshldvw], exact (m, i) { shift_together_by_lanes(m, i, W16, true) }
    "vpshldvw zmm1{k1},zmm2,zmm3" = "62f2ed4970cb", "vpshldvw xmm1,xmm2,[rdi]" = "62f2ed08700f";
    /// The upper double words of the first two operands' lanes, put together and shifted left by the third's.
    [Vpshldvd], exact (m, i) { shift_together_by_lanes(m, i, W32, true) }
    "vpshldvd zmm1{k1},zmm2,zmm3" = "62f26d4971cb", "vpshldvd xmm1,xmm2,[rdi]{1to4}" = "62f26d18710f";
    /// The upper quad words of the first two operands' lanes, put together and shifted left by the third's.
    [Vpshldvq], exact (m, i) { shift_together_by_lanes(m, i, W64, true) }
    "vpshldvq zmm1{k1}{z},zmm2,zmm3" = "62f2edc971cb", "vpshldvq ymm1,ymm2,[rdi]" = "62f2ed28710f";
    /// The lower words of the first two operands' lanes, put together and shifted right by the third's.
    [Vpshrdvw], exact (m, i) { shift_together_by_lanes(m, i, W16, false) }
    "vpshrdvw zmm1{k1},zmm2,zmm3" = "62f2ed4972cb", "vpshrdvw xmm1,xmm2,[rdi]" = "62f2ed08720f";
    /// The lower double words of the first two operands' lanes, put together and shifted right by the third's.
    [Vpshrdvd], exact (m, i) { shift_together_by_lanes(m, i, W32, false) }
    "vpshrdvd zmm1{k1},zmm2,zmm3" = "62f26d4973cb", "vpshrdvd xmm1,xmm2,[rdi]{1to4}" = "62f26d18730f";
    /// The lower quad words of the first two operands' lanes, put together and shifted right by the third's.
    [Vpshrdvq], exact (m, i) { shift_together_by_lanes(m, i, W64, false) }
    "vpshrdvq zmm1{k1}{z},zmm2,zmm3" = "62f2edc973cb", "vpshrdvq ymm1,ymm2,[rdi]" = "62f2ed28730f";

    /// Eight bits from any place of a quad word, for each of its bytes.
    [Vpmultishiftqb], exact (m, i) {
        let (places, data) = pair(m, i);
        let result = each_byte(m, places, |m, place, byte| {
            let turned = rotate_right(m, data, place);
            let low = splat(m, turned, W64, 0xff);
            let low = bitwise(m, And, turned, low);
            shift(m, Shl, W64, low, 8 * byte)
        });
        set_lanes(m, i, W8, result);
    }
    "vpmultishiftqb zmm1{k1},zmm2,zmm3" = "62f2ed4983cb", "vpmultishiftqb ymm1{k1}{z},ymm2,[rdi]{1to4}" = "62f2edb9830f", "vpmultishiftqb xmm1,xmm2,[rdi]" = "62f2ed08830f";
    /// Any bits of quad words as a mask.
    [Vpshufbitqmb], exact (m, i) {
        let (data, places) = lane_pair(m, i);
        let result = each_byte(m, places, |m, place, byte| {
            let moved = m.lanes(LaneOp::Int(LShr), W64, data, place);
            let bit = splat(m, moved, W64, 1);
            let bit = bitwise(m, And, moved, bit);
            shift(m, Shl, W64, bit, 8 * byte + 7)
        });
        set(m, i, result);
    }
    "vpshufbitqmb k2{k1},zmm2,zmm3" = "62f26d498fd3", "vpshufbitqmb k2,ymm2,[rdi]" = "62f26d288f17";
    /// Which lower double words are the same.
    [Vpconflictd], exact (m, i) { conflicts(m, i, W32) }
    "vpconflictd zmm1{k1},zmm2" = "62f27d49c4ca", "vpconflictd ymm1{k1}{z},[rdi]" = "62f27da9c40f", "vpconflictd xmm1,[rdi]{1to4}" = "62f27d18c40f";
    /// Which lower quad words are the same.
    [Vpconflictq], exact (m, i) { conflicts(m, i, W64) }
    "vpconflictq zmm1{k1},zmm2" = "62f2fd49c4ca", "vpconflictq ymm1{k1}{z},[rdi]{1to4}" = "62f2fdb9c40f";
    /// A mask of 8 bits in every quad word.
    [Vpbroadcastmb2q], exact (m, i) { broadcast_mask(m, i, W8, W64) }
    "vpbroadcastmb2q zmm1,k2" = "62f2fe482aca";
    /// A mask of 16 bits in every double word.
    [Vpbroadcastmw2d], exact (m, i) { broadcast_mask(m, i, W16, W32) }
    "vpbroadcastmw2d zmm1,k2" = "62f27e483aca";
    /// Sums of absolute differences of four bytes at four offsets of quadruples that the immediate chooses.
    [Vdbpsadbw], exact (m, i) { sliding_differences(m, i) }
    "vdbpsadbw zmm1{k1},zmm2,zmm3,0x1b" = "62f36d4942cb1b", "vdbpsadbw ymm1{k1}{z},ymm2,[rdi],-0x1c" = "62f36da9420fe4", "vdbpsadbw xmm1,xmm2,xmm3,0x72" = "62f36d0842cb72";
}

/// `a op b` on lanes.
fn int<M: X86>(m: &mut M, op: BinOp, lane: Width, a: M::Vec, b: M::Vec) -> M::Vec {
    m.lanes(LaneOp::Int(op), lane, a, b)
}

/// The lower, and the upper, half of each lane, extended to the lane.
fn halves<M: X86>(m: &mut M, lane: Width, a: M::Vec, signed: bool) -> [M::Vec; 2] {
    let by = lane.bits() / 2;
    let extend = if signed { AShr } else { LShr };
    let low = shift(m, Shl, lane, a, by);
    [shift(m, extend, lane, low, by), shift(m, extend, lane, a, by)]
}

/// The sum of both halves, which are signed, of each double word.
fn sum_of_halves<M: X86>(m: &mut M, a: M::Vec) -> M::Vec {
    let [low, high] = halves(m, W32, a, true);
    int(m, Add, W32, low, high)
}

/// VPDPBUSD: every product fits in a word.
fn dot_bytes<M: X86>(m: &mut M, i: &Insn, saturate: bool) {
    let b = lanes_at(m, i, 2);
    let (old, a) = (operand(m, i, 0), operand(m, i, 1));
    let (a, b) = (halves(m, W16, a, false), halves(m, W16, b, true));
    let [even, odd] = [0, 1].map(|n| {
        let products = int(m, Mul, W16, a[n], b[n]);
        sum_of_halves(m, products)
    });
    let sum = int(m, Add, W32, even, odd);
    let op = if saturate { LaneOp::AddSatSigned } else { LaneOp::Int(Add) };
    let result = m.lanes(op, W32, old, sum);
    set(m, i, result);
}

/// VPDPWSSD. Two products of the least words are one more than a double word can be: then that one is added by itself.
fn dot_words<M: X86>(m: &mut M, i: &Insn, saturate: bool) {
    let b = lanes_at(m, i, 2);
    let (old, a) = (operand(m, i, 0), operand(m, i, 1));
    let (a, b) = (halves(m, W32, a, true), halves(m, W32, b, true));
    let products = [0, 1].map(|n| int(m, Mul, W32, a[n], b[n]));
    let sum = int(m, Add, W32, products[0], products[1]);
    let result = if saturate {
        let beyond = splat(m, sum, W32, 1 << 31);
        let beyond = m.lanes(LaneOp::Cmp(CmpOp::Eq), W32, sum, beyond);
        let sum = int(m, Add, W32, sum, beyond);
        let result = m.lanes(LaneOp::AddSatSigned, W32, old, sum);
        m.lanes(LaneOp::SubSatSigned, W32, result, beyond)
    } else {
        int(m, Add, W32, old, sum)
    };
    set(m, i, result);
}

fn shift_together<M: X86>(m: &mut M, i: &Insn, lane: Width, left: bool) {
    let (first, second) = lane_pair(m, i);
    let counts = splat(m, first, lane, i.immediate8().into());
    let result = double_shift(m, lane, first, second, counts, left);
    set(m, i, result);
}

fn shift_together_by_lanes<M: X86>(m: &mut M, i: &Insn, lane: Width, left: bool) {
    let counts = lanes_at(m, i, 2);
    let (first, second) = (operand(m, i, 0), operand(m, i, 1));
    let result = double_shift(m, lane, first, second, counts, left);
    set(m, i, result);
}

/// `first` shifted by `counts`, modulo the lane's width, with what follows from `second`.
fn double_shift<M: X86>(m: &mut M, lane: Width, first: M::Vec, second: M::Vec, counts: M::Vec, left: bool) -> M::Vec {
    let (there, back) = if left { (Shl, LShr) } else { (LShr, Shl) };
    let most = splat(m, first, lane, u64::from(lane.bits() - 1));
    let count = bitwise(m, And, counts, most);
    // One place less than the rest of the width, and one more always: so far no lane can be shifted at once.
    let rest = bitwise(m, Xor, count, most);
    let kept = int(m, there, lane, first, count);
    let second = shift(m, back, lane, second, 1);
    let follows = int(m, back, lane, second, rest);
    bitwise(m, Or, kept, follows)
}

/// The or of what `part` makes for each byte of the quad words: of the place, 0 to 63, that it has in `places`.
fn each_byte<M: X86>(m: &mut M, places: M::Vec, part: impl Fn(&mut M, M::Vec, u32) -> M::Vec) -> M::Vec {
    let most = splat(m, places, W64, 63);
    let mut result = zero(m, places);
    for byte in 0..8 {
        let place = shift(m, LShr, W64, places, 8 * byte);
        let place = bitwise(m, And, place, most);
        let part = part(m, place, byte);
        result = bitwise(m, Or, result, part);
    }
    result
}

fn rotate_right<M: X86>(m: &mut M, a: M::Vec, counts: M::Vec) -> M::Vec {
    double_shift(m, W64, a, a, counts, false)
}

/// Each lane compared with each one below it, whatever the mask chooses.
fn conflicts<M: X86>(m: &mut M, i: &Insn, lane: Width) {
    let a = operand(m, i, 1);
    let mut result = zero(m, a);
    for n in 0..m.vec_bits(a) / lane.bits() {
        let one = m.lane(a, lane, n);
        let one = m.vec_splat(one, m.vec_bits(a));
        let same = m.lanes(LaneOp::Cmp(CmpOp::Eq), lane, a, one);
        let bit = lane_constants(m, a, lane, |above| if above > n { 1 << n } else { 0 });
        let bit = bitwise(m, And, same, bit);
        result = bitwise(m, Or, result, bit);
    }
    set(m, i, result);
}

fn broadcast_mask<M: X86>(m: &mut M, i: &Insn, mask: Width, lane: Width) {
    let value = m.reg(Reg::Opmask(number(i, 1) as u8));
    let value = m.trunc(value, mask);
    let value = m.zext(value, lane);
    let result = m.vec_splat(value, bits(i));
    set_register(m, i, number(i, 0), result);
}

/// VDBPSADBW: the lower two words of four are of the first operand's first four bytes, the upper two of the next.
fn sliding_differences<M: X86>(m: &mut M, i: &Insn) {
    let (a, b) = pair(m, i);
    let quadruples: [u8; 4] = core::array::from_fn(|n| i.immediate8() >> (2 * n) & 3);
    let b = shuffle(m, W32, b, b, &quadruples);
    let zero = zero(m, a);
    let mut sum = zero;
    for byte in 0..4 {
        let mut from = |v: M::Vec, starts: [u8; 4]| {
            let bytes: [u8; 16] = core::array::from_fn(|n| {
                let (half, word) = (n as u8 / 8 * 8, n / 2 % 4);
                if n % 2 == 0 { half + starts[word] + byte } else { 16 }
            });
            shuffle(m, W8, v, zero, &bytes)
        };
        let (a, b) = (from(a, [0, 0, 4, 4]), from(b, [0, 1, 2, 3]));
        let (more, less) = (m.lanes(LaneOp::MaxSigned, W16, a, b), m.lanes(LaneOp::MinSigned, W16, a, b));
        let difference = int(m, Sub, W16, more, less);
        sum = int(m, Add, W16, sum, difference);
    }
    set_lanes(m, i, W16, sum);
}
