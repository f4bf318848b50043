//! Integer arithmetic, comparison and logic on lanes (MMX, SSE2 to SSE4, AVX, AVX2). SDM vol. 2B.

use crate::machine::{BinOp, CmpOp, LaneOp, Width};
use crate::x86_64::operand::X86;
use crate::x86_64::vector::{
    bitwise, complement, from_low, is_mmx, lane_pair, lanes_at, last, pair, right, set, set_lanes, shift, shuffle, splat, zero,
};
use crate::x86_64::{Flag, Insn, Reg};
use BinOp::{AShr, Add, And, LShr, Mul, Or, Shl, Sub, Xor};
use LaneOp::{
    AddSatSigned, AddSatUnsigned, AverageUnsigned, Cmp, Int, MaxSigned, MaxUnsigned, MinSigned, MinUnsigned,
    MulHighSigned, MulHighUnsigned, SubSatSigned, SubSatUnsigned,
};
use Width::{W8, W16, W32, W64};

extension! { "sse_integer";
    /// Sums of bytes, modulo.
    [Paddb, Vpaddb], exact (m, i) { lanewise(m, i, Int(Add), W8) }
    "paddb xmm1,xmm2" = "660ffcca", "paddb xmm1,[rdi]" = "660ffc0f", "paddb mm1,mm2" = "0ffcca",
    "vpaddb ymm1,ymm2,ymm3" = "c5edfccb",
    "vpaddb zmm1{k1},zmm2,zmm3" = "62f16d49fccb";
    /// Sums of words, modulo.
    [Paddw, Vpaddw], exact (m, i) { lanewise(m, i, Int(Add), W16) }
    "paddw xmm1,xmm2" = "660ffdca", "paddw mm1,mm2" = "0ffdca",
    "vpaddw ymm1,ymm2,ymm3" = "c5edfdcb",
    "vpaddw zmm1{k1},zmm2,zmm3" = "62f16d49fdcb";
    /// Sums of double words, modulo.
    [Paddd, Vpaddd], exact (m, i) { lanewise(m, i, Int(Add), W32) }
    "paddd xmm1,xmm2" = "660ffeca", "paddd mm1,mm2" = "0ffeca",
    "vpaddd ymm1,ymm2,ymm3" = "c5edfecb",
    "vpaddd zmm1{k1},zmm2,zmm3" = "62f16d49fecb";
    /// Sums of quad words, modulo.
    [Paddq, Vpaddq], exact (m, i) { lanewise(m, i, Int(Add), W64) }
    "paddq xmm1,xmm2" = "660fd4ca", "paddq mm1,mm2" = "0fd4ca",
    "vpaddq ymm1,ymm2,ymm3" = "c5edd4cb",
    "vpaddq zmm1{k1},zmm2,zmm3" = "62f1ed49d4cb";
    /// Sums of bytes, clamped signed.
    [Paddsb, Vpaddsb], exact (m, i) { lanewise(m, i, AddSatSigned, W8) }
    "paddsb xmm1,xmm2" = "660fecca", "paddsb xmm1,[rdi]" = "660fec0f", "paddsb mm1,mm2" = "0fecca",
    "vpaddsb ymm1,ymm2,ymm3" = "c5edeccb",
    "vpaddsb zmm1{k1},zmm2,zmm3" = "62f16d49eccb";
    /// Sums of words, clamped signed.
    [Paddsw, Vpaddsw], exact (m, i) { lanewise(m, i, AddSatSigned, W16) }
    "paddsw xmm1,xmm2" = "660fedca", "paddsw mm1,mm2" = "0fedca",
    "vpaddsw ymm1,ymm2,ymm3" = "c5ededcb",
    "vpaddsw zmm1{k1},zmm2,zmm3" = "62f16d49edcb";
    /// Sums of bytes, clamped unsigned.
    [Paddusb, Vpaddusb], exact (m, i) { lanewise(m, i, AddSatUnsigned, W8) }
    "paddusb xmm1,xmm2" = "660fdcca", "paddusb xmm1,[rdi]" = "660fdc0f", "paddusb mm1,mm2" = "0fdcca",
    "vpaddusb ymm1,ymm2,ymm3" = "c5eddccb",
    "vpaddusb zmm1{k1},zmm2,zmm3" = "62f16d49dccb";
    /// Sums of words, clamped unsigned.
    [Paddusw, Vpaddusw], exact (m, i) { lanewise(m, i, AddSatUnsigned, W16) }
    "paddusw xmm1,xmm2" = "660fddca", "paddusw mm1,mm2" = "0fddca",
    "vpaddusw ymm1,ymm2,ymm3" = "c5edddcb",
    "vpaddusw zmm1{k1},zmm2,zmm3" = "62f16d49ddcb";
    /// Differences of bytes, modulo.
    [Psubb, Vpsubb], exact (m, i) { lanewise(m, i, Int(Sub), W8) }
    "psubb xmm1,xmm2" = "660ff8ca", "psubb xmm1,[rdi]" = "660ff80f", "psubb mm1,mm2" = "0ff8ca",
    "vpsubb ymm1,ymm2,ymm3" = "c5edf8cb",
    "vpsubb zmm1{k1},zmm2,zmm3" = "62f16d49f8cb";
    /// Differences of words, modulo.
    [Psubw, Vpsubw], exact (m, i) { lanewise(m, i, Int(Sub), W16) }
    "psubw xmm1,xmm2" = "660ff9ca", "psubw mm1,mm2" = "0ff9ca",
    "vpsubw ymm1,ymm2,ymm3" = "c5edf9cb",
    "vpsubw zmm1{k1},zmm2,zmm3" = "62f16d49f9cb";
    /// Differences of double words, modulo.
    [Psubd, Vpsubd], exact (m, i) { lanewise(m, i, Int(Sub), W32) }
    "psubd xmm1,xmm2" = "660ffaca", "psubd mm1,mm2" = "0ffaca",
    "vpsubd ymm1,ymm2,ymm3" = "c5edfacb",
    "vpsubd zmm1{k1},zmm2,zmm3" = "62f16d49facb";
    /// Differences of quad words, modulo.
    [Psubq, Vpsubq], exact (m, i) { lanewise(m, i, Int(Sub), W64) }
    "psubq xmm1,xmm2" = "660ffbca", "psubq mm1,mm2" = "0ffbca",
    "vpsubq ymm1,ymm2,ymm3" = "c5edfbcb",
    "vpsubq zmm1{k1},zmm2,zmm3" = "62f1ed49fbcb";
    /// Differences of bytes, clamped signed.
    [Psubsb, Vpsubsb], exact (m, i) { lanewise(m, i, SubSatSigned, W8) }
    "psubsb xmm1,xmm2" = "660fe8ca", "psubsb xmm1,[rdi]" = "660fe80f", "psubsb mm1,mm2" = "0fe8ca",
    "vpsubsb ymm1,ymm2,ymm3" = "c5ede8cb",
    "vpsubsb zmm1{k1},zmm2,zmm3" = "62f16d49e8cb";
    /// Differences of words, clamped signed.
    [Psubsw, Vpsubsw], exact (m, i) { lanewise(m, i, SubSatSigned, W16) }
    "psubsw xmm1,xmm2" = "660fe9ca", "psubsw mm1,mm2" = "0fe9ca",
    "vpsubsw ymm1,ymm2,ymm3" = "c5ede9cb",
    "vpsubsw zmm1{k1},zmm2,zmm3" = "62f16d49e9cb";
    /// Differences of bytes, clamped unsigned.
    [Psubusb, Vpsubusb], exact (m, i) { lanewise(m, i, SubSatUnsigned, W8) }
    "psubusb xmm1,xmm2" = "660fd8ca", "psubusb xmm1,[rdi]" = "660fd80f", "psubusb mm1,mm2" = "0fd8ca",
    "vpsubusb ymm1,ymm2,ymm3" = "c5edd8cb",
    "vpsubusb zmm1{k1},zmm2,zmm3" = "62f16d49d8cb";
    /// Differences of words, clamped unsigned.
    [Psubusw, Vpsubusw], exact (m, i) { lanewise(m, i, SubSatUnsigned, W16) }
    "psubusw xmm1,xmm2" = "660fd9ca", "psubusw mm1,mm2" = "0fd9ca",
    "vpsubusw ymm1,ymm2,ymm3" = "c5edd9cb",
    "vpsubusw zmm1{k1},zmm2,zmm3" = "62f16d49d9cb";
    /// Low halves of products of words.
    [Pmullw, Vpmullw], exact (m, i) { lanewise(m, i, Int(Mul), W16) }
    "pmullw xmm1,xmm2" = "660fd5ca", "pmullw xmm1,[rdi]" = "660fd50f", "pmullw mm1,mm2" = "0fd5ca",
    "vpmullw ymm1,ymm2,ymm3" = "c5edd5cb",
    "vpmullw zmm1{k1},zmm2,zmm3" = "62f16d49d5cb";
    /// Low halves of products of double words.
    [Pmulld, Vpmulld], exact (m, i) { lanewise(m, i, Int(Mul), W32) }
    "pmulld xmm1,xmm2" = "660f3840ca",
    "vpmulld ymm1,ymm2,ymm3" = "c4e26d40cb",
    "vpmulld zmm1{k1},zmm2,zmm3" = "62f26d4940cb";
    /// High halves of signed products of words.
    [Pmulhw, Vpmulhw], exact (m, i) { lanewise(m, i, MulHighSigned, W16) }
    "pmulhw xmm1,xmm2" = "660fe5ca", "pmulhw xmm1,[rdi]" = "660fe50f", "pmulhw mm1,mm2" = "0fe5ca",
    "vpmulhw ymm1,ymm2,ymm3" = "c5ede5cb",
    "vpmulhw zmm1{k1},zmm2,zmm3" = "62f16d49e5cb";
    /// High halves of unsigned products of words.
    [Pmulhuw, Vpmulhuw], exact (m, i) { lanewise(m, i, MulHighUnsigned, W16) }
    "pmulhuw xmm1,xmm2" = "660fe4ca", "pmulhuw xmm1,[rdi]" = "660fe40f", "pmulhuw mm1,mm2" = "0fe4ca",
    "vpmulhuw ymm1,ymm2,ymm3" = "c5ede4cb",
    "vpmulhuw zmm1{k1},zmm2,zmm3" = "62f16d49e4cb";
    /// Rounded averages of bytes.
    [Pavgb, Vpavgb], exact (m, i) { lanewise(m, i, AverageUnsigned, W8) }
    "pavgb xmm1,xmm2" = "660fe0ca", "pavgb xmm1,[rdi]" = "660fe00f", "pavgb mm1,mm2" = "0fe0ca",
    "vpavgb ymm1,ymm2,ymm3" = "c5ede0cb",
    "vpavgb zmm1{k1},zmm2,zmm3" = "62f16d49e0cb";
    /// Rounded averages of words.
    [Pavgw, Vpavgw], exact (m, i) { lanewise(m, i, AverageUnsigned, W16) }
    "pavgw xmm1,xmm2" = "660fe3ca", "pavgw mm1,mm2" = "0fe3ca",
    "vpavgw ymm1,ymm2,ymm3" = "c5ede3cb",
    "vpavgw zmm1{k1},zmm2,zmm3" = "62f16d49e3cb";
    /// Signed minima of bytes.
    [Pminsb, Vpminsb], exact (m, i) { lanewise(m, i, MinSigned, W8) }
    "pminsb xmm1,xmm2" = "660f3838ca", "pminsb xmm1,[rdi]" = "660f38380f",
    "vpminsb ymm1,ymm2,ymm3" = "c4e26d38cb",
    "vpminsb zmm1{k1},zmm2,zmm3" = "62f26d4938cb";
    /// Signed minima of words.
    [Pminsw, Vpminsw], exact (m, i) { lanewise(m, i, MinSigned, W16) }
    "pminsw xmm1,xmm2" = "660feaca", "pminsw mm1,mm2" = "0feaca",
    "vpminsw ymm1,ymm2,ymm3" = "c5edeacb",
    "vpminsw zmm1{k1},zmm2,zmm3" = "62f16d49eacb";
    /// Signed minima of double words.
    [Pminsd, Vpminsd], exact (m, i) { lanewise(m, i, MinSigned, W32) }
    "pminsd xmm1,xmm2" = "660f3839ca",
    "vpminsd ymm1,ymm2,ymm3" = "c4e26d39cb",
    "vpminsd zmm1{k1},zmm2,zmm3" = "62f26d4939cb";
    /// Unsigned minima of bytes.
    [Pminub, Vpminub], exact (m, i) { lanewise(m, i, MinUnsigned, W8) }
    "pminub xmm1,xmm2" = "660fdaca", "pminub xmm1,[rdi]" = "660fda0f", "pminub mm1,mm2" = "0fdaca",
    "vpminub ymm1,ymm2,ymm3" = "c5eddacb",
    "vpminub zmm1{k1},zmm2,zmm3" = "62f16d49dacb";
    /// Unsigned minima of words.
    [Pminuw, Vpminuw], exact (m, i) { lanewise(m, i, MinUnsigned, W16) }
    "pminuw xmm1,xmm2" = "660f383aca",
    "vpminuw ymm1,ymm2,ymm3" = "c4e26d3acb",
    "vpminuw zmm1{k1},zmm2,zmm3" = "62f26d493acb";
    /// Unsigned minima of double words.
    [Pminud, Vpminud], exact (m, i) { lanewise(m, i, MinUnsigned, W32) }
    "pminud xmm1,xmm2" = "660f383bca",
    "vpminud ymm1,ymm2,ymm3" = "c4e26d3bcb",
    "vpminud zmm1{k1},zmm2,zmm3" = "62f26d493bcb";
    /// Signed maxima of bytes.
    [Pmaxsb, Vpmaxsb], exact (m, i) { lanewise(m, i, MaxSigned, W8) }
    "pmaxsb xmm1,xmm2" = "660f383cca", "pmaxsb xmm1,[rdi]" = "660f383c0f",
    "vpmaxsb ymm1,ymm2,ymm3" = "c4e26d3ccb",
    "vpmaxsb zmm1{k1},zmm2,zmm3" = "62f26d493ccb";
    /// Signed maxima of words.
    [Pmaxsw, Vpmaxsw], exact (m, i) { lanewise(m, i, MaxSigned, W16) }
    "pmaxsw xmm1,xmm2" = "660feeca", "pmaxsw mm1,mm2" = "0feeca",
    "vpmaxsw ymm1,ymm2,ymm3" = "c5edeecb",
    "vpmaxsw zmm1{k1},zmm2,zmm3" = "62f16d49eecb";
    /// Signed maxima of double words.
    [Pmaxsd, Vpmaxsd], exact (m, i) { lanewise(m, i, MaxSigned, W32) }
    "pmaxsd xmm1,xmm2" = "660f383dca",
    "vpmaxsd ymm1,ymm2,ymm3" = "c4e26d3dcb",
    "vpmaxsd zmm1{k1},zmm2,zmm3" = "62f26d493dcb";
    /// Unsigned maxima of bytes.
    [Pmaxub, Vpmaxub], exact (m, i) { lanewise(m, i, MaxUnsigned, W8) }
    "pmaxub xmm1,xmm2" = "660fdeca", "pmaxub xmm1,[rdi]" = "660fde0f", "pmaxub mm1,mm2" = "0fdeca",
    "vpmaxub ymm1,ymm2,ymm3" = "c5eddecb",
    "vpmaxub zmm1{k1},zmm2,zmm3" = "62f16d49decb";
    /// Unsigned maxima of words.
    [Pmaxuw, Vpmaxuw], exact (m, i) { lanewise(m, i, MaxUnsigned, W16) }
    "pmaxuw xmm1,xmm2" = "660f383eca",
    "vpmaxuw ymm1,ymm2,ymm3" = "c4e26d3ecb",
    "vpmaxuw zmm1{k1},zmm2,zmm3" = "62f26d493ecb";
    /// Unsigned maxima of double words.
    [Pmaxud, Vpmaxud], exact (m, i) { lanewise(m, i, MaxUnsigned, W32) }
    "pmaxud xmm1,xmm2" = "660f383fca",
    "vpmaxud ymm1,ymm2,ymm3" = "c4e26d3fcb",
    "vpmaxud zmm1{k1},zmm2,zmm3" = "62f26d493fcb";
    /// Masks where equal in bytes.
    [Pcmpeqb, Vpcmpeqb], exact (m, i) { lanewise(m, i, Cmp(CmpOp::Eq), W8) }
    "pcmpeqb xmm1,xmm2" = "660f74ca", "pcmpeqb xmm1,[rdi]" = "660f740f", "pcmpeqb mm1,mm2" = "0f74ca",
    "vpcmpeqb ymm1,ymm2,ymm3" = "c5ed74cb",
    "vpcmpeqb k3{k1},zmm2,zmm3" = "62f16d4974db";
    /// Masks where equal in words.
    [Pcmpeqw, Vpcmpeqw], exact (m, i) { lanewise(m, i, Cmp(CmpOp::Eq), W16) }
    "pcmpeqw xmm1,xmm2" = "660f75ca", "pcmpeqw mm1,mm2" = "0f75ca",
    "vpcmpeqw ymm1,ymm2,ymm3" = "c5ed75cb",
    "vpcmpeqw k3{k1},zmm2,zmm3" = "62f16d4975db";
    /// Masks where equal in double words.
    [Pcmpeqd, Vpcmpeqd], exact (m, i) { lanewise(m, i, Cmp(CmpOp::Eq), W32) }
    "pcmpeqd xmm1,xmm2" = "660f76ca", "pcmpeqd mm1,mm2" = "0f76ca",
    "vpcmpeqd ymm1,ymm2,ymm3" = "c5ed76cb",
    "vpcmpeqd k3{k1},zmm2,zmm3" = "62f16d4976db";
    /// Masks where equal in quad words.
    [Pcmpeqq, Vpcmpeqq], exact (m, i) { lanewise(m, i, Cmp(CmpOp::Eq), W64) }
    "pcmpeqq xmm1,xmm2" = "660f3829ca",
    "vpcmpeqq ymm1,ymm2,ymm3" = "c4e26d29cb",
    "vpcmpeqq k3{k1},zmm2,zmm3" = "62f2ed4929db";

    /// Masks where greater, signed, in bytes.
    [Pcmpgtb, Vpcmpgtb], exact (m, i) { greater(m, i, W8) }
    "pcmpgtb xmm1,xmm2" = "660f64ca", "pcmpgtb mm1,mm2" = "0f64ca",
    "vpcmpgtb ymm1,ymm2,ymm3" = "c5ed64cb",
    "vpcmpgtb k3{k1},zmm2,zmm3" = "62f16d4964db";
    /// Masks where greater, signed, in words.
    [Pcmpgtw, Vpcmpgtw], exact (m, i) { greater(m, i, W16) }
    "pcmpgtw xmm1,xmm2" = "660f65ca", "pcmpgtw mm1,mm2" = "0f65ca",
    "vpcmpgtw ymm1,ymm2,ymm3" = "c5ed65cb",
    "vpcmpgtw k3{k1},zmm2,zmm3" = "62f16d4965db";
    /// Masks where greater, signed, in double words.
    [Pcmpgtd, Vpcmpgtd], exact (m, i) { greater(m, i, W32) }
    "pcmpgtd xmm1,xmm2" = "660f66ca", "pcmpgtd mm1,[rdi]" = "0f660f",
    "vpcmpgtd ymm1,ymm2,ymm3" = "c5ed66cb",
    "vpcmpgtd k3{k1},zmm2,zmm3" = "62f16d4966db";
    /// Masks where greater, signed, in quad words.
    [Pcmpgtq, Vpcmpgtq], exact (m, i) { greater(m, i, W64) }
    "pcmpgtq xmm1,xmm2" = "660f3837ca",
    "vpcmpgtq ymm1,ymm2,ymm3" = "c4e26d37cb",
    "vpcmpgtq k3{k1},zmm2,zmm3" = "62f2ed4937db";

    /// All bits and.
    [Pand, Andps, Andpd, Vpand, Vandps, Vandpd], exact (m, i) { lanewise(m, i, Int(And), W64) }
    "pand xmm1,xmm2" = "660fdbca", "pand mm1,[rdi]" = "0fdb0f", "andps xmm1,xmm2" = "0f54ca", "andpd xmm1,[rdi]" = "660f540f",
    "vpand ymm1,ymm2,ymm3" = "c5eddbcb", "vandps ymm1,ymm2,ymm3" = "c5ec54cb", "vandpd ymm1,ymm2,[rdi]" = "c5ed540f",
    "vandps zmm1{k1},zmm2,zmm3" = "62f16c4954cb", "vandpd zmm1{k1},zmm2,[rdi]" = "62f1ed49540f";
    /// All bits or.
    [Por, Orps, Orpd, Vpor, Vorps, Vorpd], exact (m, i) { lanewise(m, i, Int(Or), W64) }
    "por xmm1,xmm2" = "660febca", "por mm1,mm2" = "0febca", "orps xmm1,xmm2" = "0f56ca", "orpd xmm1,[rdi]" = "660f560f",
    "vpor ymm1,ymm2,ymm3" = "c5edebcb", "vorps ymm1,ymm2,ymm3" = "c5ec56cb", "vorpd ymm1,ymm2,[rdi]" = "c5ed560f",
    "vorps zmm1{k1},zmm2,zmm3" = "62f16c4956cb", "vorpd zmm1{k1},zmm2,[rdi]" = "62f1ed49560f";
    /// All bits exclusive or.
    [Pxor, Xorps, Xorpd, Vpxor, Vxorps, Vxorpd], exact (m, i) { lanewise(m, i, Int(Xor), W64) }
    "pxor xmm1,xmm2" = "660fefca", "pxor mm1,mm2" = "0fefca", "xorps xmm1,xmm1" = "0f57c9", "xorpd xmm1,[rdi]" = "660f570f",
    "vpxor ymm1,ymm2,ymm3" = "c5edefcb", "vxorps ymm1,ymm2,ymm3" = "c5ec57cb", "vxorpd ymm1,ymm2,[rdi]" = "c5ed570f",
    "vxorps zmm1{k1},zmm2,zmm3" = "62f16c4957cb", "vxorpd zmm1{k1},zmm2,[rdi]" = "62f1ed49570f";
    /// All bits of the second operand and not of the first.
    [Pandn, Andnps, Andnpd, Vpandn, Vandnps, Vandnpd], exact (m, i) {
        let (a, b) = lane_pair(m, i);
        let a = complement(m, a);
        let result = bitwise(m, And, a, b);
        set(m, i, result);
    }
    "pandn xmm1,xmm2" = "660fdfca", "pandn mm1,mm2" = "0fdfca", "andnps xmm1,xmm2" = "0f55ca", "andnpd xmm1,[rdi]" = "660f550f",
    "vpandn ymm1,ymm2,ymm3" = "c5eddfcb", "vandnps ymm1,ymm2,ymm3" = "c5ec55cb", "vandnpd ymm1,ymm2,[rdi]" = "c5ed550f",
    "vandnps zmm1{k1},zmm2,zmm3" = "62f16c4955cb", "vandnpd zmm1{k1},zmm2,[rdi]" = "62f1ed49550f";
    /// ZF where operands have no bit in common, CF where the second has none outside the first.
    [Ptest, Vptest], exact (m, i) { test_bits(m, i) }
    "ptest xmm1,xmm2" = "660f3817ca", "ptest xmm1,[rdi]" = "660f38170f",
    "vptest ymm1,ymm2" = "c4e27d17ca";

    /// Left shift of words.
    [Psllw, Vpsllw], exact (m, i) { shift_by_operand(m, i, Shl, W16) }
    "psllw xmm1,xmm2" = "660ff1ca", "psllw xmm1,5" = "660f71f105", "psllw xmm1,0x10" = "660f71f110", "psllw xmm1,[rdi]" = "660ff10f", "psllw mm1,mm2" = "0ff1ca", "psllw mm1,3" = "0f71f103",
    "vpsllw xmm1,xmm2,xmm3" = "c5e9f1cb",
    "vpsllw xmm1{k1},xmm2,xmm3" = "62f16d09f1cb";
    /// Left shift of double words.
    [Pslld, Vpslld], exact (m, i) { shift_by_operand(m, i, Shl, W32) }
    "pslld xmm1,xmm2" = "660ff2ca", "pslld xmm1,7" = "660f72f107", "pslld mm1,mm2" = "0ff2ca",
    "vpslld xmm1,xmm2,xmm3" = "c5e9f2cb",
    "vpslld xmm1{k1},xmm2,xmm3" = "62f16d09f2cb";
    /// Left shift of quad words.
    [Psllq, Vpsllq], exact (m, i) { shift_by_operand(m, i, Shl, W64) }
    "psllq xmm1,xmm2" = "660ff3ca", "psllq xmm1,0x21" = "660f73f121", "psllq mm1,mm2" = "0ff3ca",
    "vpsllq xmm1,xmm2,xmm3" = "c5e9f3cb",
    "vpsllq xmm1{k1},xmm2,xmm3" = "62f1ed09f3cb";
    /// Logical right shift of words.
    [Psrlw, Vpsrlw], exact (m, i) { shift_by_operand(m, i, LShr, W16) }
    "psrlw xmm1,xmm2" = "660fd1ca", "psrlw xmm1,5" = "660f71d105", "psrlw mm1,[rdi]" = "0fd10f",
    "vpsrlw xmm1,xmm2,xmm3" = "c5e9d1cb",
    "vpsrlw xmm1{k1},xmm2,xmm3" = "62f16d09d1cb";
    /// Logical right shift of double words.
    [Psrld, Vpsrld], exact (m, i) { shift_by_operand(m, i, LShr, W32) }
    "psrld xmm1,xmm2" = "660fd2ca", "psrld xmm1,0x20" = "660f72d120", "psrld mm1,mm2" = "0fd2ca",
    "vpsrld xmm1,xmm2,xmm3" = "c5e9d2cb",
    "vpsrld xmm1{k1},xmm2,xmm3" = "62f16d09d2cb";
    /// Logical right shift of quad words.
    [Psrlq, Vpsrlq], exact (m, i) { shift_by_operand(m, i, LShr, W64) }
    "psrlq xmm1,xmm2" = "660fd3ca", "psrlq xmm1,0x3f" = "660f73d13f", "psrlq mm1,mm2" = "0fd3ca",
    "vpsrlq xmm1,xmm2,xmm3" = "c5e9d3cb",
    "vpsrlq xmm1{k1},xmm2,xmm3" = "62f1ed09d3cb";
    /// Arithmetic right shift of words.
    [Psraw, Vpsraw], exact (m, i) { shift_by_operand(m, i, AShr, W16) }
    "psraw xmm1,xmm2" = "660fe1ca", "psraw xmm1,3" = "660f71e103", "psraw xmm1,0x7f" = "660f71e17f", "psraw mm1,mm2" = "0fe1ca",
    "vpsraw xmm1,xmm2,xmm3" = "c5e9e1cb",
    "vpsraw xmm1{k1},xmm2,xmm3" = "62f16d09e1cb";
    /// Arithmetic right shift of double words.
    [Psrad, Vpsrad], exact (m, i) { shift_by_operand(m, i, AShr, W32) }
    "psrad xmm1,xmm2" = "660fe2ca", "psrad xmm1,0x1f" = "660f72e11f", "psrad mm1,mm2" = "0fe2ca",
    "vpsrad xmm1,xmm2,xmm3" = "c5e9e2cb",
    "vpsrad xmm1{k1},xmm2,xmm3" = "62f16d09e2cb";

    /// Unsigned products of the even double words.
    [Pmuludq, Vpmuludq], exact (m, i) {
        let (a, b) = lane_pair(m, i);
        let low = splat(m, a, W64, 0xffff_ffff);
        let (a, b) = (bitwise(m, And, a, low), bitwise(m, And, b, low));
        let result = m.lanes(Int(Mul), W64, a, b);
        set_lanes(m, i, W64, result);
    }
    "pmuludq xmm1,xmm2" = "660ff4ca", "pmuludq xmm1,[rdi]" = "660ff40f", "pmuludq mm1,mm2" = "0ff4ca",
    "vpmuludq ymm1,ymm2,ymm3" = "c5edf4cb",
    "vpmuludq zmm1{k1},zmm2,zmm3" = "62f1ed49f4cb";
    /// Signed products of the even double words.
    [Pmuldq, Vpmuldq], exact (m, i) {
        let (a, b) = lane_pair(m, i);
        let (a, b) = (sign_extended_low(m, W64, a), sign_extended_low(m, W64, b));
        let result = m.lanes(Int(Mul), W64, a, b);
        set_lanes(m, i, W64, result);
    }
    "pmuldq xmm1,xmm2" = "660f3828ca",
    "vpmuldq ymm1,ymm2,ymm3" = "c4e26d28cb",
    "vpmuldq zmm1{k1},zmm2,zmm3" = "62f2ed4928cb";
    /// Sums of two neighbouring signed products of words.
    [Pmaddwd, Vpmaddwd], exact (m, i) { multiply_add_words(m, i) }
    "pmaddwd xmm1,xmm2" = "660ff5ca", "pmaddwd xmm1,[rdi]" = "660ff50f", "pmaddwd mm1,mm2" = "0ff5ca",
    "vpmaddwd ymm1,ymm2,ymm3" = "c5edf5cb",
    "vpmaddwd zmm1{k1},zmm2,zmm3" = "62f16d49f5cb";
    /// Clamped sums of two neighbouring products of unsigned with signed bytes.
    [Pmaddubsw, Vpmaddubsw], exact (m, i) { multiply_add_bytes(m, i) }
    "pmaddubsw xmm1,xmm2" = "660f3804ca", "pmaddubsw mm1,mm2" = "0f3804ca",
    "vpmaddubsw ymm1,ymm2,ymm3" = "c4e26d04cb",
    "vpmaddubsw zmm1{k1},zmm2,zmm3" = "62f26d4904cb";
    /// Signed products of words scaled by 2^-15 and rounded.
    [Pmulhrsw, Vpmulhrsw], exact (m, i) { multiply_round(m, i) }
    "pmulhrsw xmm1,xmm2" = "660f380bca", "pmulhrsw mm1,mm2" = "0f380bca",
    "vpmulhrsw ymm1,ymm2,ymm3" = "c4e26d0bcb",
    "vpmulhrsw zmm1{k1},zmm2,zmm3" = "62f26d490bcb";
    /// Sums of absolute differences of eight bytes.
    [Psadbw, Vpsadbw], exact (m, i) { sum_of_differences(m, i) }
    "psadbw xmm1,xmm2" = "660ff6ca", "psadbw mm1,mm2" = "0ff6ca",
    "vpsadbw ymm1,ymm2,ymm3" = "c5edf6cb",
    "vpsadbw zmm1,zmm2,zmm3" = "62f16d48f6cb";
    /// Sums of absolute differences of four bytes at eight offsets.
    [Mpsadbw, Vmpsadbw], exact (m, i) { sliding_differences(m, i) }
    "mpsadbw xmm1,xmm2,0" = "660f3a42ca00", "mpsadbw xmm1,xmm2,3" = "660f3a42ca03", "mpsadbw xmm1,[rdi],6" = "660f3a420f06",
    "vmpsadbw ymm1,ymm2,ymm3,0" = "c4e36d42cb00";
    /// The least word and where it is.
    [Phminposuw, Vphminposuw], exact (m, i) { least_word(m, i) }
    "phminposuw xmm1,xmm2" = "660f3841ca",
    "vphminposuw xmm1,xmm2" = "c4e27941ca";

    /// Absolute values of bytes.
    [Pabsb, Vpabsb], exact (m, i) { absolute(m, i, W8) }
    "pabsb xmm1,xmm2" = "660f381cca", "pabsb mm1,mm2" = "0f381cca",
    "vpabsb ymm1,ymm2" = "c4e27d1cca",
    "vpabsb zmm1{k1},zmm2" = "62f27d491cca";
    /// Absolute values of words.
    [Pabsw, Vpabsw], exact (m, i) { absolute(m, i, W16) }
    "pabsw xmm1,xmm2" = "660f381dca", "pabsw mm1,mm2" = "0f381dca",
    "vpabsw ymm1,ymm2" = "c4e27d1dca",
    "vpabsw zmm1{k1},zmm2" = "62f27d491dca";
    /// Absolute values of double words.
    [Pabsd, Vpabsd], exact (m, i) { absolute(m, i, W32) }
    "pabsd xmm1,xmm2" = "660f381eca", "pabsd mm1,[rdi]" = "0f381e0f",
    "vpabsd ymm1,ymm2" = "c4e27d1eca",
    "vpabsd zmm1{k1},zmm2" = "62f27d491eca";
    /// Bytes by the sign of others.
    [Psignb, Vpsignb], exact (m, i) { by_sign(m, i, W8) }
    "psignb xmm1,xmm2" = "660f3808ca", "psignb mm1,mm2" = "0f3808ca",
    "vpsignb ymm1,ymm2,ymm3" = "c4e26d08cb";
    /// Words by the sign of others.
    [Psignw, Vpsignw], exact (m, i) { by_sign(m, i, W16) }
    "psignw xmm1,xmm2" = "660f3809ca", "psignw mm1,mm2" = "0f3809ca",
    "vpsignw ymm1,ymm2,ymm3" = "c4e26d09cb";
    /// Double words by the sign of others.
    [Psignd, Vpsignd], exact (m, i) { by_sign(m, i, W32) }
    "psignd xmm1,xmm2" = "660f380aca", "psignd mm1,mm2" = "0f380aca",
    "vpsignd ymm1,ymm2,ymm3" = "c4e26d0acb";

    /// Sums of neighbouring words.
    [Phaddw, Vphaddw], exact (m, i) { horizontal(m, i, Int(Add), W16) }
    "phaddw xmm1,xmm2" = "660f3801ca", "phaddw xmm1,[rdi]" = "660f38010f", "phaddw mm1,mm2" = "0f3801ca",
    "vphaddw ymm1,ymm2,ymm3" = "c4e26d01cb";
    /// Sums of neighbouring double words.
    [Phaddd, Vphaddd], exact (m, i) { horizontal(m, i, Int(Add), W32) }
    "phaddd xmm1,xmm2" = "660f3802ca", "phaddd mm1,mm2" = "0f3802ca",
    "vphaddd ymm1,ymm2,ymm3" = "c4e26d02cb";
    /// Sums of neighbouring words, clamped.
    [Phaddsw, Vphaddsw], exact (m, i) { horizontal(m, i, AddSatSigned, W16) }
    "phaddsw xmm1,xmm2" = "660f3803ca", "phaddsw mm1,mm2" = "0f3803ca",
    "vphaddsw ymm1,ymm2,ymm3" = "c4e26d03cb";
    /// Differences of neighbouring words.
    [Phsubw, Vphsubw], exact (m, i) { horizontal(m, i, Int(Sub), W16) }
    "phsubw xmm1,xmm2" = "660f3805ca", "phsubw mm1,mm2" = "0f3805ca",
    "vphsubw ymm1,ymm2,ymm3" = "c4e26d05cb";
    /// Differences of neighbouring double words.
    [Phsubd, Vphsubd], exact (m, i) { horizontal(m, i, Int(Sub), W32) }
    "phsubd xmm1,xmm2" = "660f3806ca", "phsubd mm1,mm2" = "0f3806ca",
    "vphsubd ymm1,ymm2,ymm3" = "c4e26d06cb";
    /// Differences of neighbouring words, clamped.
    [Phsubsw, Vphsubsw], exact (m, i) { horizontal(m, i, SubSatSigned, W16) }
    "phsubsw xmm1,xmm2" = "660f3807ca", "phsubsw mm1,mm2" = "0f3807ca",
    "vphsubsw ymm1,ymm2,ymm3" = "c4e26d07cb";
}

pub(super) fn lanewise<M: X86>(m: &mut M, i: &Insn, op: LaneOp, lane: Width) {
    let (a, b) = lane_pair(m, i);
    let result = m.lanes(op, lane, a, b);
    set(m, i, result);
}

fn greater<M: X86>(m: &mut M, i: &Insn, lane: Width) {
    let (a, b) = lane_pair(m, i);
    let result = m.lanes(Cmp(CmpOp::Slt), lane, b, a);
    set(m, i, result);
}

fn test_bits<M: X86>(m: &mut M, i: &Insn) {
    let (a, b) = pair(m, i);
    let common = bitwise(m, And, a, b);
    let outside = complement(m, a);
    let outside = bitwise(m, And, outside, b);
    let (zf, cf, clear) = (is_zero(m, common), is_zero(m, outside), m.bool(false));
    let flags = [Flag::Zf, Flag::Cf, Flag::Of, Flag::Af, Flag::Pf, Flag::Sf];
    for (flag, value) in flags.into_iter().zip([zf, cf, clear, clear, clear, clear]) {
        m.set_flag(Reg::Flag(flag), value);
    }
}

/// No bit of `a` is set.
fn is_zero<M: X86>(m: &mut M, a: M::Vec) -> M::Bool {
    let zero = m.int(W64, 0);
    let any = (0..m.vec_bits(a) / 64).fold(zero, |any, n| {
        let lane = m.lane(a, W64, n);
        m.bin(Or, any, lane)
    });
    m.cmp(CmpOp::Eq, any, zero)
}

/// Shifts by an immediate or by the low quad word of the last operand. A count of the lane width or more leaves
/// nothing, or only signs.
pub(super) fn shift_by_operand<M: X86>(m: &mut M, i: &Insn, op: BinOp, lane: Width) {
    if last(i) + 1 < i.op_count() {
        return shift_by_constant(m, i, op, lane, i.immediate8().into());
    }
    let (value, count) = pair(m, i);
    let count = m.lane(count, W64, 0);
    let limit = m.int(W64, lane.bits().into());
    let in_range = m.cmp(CmpOp::Ult, count, limit);
    let most = m.int(W64, if op == AShr { lane.bits() - 1 } else { 0 }.into());
    let count = m.select(in_range, count, most);
    let count = m.trunc(count, lane);
    let counts = m.vec_splat(count, m.vec_bits(value));
    let mut result = m.lanes(Int(op), lane, value, counts);
    if op != AShr {
        let (ones, zero) = (m.int(W64, u64::MAX), m.int(W64, 0));
        let keep = m.select(in_range, ones, zero);
        let keep = m.vec_splat(keep, m.vec_bits(value));
        result = bitwise(m, And, result, keep);
    }
    set(m, i, result);
}

fn shift_by_constant<M: X86>(m: &mut M, i: &Insn, op: BinOp, lane: Width, count: u32) {
    let value = lanes_at(m, i, last(i));
    let result = match (op, count < lane.bits()) {
        (_, true) => shift(m, op, lane, value, count),
        (AShr, false) => shift(m, op, lane, value, lane.bits() - 1),
        _ => zero(m, value),
    };
    set(m, i, result);
}

/// The low half of each lane, sign-extended in place.
fn sign_extended_low<M: X86>(m: &mut M, lane: Width, a: M::Vec) -> M::Vec {
    let up = shift(m, Shl, lane, a, lane.bits() / 2);
    shift(m, AShr, lane, up, lane.bits() / 2)
}

/// PMADDWD.
fn multiply_add_words<M: X86>(m: &mut M, i: &Insn) {
    let (a, b) = pair(m, i);
    let (even_a, even_b) = (sign_extended_low(m, W32, a), sign_extended_low(m, W32, b));
    let (odd_a, odd_b) = (shift(m, AShr, W32, a, 16), shift(m, AShr, W32, b, 16));
    let (even, odd) = (m.lanes(Int(Mul), W32, even_a, even_b), m.lanes(Int(Mul), W32, odd_a, odd_b));
    let result = m.lanes(Int(Add), W32, even, odd);
    set_lanes(m, i, W32, result);
}

/// PMADDUBSW. No product exceeds 16 signed bits.
fn multiply_add_bytes<M: X86>(m: &mut M, i: &Insn) {
    let (a, b) = pair(m, i);
    let low = splat(m, a, W16, 0xff);
    let (even_a, even_b) = (bitwise(m, And, a, low), sign_extended_low(m, W16, b));
    let (odd_a, odd_b) = (shift(m, LShr, W16, a, 8), shift(m, AShr, W16, b, 8));
    let (even, odd) = (m.lanes(Int(Mul), W16, even_a, even_b), m.lanes(Int(Mul), W16, odd_a, odd_b));
    let result = m.lanes(AddSatSigned, W16, even, odd);
    set_lanes(m, i, W16, result);
}

/// PMULHRSW: ((product >> 14) + 1) >> 1, put together from both halves of the product.
fn multiply_round<M: X86>(m: &mut M, i: &Insn) {
    let (a, b) = lane_pair(m, i);
    let (high, low) = (m.lanes(MulHighSigned, W16, a, b), m.lanes(Int(Mul), W16, a, b));
    let (high, top) = (shift(m, Shl, W16, high, 1), shift(m, LShr, W16, low, 15));
    let scaled = bitwise(m, Or, high, top);
    let next = shift(m, LShr, W16, low, 14);
    let one = splat(m, a, W16, 1);
    let next = bitwise(m, And, next, one);
    let result = m.lanes(Int(Add), W16, scaled, next);
    set(m, i, result);
}

/// |a − b| of unsigned lanes.
fn difference<M: X86>(m: &mut M, lane: Width, a: M::Vec, b: M::Vec) -> M::Vec {
    let (above, below) = (m.lanes(SubSatUnsigned, lane, a, b), m.lanes(SubSatUnsigned, lane, b, a));
    bitwise(m, Or, above, below)
}

/// PSADBW: neighbours added until eight bytes are one sum.
fn sum_of_differences<M: X86>(m: &mut M, i: &Insn) {
    let (a, b) = pair(m, i);
    let mut sum = difference(m, W8, a, b);
    for lane in [W16, W32, W64] {
        let half = lane.half();
        let low = splat(m, a, lane, half.mask() as u64);
        let (even, odd) = (bitwise(m, And, sum, low), shift(m, LShr, lane, sum, half.bits()));
        sum = m.lanes(Int(Add), lane, even, odd);
    }
    set(m, i, sum);
}

/// MPSADBW. Each block has three bits of the immediate.
fn sliding_differences<M: X86>(m: &mut M, i: &Insn) {
    let (a, b) = pair(m, i);
    let count = (m.vec_bits(a) / 8) as usize;
    let zero = zero(m, a);
    let mut sum = zero;
    for step in 0..4 {
        let choose = |from: fn(u8, u8) -> u8| -> [u8; 32] {
            core::array::from_fn(|n| {
                let (block, n) = (n as u8 / 16, n as u8 % 16);
                16 * block + (from(i.immediate8() >> (3 * block), n) + step) % 16
            })
        };
        let (window, fixed) = (choose(|control, n| (control & 4) + n), choose(|control, _| 4 * (control & 3)));
        let window = m.shuffle(W8, a, a, &window[..count]);
        let fixed = m.shuffle(W8, b, b, &fixed[..count]);
        let distance = difference(m, W8, window, fixed);
        let distance = shuffle(m, W8, distance, zero, &[0, 16, 1, 16, 2, 16, 3, 16, 4, 16, 5, 16, 6, 16, 7, 16]);
        sum = m.lanes(Int(Add), W16, sum, distance);
    }
    set(m, i, sum);
}

/// PHMINPOSUW: of equal ones the first. Words are made unique by their index below them.
fn least_word<M: X86>(m: &mut M, i: &Insn) {
    let a = right(m, i);
    let mut least = m.int(W32, u64::MAX);
    for n in 0..8 {
        let word = m.lane(a, W16, n);
        let word = m.zext(word, W32);
        let sixteen = m.int(W32, 16);
        let word = m.bin(Shl, word, sixteen);
        let index = m.int(W32, n.into());
        let key = m.bin(Or, word, index);
        let smaller = m.cmp(CmpOp::Ult, key, least);
        least = m.select(smaller, key, least);
    }
    let sixteen = m.int(W32, 16);
    let (word, index) = (m.bin(LShr, least, sixteen), m.bin(Shl, least, sixteen));
    let result = m.bin(Or, word, index);
    let result = from_low(m, result);
    set(m, i, result);
}

pub(super) fn absolute<M: X86>(m: &mut M, i: &Insn, lane: Width) {
    let a = lanes_at(m, i, 1);
    let zero = zero(m, a);
    let negative = m.lanes(Int(Sub), lane, zero, a);
    let result = m.lanes(MaxSigned, lane, a, negative);
    set(m, i, result);
}

/// PSIGN: negated where the other is negative, zero where it is zero.
fn by_sign<M: X86>(m: &mut M, i: &Insn, lane: Width) {
    let (a, b) = pair(m, i);
    let zero = zero(m, a);
    let negative = m.lanes(Cmp(CmpOp::Slt), lane, b, zero);
    let nonzero = m.lanes(Cmp(CmpOp::Ne), lane, b, zero);
    let flipped = bitwise(m, Xor, a, negative);
    let signed = m.lanes(Int(Sub), lane, flipped, negative);
    let result = bitwise(m, And, signed, nonzero);
    set(m, i, result);
}

/// Neighbouring lanes of the first operand, then of the second. MMX registers stand side by side in one vector.
fn horizontal<M: X86>(m: &mut M, i: &Insn, op: LaneOp, lane: Width) {
    let (mut a, mut b) = pair(m, i);
    if is_mmx(i) {
        a = shuffle(m, W64, a, b, &[0, 2]);
        b = a;
    }
    let count = (128 / lane.bits()) as usize;
    let even: [u8; 8] = core::array::from_fn(|n| 2 * n as u8);
    let odd: [u8; 8] = core::array::from_fn(|n| 2 * n as u8 + 1);
    let (even, odd) = (shuffle(m, lane, a, b, &even[..count]), shuffle(m, lane, a, b, &odd[..count]));
    let result = m.lanes(op, lane, even, odd);
    set(m, i, result);
}
