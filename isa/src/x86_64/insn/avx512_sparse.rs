//! AVX-512's ways between all lanes and some: compression and expansion, gathers and scatters. SDM vol. 2.

use crate::machine::{BinOp, LaneOp, UnOp, Width};
use crate::x86_64::operand::{X86, memory_address, memory_address_of_index};
use crate::x86_64::vector::{
    BLOCK, bits, blend, in_memory, is_evex, number, operand, set_lanes, set_register, splat, zero,
};
use crate::x86_64::{Insn, Reg};
use BinOp::{Add, And, Shl, Sub};
use Width::{W8, W16, W32, W64, W128};

extension! { "avx512_sparse";
    /// The bytes that the mask chooses, put together.
    [Vpcompressb], exact (m, i) { compress(m, i, W8) }
    "vpcompressb zmm1{k1},zmm2" = "62f27d4963d1", "vpcompressb [rdi]{k1},ymm2" = "62f27d296317", "vpcompressb xmm1{k1}{z},xmm2" = "62f27d8963d1";
    /// The words that the mask chooses, put together.
    [Vpcompressw], exact (m, i) { compress(m, i, W16) }
    "vpcompressw zmm1{k1},zmm2" = "62f2fd4963d1", "vpcompressw [rdi]{k1},ymm2" = "62f2fd296317", "vpcompressw xmm1{k1}{z},xmm2" = "62f2fd8963d1";
    /// The double words that the mask chooses, put together.
    [Vpcompressd, Vcompressps], exact (m, i) { compress(m, i, W32) }
    "vpcompressd zmm1{k1},zmm2" = "62f27d498bd1", "vpcompressd [rdi]{k1},zmm2" = "62f27d498b17", "vcompressps ymm1{k1}{z},ymm2" = "62f27da98ad1", "vcompressps [rdi],xmm2" = "62f27d088a17";
    /// The quad words that the mask chooses, put together.
    [Vpcompressq, Vcompresspd], exact (m, i) { compress(m, i, W64) }
    "vpcompressq zmm1{k1},zmm2" = "62f2fd498bd1", "vpcompressq [rdi]{k1},zmm2" = "62f2fd498b17", "vcompresspd ymm1{k1}{z},ymm2" = "62f2fda98ad1", "vcompresspd [rdi],xmm2" = "62f2fd088a17";
    /// Bytes that follow each other, to where the mask chooses lanes.
    [Vpexpandb], exact (m, i) { expand(m, i, W8) }
    "vpexpandb zmm1{k1},zmm2" = "62f27d4962ca", "vpexpandb ymm1{k1}{z},[rdi]" = "62f27da9620f", "vpexpandb xmm1{k1},xmm2" = "62f27d0962ca";
    /// Words that follow each other, to where the mask chooses lanes.
    [Vpexpandw], exact (m, i) { expand(m, i, W16) }
    "vpexpandw zmm1{k1},zmm2" = "62f2fd4962ca", "vpexpandw ymm1{k1}{z},[rdi]" = "62f2fda9620f", "vpexpandw xmm1{k1},xmm2" = "62f2fd0962ca";
    /// Double words that follow each other, to where the mask chooses lanes.
    [Vpexpandd, Vexpandps], exact (m, i) { expand(m, i, W32) }
    "vpexpandd zmm1{k1},zmm2" = "62f27d4989ca", "vexpandps ymm1{k1}{z},[rdi]" = "62f27da9880f", "vexpandps xmm1{k1},xmm2" = "62f27d0988ca";
    /// Quad words that follow each other, to where the mask chooses lanes.
    [Vpexpandq, Vexpandpd], exact (m, i) { expand(m, i, W64) }
    "vpexpandq zmm1{k1},zmm2" = "62f2fd4989ca", "vexpandpd ymm1{k1}{z},[rdi]" = "62f2fda9880f", "vexpandpd xmm1{k1},xmm2" = "62f2fd0988ca";

    /// Double words from addresses with 32-bit indices, where the mask has bits.
    [Vpgatherdd, Vgatherdps] if is_evex(i), exact (m, i) { gather(m, i, W32, W32) }
    "vpgatherdd zmm1,k1,[rdi+zmm2*4]" = "62f27d49900c97", "vpgatherdd ymm21,k2,[rdi+ymm22*4]" = "62e27d22902cb7", "vgatherdps xmm1,k1,[rdi+xmm2]" = "62f27d09920c17";
    /// Double words from addresses with 64-bit indices, where the mask has bits.
    [Vpgatherqd, Vgatherqps] if is_evex(i), exact (m, i) { gather(m, i, W64, W32) }
    "vpgatherqd ymm1,k1,[rdi+zmm2*4]" = "62f27d49910c97", "vpgatherqd xmm21,k2,[rdi+ymm22*4]" = "62e27d22912cb7", "vgatherqps xmm1,k1,[rdi+xmm2]" = "62f27d09930c17";
    /// Quad words from addresses with 32-bit indices, where the mask has bits.
    [Vpgatherdq, Vgatherdpd] if is_evex(i), exact (m, i) { gather(m, i, W32, W64) }
    "vpgatherdq zmm1,k1,[rdi+ymm2*8]" = "62f2fd49900cd7", "vpgatherdq ymm21,k2,[rdi+xmm22*4]" = "62e2fd22902cb7", "vgatherdpd xmm1,k1,[rdi+xmm2]" = "62f2fd09920c17";
    /// Quad words from addresses with 64-bit indices, where the mask has bits.
    [Vpgatherqq, Vgatherqpd] if is_evex(i), exact (m, i) { gather(m, i, W64, W64) }
    "vpgatherqq zmm1,k1,[rdi+zmm2*8]" = "62f2fd49910cd7", "vpgatherqq ymm21,k2,[rdi+ymm22*4]" = "62e2fd22912cb7", "vgatherqpd xmm1,k1,[rdi+xmm2]" = "62f2fd09930c17";
    /// Double words to addresses with 32-bit indices, where the mask has bits.
    [Vpscatterdd, Vscatterdps], exact (m, i) { scatter(m, i, W32, W32) }
    "vpscatterdd [rdi+zmm2*4],k1,zmm1" = "62f27d49a00c97", "vpscatterdd [rdi+ymm22*4],k2,ymm21" = "62e27d22a02cb7", "vscatterdps [rdi+xmm2],k1,xmm1" = "62f27d09a20c17";
    /// Double words to addresses with 64-bit indices, where the mask has bits.
    [Vpscatterqd, Vscatterqps], exact (m, i) { scatter(m, i, W64, W32) }
    "vpscatterqd [rdi+zmm2*4],k1,ymm1" = "62f27d49a10c97", "vpscatterqd [rdi+ymm22*4],k2,xmm21" = "62e27d22a12cb7", "vscatterqps [rdi+xmm2],k1,xmm1" = "62f27d09a30c17";
    /// Quad words to addresses with 32-bit indices, where the mask has bits.
    [Vpscatterdq, Vscatterdpd], exact (m, i) { scatter(m, i, W32, W64) }
    "vpscatterdq [rdi+ymm2*8],k1,zmm1" = "62f2fd49a00cd7", "vpscatterdq [rdi+xmm22*4],k2,ymm21" = "62e2fd22a02cb7", "vscatterdpd [rdi+xmm2],k1,xmm1" = "62f2fd09a20c17";
    /// Quad words to addresses with 64-bit indices, where the mask has bits.
    [Vpscatterqq, Vscatterqpd], exact (m, i) { scatter(m, i, W64, W64) }
    "vpscatterqq [rdi+zmm2*8],k1,zmm1" = "62f2fd49a10cd7", "vpscatterqq [rdi+ymm22*4],k2,ymm21" = "62e2fd22a12cb7", "vscatterqpd [rdi+xmm2],k1,xmm1" = "62f2fd09a30c17";
}

/// The bits of the instruction's mask that stand for lanes.
fn lane_mask<M: X86>(m: &mut M, i: &Insn, lane: Width) -> M::Int {
    let all = u64::MAX >> (64 - bits(i) / lane.bits());
    if !i.has_op_mask() {
        return m.int(W64, all);
    }
    let mask = m.reg(Reg::Opmask(i.op_mask().number() as u8));
    m.bin_const(And, mask, all)
}

/// As many of the lowest lanes as `mask` has bits.
fn as_many<M: X86>(m: &mut M, mask: M::Int, lane: Width, bits: u32) -> M::Vec {
    let count = m.un(UnOp::CountOnes, mask);
    let (count, one) = (m.zext(count, W128), m.int(W128, 1));
    let beyond = m.bin(Shl, one, count);
    let ones = m.bin(Sub, beyond, one);
    let ones = m.trunc(ones, W64);
    m.mask_lanes(ones, lane, bits)
}

/// Lane `n` comes from where the mask has its `n`th bit.
fn compress<M: X86>(m: &mut M, i: &Insn, lane: Width) {
    let value = operand(m, i, 1);
    let size = m.vec_bits(value);
    let mask = lane_mask(m, i, lane);
    let (mut rest, mut places) = (mask, zero(m, value));
    for n in 0..size / lane.bits() {
        let place = m.un(UnOp::TrailingZeros, rest);
        let place = m.trunc(place, lane);
        places = m.set_lane(places, n, place);
        let less = m.bin_const(Sub, rest, 1);
        rest = m.bin(And, rest, less);
    }
    let packed = m.permute(lane, value, places);
    let there = as_many(m, mask, lane, size);
    if in_memory(i, 0) {
        let address = memory_address(m, i);
        return m.store_masked(address, lane, there, packed);
    }
    let old = if i.zeroing_masking() { zero(m, value) } else { m.vec_reg(number(i, 0), size) };
    let result = blend(m, there, old, packed);
    set_register(m, i, number(i, 0), result);
}

/// A lane comes from the place that counts the mask's bits below it.
fn expand<M: X86>(m: &mut M, i: &Insn, lane: Width) {
    let size = bits(i);
    let mask = lane_mask(m, i, lane);
    let value = if in_memory(i, 1) {
        let (there, address) = (as_many(m, mask, lane, size), memory_address(m, i));
        m.load_masked(address, lane, there)
    } else {
        operand(m, i, 1)
    };
    let places = bits_below(m, mask, lane, size);
    let spread = m.permute(lane, value, places);
    set_lanes(m, i, lane, spread);
}

/// For each lane the number of bits that `mask` has below its own: sums of neighbours, then of twice as many.
fn bits_below<M: X86>(m: &mut M, mask: M::Int, lane: Width, bits: u32) -> M::Vec {
    let own = m.mask_lanes(mask, lane, bits);
    let one = splat(m, own, lane, 1);
    let own = m.lanes(LaneOp::Int(And), lane, own, one);
    let (count, zero) = (bits / lane.bits(), zero(m, own));
    let mut sums = own;
    for distance in (0..count.ilog2()).map(|n| 1 << n) {
        let indices: [u8; 64] =
            core::array::from_fn(|n| if (n as u32) < distance { count as u8 } else { n as u8 - distance as u8 });
        let below = m.shuffle(lane, sums, zero, &indices[..count as usize]);
        sums = m.lanes(LaneOp::Int(Add), lane, sums, below);
    }
    m.lanes(LaneOp::Int(Sub), lane, sums, own)
}

/// What goes to or from memory lane after lane: the mask says how far it came if one faults.
struct Spread<M: X86> {
    mask: Reg,
    indices: M::Vec,
    index: Width,
    count: u32,
}

impl<M: X86> Spread<M> {
    /// As many lanes as there are indices, and room for in operand `op`.
    fn new(m: &mut M, i: &Insn, index: Width, lane: Width, op: u32) -> Spread<M> {
        let lanes_of = |register: iced_x86::Register, width: Width| 8 * register.size() as u32 / width.bits();
        let register = i.memory_index();
        let indices = m.vec_reg(register.number() as u32, 8 * register.size() as u32);
        let count = lanes_of(register, index).min(lanes_of(i.op_register(op), lane));
        Spread { mask: Reg::Opmask(i.op_mask().number() as u8), indices, index, count }
    }

    /// Do `access` for the lanes that the mask chooses, each with its address, and take them from the mask.
    fn each(&self, m: &mut M, i: &Insn, access: &mut dyn FnMut(&mut M, u32, M::Int)) {
        for n in 0..self.count {
            let mask = m.reg(self.mask);
            let wanted = m.bit(mask, n);
            let offset = m.lane(self.indices, self.index, n);
            m.when(wanted, &mut |m| {
                let address = memory_address_of_index(m, i, offset);
                access(m, n, address);
            });
            let rest = m.bin_const(And, mask, !(1 << n));
            m.set_reg(self.mask, rest);
        }
        let none = m.int(W64, 0);
        m.set_reg(self.mask, none);
    }
}

fn gather<M: X86>(m: &mut M, i: &Insn, index: Width, lane: Width) {
    let spread = Spread::new(m, i, index, lane, 0);
    let (target, size) = (number(i, 0), 8 * i.op0_register().size() as u32);
    spread.each(m, i, &mut |m, n, address| {
        let value = m.load(address, lane);
        let rest = m.vec_reg(target, size);
        let result = m.set_lane(rest, n, value);
        m.set_vec_reg(target, result);
        // As AMD's CPUs leave it if another lane faults.
        m.clear_vec_reg(target, size.max(8 * i.memory_index().size() as u32));
    });
    if spread.count * lane.bits() < BLOCK {
        let (result, zero) = (m.vec_reg(target, BLOCK), m.vec_zero(BLOCK));
        let half = m.shuffle(W64, result, zero, &[0, 2]);
        m.set_vec_reg(target, half);
    }
    m.clear_vec_reg(target, size);
}

fn scatter<M: X86>(m: &mut M, i: &Insn, index: Width, lane: Width) {
    let spread = Spread::new(m, i, index, lane, 1);
    let value = m.vec_reg(number(i, 1), 8 * i.op1_register().size() as u32);
    spread.each(m, i, &mut |m, n, address| {
        let value = m.lane(value, lane, n);
        m.store(address, value);
    });
}
