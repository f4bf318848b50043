//! AES and carry-less multiplication, also of several blocks at once (VAES, VPCLMULQDQ). SDM vol. 2; FIPS 197.

use crate::machine::{BinOp, LaneOp, Machine, Width};
use crate::x86_64::Insn;
use crate::x86_64::operand::X86;
use crate::x86_64::vector::{bitwise, constant, pair, right, set, shift, shuffle, splat, zero};
use BinOp::{And, Or, Shl, Xor};
use Width::{W8, W64};

extension! { "aes";
    /// One round of encryption.
    [Aesenc, Vaesenc], exact (m, i) { round(m, i, "aesenc", |m, v| encrypt(m, v, true)) }
    "aesenc xmm1,xmm2" = "660f38dcca", "aesenc xmm1,[rdi]" = "660f38dc0f",
    "vaesenc ymm1,ymm2,ymm3" = "c4e26ddccb",
    "vaesenc zmm1,zmm2,zmm3" = "62f26d48dccb";
    /// The last round of encryption.
    [Aesenclast, Vaesenclast], exact (m, i) { round(m, i, "aesenclast", |m, v| encrypt(m, v, false)) }
    "aesenclast xmm1,xmm2" = "660f38ddca",
    "vaesenclast ymm1,ymm2,ymm3" = "c4e26dddcb",
    "vaesenclast zmm1,zmm2,zmm3" = "62f26d48ddcb";
    /// One round of decryption.
    [Aesdec, Vaesdec], exact (m, i) { round(m, i, "aesdec", |m, v| decrypt(m, v, true)) }
    "aesdec xmm1,xmm2" = "660f38deca", "aesdec xmm1,[rdi]" = "660f38de0f",
    "vaesdec ymm1,ymm2,ymm3" = "c4e26ddecb",
    "vaesdec zmm1,zmm2,zmm3" = "62f26d48decb";
    /// The last round of decryption.
    [Aesdeclast, Vaesdeclast], exact (m, i) { round(m, i, "aesdeclast", |m, v| decrypt(m, v, false)) }
    "aesdeclast xmm1,xmm2" = "660f38dfca",
    "vaesdeclast ymm1,ymm2,ymm3" = "c4e26ddfcb",
    "vaesdeclast zmm1,zmm2,zmm3" = "62f26d48dfcb";
    /// A round key of encryption made into one of decryption.
    [Aesimc, Vaesimc], exact (m, i) {
        let a = right(m, i);
        let result = m.instruction("aesimc", &[a], |m, v| mix_columns(m, v[0], [14, 11, 13, 9]));
        set(m, i, result);
    }
    "aesimc xmm1,xmm2" = "660f38dbca",
    "vaesimc xmm1,xmm2" = "c4e279dbca";
    /// Part of a key's expansion.
    [Aeskeygenassist, Vaeskeygenassist], exact (m, i) { key_generation(m, i) }
    "aeskeygenassist xmm1,xmm2,1" = "660f3adfca01", "aeskeygenassist xmm1,[rdi],0x36" = "660f3adf0f36",
    "vaeskeygenassist xmm1,xmm2,1" = "c4e379dfca01";
    /// Carry-less product of a half of each operand.
    [Pclmulqdq, Vpclmulqdq], exact (m, i) {
        let (a, b) = pair(m, i);
        let mut result = zero(m, a);
        for block in 0..m.vec_bits(a) / 128 {
            let a = m.lane(a, W64, 2 * block + u32::from(i.immediate8() & 1));
            let b = m.lane(b, W64, 2 * block + u32::from(i.immediate8() >> 4 & 1));
            let product = m.carryless_mul(a, b);
            result = m.set_lane(result, block, product);
        }
        set(m, i, result);
    }
    "pclmullqlqdq xmm1,xmm2" = "660f3a44ca00", "pclmulhqhqdq xmm1,xmm2" = "660f3a44ca11", "pclmulhqlqdq xmm1,[rdi]" = "660f3a440f01",
    "vpclmullqlqdq ymm1,ymm2,ymm3" = "c4e36d44cb00",
    "vpclmulhqlqdq zmm1,zmm2,zmm3" = "62f36d4844cb01";
}

/// Product in GF(2^8) modulo x^8 + x^4 + x^3 + x + 1.
pub(super) const fn product(mut a: u8, mut b: u8) -> u8 {
    let mut sum = 0;
    while b != 0 {
        if b & 1 != 0 {
            sum ^= a;
        }
        a = a << 1 ^ if a & 0x80 != 0 { 0x1b } else { 0 };
        b >>= 1;
    }
    sum
}

/// The S-box: the inverse, then an affine map.
const SUBSTITUTION: [u8; 256] = {
    let mut table = [0; 256];
    let mut value = 0;
    while value < 256 {
        let x = value as u8;
        // x^254 is the inverse: the product of x^2, x^4, … x^128.
        let (mut power, mut inverse, mut n) = (x, 1, 0);
        while n < 7 {
            power = product(power, power);
            inverse = product(inverse, power);
            n += 1;
        }
        table[value] = inverse
            ^ inverse.rotate_left(1)
            ^ inverse.rotate_left(2)
            ^ inverse.rotate_left(3)
            ^ inverse.rotate_left(4)
            ^ 0x63;
        value += 1;
    }
    table
};

const INVERSE_SUBSTITUTION: [u8; 256] = {
    let mut table = [0; 256];
    let mut value = 0;
    while value < 256 {
        table[SUBSTITUTION[value] as usize] = value as u8;
        value += 1;
    }
    table
};

/// Row `n` of the state (bytes `n`, `n + 4`, …) turned left by `n`, and back.
const SHIFT_ROWS: [u8; 16] = [0, 5, 10, 15, 4, 9, 14, 3, 8, 13, 2, 7, 12, 1, 6, 11];
const UNSHIFT_ROWS: [u8; 16] = [0, 13, 10, 7, 4, 1, 14, 11, 8, 5, 2, 15, 12, 9, 6, 3];

/// What a round makes of the state and its key.
type Round<M> = fn(&mut M, &[<M as Machine>::Vec]) -> <M as Machine>::Vec;

fn round<M: X86>(m: &mut M, i: &Insn, name: &'static str, steps: Round<M>) {
    let (state, key) = pair(m, i);
    let result = m.instruction(name, &[state, key], steps);
    set(m, i, result);
}

fn encrypt<M: X86>(m: &mut M, operands: &[M::Vec], mix: bool) -> M::Vec {
    let (state, key) = (operands[0], operands[1]);
    let state = shuffle(m, W8, state, state, &SHIFT_ROWS);
    let mut state = substitute(m, state, &SUBSTITUTION);
    if mix {
        state = mix_columns(m, state, [2, 3, 1, 1]);
    }
    bitwise(m, Xor, state, key)
}

fn decrypt<M: X86>(m: &mut M, operands: &[M::Vec], mix: bool) -> M::Vec {
    let (state, key) = (operands[0], operands[1]);
    let state = shuffle(m, W8, state, state, &UNSHIFT_ROWS);
    let mut state = substitute(m, state, &INVERSE_SUBSTITUTION);
    if mix {
        state = mix_columns(m, state, [14, 11, 13, 9]);
    }
    bitwise(m, Xor, state, key)
}

/// Every byte replaced by the table's. Of sixteen look-ups in a row of the table each, those in other rows
/// than the byte's own give zero: adding brings their indices' top bits up.
pub(super) fn substitute<M: X86>(m: &mut M, bytes: M::Vec, table: &[u8; 256]) -> M::Vec {
    let mut result = zero(m, bytes);
    for (n, row) in table.as_chunks::<16>().0.iter().enumerate() {
        let offset = splat(m, bytes, W8, 16 * n as u64);
        let (beyond, used) = (splat(m, bytes, W8, 0x70), splat(m, bytes, W8, 0x8f));
        let within = bitwise(m, Xor, bytes, offset);
        let within = m.lanes(LaneOp::AddSatUnsigned, W8, within, beyond);
        let within = bitwise(m, And, within, used);
        let row = constant(m, bytes, u128::from_le_bytes(*row));
        let found = m.lookup(row, within);
        result = bitwise(m, Or, result, found);
    }
    result
}

/// Each byte of a column becomes the sum of the column's bytes from itself on, times `factors`.
fn mix_columns<M: X86>(m: &mut M, state: M::Vec, factors: [u8; 4]) -> M::Vec {
    let mut powers = [state; 4];
    for n in 1..4 {
        powers[n] = doubled(m, powers[n - 1]);
    }
    let mut result = zero(m, state);
    for (distance, factor) in factors.into_iter().enumerate() {
        let mut times = zero(m, state);
        for (_, power) in powers.into_iter().enumerate().filter(|(n, _)| factor >> n & 1 != 0) {
            times = bitwise(m, Xor, times, power);
        }
        let turned: [u8; 16] = core::array::from_fn(|n| (n as u8 & !3) + (n + distance) as u8 % 4);
        let times = shuffle(m, W8, times, times, &turned);
        result = bitwise(m, Xor, result, times);
    }
    result
}

/// Bytes times x in GF(2^8).
pub(super) fn doubled<M: X86>(m: &mut M, a: M::Vec) -> M::Vec {
    let up = shift(m, Shl, W8, a, 1);
    let overflow = shift(m, BinOp::AShr, W8, a, 7);
    let modulus = splat(m, a, W8, 0x1b);
    let reduction = bitwise(m, And, overflow, modulus);
    bitwise(m, Xor, up, reduction)
}

/// AESKEYGENASSIST: substituted words 1 and 3, as they are and turned with the round constant added.
fn key_generation<M: X86>(m: &mut M, i: &Insn) {
    let a = right(m, i);
    let words = shuffle(m, W8, a, a, &[4, 5, 6, 7, 5, 6, 7, 4, 12, 13, 14, 15, 13, 14, 15, 12]);
    let words = substitute(m, words, &SUBSTITUTION);
    let round = u128::from(i.immediate8());
    let round = constant(m, a, round << 32 | round << 96);
    let result = bitwise(m, Xor, words, round);
    set(m, i, result);
}
