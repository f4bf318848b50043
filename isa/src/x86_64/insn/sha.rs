//! SHA extensions. SDM vol. 2B; FIPS 180-4. Memory operands need not be aligned, as on AMD.

use crate::machine::{BinOp, LaneOp, Machine, Width};
use crate::x86_64::Insn;
use crate::x86_64::operand::X86;
use crate::x86_64::vector::{BLOCK, bitwise, operand, set, shift, unaligned};
use BinOp::{Add, And, LShr, Or, Shl, Xor};
use Width::W32;

extension! { "sha";
    /// Four rounds of SHA-1.
    [Sha1rnds4], exact (m, i) {
        let operands = [operand(m, i, 0), unaligned(m, i, 1)];
        let result = match i.immediate8() & 3 {
            0 => m.instruction("sha1rnds4.0", &operands, |m, v| sha1_rounds(m, v, choice, 0x5a82_7999)),
            1 => m.instruction("sha1rnds4.1", &operands, |m, v| sha1_rounds(m, v, parity, 0x6ed9_eba1)),
            2 => m.instruction("sha1rnds4.2", &operands, |m, v| sha1_rounds(m, v, majority, 0x8f1b_bcdc)),
            _ => m.instruction("sha1rnds4.3", &operands, |m, v| sha1_rounds(m, v, parity, 0xca62_c1d6)),
        };
        set(m, i, result);
    }
    "sha1rnds4 xmm1,xmm2,0" = "0f3accca00", "sha1rnds4 xmm1,xmm2,1" = "0f3accca01", "sha1rnds4 xmm1,[rdi],2" = "0f3acc0f02", "sha1rnds4 xmm1,xmm2,3" = "0f3accca03";
    /// SHA-1's variable E after four rounds, added to the next words of the message.
    [Sha1nexte], exact (m, i) { two(m, i, "sha1nexte", sha1_next_e) }
    "sha1nexte xmm1,xmm2" = "0f38c8ca", "sha1nexte xmm1,[rdi]" = "0f38c80f";
    /// First part of the next four message words of SHA-1.
    [Sha1msg1], exact (m, i) {
        two(m, i, "sha1msg1", |m, v| {
            let later = m.shuffle(W32, v[0], v[1], &[6, 7, 0, 1]);
            bitwise(m, Xor, v[0], later)
        });
    }
    "sha1msg1 xmm1,xmm2" = "0f38c9ca";
    /// Last part of the next four message words of SHA-1.
    [Sha1msg2], exact (m, i) { two(m, i, "sha1msg2", sha1_message) }
    "sha1msg2 xmm1,xmm2" = "0f38caca";

    /// Two rounds of SHA-256, with round words from xmm0.
    [Sha256rnds2], exact (m, i) {
        let operands = [operand(m, i, 0), unaligned(m, i, 1), m.vec_reg(0, BLOCK)];
        let result = m.instruction("sha256rnds2", &operands, sha256_rounds);
        set(m, i, result);
    }
    "sha256rnds2 xmm1,xmm2" = "0f38cbca", "sha256rnds2 xmm1,[rdi]" = "0f38cb0f";
    /// First part of the next four message words of SHA-256.
    [Sha256msg1], exact (m, i) {
        two(m, i, "sha256msg1", |m, v| {
            let next = m.shuffle(W32, v[0], v[1], &[1, 2, 3, 4]);
            let sigma = small_sigma(m, next, [7, 18], 3);
            m.lanes(LaneOp::Int(Add), W32, v[0], sigma)
        });
    }
    "sha256msg1 xmm1,xmm2" = "0f38ccca", "sha256msg1 xmm1,[rdi]" = "0f38cc0f";
    /// Last part of the next four message words of SHA-256.
    [Sha256msg2], exact (m, i) { two(m, i, "sha256msg2", sha256_message) }
    "sha256msg2 xmm1,xmm2" = "0f38cdca";
}

/// What an instruction makes of its operands.
type Steps<M> = fn(&mut M, &[<M as Machine>::Vec]) -> <M as Machine>::Vec;

fn two<M: X86>(m: &mut M, i: &Insn, name: &'static str, steps: Steps<M>) {
    let operands = [operand(m, i, 0), unaligned(m, i, 1)];
    let result = m.instruction(name, &operands, steps);
    set(m, i, result);
}

fn rotate_left<M: X86>(m: &mut M, value: M::Int, by: u64) -> M::Int {
    let (up, down) = (m.int(W32, by), m.int(W32, 32 - by));
    let (high, low) = (m.bin(Shl, value, up), m.bin(LShr, value, down));
    m.bin(Or, high, low)
}

fn rotate_lanes_right<M: X86>(m: &mut M, value: M::Vec, by: u32) -> M::Vec {
    let (low, high) = (shift(m, LShr, W32, value, by), shift(m, Shl, W32, value, 32 - by));
    bitwise(m, Or, low, high)
}

/// How a round mixes three variables.
type Mix<M> = fn(&mut M, [<M as Machine>::Int; 3]) -> <M as Machine>::Int;

/// Exclusive or of three.
fn parity<M: X86>(m: &mut M, [a, b, c]: [M::Int; 3]) -> M::Int {
    let ab = m.bin(Xor, a, b);
    m.bin(Xor, ab, c)
}

/// Bits of `b` where `a` is set, else of `c`.
fn choice<M: X86>(m: &mut M, [a, b, c]: [M::Int; 3]) -> M::Int {
    let differ = m.bin(Xor, b, c);
    let chosen = m.bin(And, a, differ);
    m.bin(Xor, chosen, c)
}

/// Bits that at least two have.
fn majority<M: X86>(m: &mut M, [a, b, c]: [M::Int; 3]) -> M::Int {
    let (both, any) = (m.bin(And, a, b), m.bin(Or, a, b));
    let with_c = m.bin(And, any, c);
    m.bin(Or, both, with_c)
}

fn sum<M: X86>(m: &mut M, terms: &[M::Int]) -> M::Int {
    let zero = m.int(W32, 0);
    terms.iter().fold(zero, |sum, &term| m.bin(Add, sum, term))
}

/// Lanes 3 down to 0.
fn from_top<M: X86>(m: &mut M, v: M::Vec) -> [M::Int; 4] {
    [3, 2, 1, 0].map(|n| m.lane(v, W32, n))
}

fn to_top<M: X86>(m: &mut M, words: [M::Int; 4]) -> M::Vec {
    let zero = m.vec_zero(BLOCK);
    (0..4).fold(zero, |v, n| m.set_lane(v, 3 - n, words[n as usize]))
}

fn sha1_next_e<M: X86>(m: &mut M, operands: &[M::Vec]) -> M::Vec {
    let (e, word) = (m.lane(operands[0], W32, 3), m.lane(operands[1], W32, 3));
    let e = rotate_left(m, e, 30);
    let sum = m.bin(Add, word, e);
    m.set_lane(operands[1], 3, sum)
}

fn sha1_rounds<M: X86>(m: &mut M, operands: &[M::Vec], mix: Mix<M>, constant: u64) -> M::Vec {
    let ([mut a, mut b, mut c, mut d], words) = (from_top(m, operands[0]), from_top(m, operands[1]));
    let constant = m.int(W32, constant);
    // The first word already has E added to it (SHA1NEXTE).
    let mut e = m.int(W32, 0);
    for word in words {
        let (mixed, rotated) = (mix(m, [b, c, d]), rotate_left(m, a, 5));
        let next = sum(m, &[mixed, rotated, word, e, constant]);
        (e, d, c, b, a) = (d, c, rotate_left(m, b, 30), a, next);
    }
    to_top(m, [a, b, c, d])
}

fn sha1_message<M: X86>(m: &mut M, operands: &[M::Vec]) -> M::Vec {
    let ([w0, w1, w2, w3], [_, w13, w14, w15]) = (from_top(m, operands[0]), from_top(m, operands[1]));
    let mut step = |x, y| {
        let mixed = m.bin(Xor, x, y);
        rotate_left(m, mixed, 1)
    };
    let (w16, w17, w18) = (step(w0, w13), step(w1, w14), step(w2, w15));
    let w19 = step(w3, w16);
    to_top(m, [w16, w17, w18, w19])
}

/// Three rotations of one word, exclusive or.
fn big_sigma<M: X86>(m: &mut M, value: M::Int, right: [u64; 3]) -> M::Int {
    let rotated = right.map(|by| rotate_left(m, value, 32 - by));
    parity(m, rotated)
}

fn sha256_rounds<M: X86>(m: &mut M, operands: &[M::Vec]) -> M::Vec {
    let (cdgh, abef, words) = (operands[0], operands[1], operands[2]);
    let ([mut c, mut d, mut g, mut h], [mut a, mut b, mut e, mut f]) = (from_top(m, cdgh), from_top(m, abef));
    for round in 0..2 {
        let word = m.lane(words, W32, round);
        let (chosen, spread) = (choice(m, [e, f, g]), big_sigma(m, e, [6, 11, 25]));
        let first = sum(m, &[chosen, spread, word, h]);
        let (common, spread) = (majority(m, [a, b, c]), big_sigma(m, a, [2, 13, 22]));
        let next_a = sum(m, &[first, common, spread]);
        let next_e = m.bin(Add, first, d);
        (h, g, f, e) = (g, f, e, next_e);
        (d, c, b, a) = (c, b, a, next_a);
    }
    to_top(m, [a, b, e, f])
}

/// Two rotations and a shift of each lane, exclusive or.
fn small_sigma<M: X86>(m: &mut M, value: M::Vec, right: [u32; 2], shifted: u32) -> M::Vec {
    let [x, y] = right.map(|by| rotate_lanes_right(m, value, by));
    let z = shift(m, LShr, W32, value, shifted);
    let xy = bitwise(m, Xor, x, y);
    bitwise(m, Xor, xy, z)
}

/// The upper two of the new words depend on the lower two, so two lanes at a time.
fn sha256_message<M: X86>(m: &mut M, operands: &[M::Vec]) -> M::Vec {
    let (a, b) = (operands[0], operands[1]);
    let known = m.shuffle(W32, b, b, &[2, 3, 2, 3]);
    let sigma = small_sigma(m, known, [17, 19], 10);
    let first = m.lanes(LaneOp::Int(Add), W32, a, sigma);
    let known = m.shuffle(W32, first, first, &[0, 1, 0, 1]);
    let sigma = small_sigma(m, known, [17, 19], 10);
    let last = m.lanes(LaneOp::Int(Add), W32, a, sigma);
    m.shuffle(W32, first, last, &[0, 1, 6, 7])
}
