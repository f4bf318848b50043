//! GFNI: bytes as elements of GF(2^8), and affine maps of them. SDM vol. 2A.

use super::aes::{doubled, product, substitute};
use crate::machine::{BinOp, Width};
use crate::x86_64::Insn;
use crate::x86_64::operand::X86;
use crate::x86_64::vector::{bitwise, lane_pair, pair, set_lanes, shift, shuffle, splat, zero};
use BinOp::{AShr, And, LShr, Shl, Xor};
use Width::W8;

extension! { "gfni";
    /// Products in GF(2^8).
    [Gf2p8mulb, Vgf2p8mulb], exact (m, i) { multiply(m, i) }
    "gf2p8mulb xmm1,xmm2" = "660f38cfca", "gf2p8mulb xmm1,[rdi]" = "660f38cf0f", "vgf2p8mulb ymm1,ymm2,ymm3" = "c4e26dcfcb", "vgf2p8mulb zmm1{k1},zmm2,zmm3" = "62f26d49cfcb", "vgf2p8mulb xmm21{k1}{z},xmm22,[rdi]" = "62e24d81cf2f";
    /// Bytes multiplied by a matrix of bits, and added to an immediate.
    [Gf2p8affineqb, Vgf2p8affineqb], exact (m, i) {
        let (a, matrix) = pair(m, i);
        affine(m, i, a, matrix);
    }
    "gf2p8affineqb xmm1,xmm2,0x63" = "660f3aceca63", "gf2p8affineqb xmm1,[rdi],0" = "660f3ace0f00", "vgf2p8affineqb ymm1,ymm2,ymm3,5" = "c4e3edcecb05", "vgf2p8affineqb zmm1{k1},zmm2,zmm3,-1" = "62f3ed49cecbff", "vgf2p8affineqb zmm1{k1}{z},zmm2,[rdi]{1to8},0" = "62f3edd9ce0f00";
    /// Inverses in GF(2^8) multiplied by a matrix of bits, and added to an immediate.
    [Gf2p8affineinvqb, Vgf2p8affineinvqb], exact (m, i) {
        let (a, matrix) = pair(m, i);
        let inverse = substitute(m, a, &INVERSES);
        affine(m, i, inverse, matrix);
    }
    "gf2p8affineinvqb xmm1,xmm2,0x63" = "660f3acfca63", "vgf2p8affineinvqb ymm1,ymm2,[rdi],5" = "c4e3edcf0f05", "vgf2p8affineinvqb zmm1{k1},zmm2,zmm3,-1" = "62f3ed49cfcbff", "vgf2p8affineinvqb xmm1,xmm2,[rdi]{1to2},1" = "62f3ed18cf0f01";
}

/// x^254: the product of x^2, x^4, … x^128.
const INVERSES: [u8; 256] = {
    let mut table = [0; 256];
    let mut value = 0;
    while value < 256 {
        let (mut power, mut inverse, mut n) = (value as u8, 1, 0);
        while n < 7 {
            power = product(power, power);
            inverse = product(inverse, power);
            n += 1;
        }
        table[value] = inverse;
        value += 1;
    }
    table
};

fn multiply<M: X86>(m: &mut M, i: &Insn) {
    let (mut a, b) = lane_pair(m, i);
    let mut result = zero(m, a);
    for bit in 0..8 {
        let chosen = shift(m, Shl, W8, b, 7 - bit);
        let chosen = shift(m, AShr, W8, chosen, 7);
        let term = bitwise(m, And, a, chosen);
        result = bitwise(m, Xor, result, term);
        a = doubled(m, a);
    }
    set_lanes(m, i, W8, result);
}

/// Bit `n` is the parity of what the byte has in common with row `n`; rows are counted from a quad word's last byte.
fn affine<M: X86>(m: &mut M, i: &Insn, a: M::Vec, matrix: M::Vec) {
    let mut result = splat(m, a, W8, i.immediate8().into());
    for bit in 0..8_u8 {
        let rows: [u8; 16] = core::array::from_fn(|n| n as u8 / 8 * 8 + 7 - bit);
        let row = shuffle(m, W8, matrix, matrix, &rows);
        let mut common = bitwise(m, And, a, row);
        for by in [4, 2, 1] {
            let upper = shift(m, LShr, W8, common, by);
            common = bitwise(m, Xor, common, upper);
        }
        let lowest = splat(m, common, W8, 1);
        let parity = bitwise(m, And, common, lowest);
        let parity = shift(m, Shl, W8, parity, bit.into());
        result = bitwise(m, Xor, result, parity);
    }
    set_lanes(m, i, W8, result);
}
