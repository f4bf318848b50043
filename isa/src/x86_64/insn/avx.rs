//! What AVX and AVX2 have and SSE has not: halves of 256 bits, broadcasts, permutations across blocks, shifts of each
//! lane by its own count, masked moves, gathers. SDM vol. 2C.

use crate::machine::{BinOp, CmpOp, LaneOp, Width};
use crate::x86_64::operand::{X86, memory_address, memory_address_of_index, read};
use crate::x86_64::vector::{
    BLOCK, bits, bitwise, in_memory, is_evex, lane_pair, last, left, load_part, number, operand, pair, right, scalar, set, set_lanes, shift,
    shuffle, splat,
    zero,
};
use crate::x86_64::{Flag, Insn};
use BinOp::{AShr, And, LShr, Or, Shl};
use Width::{W8, W16, W32, W64};

extension! { "avx";
    /// Clear the vector registers 0 to 15 above their low 128 bits.
    [Vzeroupper], exact (m, _i) { clear_registers(m, BLOCK) }
    "vzeroupper" = "c5f877";
    /// Clear the vector registers 0 to 15.
    [Vzeroall], exact (m, _i) { clear_registers(m, 0) }
    "vzeroall" = "c5fc77";

    /// A byte in every lane.
    [Vpbroadcastb], exact (m, i) { broadcast(m, i, W8) }
    "vpbroadcastb ymm1,xmm2" = "c4e27d78ca", "vpbroadcastb xmm1,[rdi]" = "c4e279780f",
    "vpbroadcastb zmm1{k1},xmm2" = "62f27d4978ca";
    /// A word in every lane.
    [Vpbroadcastw], exact (m, i) { broadcast(m, i, W16) }
    "vpbroadcastw ymm1,xmm2" = "c4e27d79ca",
    "vpbroadcastw zmm1{k1},xmm2" = "62f27d4979ca";
    /// A double word in every lane.
    [Vpbroadcastd, Vbroadcastss], exact (m, i) { broadcast(m, i, W32) }
    "vpbroadcastd ymm1,xmm2" = "c4e27d58ca", "vbroadcastss ymm1,[rdi]" = "c4e27d180f", "vbroadcastss xmm1,xmm2" = "c4e27918ca",
    "vpbroadcastd zmm1{k1},xmm2" = "62f27d4958ca", "vbroadcastss zmm1{k1},[rdi]" = "62f27d49180f";
    /// A quad word in every lane.
    [Vpbroadcastq, Vbroadcastsd], exact (m, i) { broadcast(m, i, W64) }
    "vpbroadcastq ymm1,xmm2" = "c4e27d59ca", "vbroadcastsd ymm1,[rdi]" = "c4e27d190f",
    "vpbroadcastq zmm1{k1},xmm2" = "62f2fd4959ca", "vbroadcastsd zmm1{k1},[rdi]" = "62f2fd49190f";
    /// 128 bits from memory in both halves.
    [Vbroadcastf128, Vbroadcasti128], exact (m, i) {
        let block = right(m, i);
        let result = m.shuffle(W64, block, block, &[0, 1, 0, 1]);
        set(m, i, result);
    }
    "vbroadcastf128 ymm1,[rdi]" = "c4e27d1a0f", "vbroadcasti128 ymm1,[rdi]" = "c4e27d5a0f";

    /// Put a half in.
    [Vinsertf128, Vinserti128], exact (m, i) {
        let (whole, half) = pair(m, i);
        let indices = if i.immediate8() & 1 == 0 { [4, 5, 2, 3] } else { [0, 1, 4, 5] };
        let result = m.shuffle(W64, whole, half, &indices);
        set(m, i, result);
    }
    "vinsertf128 ymm1,ymm2,xmm3,1" = "c4e36d18cb01", "vinserti128 ymm1,ymm2,[rdi],0" = "c4e36d380f00";
    /// Take a half out.
    [Vextractf128, Vextracti128], exact (m, i) {
        let whole = right(m, i);
        let halves = m.shuffle(W64, whole, whole, &[2, 3, 0, 1]);
        let half = m.vec_resize(if i.immediate8() & 1 == 0 { whole } else { halves }, BLOCK);
        set(m, i, half);
    }
    "vextractf128 xmm1,ymm2,1" = "c4e37d19d101", "vextracti128 [rdi],ymm2,1" = "c4e37d391701", "vextractf128 xmm1,ymm2,0" = "c4e37d19d100";
    /// Any halves of both operands, or zeros.
    [Vperm2f128, Vperm2i128], exact (m, i) { choose_halves(m, i) }
    "vperm2f128 ymm1,ymm2,ymm3,0x31" = "c4e36d06cb31", "vperm2i128 ymm1,ymm2,[rdi],0x28" = "c4e36d460f28";

    /// Any quad words.
    [Vpermq, Vpermpd], exact (m, i) {
        if last(i) + 1 < i.op_count() {
            let a = right(m, i);
            let indices: [u8; 8] =
                core::array::from_fn(|n| (n as u8 & 4) + (i.immediate8() >> (2 * (n % 4)) & 3));
            let result = m.shuffle(W64, a, a, &indices[..bits(i) as usize / 64]);
            set(m, i, result);
        } else {
            permute(m, i, W64);
        }
    }
    "vpermq ymm1,ymm2,0x1b" = "c4e3fd00ca1b", "vpermpd ymm1,[rdi],0x4e" = "c4e3fd010f4e",
    "vpermq zmm1{k1},zmm2,0x1b" = "62f3fd4900ca1b", "vpermpd zmm1{k1},[rdi],0x4e" = "62f3fd49010f4e";
    /// Any double words, as the first operand says.
    [Vpermd, Vpermps], exact (m, i) { permute(m, i, W32) }
    "vpermd ymm1,ymm2,ymm3" = "c4e26d36cb", "vpermps ymm1,ymm2,[rdi]" = "c4e26d160f",
    "vpermd zmm1{k1},zmm2,zmm3" = "62f26d4936cb", "vpermps zmm1{k1},zmm2,[rdi]" = "62f26d49160f";
    /// Any double words of each block, as an immediate or the second operand says.
    [Vpermilps], exact (m, i) {
        if i.op2_kind() == iced_x86::OpKind::Immediate8 {
            let a = right(m, i);
            let indices: [u8; 4] = core::array::from_fn(|n| i.immediate8() >> (2 * n) & 3);
            let result = shuffle(m, W32, a, a, &indices);
            set(m, i, result);
        } else {
            let (table, indices) = pair(m, i);
            permute_in_blocks(m, i, W32, table, indices);
        }
    }
    "vpermilps ymm1,ymm2,0x1b" = "c4e37d04ca1b", "vpermilps ymm1,ymm2,ymm3" = "c4e26d0ccb", "vpermilps xmm1,xmm2,[rdi]" = "c4e2690c0f",
    "vpermilps zmm1{k1},zmm2,0x1b" = "62f37d4904ca1b";
    /// Any quad words of each block, as bits of an immediate or bit 1 of the second operand's lanes say.
    [Vpermilpd], exact (m, i) {
        if i.op2_kind() == iced_x86::OpKind::Immediate8 {
            let a = right(m, i);
            let indices: [u8; 8] = core::array::from_fn(|n| (n as u8 & !1) + (i.immediate8() >> n & 1));
            let count = m.vec_bits(a) / 64;
            let result = m.shuffle(W64, a, a, &indices[..count as usize]);
            set(m, i, result);
        } else {
            let (table, indices) = pair(m, i);
            let indices = shift(m, LShr, W64, indices, 1);
            permute_in_blocks(m, i, W64, table, indices);
        }
    }
    "vpermilpd ymm1,ymm2,5" = "c4e37d05ca05", "vpermilpd ymm1,ymm2,ymm3" = "c4e26d0dcb", "vpermilpd xmm1,xmm2,[rdi]" = "c4e2690d0f",
    "vpermilpd zmm1{k1},zmm2,5" = "62f3fd4905ca05";
    /// Double words of either operand.
    [Vpblendd], exact (m, i) {
        let (a, b) = pair(m, i);
        let count = (m.vec_bits(a) / 32) as u8;
        let indices: [u8; 8] = core::array::from_fn(|n| n as u8 + (i.immediate8() >> n & 1) * count);
        let result = m.shuffle(W32, a, b, &indices[..count.into()]);
        set(m, i, result);
    }
    "vpblendd ymm1,ymm2,ymm3,0x5a" = "c4e36d02cb5a", "vpblendd xmm1,xmm2,[rdi],6" = "c4e369020f06";

    /// Double words shifted left, each by its own count.
    [Vpsllvd], exact (m, i) { shift_lanes(m, i, Shl, W32) }
    "vpsllvd ymm1,ymm2,ymm3" = "c4e26d47cb",
    "vpsllvd zmm1{k1},zmm2,zmm3" = "62f26d4947cb";
    /// Quad words shifted left, each by its own count.
    [Vpsllvq], exact (m, i) { shift_lanes(m, i, Shl, W64) }
    "vpsllvq ymm1,ymm2,ymm3" = "c4e2ed47cb",
    "vpsllvq zmm1{k1},zmm2,zmm3" = "62f2ed4947cb";
    /// Double words shifted right, each by its own count.
    [Vpsrlvd], exact (m, i) { shift_lanes(m, i, LShr, W32) }
    "vpsrlvd ymm1,ymm2,ymm3" = "c4e26d45cb", "vpsrlvd xmm1,xmm2,[rdi]" = "c4e269450f",
    "vpsrlvd zmm1{k1},zmm2,zmm3" = "62f26d4945cb";
    /// Quad words shifted right, each by its own count.
    [Vpsrlvq], exact (m, i) { shift_lanes(m, i, LShr, W64) }
    "vpsrlvq ymm1,ymm2,ymm3" = "c4e2ed45cb",
    "vpsrlvq zmm1{k1},zmm2,zmm3" = "62f2ed4945cb";
    /// Double words shifted right arithmetically, each by its own count.
    [Vpsravd], exact (m, i) { shift_lanes(m, i, AShr, W32) }
    "vpsravd ymm1,ymm2,ymm3" = "c4e26d46cb",
    "vpsravd zmm1{k1},zmm2,zmm3" = "62f26d4946cb";

    /// Load or store the double words whose lane of the first operand has its top bit set.
    [Vmaskmovps, Vpmaskmovd], exact (m, i) { move_masked(m, i, W32) }
    "vmaskmovps ymm1,ymm2,[rdi]" = "c4e26d2c0f", "vpmaskmovd [rdi],ymm2,ymm3" = "c4e26d8e1f";
    /// Load or store the quad words whose lane of the first operand has its top bit set.
    [Vmaskmovpd, Vpmaskmovq], exact (m, i) { move_masked(m, i, W64) }
    "vmaskmovpd [rdi],ymm2,ymm3" = "c4e26d2f1f", "vpmaskmovq xmm1,xmm2,[rdi]" = "c4e2e98c0f";

    /// Double words from addresses with 32-bit indices, where the mask has its top bits set.
    [Vpgatherdd, Vgatherdps] if !is_evex(i), exact (m, i) { gather(m, i, W32, W32) }
    "vpgatherdd ymm1,[rdi+ymm2*4],ymm3" = "c4e265900c97", "vgatherdps xmm1,[rdi+xmm2],xmm3" = "c4e261920c17";
    /// Double words from addresses with 64-bit indices, where the mask has its top bits set.
    [Vpgatherqd, Vgatherqps] if !is_evex(i), exact (m, i) { gather(m, i, W64, W32) }
    "vpgatherqd xmm1,[rdi+ymm2*4],xmm3" = "c4e265910c97", "vgatherqps xmm1,[rdi+xmm2],xmm3" = "c4e261930c17";
    /// Quad words from addresses with 32-bit indices, where the mask has its top bits set.
    [Vpgatherdq, Vgatherdpd] if !is_evex(i), exact (m, i) { gather(m, i, W32, W64) }
    "vpgatherdq ymm1,[rdi+xmm2*8],ymm3" = "c4e2e5900cd7", "vgatherdpd xmm1,[rdi+xmm2],xmm3" = "c4e2e1920c17";
    /// Quad words from addresses with 64-bit indices, where the mask has its top bits set.
    [Vpgatherqq, Vgatherqpd] if !is_evex(i), exact (m, i) { gather(m, i, W64, W64) }
    "vpgatherqq ymm1,[rdi+ymm2*8],ymm3" = "c4e2e5910cd7", "vgatherqpd xmm1,[rdi+xmm2],xmm3" = "c4e2e1930c17";

    /// ZF where no single of both operands is negative, CF where none of the second alone is.
    [Vtestps], exact (m, i) { test_signs(m, i, W32) }
    "vtestps ymm1,ymm2" = "c4e27d0eca", "vtestps xmm1,[rdi]" = "c4e2790e0f";
    /// ZF where no double of both operands is negative, CF where none of the second alone is.
    [Vtestpd], exact (m, i) { test_signs(m, i, W64) }
    "vtestpd ymm1,ymm2" = "c4e27d0fca";
}

fn clear_registers<M: X86>(m: &mut M, from: u32) {
    for number in 0..16 {
        m.clear_vec_reg(number, from);
    }
}

fn broadcast<M: X86>(m: &mut M, i: &Insn, lane: Width) {
    let value = if i.op1_register().is_gpr() {
        let value = read(m, i, 1);
        m.trunc(value, lane)
    } else if in_memory(i, 1) {
        let part = load_part(m, i, bits(i) / lane.bits());
        m.lane(part, lane, 0)
    } else {
        scalar(m, i, 1, lane)
    };
    let result = m.vec_splat(value, bits(i));
    set_lanes(m, i, lane, result);
}

/// Any lanes of the second operand, as the first says.
pub(super) fn permute<M: X86>(m: &mut M, i: &Insn, lane: Width) {
    let (indices, table) = pair(m, i);
    let result = m.permute(lane, table, indices);
    set(m, i, result);
}

/// VPERM2F128: a field of the immediate for each half.
fn choose_halves<M: X86>(m: &mut M, i: &Insn) {
    let (a, b) = pair(m, i);
    let field = |half: u8| i.immediate8() >> (4 * half);
    let indices: [u8; 4] = core::array::from_fn(|n| 2 * (field(n as u8 / 2) & 3) + n as u8 % 2);
    let chosen = m.shuffle(W64, a, b, &indices);
    let zero = zero(m, a);
    let indices: [u8; 4] = core::array::from_fn(|n| n as u8 + 4 * (field(n as u8 / 2) >> 3 & 1));
    let result = m.shuffle(W64, chosen, zero, &indices);
    set(m, i, result);
}

/// Lanes of `table` by the low bits of `indices`, which count within each block.
fn permute_in_blocks<M: X86>(m: &mut M, i: &Insn, lane: Width, table: M::Vec, indices: M::Vec) {
    let count = BLOCK / lane.bits();
    let within = splat(m, indices, lane, u64::from(count - 1));
    let within = bitwise(m, And, indices, within);
    let mut blocks = zero(m, indices);
    for n in 0..m.vec_bits(indices) / lane.bits() {
        let block = m.int(lane, u64::from(n / count * count));
        blocks = m.set_lane(blocks, n, block);
    }
    let indices = bitwise(m, Or, within, blocks);
    let result = m.permute(lane, table, indices);
    set(m, i, result);
}

/// A count of the lane width or more leaves nothing, or only signs.
pub(super) fn shift_lanes<M: X86>(m: &mut M, i: &Insn, op: BinOp, lane: Width) {
    let (value, counts) = lane_pair(m, i);
    let most = splat(m, counts, lane, u64::from(lane.bits() - 1));
    let result = if op == AShr {
        let counts = m.lanes(LaneOp::MinUnsigned, lane, counts, most);
        m.lanes(LaneOp::Int(op), lane, value, counts)
    } else {
        let in_range = m.lanes(LaneOp::Cmp(CmpOp::Ule), lane, counts, most);
        let counts = bitwise(m, And, counts, most);
        let shifted = m.lanes(LaneOp::Int(op), lane, value, counts);
        bitwise(m, And, in_range, shifted)
    };
    set(m, i, result);
}

fn move_masked<M: X86>(m: &mut M, i: &Insn, lane: Width) {
    let mask = operand(m, i, 1);
    let address = memory_address(m, i);
    if in_memory(i, 0) {
        let value = right(m, i);
        m.store_masked(address, lane, mask, value);
    } else {
        let value = m.load_masked(address, lane, mask);
        set(m, i, value);
    }
}

/// Lane after lane, and what has been loaded stays if a later one faults: the mask says how far it came.
fn gather<M: X86>(m: &mut M, i: &Insn, index: Width, lane: Width) {
    let (target, mask) = (number(i, 0), number(i, 2));
    let illegal = m.bool(target == mask || target == index_number(i) || mask == index_number(i));
    m.trap_if(illegal, crate::machine::Trap::Undefined);
    let count = gathered(i, index, lane);
    let size = 8 * i.op0_register().size() as u32;
    let (indices, chosen) = (m.vec_reg(index_number(i), 8 * i.memory_index().size() as u32), m.vec_reg(mask, size));
    for n in 0..count {
        let sign = m.lane(chosen, lane, n);
        let wanted = m.is_negative(sign);
        let offset = m.lane(indices, index, n);
        m.when(wanted, &mut |m| {
            let address = memory_address_of_index(m, i, offset);
            let value = m.load(address, lane);
            let rest = m.vec_reg(target, size);
            let result = m.set_lane(rest, n, value);
            m.set_vec_reg(target, result);
        });
        let done = m.int(lane, 0);
        let rest = m.vec_reg(mask, size);
        let rest = m.set_lane(rest, n, done);
        m.set_vec_reg(mask, rest);
    }
    let result = m.vec_reg(target, size);
    let used = m.vec_resize(result, BLOCK);
    let zero = m.vec_zero(size);
    if count * lane.bits() < BLOCK {
        let half = m.shuffle(W64, used, zero, &[0, 2]);
        m.set_vec_reg(target, half);
    }
    m.set_vec_reg(mask, zero);
    m.clear_vec_reg(target, size);
    m.clear_vec_reg(mask, size);
}

fn index_number(i: &Insn) -> u32 {
    i.memory_index().number() as u32
}

/// How many lanes: as many as there are indices and room for.
fn gathered(i: &Insn, index: Width, lane: Width) -> u32 {
    let of = |register: iced_x86::Register, width: Width| 8 * register.size() as u32 / width.bits();
    of(i.memory_index(), index).min(of(i.op0_register(), lane))
}

fn test_signs<M: X86>(m: &mut M, i: &Insn, lane: Width) {
    let (a, b) = (left(m, i), right(m, i));
    let (a, b) = (m.sign_mask(a, lane, W64), m.sign_mask(b, lane, W64));
    let common = m.bin(And, a, b);
    let outside = m.un(crate::machine::UnOp::Not, a);
    let outside = m.bin(And, outside, b);
    let (zf, cf) = (m.is_zero(common), m.is_zero(outside));
    m.put(Flag::Zf, zf);
    m.put(Flag::Cf, cf);
    m.put_known(&[Flag::Of, Flag::Af, Flag::Pf, Flag::Sf], false);
}
