//! AVX-512: mask registers, comparisons into them, and what has no VEX encoding. SDM vol. 2. What EVEX adds to
//! instructions that were there before is in [`crate::x86_64::vector`].

use super::avx::{permute, shift_lanes};
use super::sse_integer::{absolute, lanewise, shift_by_operand};
use crate::machine::{BinOp, CmpOp, LaneOp, UnOp, Width};
use crate::x86_64::operand::{X86, memory_address, probe, width_of};
use crate::x86_64::vector::{
    bits, bitwise, blend, chosen, complement, in_memory, lane_pair, lanes_at, load_part, number, operand, pair,
    require_aligned, right, set, set_few, set_lanes, set_mask, set_register, shift, splat, unaligned, zero,
};
use crate::x86_64::{Insn, Reg};
use BinOp::{AShr, Add, And, LShr, Mul, Or, Shl, Xor};
use Width::{W8, W16, W32, W64};

extension! { "avx512";
    /// Move a vector at any alignment.
    [Vmovdqu8, Vmovdqu16, Vmovdqu32, Vmovdqu64], exact (m, i) { move_lanes(m, i, false) }
    "vmovdqu8 zmm1{k1}{z},[rdi+0x40]" = "62f17fc96f4f01", "vmovdqu8 [rdi+1],ymm2" = "62f17f287f9701000000", "vmovdqu8 xmm20{k2},xmm3" = "62e17f0a6fe3", "vmovdqu16 zmm1{k1}{z},[rdi+0x40]" = "62f1ffc96f4f01", "vmovdqu16 [rdi+1],ymm2" = "62f1ff287f9701000000", "vmovdqu16 xmm20{k2},xmm3" = "62e1ff0a6fe3", "vmovdqu32 zmm1{k1}{z},[rdi+0x40]" = "62f17ec96f4f01", "vmovdqu32 [rdi+1],ymm2" = "62f17e287f9701000000", "vmovdqu32 xmm20{k2},xmm3" = "62e17e0a6fe3", "vmovdqu64 zmm1{k1}{z},[rdi+0x40]" = "62f1fec96f4f01", "vmovdqu64 [rdi+1],ymm2" = "62f1fe287f9701000000", "vmovdqu64 xmm20{k2},xmm3" = "62e1fe0a6fe3", "vmovdqu8 [rdi]{k1},zmm2" = "62f17f497f17", "vmovdqu32 [rdi]{k1},ymm2" = "62f17e297f17";
    /// Move an aligned vector.
    [Vmovdqa32, Vmovdqa64], exact (m, i) { move_lanes(m, i, true) }
    "vmovdqa32 zmm1,[rdi+0x40]" = "62f17d486f4f01", "vmovdqa32 [rdi]{k1},ymm2" = "62f17d297f17", "vmovdqa32 xmm20,xmm3" = "62e17d086fe3", "vmovdqa64 zmm1,[rdi+0x40]" = "62f1fd486f4f01", "vmovdqa64 [rdi]{k1},ymm2" = "62f1fd297f17", "vmovdqa64 xmm20,xmm3" = "62e1fd086fe3";
    /// All bits and, of which the mask chooses lanes.
    [Vpandd, Vpandq], exact (m, i) { logic(m, i, And) }
    "vpandd zmm1{k1},zmm2,zmm3" = "62f16d49dbcb", "vpandq zmm1{k1},zmm2,zmm3" = "62f1ed49dbcb", "vpandd ymm17,ymm2,[rdi]{1to8}" = "62e16d38db0f";
    /// All bits or, of which the mask chooses lanes.
    [Vpord, Vporq], exact (m, i) { logic(m, i, Or) }
    "vpord zmm1{k1},zmm2,zmm3" = "62f16d49ebcb", "vporq zmm1{k1},zmm2,zmm3" = "62f1ed49ebcb", "vpord ymm17,ymm2,[rdi]{1to8}" = "62e16d38eb0f";
    /// All bits xor, of which the mask chooses lanes.
    [Vpxord, Vpxorq], exact (m, i) { logic(m, i, Xor) }
    "vpxord zmm1{k1},zmm2,zmm3" = "62f16d49efcb", "vpxorq zmm1{k1},zmm2,zmm3" = "62f1ed49efcb", "vpxord ymm17,ymm2,[rdi]{1to8}" = "62e16d38ef0f";
    /// All bits of the second operand and not of the first.
    [Vpandnd, Vpandnq], exact (m, i) { 
        let (a, b) = lane_pair(m, i);
        let a = complement(m, a);
        let result = bitwise(m, And, a, b);
        set(m, i, result);
     }
    "vpandnd zmm1{k1}{z},zmm2,zmm3" = "62f16dc9dfcb", "vpandnq xmm1,xmm2,[rdi]" = "62f1ed08df0f";
    /// Any function of three bits, as the immediate tells it.
    [Vpternlogd, Vpternlogq], exact (m, i) { ternary(m, i) }
    "vpternlogd zmm1,zmm2,zmm3,-0x28" = "62f36d4825cbd8", "vpternlogq ymm1{k1},ymm2,[rdi],0x1b" = "62f3ed29250f1b", "vpternlogd xmm1{k1}{z},xmm2,xmm3,-1" = "62f36d8925cbff";
    /// Compare signed bytes, as the immediate says, into a mask.
    [Vpcmpb], exact (m, i) { compare(m, i, W8, false) }
    "vpcmpltb k1,zmm2,zmm3" = "62f36d483fcb01", "vpcmpnleb k2{k1},ymm2,[rdi]" = "62f36d293f1706", "vpcmpneqb k2,xmm2,xmm3" = "62f36d083fd304";
    /// Compare unsigned bytes, as the immediate says, into a mask.
    [Vpcmpub], exact (m, i) { compare(m, i, W8, true) }
    "vpcmpleub k1,zmm2,zmm3" = "62f36d483ecb02", "vpcmpnltub k2{k1},ymm2,[rdi]" = "62f36d293e1705", "vpcmpequb k2,xmm2,xmm3" = "62f36d083ed300";
    /// The mask of bytes that have bits in common.
    [Vptestmb], exact (m, i) { test_lanes(m, i, W8, CmpOp::Ne) }
    "vptestmb k1,zmm2,zmm3" = "62f26d4826cb", "vptestmb k1{k2},ymm2,ymm3" = "62f26d2a26cb";
    /// The mask of bytes that have no bits in common.
    [Vptestnmb], exact (m, i) { test_lanes(m, i, W8, CmpOp::Eq) }
    "vptestnmb k1,zmm2,zmm3" = "62f26e4826cb", "vptestnmb k1{k2},ymm2,[rdi]" = "62f26e2a260f";
    /// The signs of bytes as a mask.
    [Vpmovb2m], exact (m, i) { 
        let a = right(m, i);
        let signs = m.sign_mask(a, W8, W64);
        set_mask(m, i, signs);
     }
    "vpmovb2m k1,zmm2" = "62f27e4829ca";
    /// A mask as bytes.
    [Vpmovm2b], exact (m, i) { 
        let mask = m.reg(Reg::Opmask(number(i, 1) as u8));
        let lanes = m.mask_lanes(mask, W8, bits(i));
        set(m, i, lanes);
     }
    "vpmovm2b zmm1,k2" = "62f27e4828ca";
    /// Compare signed words, as the immediate says, into a mask.
    [Vpcmpw], exact (m, i) { compare(m, i, W16, false) }
    "vpcmpltw k1,zmm2,zmm3" = "62f3ed483fcb01", "vpcmpnlew k2{k1},ymm2,[rdi]" = "62f3ed293f1706", "vpcmpneqw k2,xmm2,xmm3" = "62f3ed083fd304";
    /// Compare unsigned words, as the immediate says, into a mask.
    [Vpcmpuw], exact (m, i) { compare(m, i, W16, true) }
    "vpcmpleuw k1,zmm2,zmm3" = "62f3ed483ecb02", "vpcmpnltuw k2{k1},ymm2,[rdi]" = "62f3ed293e1705", "vpcmpequw k2,xmm2,xmm3" = "62f3ed083ed300";
    /// The mask of words that have bits in common.
    [Vptestmw], exact (m, i) { test_lanes(m, i, W16, CmpOp::Ne) }
    "vptestmw k1,zmm2,zmm3" = "62f2ed4826cb", "vptestmw k1{k2},ymm2,ymm3" = "62f2ed2a26cb";
    /// The mask of words that have no bits in common.
    [Vptestnmw], exact (m, i) { test_lanes(m, i, W16, CmpOp::Eq) }
    "vptestnmw k1,zmm2,zmm3" = "62f2ee4826cb", "vptestnmw k1{k2},ymm2,[rdi]" = "62f2ee2a260f";
    /// The signs of words as a mask.
    [Vpmovw2m], exact (m, i) { 
        let a = right(m, i);
        let signs = m.sign_mask(a, W16, W64);
        set_mask(m, i, signs);
     }
    "vpmovw2m k1,zmm2" = "62f2fe4829ca";
    /// A mask as words.
    [Vpmovm2w], exact (m, i) { 
        let mask = m.reg(Reg::Opmask(number(i, 1) as u8));
        let lanes = m.mask_lanes(mask, W16, bits(i));
        set(m, i, lanes);
     }
    "vpmovm2w zmm1,k2" = "62f2fe4828ca";
    /// Compare signed double words, as the immediate says, into a mask.
    [Vpcmpd], exact (m, i) { compare(m, i, W32, false) }
    "vpcmpltd k1,zmm2,zmm3" = "62f36d481fcb01", "vpcmpnled k2{k1},ymm2,[rdi]" = "62f36d291f1706", "vpcmpneqd k2,xmm2,xmm3" = "62f36d081fd304";
    /// Compare unsigned double words, as the immediate says, into a mask.
    [Vpcmpud], exact (m, i) { compare(m, i, W32, true) }
    "vpcmpleud k1,zmm2,zmm3" = "62f36d481ecb02", "vpcmpnltud k2{k1},ymm2,[rdi]" = "62f36d291e1705", "vpcmpequd k2,xmm2,xmm3" = "62f36d081ed300";
    /// The mask of double words that have bits in common.
    [Vptestmd], exact (m, i) { test_lanes(m, i, W32, CmpOp::Ne) }
    "vptestmd k1,zmm2,zmm3" = "62f26d4827cb", "vptestmd k1{k2},ymm2,ymm3" = "62f26d2a27cb";
    /// The mask of double words that have no bits in common.
    [Vptestnmd], exact (m, i) { test_lanes(m, i, W32, CmpOp::Eq) }
    "vptestnmd k1,zmm2,zmm3" = "62f26e4827cb", "vptestnmd k1{k2},ymm2,[rdi]" = "62f26e2a270f";
    /// The signs of double words as a mask.
    [Vpmovd2m], exact (m, i) { 
        let a = right(m, i);
        let signs = m.sign_mask(a, W32, W64);
        set_mask(m, i, signs);
     }
    "vpmovd2m k1,zmm2" = "62f27e4839ca";
    /// A mask as double words.
    [Vpmovm2d], exact (m, i) { 
        let mask = m.reg(Reg::Opmask(number(i, 1) as u8));
        let lanes = m.mask_lanes(mask, W32, bits(i));
        set(m, i, lanes);
     }
    "vpmovm2d zmm1,k2" = "62f27e4838ca";
    /// Compare signed quad words, as the immediate says, into a mask.
    [Vpcmpq], exact (m, i) { compare(m, i, W64, false) }
    "vpcmpltq k1,zmm2,zmm3" = "62f3ed481fcb01", "vpcmpnleq k2{k1},ymm2,[rdi]" = "62f3ed291f1706", "vpcmpneqq k2,xmm2,xmm3" = "62f3ed081fd304";
    /// Compare unsigned quad words, as the immediate says, into a mask.
    [Vpcmpuq], exact (m, i) { compare(m, i, W64, true) }
    "vpcmpleuq k1,zmm2,zmm3" = "62f3ed481ecb02", "vpcmpnltuq k2{k1},ymm2,[rdi]" = "62f3ed291e1705", "vpcmpequq k2,xmm2,xmm3" = "62f3ed081ed300";
    /// The mask of quad words that have bits in common.
    [Vptestmq], exact (m, i) { test_lanes(m, i, W64, CmpOp::Ne) }
    "vptestmq k1,zmm2,zmm3" = "62f2ed4827cb", "vptestmq k1{k2},ymm2,ymm3" = "62f2ed2a27cb";
    /// The mask of quad words that have no bits in common.
    [Vptestnmq], exact (m, i) { test_lanes(m, i, W64, CmpOp::Eq) }
    "vptestnmq k1,zmm2,zmm3" = "62f2ee4827cb", "vptestnmq k1{k2},ymm2,[rdi]" = "62f2ee2a270f";
    /// The signs of quad words as a mask.
    [Vpmovq2m], exact (m, i) { 
        let a = right(m, i);
        let signs = m.sign_mask(a, W64, W64);
        set_mask(m, i, signs);
     }
    "vpmovq2m k1,zmm2" = "62f2fe4839ca";
    /// A mask as quad words.
    [Vpmovm2q], exact (m, i) { 
        let mask = m.reg(Reg::Opmask(number(i, 1) as u8));
        let lanes = m.mask_lanes(mask, W64, bits(i));
        set(m, i, lanes);
     }
    "vpmovm2q zmm1,k2" = "62f2fe4838ca";
    /// Signed minima of quad words.
    [Vpminsq], exact (m, i) { lanewise(m, i, LaneOp::MinSigned, W64) }
    "vpminsq zmm1{k1},zmm2,zmm3" = "62f2ed4939cb";
    /// Unsigned minima of quad words.
    [Vpminuq], exact (m, i) { lanewise(m, i, LaneOp::MinUnsigned, W64) }
    "vpminuq zmm1{k1},zmm2,zmm3" = "62f2ed493bcb";
    /// Signed maxima of quad words.
    [Vpmaxsq], exact (m, i) { lanewise(m, i, LaneOp::MaxSigned, W64) }
    "vpmaxsq zmm1{k1},zmm2,zmm3" = "62f2ed493dcb";
    /// Unsigned maxima of quad words.
    [Vpmaxuq], exact (m, i) { lanewise(m, i, LaneOp::MaxUnsigned, W64) }
    "vpmaxuq zmm1{k1},zmm2,zmm3" = "62f2ed493fcb";
    /// Low halves of products of quad words.
    [Vpmullq], exact (m, i) { lanewise(m, i, LaneOp::Int(Mul), W64) }
    "vpmullq zmm1{k1},zmm2,zmm3" = "62f2ed4940cb";
    /// Absolute values of quad words.
    [Vpabsq], exact (m, i) { absolute(m, i, W64) }
    "vpabsq zmm1{k1},zmm2" = "62f2fd491fca";
    /// Arithmetic right shift of quad words.
    [Vpsraq], exact (m, i) { shift_by_operand(m, i, AShr, W64) }
    "vpsraq zmm1{k1},zmm2,xmm3" = "62f1ed49e2cb", "vpsraq zmm1,zmm2,0x46" = "62f1f54872e246", "vpsraq ymm1,ymm2,7" = "62f1f52872e207";
    /// Words shifted left, each by its own count.
    [Vpsllvw], exact (m, i) { shift_lanes(m, i, Shl, W16) }
    "vpsllvw zmm1{k1},zmm2,zmm3" = "62f2ed4912cb", "vpsllvw xmm1,xmm2,xmm3" = "62f2ed0812cb";
    /// Words shifted right, each by its own count.
    [Vpsrlvw], exact (m, i) { shift_lanes(m, i, LShr, W16) }
    "vpsrlvw zmm1{k1},zmm2,zmm3" = "62f2ed4910cb", "vpsrlvw xmm1,xmm2,xmm3" = "62f2ed0810cb";
    /// Words shifted right arithmetically, each by its own count.
    [Vpsravw], exact (m, i) { shift_lanes(m, i, AShr, W16) }
    "vpsravw zmm1{k1},zmm2,zmm3" = "62f2ed4911cb", "vpsravw xmm1,xmm2,xmm3" = "62f2ed0811cb";
    /// Quad words shifted right arithmetically, each by its own count.
    [Vpsravq], exact (m, i) { shift_lanes(m, i, AShr, W64) }
    "vpsravq zmm1{k1},zmm2,zmm3" = "62f2ed4946cb", "vpsravq xmm1,xmm2,xmm3" = "62f2ed0846cb";
    /// Double words rotated left by an immediate.
    [Vprold], exact (m, i) { rotate(m, i, W32, true) }
    "vprold zmm1{k1},zmm2,5" = "62f1754972ca05";
    /// Double words rotated right by an immediate.
    [Vprord], exact (m, i) { rotate(m, i, W32, false) }
    "vprord zmm1,zmm2,5" = "62f1754872c205";
    /// Double words rotated left, each by its own count.
    [Vprolvd], exact (m, i) { rotate_lanes(m, i, W32, true) }
    "vprolvd zmm1{k1},zmm2,zmm3" = "62f26d4915cb";
    /// Double words rotated right, each by its own count.
    [Vprorvd], exact (m, i) { rotate_lanes(m, i, W32, false) }
    "vprorvd zmm1,zmm2,zmm3" = "62f26d4814cb";
    /// Both operands as one vector, shifted right by double words.
    [Valignd], exact (m, i) { align(m, i, W32) }
    "valignd zmm1{k1},zmm2,zmm3,5" = "62f36d4903cb05", "valignd xmm1,xmm2,xmm3,3" = "62f36d0803cb03";
    /// Quad words rotated left by an immediate.
    [Vprolq], exact (m, i) { rotate(m, i, W64, true) }
    "vprolq zmm1{k1},zmm2,5" = "62f1f54972ca05";
    /// Quad words rotated right by an immediate.
    [Vprorq], exact (m, i) { rotate(m, i, W64, false) }
    "vprorq zmm1,zmm2,5" = "62f1f54872c205";
    /// Quad words rotated left, each by its own count.
    [Vprolvq], exact (m, i) { rotate_lanes(m, i, W64, true) }
    "vprolvq zmm1{k1},zmm2,zmm3" = "62f2ed4915cb";
    /// Quad words rotated right, each by its own count.
    [Vprorvq], exact (m, i) { rotate_lanes(m, i, W64, false) }
    "vprorvq zmm1,zmm2,zmm3" = "62f2ed4814cb";
    /// Both operands as one vector, shifted right by quad words.
    [Valignq], exact (m, i) { align(m, i, W64) }
    "valignq zmm1{k1},zmm2,zmm3,5" = "62f3ed4903cb05", "valignq xmm1,xmm2,xmm3,3" = "62f3ed0803cb03";
    /// Bytes of either operand, as the mask says.
    [Vpblendmb], exact (m, i) { choose_by_mask(m, i, W8) }
    "vpblendmb zmm1{k1},zmm2,zmm3" = "62f26d4966cb", "vpblendmb ymm1{k1}{z},ymm2,ymm3" = "62f26da966cb";
    /// Any bytes, as the first operand says.
    [Vpermb], exact (m, i) { permute(m, i, W8) }
    "vpermb zmm1{k1},zmm2,zmm3" = "62f26d498dcb";
    /// Any bytes of the second and third operand, as the destination says.
    [Vpermi2b], exact (m, i) { permute_two(m, i, W8, [1, 0, 2]) }
    "vpermi2b zmm1{k1},zmm2,zmm3" = "62f26d4975cb", "vpermi2b xmm1,xmm2,xmm3" = "62f26d0875cb";
    /// Any bytes of the destination and the third operand, as the second says.
    [Vpermt2b], exact (m, i) { permute_two(m, i, W8, [0, 1, 2]) }
    "vpermt2b zmm1{k1}{z},zmm2,zmm3" = "62f26dc97dcb", "vpermt2b ymm1,ymm2,ymm3" = "62f26d287dcb";
    /// Words of either operand, as the mask says.
    [Vpblendmw], exact (m, i) { choose_by_mask(m, i, W16) }
    "vpblendmw zmm1{k1},zmm2,zmm3" = "62f2ed4966cb", "vpblendmw ymm1{k1}{z},ymm2,ymm3" = "62f2eda966cb";
    /// Any words, as the first operand says.
    [Vpermw], exact (m, i) { permute(m, i, W16) }
    "vpermw zmm1{k1},zmm2,zmm3" = "62f2ed498dcb";
    /// Any words of the second and third operand, as the destination says.
    [Vpermi2w], exact (m, i) { permute_two(m, i, W16, [1, 0, 2]) }
    "vpermi2w zmm1{k1},zmm2,zmm3" = "62f2ed4975cb", "vpermi2w xmm1,xmm2,xmm3" = "62f2ed0875cb";
    /// Any words of the destination and the third operand, as the second says.
    [Vpermt2w], exact (m, i) { permute_two(m, i, W16, [0, 1, 2]) }
    "vpermt2w zmm1{k1}{z},zmm2,zmm3" = "62f2edc97dcb", "vpermt2w ymm1,ymm2,ymm3" = "62f2ed287dcb";
    /// Double words of either operand, as the mask says.
    [Vpblendmd, Vblendmps], exact (m, i) { choose_by_mask(m, i, W32) }
    "vpblendmd zmm1{k1},zmm2,zmm3" = "62f26d4964cb", "vblendmps zmm1{k1},zmm2,zmm3" = "62f26d4965cb", "vpblendmd ymm1{k1}{z},ymm2,ymm3" = "62f26da964cb";
    /// Any double words of the second and third operand, as the destination says.
    [Vpermi2d, Vpermi2ps], exact (m, i) { permute_two(m, i, W32, [1, 0, 2]) }
    "vpermi2d zmm1{k1},zmm2,zmm3" = "62f26d4976cb", "vpermi2ps zmm1{k1},zmm2,zmm3" = "62f26d4977cb", "vpermi2d xmm1,xmm2,xmm3" = "62f26d0876cb";
    /// Any double words of the destination and the third operand, as the second says.
    [Vpermt2d, Vpermt2ps], exact (m, i) { permute_two(m, i, W32, [0, 1, 2]) }
    "vpermt2d zmm1{k1}{z},zmm2,zmm3" = "62f26dc97ecb", "vpermt2ps zmm1{k1}{z},zmm2,zmm3" = "62f26dc97fcb", "vpermt2d ymm1,ymm2,ymm3" = "62f26d287ecb";
    /// Quad words of either operand, as the mask says.
    [Vpblendmq, Vblendmpd], exact (m, i) { choose_by_mask(m, i, W64) }
    "vpblendmq zmm1{k1},zmm2,zmm3" = "62f2ed4964cb", "vblendmpd zmm1{k1},zmm2,zmm3" = "62f2ed4965cb", "vpblendmq ymm1{k1}{z},ymm2,ymm3" = "62f2eda964cb";
    /// Any quad words of the second and third operand, as the destination says.
    [Vpermi2q, Vpermi2pd], exact (m, i) { permute_two(m, i, W64, [1, 0, 2]) }
    "vpermi2q zmm1{k1},zmm2,zmm3" = "62f2ed4976cb", "vpermi2pd zmm1{k1},zmm2,zmm3" = "62f2ed4977cb", "vpermi2q xmm1,xmm2,xmm3" = "62f2ed0876cb";
    /// Any quad words of the destination and the third operand, as the second says.
    [Vpermt2q, Vpermt2pd], exact (m, i) { permute_two(m, i, W64, [0, 1, 2]) }
    "vpermt2q zmm1{k1}{z},zmm2,zmm3" = "62f2edc97ecb", "vpermt2pd zmm1{k1}{z},zmm2,zmm3" = "62f2edc97fcb", "vpermt2q ymm1,ymm2,ymm3" = "62f2ed287ecb";
    /// Put 128 bits in.
    [Vinsertf32x4, Vinserti32x4], exact (m, i) { insert_part(m, i, 128, W32) }
    "vinsertf32x4 zmm1{k1},zmm2,xmm3,1" = "62f36d4918cb01", "vinserti32x4 zmm1,zmm2,[rdi],3" = "62f36d48380f03";
    /// Take 128 bits out.
    [Vextractf32x4, Vextracti32x4], exact (m, i) { extract_part(m, i, 128, W32) }
    "vextractf32x4 xmm1{k1},zmm2,1" = "62f37d4919d101", "vextracti32x4 [rdi],zmm2,3" = "62f37d48391703";
    /// 128 bits from memory everywhere.
    [Vbroadcastf32x4, Vbroadcasti32x4], exact (m, i) { broadcast_part(m, i, 128, W32) }
    "vbroadcastf32x4 zmm1{k1},[rdi]" = "62f27d491a0f", "vbroadcasti32x4 zmm1,[rdi]" = "62f27d485a0f";
    /// Put 128 bits in.
    [Vinsertf64x2, Vinserti64x2], exact (m, i) { insert_part(m, i, 128, W64) }
    "vinsertf64x2 zmm1{k1},zmm2,xmm3,1" = "62f3ed4918cb01", "vinserti64x2 zmm1,zmm2,[rdi],3" = "62f3ed48380f03";
    /// Take 128 bits out.
    [Vextractf64x2, Vextracti64x2], exact (m, i) { extract_part(m, i, 128, W64) }
    "vextractf64x2 xmm1{k1},zmm2,1" = "62f3fd4919d101", "vextracti64x2 [rdi],zmm2,3" = "62f3fd48391703";
    /// 128 bits from memory everywhere.
    [Vbroadcastf64x2, Vbroadcasti64x2], exact (m, i) { broadcast_part(m, i, 128, W64) }
    "vbroadcastf64x2 zmm1{k1},[rdi]" = "62f2fd491a0f", "vbroadcasti64x2 zmm1,[rdi]" = "62f2fd485a0f";
    /// Put 256 bits in.
    [Vinsertf32x8, Vinserti32x8], exact (m, i) { insert_part(m, i, 256, W32) }
    "vinsertf32x8 zmm1{k1},zmm2,ymm3,1" = "62f36d491acb01", "vinserti32x8 zmm1,zmm2,[rdi],3" = "62f36d483a0f03";
    /// Take 256 bits out.
    [Vextractf32x8, Vextracti32x8], exact (m, i) { extract_part(m, i, 256, W32) }
    "vextractf32x8 ymm1{k1},zmm2,1" = "62f37d491bd101", "vextracti32x8 [rdi],zmm2,3" = "62f37d483b1703";
    /// 256 bits from memory everywhere.
    [Vbroadcastf32x8, Vbroadcasti32x8], exact (m, i) { broadcast_part(m, i, 256, W32) }
    "vbroadcastf32x8 zmm1{k1},[rdi]" = "62f27d491b0f", "vbroadcasti32x8 zmm1,[rdi]" = "62f27d485b0f";
    /// Put 256 bits in.
    [Vinsertf64x4, Vinserti64x4], exact (m, i) { insert_part(m, i, 256, W64) }
    "vinsertf64x4 zmm1{k1},zmm2,ymm3,1" = "62f3ed491acb01", "vinserti64x4 zmm1,zmm2,[rdi],3" = "62f3ed483a0f03";
    /// Take 256 bits out.
    [Vextractf64x4, Vextracti64x4], exact (m, i) { extract_part(m, i, 256, W64) }
    "vextractf64x4 ymm1{k1},zmm2,1" = "62f3fd491bd101", "vextracti64x4 [rdi],zmm2,3" = "62f3fd483b1703";
    /// 256 bits from memory everywhere.
    [Vbroadcastf64x4, Vbroadcasti64x4], exact (m, i) { broadcast_part(m, i, 256, W64) }
    "vbroadcastf64x4 zmm1{k1},[rdi]" = "62f2fd491b0f", "vbroadcasti64x4 zmm1,[rdi]" = "62f2fd485b0f";
    /// Two double words everywhere.
    [Vbroadcastf32x2, Vbroadcasti32x2], exact (m, i) { broadcast_part(m, i, 64, W32) }
    "vbroadcastf32x2 zmm1{k1},xmm2" = "62f27d4919ca", "vbroadcasti32x2 ymm1,[rdi]" = "62f27d28590f";
    /// Any blocks of both operands.
    [Vshuff32x4, Vshufi32x4], exact (m, i) { shuffle_blocks(m, i, W32) }
    "vshuff32x4 zmm1{k1},zmm2,zmm3,0x1b" = "62f36d4923cb1b", "vshufi32x4 ymm1,ymm2,ymm3,2" = "62f36d2843cb02";
    /// Any blocks of both operands.
    [Vshuff64x2, Vshufi64x2], exact (m, i) { shuffle_blocks(m, i, W64) }
    "vshuff64x2 zmm1{k1},zmm2,zmm3,0x1b" = "62f3ed4923cb1b", "vshufi64x2 ymm1,ymm2,ymm3,2" = "62f3ed2843cb02";
    /// Words to bytes, truncated.
    [Vpmovwb], exact (m, i) { narrow(m, i, W16, W8, Narrowing::Truncate) }
    "vpmovwb ymm1{k1},zmm2" = "62f27e4930d1", "vpmovwb [rdi],zmm2" = "62f27e483017";
    /// Words to bytes, clamped signed.
    [Vpmovswb], exact (m, i) { narrow(m, i, W16, W8, Narrowing::Signed) }
    "vpmovswb ymm1{k1},zmm2" = "62f27e4920d1", "vpmovswb [rdi],zmm2" = "62f27e482017";
    /// Words to bytes, clamped unsigned.
    [Vpmovuswb], exact (m, i) { narrow(m, i, W16, W8, Narrowing::Unsigned) }
    "vpmovuswb ymm1{k1},zmm2" = "62f27e4910d1", "vpmovuswb [rdi],zmm2" = "62f27e481017";
    /// Double words to bytes, truncated.
    [Vpmovdb], exact (m, i) { narrow(m, i, W32, W8, Narrowing::Truncate) }
    "vpmovdb xmm1{k1},zmm2" = "62f27e4931d1", "vpmovdb [rdi],zmm2" = "62f27e483117";
    /// Double words to bytes, clamped signed.
    [Vpmovsdb], exact (m, i) { narrow(m, i, W32, W8, Narrowing::Signed) }
    "vpmovsdb xmm1{k1},zmm2" = "62f27e4921d1", "vpmovsdb [rdi],zmm2" = "62f27e482117";
    /// Double words to bytes, clamped unsigned.
    [Vpmovusdb], exact (m, i) { narrow(m, i, W32, W8, Narrowing::Unsigned) }
    "vpmovusdb xmm1{k1},zmm2" = "62f27e4911d1", "vpmovusdb [rdi],zmm2" = "62f27e481117";
    /// Quad words to bytes, truncated.
    [Vpmovqb], exact (m, i) { narrow(m, i, W64, W8, Narrowing::Truncate) }
    "vpmovqb xmm1{k1},zmm2" = "62f27e4932d1", "vpmovqb [rdi],zmm2" = "62f27e483217";
    /// Quad words to bytes, clamped signed.
    [Vpmovsqb], exact (m, i) { narrow(m, i, W64, W8, Narrowing::Signed) }
    "vpmovsqb xmm1{k1},zmm2" = "62f27e4922d1", "vpmovsqb [rdi],zmm2" = "62f27e482217";
    /// Quad words to bytes, clamped unsigned.
    [Vpmovusqb], exact (m, i) { narrow(m, i, W64, W8, Narrowing::Unsigned) }
    "vpmovusqb xmm1{k1},zmm2" = "62f27e4912d1", "vpmovusqb [rdi],zmm2" = "62f27e481217";
    /// Double words to words, truncated.
    [Vpmovdw], exact (m, i) { narrow(m, i, W32, W16, Narrowing::Truncate) }
    "vpmovdw ymm1{k1},zmm2" = "62f27e4933d1", "vpmovdw [rdi],zmm2" = "62f27e483317";
    /// Double words to words, clamped signed.
    [Vpmovsdw], exact (m, i) { narrow(m, i, W32, W16, Narrowing::Signed) }
    "vpmovsdw ymm1{k1},zmm2" = "62f27e4923d1", "vpmovsdw [rdi],zmm2" = "62f27e482317";
    /// Double words to words, clamped unsigned.
    [Vpmovusdw], exact (m, i) { narrow(m, i, W32, W16, Narrowing::Unsigned) }
    "vpmovusdw ymm1{k1},zmm2" = "62f27e4913d1", "vpmovusdw [rdi],zmm2" = "62f27e481317";
    /// Quad words to words, truncated.
    [Vpmovqw], exact (m, i) { narrow(m, i, W64, W16, Narrowing::Truncate) }
    "vpmovqw xmm1{k1},zmm2" = "62f27e4934d1", "vpmovqw [rdi],zmm2" = "62f27e483417";
    /// Quad words to words, clamped signed.
    [Vpmovsqw], exact (m, i) { narrow(m, i, W64, W16, Narrowing::Signed) }
    "vpmovsqw xmm1{k1},zmm2" = "62f27e4924d1", "vpmovsqw [rdi],zmm2" = "62f27e482417";
    /// Quad words to words, clamped unsigned.
    [Vpmovusqw], exact (m, i) { narrow(m, i, W64, W16, Narrowing::Unsigned) }
    "vpmovusqw xmm1{k1},zmm2" = "62f27e4914d1", "vpmovusqw [rdi],zmm2" = "62f27e481417";
    /// Quad words to double words, truncated.
    [Vpmovqd], exact (m, i) { narrow(m, i, W64, W32, Narrowing::Truncate) }
    "vpmovqd ymm1{k1},zmm2" = "62f27e4935d1", "vpmovqd [rdi],zmm2" = "62f27e483517";
    /// Quad words to double words, clamped signed.
    [Vpmovsqd], exact (m, i) { narrow(m, i, W64, W32, Narrowing::Signed) }
    "vpmovsqd ymm1{k1},zmm2" = "62f27e4925d1", "vpmovsqd [rdi],zmm2" = "62f27e482517";
    /// Quad words to double words, clamped unsigned.
    [Vpmovusqd], exact (m, i) { narrow(m, i, W64, W32, Narrowing::Unsigned) }
    "vpmovusqd ymm1{k1},zmm2" = "62f27e4915d1", "vpmovusqd [rdi],zmm2" = "62f27e481517";
    /// Set bits in bytes.
    [Vpopcntb], exact (m, i) { each_lane(m, i, W8, UnOp::CountOnes) }
    "vpopcntb zmm1{k1},zmm2" = "62f27d4954ca";
    /// Set bits in words.
    [Vpopcntw], exact (m, i) { each_lane(m, i, W16, UnOp::CountOnes) }
    "vpopcntw zmm1{k1},zmm2" = "62f2fd4954ca";
    /// Set bits in double words.
    [Vpopcntd], exact (m, i) { each_lane(m, i, W32, UnOp::CountOnes) }
    "vpopcntd zmm1{k1},zmm2" = "62f27d4955ca";
    /// Set bits in quad words.
    [Vpopcntq], exact (m, i) { each_lane(m, i, W64, UnOp::CountOnes) }
    "vpopcntq zmm1{k1},zmm2" = "62f2fd4955ca";
    /// Leading zeros in double words.
    [Vplzcntd], exact (m, i) { each_lane(m, i, W32, UnOp::LeadingZeros) }
    "vplzcntd zmm1{k1},zmm2" = "62f27d4944ca";
    /// Leading zeros in quad words.
    [Vplzcntq], exact (m, i) { each_lane(m, i, W64, UnOp::LeadingZeros) }
    "vplzcntq zmm1{k1},zmm2" = "62f2fd4944ca";
    /// Low 52 bits of products of 52 bits added.
    [Vpmadd52luq], exact (m, i) { multiply_add_52(m, i, false) }
    "vpmadd52luq zmm1{k1},zmm2,zmm3" = "62f2ed49b4cb";
    /// High 52 bits of products of 52 bits added.
    [Vpmadd52huq], exact (m, i) { multiply_add_52(m, i, true) }
    "vpmadd52huq zmm1{k1},zmm2,zmm3" = "62f2ed49b5cb";
}

fn move_lanes<M: X86>(m: &mut M, i: &Insn, aligned: bool) {
    if aligned && (in_memory(i, 0) || in_memory(i, 1)) {
        require_aligned(m, i);
    }
    let value = lanes_at(m, i, 1);
    set(m, i, value);
}

fn logic<M: X86>(m: &mut M, i: &Insn, op: BinOp) {
    let (a, b) = lane_pair(m, i);
    let result = bitwise(m, op, a, b);
    set(m, i, result);
}

/// VPTERNLOG: the or of the minterms whose bits the immediate has.
fn ternary<M: X86>(m: &mut M, i: &Insn) {
    let c = lanes_at(m, i, 2);
    let (a, b) = (operand(m, i, 0), operand(m, i, 1));
    let inverted = [a, b, c].map(|v| complement(m, v));
    let mut result = zero(m, a);
    for n in (0..8).filter(|n| i.immediate8() >> n & 1 != 0) {
        let [x, y, z] = [(a, 2), (b, 1), (c, 0)]
            .map(|(v, bit): (M::Vec, u32)| if n >> bit & 1 != 0 { v } else { inverted[2 - bit as usize] });
        let term = bitwise(m, And, x, y);
        let term = bitwise(m, And, term, z);
        result = bitwise(m, Or, result, term);
    }
    set(m, i, result);
}

/// VPCMP: equal, less, less or equal, never; bit 2 of the immediate inverts that.
fn compare<M: X86>(m: &mut M, i: &Insn, lane: Width, unsigned: bool) {
    let (a, b) = lane_pair(m, i);
    let op = match (i.immediate8() & 3, unsigned) {
        (0, _) => CmpOp::Eq,
        (1, false) => CmpOp::Slt,
        (1, true) => CmpOp::Ult,
        (2, false) => CmpOp::Sle,
        (2, true) => CmpOp::Ule,
        _ => CmpOp::Ne,
    };
    let never = i.immediate8() & 3 == 3;
    let mut holds = if never { zero(m, a) } else { m.lanes(LaneOp::Cmp(op), lane, a, b) };
    if i.immediate8() & 4 != 0 {
        holds = complement(m, holds);
    }
    set_lanes(m, i, lane, holds);
}

fn test_lanes<M: X86>(m: &mut M, i: &Insn, lane: Width, op: CmpOp) {
    let (a, b) = lane_pair(m, i);
    let common = bitwise(m, And, a, b);
    let zero = zero(m, a);
    let holds = m.lanes(LaneOp::Cmp(op), lane, common, zero);
    set_lanes(m, i, lane, holds);
}

fn rotate<M: X86>(m: &mut M, i: &Insn, lane: Width, left: bool) {
    let value = lanes_at(m, i, 1);
    let count = u32::from(i.immediate8()) % lane.bits();
    let up = if left { count } else { (lane.bits() - count) % lane.bits() };
    let down = (lane.bits() - up) % lane.bits();
    let (high, low) = (shift(m, Shl, lane, value, up), shift(m, LShr, lane, value, down));
    let result = bitwise(m, Or, high, low);
    set(m, i, result);
}

fn rotate_lanes<M: X86>(m: &mut M, i: &Insn, lane: Width, left: bool) {
    let (value, counts) = lane_pair(m, i);
    let most = splat(m, value, lane, u64::from(lane.bits() - 1));
    let there = bitwise(m, And, counts, most);
    let zero = zero(m, value);
    let back = m.lanes(LaneOp::Int(BinOp::Sub), lane, zero, there);
    let back = bitwise(m, And, back, most);
    let (up, down) = if left { (there, back) } else { (back, there) };
    let (high, low) = (m.lanes(LaneOp::Int(Shl), lane, value, up), m.lanes(LaneOp::Int(LShr), lane, value, down));
    let result = bitwise(m, Or, high, low);
    set(m, i, result);
}

/// VALIGN: the first operand above the second.
fn align<M: X86>(m: &mut M, i: &Insn, lane: Width) {
    let (high, low) = pair(m, i);
    let count = m.vec_bits(low) / lane.bits();
    let by = u32::from(i.immediate8()) % count;
    let indices: [u8; 16] = core::array::from_fn(|n| (n as u32 + by) as u8);
    let result = m.shuffle(lane, low, high, &indices[..count as usize]);
    set(m, i, result);
}

/// What the mask does not choose is the first operand's, or zero.
fn choose_by_mask<M: X86>(m: &mut M, i: &Insn, lane: Width) {
    let (a, b) = lane_pair(m, i);
    let result = match chosen(m, i, lane, m.vec_bits(a)) {
        None => b,
        Some(mask) if i.zeroing_masking() => bitwise(m, And, mask, b),
        Some(mask) => blend(m, mask, a, b),
    };
    set_register(m, i, number(i, 0), result);
}

/// VPERMI2, VPERMT2: one bit of an index says which of the tables, those below it which lane.
fn permute_two<M: X86>(m: &mut M, i: &Insn, lane: Width, [low, indices, high]: [u32; 3]) {
    let [low, indices, high] = [low, indices, high].map(|op| operand(m, i, op));
    let count = m.vec_bits(indices) / lane.bits();
    let (from_low, from_high) = (m.permute(lane, low, indices), m.permute(lane, high, indices));
    let bit = splat(m, indices, lane, count.into());
    let upper = bitwise(m, And, indices, bit);
    let upper = m.lanes(LaneOp::Cmp(CmpOp::Eq), lane, upper, bit);
    let result = blend(m, upper, from_low, from_high);
    set(m, i, result);
}

fn insert_part<M: X86>(m: &mut M, i: &Insn, part: u32, lane: Width) {
    let (whole, value) = pair(m, i);
    let (count, lanes) = (m.vec_bits(whole) / 64, part / 64);
    let at = u32::from(i.immediate8()) % (count / lanes) * lanes;
    let indices: [u8; 8] = core::array::from_fn(|n| {
        let n = n as u32;
        (if (at..at + lanes).contains(&n) { count + n - at } else { n }) as u8
    });
    let result = m.shuffle(W64, whole, value, &indices[..count as usize]);
    set_lanes(m, i, lane, result);
}

fn extract_part<M: X86>(m: &mut M, i: &Insn, part: u32, lane: Width) {
    let whole = operand(m, i, 1);
    let (count, lanes) = (m.vec_bits(whole) / 64, part / 64);
    let at = u32::from(i.immediate8()) % (count / lanes) * lanes;
    let indices: [u8; 8] = core::array::from_fn(|n| ((n as u32 + at) % count) as u8);
    let value = m.shuffle(W64, whole, whole, &indices[..count as usize]);
    let value = m.vec_resize(value, part);
    if in_memory(i, 0) {
        let address = memory_address(m, i);
        probe(m, address, u64::from(part / 8));
    }
    set_lanes(m, i, lane, value);
}

fn broadcast_part<M: X86>(m: &mut M, i: &Insn, part: u32, lane: Width) {
    let value = if in_memory(i, 1) { load_part(m, i, bits(i) / lane.bits()) } else { unaligned(m, i, 1) };
    let value = m.vec_resize(value, bits(i));
    let (count, lanes) = (bits(i) / 64, part / 64);
    let indices: [u8; 8] = core::array::from_fn(|n| (n as u32 % lanes) as u8);
    let result = m.shuffle(W64, value, value, &indices[..count as usize]);
    set_lanes(m, i, lane, result);
}

/// VSHUF32X4 and the like: the lower half's blocks from the first operand, the upper half's from the second.
fn shuffle_blocks<M: X86>(m: &mut M, i: &Insn, lane: Width) {
    let (a, b) = pair(m, i);
    let blocks = m.vec_bits(a) / 128;
    let field = if blocks == 4 { 2 } else { 1 };
    let indices: [u8; 8] = core::array::from_fn(|n| {
        let (block, word) = (n as u32 / 2, n as u32 % 2);
        let from = u32::from(i.immediate8()) >> (field * block) & (blocks - 1);
        (if block < blocks / 2 { 0 } else { 2 * blocks } + 2 * from + word) as u8
    });
    let result = m.shuffle(W64, a, b, &indices[..2 * blocks as usize]);
    set_lanes(m, i, lane, result);
}

#[derive(Clone, Copy)]
enum Narrowing {
    Truncate,
    Signed,
    Unsigned,
}

/// VPMOV to narrower lanes: the lowest parts of lanes, after clamping, put together at the bottom.
fn narrow<M: X86>(m: &mut M, i: &Insn, lane: Width, to: Width, narrowing: Narrowing) {
    let mut value = operand(m, i, 1);
    let mask = to.mask() as u64;
    value = match narrowing {
        Narrowing::Truncate => value,
        Narrowing::Unsigned => {
            let most = splat(m, value, lane, mask);
            m.lanes(LaneOp::MinUnsigned, lane, value, most)
        }
        Narrowing::Signed => {
            let (most, least) = (splat(m, value, lane, mask >> 1), splat(m, value, lane, !(mask >> 1)));
            let value = m.lanes(LaneOp::MinSigned, lane, value, most);
            m.lanes(LaneOp::MaxSigned, lane, value, least)
        }
    };
    let zero = zero(m, value);
    let total = m.vec_bits(value) / to.bits();
    let (count, ratio) = (m.vec_bits(value) / lane.bits(), lane.bits() / to.bits());
    let indices: [u8; 64] = core::array::from_fn(|n| {
        let n = n as u32;
        (if n < count { n * ratio } else { total }) as u8
    });
    let packed = m.shuffle(to, value, zero, &indices[..total as usize]);
    set_narrowed(m, i, to, count, packed);
}

/// Write `count` lanes that have become narrower.
pub(super) fn set_narrowed<M: X86>(m: &mut M, i: &Insn, lane: Width, count: u32, value: M::Vec) {
    let bytes = count * lane.bytes();
    if bytes >= 16 {
        let value = m.vec_resize(value, 8 * bytes);
        set_lanes(m, i, lane, value);
    } else if in_memory(i, 0) {
        store_short(m, i, lane, value, bytes);
    } else {
        set_few(m, i, lane, count, value);
    }
}

/// Fewer than 16 bytes to memory, as far as the mask chooses them.
fn store_short<M: X86>(m: &mut M, i: &Insn, lane: Width, value: M::Vec, bytes: u32) {
    let address = memory_address(m, i);
    if !i.has_op_mask() {
        let value = m.lane(value, width_of(bytes as usize), 0);
        return m.store(address, value);
    }
    let value = m.vec_resize(value, 128);
    let mask = chosen_few(m, i, lane, bytes / lane.bytes());
    m.store_masked(address, lane, mask, value);
}

/// Of `count` lanes those that the mask chooses.
fn chosen_few<M: X86>(m: &mut M, i: &Insn, lane: Width, count: u32) -> M::Vec {
    let mask = m.reg(Reg::Opmask(i.op_mask().number() as u8));
    let mask = m.bin_const(And, mask, (1 << count) - 1);
    m.mask_lanes(mask, lane, (count * lane.bits()).max(128))
}

/// Fault now if what [`set_narrowed`] is going to store to is not there, before anything else is noted.
pub(super) fn probe_narrowed<M: X86>(m: &mut M, i: &Insn, lane: Width, count: u32) {
    if !in_memory(i, 0) {
        return;
    }
    let address = memory_address(m, i);
    if i.has_op_mask() {
        let mask = chosen_few(m, i, lane, count);
        m.load_masked(address, lane, mask);
    } else {
        probe(m, address, u64::from(count * lane.bytes()));
    }
}

fn each_lane<M: X86>(m: &mut M, i: &Insn, lane: Width, op: UnOp) {
    let value = lanes_at(m, i, 1);
    let mut result = zero(m, value);
    for n in 0..m.vec_bits(value) / lane.bits() {
        let one = m.lane(value, lane, n);
        let one = m.un(op, one);
        result = m.set_lane(result, n, one);
    }
    set(m, i, result);
}

/// VPMADD52: products of 104 bits, a half of which is added.
fn multiply_add_52<M: X86>(m: &mut M, i: &Insn, high: bool) {
    const LOW: u64 = (1 << 52) - 1;
    let b = lanes_at(m, i, 2);
    let (mut sum, a) = (operand(m, i, 0), operand(m, i, 1));
    for n in 0..m.vec_bits(a) / 64 {
        let [a, b] = [a, b].map(|v| {
            let lane = m.lane(v, W64, n);
            let low = m.bin_const(And, lane, LOW);
            m.zext(low, Width::W128)
        });
        let product = m.bin(Mul, a, b);
        let part = m.bin_const(LShr, product, if high { 52 } else { 0 });
        let part = m.trunc(part, W64);
        let part = m.bin_const(And, part, LOW);
        let old = m.lane(sum, W64, n);
        let new = m.bin(Add, old, part);
        sum = m.set_lane(sum, n, new);
    }
    set(m, i, sum);
}
