//! Integer arithmetic, comparison and logic on lanes (MMX, SSE2, SSSE3, SSE4). SDM vol. 2B.

use crate::machine::{BinOp, CmpOp, LaneOp, Width};
use crate::x86_64::operand::X86;
use crate::x86_64::vector::{bitwise, complement, from_low, is_mmx, set, shift, source, splat};
use crate::x86_64::{Flag, Insn, Reg};
use BinOp::{AShr, Add, And, LShr, Mul, Or, Shl, Sub, Xor};
use LaneOp::{
    AddSatSigned, AddSatUnsigned, AverageUnsigned, Cmp, Int, MaxSigned, MaxUnsigned, MinSigned, MinUnsigned,
    MulHighSigned, MulHighUnsigned, SubSatSigned, SubSatUnsigned,
};
use Width::{W8, W16, W32, W64};

extension! { "sse_integer";
    /// Sums of bytes, modulo.
    [Paddb], exact (m, i) { lanewise(m, i, Int(Add), W8) }
    "paddb xmm1,xmm2" = "660ffcca", "paddb xmm1,[rdi]" = "660ffc0f", "paddb mm1,mm2" = "0ffcca";
    /// Sums of words, modulo.
    [Paddw], exact (m, i) { lanewise(m, i, Int(Add), W16) }
    "paddw xmm1,xmm2" = "660ffdca", "paddw mm1,mm2" = "0ffdca";
    /// Sums of double words, modulo.
    [Paddd], exact (m, i) { lanewise(m, i, Int(Add), W32) }
    "paddd xmm1,xmm2" = "660ffeca", "paddd mm1,mm2" = "0ffeca";
    /// Sums of quad words, modulo.
    [Paddq], exact (m, i) { lanewise(m, i, Int(Add), W64) }
    "paddq xmm1,xmm2" = "660fd4ca", "paddq mm1,mm2" = "0fd4ca";
    /// Sums of bytes, clamped signed.
    [Paddsb], exact (m, i) { lanewise(m, i, AddSatSigned, W8) }
    "paddsb xmm1,xmm2" = "660fecca", "paddsb xmm1,[rdi]" = "660fec0f", "paddsb mm1,mm2" = "0fecca";
    /// Sums of words, clamped signed.
    [Paddsw], exact (m, i) { lanewise(m, i, AddSatSigned, W16) }
    "paddsw xmm1,xmm2" = "660fedca", "paddsw mm1,mm2" = "0fedca";
    /// Sums of bytes, clamped unsigned.
    [Paddusb], exact (m, i) { lanewise(m, i, AddSatUnsigned, W8) }
    "paddusb xmm1,xmm2" = "660fdcca", "paddusb xmm1,[rdi]" = "660fdc0f", "paddusb mm1,mm2" = "0fdcca";
    /// Sums of words, clamped unsigned.
    [Paddusw], exact (m, i) { lanewise(m, i, AddSatUnsigned, W16) }
    "paddusw xmm1,xmm2" = "660fddca", "paddusw mm1,mm2" = "0fddca";
    /// Differences of bytes, modulo.
    [Psubb], exact (m, i) { lanewise(m, i, Int(Sub), W8) }
    "psubb xmm1,xmm2" = "660ff8ca", "psubb xmm1,[rdi]" = "660ff80f", "psubb mm1,mm2" = "0ff8ca";
    /// Differences of words, modulo.
    [Psubw], exact (m, i) { lanewise(m, i, Int(Sub), W16) }
    "psubw xmm1,xmm2" = "660ff9ca", "psubw mm1,mm2" = "0ff9ca";
    /// Differences of double words, modulo.
    [Psubd], exact (m, i) { lanewise(m, i, Int(Sub), W32) }
    "psubd xmm1,xmm2" = "660ffaca", "psubd mm1,mm2" = "0ffaca";
    /// Differences of quad words, modulo.
    [Psubq], exact (m, i) { lanewise(m, i, Int(Sub), W64) }
    "psubq xmm1,xmm2" = "660ffbca", "psubq mm1,mm2" = "0ffbca";
    /// Differences of bytes, clamped signed.
    [Psubsb], exact (m, i) { lanewise(m, i, SubSatSigned, W8) }
    "psubsb xmm1,xmm2" = "660fe8ca", "psubsb xmm1,[rdi]" = "660fe80f", "psubsb mm1,mm2" = "0fe8ca";
    /// Differences of words, clamped signed.
    [Psubsw], exact (m, i) { lanewise(m, i, SubSatSigned, W16) }
    "psubsw xmm1,xmm2" = "660fe9ca", "psubsw mm1,mm2" = "0fe9ca";
    /// Differences of bytes, clamped unsigned.
    [Psubusb], exact (m, i) { lanewise(m, i, SubSatUnsigned, W8) }
    "psubusb xmm1,xmm2" = "660fd8ca", "psubusb xmm1,[rdi]" = "660fd80f", "psubusb mm1,mm2" = "0fd8ca";
    /// Differences of words, clamped unsigned.
    [Psubusw], exact (m, i) { lanewise(m, i, SubSatUnsigned, W16) }
    "psubusw xmm1,xmm2" = "660fd9ca", "psubusw mm1,mm2" = "0fd9ca";
    /// Low halves of products of words.
    [Pmullw], exact (m, i) { lanewise(m, i, Int(Mul), W16) }
    "pmullw xmm1,xmm2" = "660fd5ca", "pmullw xmm1,[rdi]" = "660fd50f", "pmullw mm1,mm2" = "0fd5ca";
    /// Low halves of products of double words.
    [Pmulld], exact (m, i) { lanewise(m, i, Int(Mul), W32) }
    "pmulld xmm1,xmm2" = "660f3840ca";
    /// High halves of signed products of words.
    [Pmulhw], exact (m, i) { lanewise(m, i, MulHighSigned, W16) }
    "pmulhw xmm1,xmm2" = "660fe5ca", "pmulhw xmm1,[rdi]" = "660fe50f", "pmulhw mm1,mm2" = "0fe5ca";
    /// High halves of unsigned products of words.
    [Pmulhuw], exact (m, i) { lanewise(m, i, MulHighUnsigned, W16) }
    "pmulhuw xmm1,xmm2" = "660fe4ca", "pmulhuw xmm1,[rdi]" = "660fe40f", "pmulhuw mm1,mm2" = "0fe4ca";
    /// Rounded averages of bytes.
    [Pavgb], exact (m, i) { lanewise(m, i, AverageUnsigned, W8) }
    "pavgb xmm1,xmm2" = "660fe0ca", "pavgb xmm1,[rdi]" = "660fe00f", "pavgb mm1,mm2" = "0fe0ca";
    /// Rounded averages of words.
    [Pavgw], exact (m, i) { lanewise(m, i, AverageUnsigned, W16) }
    "pavgw xmm1,xmm2" = "660fe3ca", "pavgw mm1,mm2" = "0fe3ca";
    /// Signed minima of bytes.
    [Pminsb], exact (m, i) { lanewise(m, i, MinSigned, W8) }
    "pminsb xmm1,xmm2" = "660f3838ca", "pminsb xmm1,[rdi]" = "660f38380f";
    /// Signed minima of words.
    [Pminsw], exact (m, i) { lanewise(m, i, MinSigned, W16) }
    "pminsw xmm1,xmm2" = "660feaca", "pminsw mm1,mm2" = "0feaca";
    /// Signed minima of double words.
    [Pminsd], exact (m, i) { lanewise(m, i, MinSigned, W32) }
    "pminsd xmm1,xmm2" = "660f3839ca";
    /// Unsigned minima of bytes.
    [Pminub], exact (m, i) { lanewise(m, i, MinUnsigned, W8) }
    "pminub xmm1,xmm2" = "660fdaca", "pminub xmm1,[rdi]" = "660fda0f", "pminub mm1,mm2" = "0fdaca";
    /// Unsigned minima of words.
    [Pminuw], exact (m, i) { lanewise(m, i, MinUnsigned, W16) }
    "pminuw xmm1,xmm2" = "660f383aca";
    /// Unsigned minima of double words.
    [Pminud], exact (m, i) { lanewise(m, i, MinUnsigned, W32) }
    "pminud xmm1,xmm2" = "660f383bca";
    /// Signed maxima of bytes.
    [Pmaxsb], exact (m, i) { lanewise(m, i, MaxSigned, W8) }
    "pmaxsb xmm1,xmm2" = "660f383cca", "pmaxsb xmm1,[rdi]" = "660f383c0f";
    /// Signed maxima of words.
    [Pmaxsw], exact (m, i) { lanewise(m, i, MaxSigned, W16) }
    "pmaxsw xmm1,xmm2" = "660feeca", "pmaxsw mm1,mm2" = "0feeca";
    /// Signed maxima of double words.
    [Pmaxsd], exact (m, i) { lanewise(m, i, MaxSigned, W32) }
    "pmaxsd xmm1,xmm2" = "660f383dca";
    /// Unsigned maxima of bytes.
    [Pmaxub], exact (m, i) { lanewise(m, i, MaxUnsigned, W8) }
    "pmaxub xmm1,xmm2" = "660fdeca", "pmaxub xmm1,[rdi]" = "660fde0f", "pmaxub mm1,mm2" = "0fdeca";
    /// Unsigned maxima of words.
    [Pmaxuw], exact (m, i) { lanewise(m, i, MaxUnsigned, W16) }
    "pmaxuw xmm1,xmm2" = "660f383eca";
    /// Unsigned maxima of double words.
    [Pmaxud], exact (m, i) { lanewise(m, i, MaxUnsigned, W32) }
    "pmaxud xmm1,xmm2" = "660f383fca";
    /// Masks where equal in bytes.
    [Pcmpeqb], exact (m, i) { lanewise(m, i, Cmp(CmpOp::Eq), W8) }
    "pcmpeqb xmm1,xmm2" = "660f74ca", "pcmpeqb xmm1,[rdi]" = "660f740f", "pcmpeqb mm1,mm2" = "0f74ca";
    /// Masks where equal in words.
    [Pcmpeqw], exact (m, i) { lanewise(m, i, Cmp(CmpOp::Eq), W16) }
    "pcmpeqw xmm1,xmm2" = "660f75ca", "pcmpeqw mm1,mm2" = "0f75ca";
    /// Masks where equal in double words.
    [Pcmpeqd], exact (m, i) { lanewise(m, i, Cmp(CmpOp::Eq), W32) }
    "pcmpeqd xmm1,xmm2" = "660f76ca", "pcmpeqd mm1,mm2" = "0f76ca";
    /// Masks where equal in quad words.
    [Pcmpeqq], exact (m, i) { lanewise(m, i, Cmp(CmpOp::Eq), W64) }
    "pcmpeqq xmm1,xmm2" = "660f3829ca";

    /// Masks where greater, signed, in bytes.
    [Pcmpgtb], exact (m, i) { greater(m, i, W8) }
    "pcmpgtb xmm1,xmm2" = "660f64ca", "pcmpgtb mm1,mm2" = "0f64ca";
    /// Masks where greater, signed, in words.
    [Pcmpgtw], exact (m, i) { greater(m, i, W16) }
    "pcmpgtw xmm1,xmm2" = "660f65ca", "pcmpgtw mm1,mm2" = "0f65ca";
    /// Masks where greater, signed, in double words.
    [Pcmpgtd], exact (m, i) { greater(m, i, W32) }
    "pcmpgtd xmm1,xmm2" = "660f66ca", "pcmpgtd mm1,[rdi]" = "0f660f";
    /// Masks where greater, signed, in quad words.
    [Pcmpgtq], exact (m, i) { greater(m, i, W64) }
    "pcmpgtq xmm1,xmm2" = "660f3837ca";

    /// All bits and.
    [Pand, Andps, Andpd], exact (m, i) { lanewise(m, i, Int(And), W64) }
    "pand xmm1,xmm2" = "660fdbca", "pand mm1,[rdi]" = "0fdb0f", "andps xmm1,xmm2" = "0f54ca", "andpd xmm1,[rdi]" = "660f540f";
    /// All bits or.
    [Por, Orps, Orpd], exact (m, i) { lanewise(m, i, Int(Or), W64) }
    "por xmm1,xmm2" = "660febca", "por mm1,mm2" = "0febca", "orps xmm1,xmm2" = "0f56ca", "orpd xmm1,[rdi]" = "660f560f";
    /// All bits exclusive or.
    [Pxor, Xorps, Xorpd], exact (m, i) { lanewise(m, i, Int(Xor), W64) }
    "pxor xmm1,xmm2" = "660fefca", "pxor mm1,mm2" = "0fefca", "xorps xmm1,xmm1" = "0f57c9", "xorpd xmm1,[rdi]" = "660f570f";
    /// All bits of operand 1 and not of operand 0.
    [Pandn, Andnps, Andnpd], exact (m, i) {
        let (b, a) = (source(m, i, 1), source(m, i, 0));
        let a = complement(m, a);
        let result = bitwise(m, And, a, b);
        set(m, i, result);
    }
    "pandn xmm1,xmm2" = "660fdfca", "pandn mm1,mm2" = "0fdfca", "andnps xmm1,xmm2" = "0f55ca", "andnpd xmm1,[rdi]" = "660f550f";
    /// ZF where operands have no bit in common, CF where operand 1 has none outside operand 0.
    [Ptest], exact (m, i) { test_bits(m, i) }
    "ptest xmm1,xmm2" = "660f3817ca", "ptest xmm1,[rdi]" = "660f38170f";

    /// Left shift of words.
    [Psllw], exact (m, i) { shift_by_operand(m, i, Shl, W16) }
    "psllw xmm1,xmm2" = "660ff1ca", "psllw xmm1,5" = "660f71f105", "psllw xmm1,0x10" = "660f71f110", "psllw xmm1,[rdi]" = "660ff10f", "psllw mm1,mm2" = "0ff1ca", "psllw mm1,3" = "0f71f103";
    /// Left shift of double words.
    [Pslld], exact (m, i) { shift_by_operand(m, i, Shl, W32) }
    "pslld xmm1,xmm2" = "660ff2ca", "pslld xmm1,7" = "660f72f107", "pslld mm1,mm2" = "0ff2ca";
    /// Left shift of quad words.
    [Psllq], exact (m, i) { shift_by_operand(m, i, Shl, W64) }
    "psllq xmm1,xmm2" = "660ff3ca", "psllq xmm1,0x21" = "660f73f121", "psllq mm1,mm2" = "0ff3ca";
    /// Logical right shift of words.
    [Psrlw], exact (m, i) { shift_by_operand(m, i, LShr, W16) }
    "psrlw xmm1,xmm2" = "660fd1ca", "psrlw xmm1,5" = "660f71d105", "psrlw mm1,[rdi]" = "0fd10f";
    /// Logical right shift of double words.
    [Psrld], exact (m, i) { shift_by_operand(m, i, LShr, W32) }
    "psrld xmm1,xmm2" = "660fd2ca", "psrld xmm1,0x20" = "660f72d120", "psrld mm1,mm2" = "0fd2ca";
    /// Logical right shift of quad words.
    [Psrlq], exact (m, i) { shift_by_operand(m, i, LShr, W64) }
    "psrlq xmm1,xmm2" = "660fd3ca", "psrlq xmm1,0x3f" = "660f73d13f", "psrlq mm1,mm2" = "0fd3ca";
    /// Arithmetic right shift of words.
    [Psraw], exact (m, i) { shift_by_operand(m, i, AShr, W16) }
    "psraw xmm1,xmm2" = "660fe1ca", "psraw xmm1,3" = "660f71e103", "psraw xmm1,0x7f" = "660f71e17f", "psraw mm1,mm2" = "0fe1ca";
    /// Arithmetic right shift of double words.
    [Psrad], exact (m, i) { shift_by_operand(m, i, AShr, W32) }
    "psrad xmm1,xmm2" = "660fe2ca", "psrad xmm1,0x1f" = "660f72e11f", "psrad mm1,mm2" = "0fe2ca";

    /// Unsigned products of the even double words.
    [Pmuludq], exact (m, i) {
        let (b, a) = (source(m, i, 1), source(m, i, 0));
        let low = splat(m, W64, 0xffff_ffff);
        let (a, b) = (bitwise(m, And, a, low), bitwise(m, And, b, low));
        let result = m.lanes(Int(Mul), W64, a, b);
        set(m, i, result);
    }
    "pmuludq xmm1,xmm2" = "660ff4ca", "pmuludq xmm1,[rdi]" = "660ff40f", "pmuludq mm1,mm2" = "0ff4ca";
    /// Signed products of the even double words.
    [Pmuldq], exact (m, i) {
        let (b, a) = (source(m, i, 1), source(m, i, 0));
        let (a, b) = (sign_extended_low(m, W64, a), sign_extended_low(m, W64, b));
        let result = m.lanes(Int(Mul), W64, a, b);
        set(m, i, result);
    }
    "pmuldq xmm1,xmm2" = "660f3828ca";
    /// Sums of two neighbouring signed products of words.
    [Pmaddwd], exact (m, i) { multiply_add_words(m, i) }
    "pmaddwd xmm1,xmm2" = "660ff5ca", "pmaddwd xmm1,[rdi]" = "660ff50f", "pmaddwd mm1,mm2" = "0ff5ca";
    /// Clamped sums of two neighbouring products of unsigned with signed bytes.
    [Pmaddubsw], exact (m, i) { multiply_add_bytes(m, i) }
    "pmaddubsw xmm1,xmm2" = "660f3804ca", "pmaddubsw mm1,mm2" = "0f3804ca";
    /// Signed products of words scaled by 2^-15 and rounded.
    [Pmulhrsw], exact (m, i) { multiply_round(m, i) }
    "pmulhrsw xmm1,xmm2" = "660f380bca", "pmulhrsw mm1,mm2" = "0f380bca";
    /// Sums of absolute differences of eight bytes.
    [Psadbw], exact (m, i) { sum_of_differences(m, i) }
    "psadbw xmm1,xmm2" = "660ff6ca", "psadbw mm1,mm2" = "0ff6ca";
    /// Sums of absolute differences of four bytes at eight offsets.
    [Mpsadbw], exact (m, i) { sliding_differences(m, i) }
    "mpsadbw xmm1,xmm2,0" = "660f3a42ca00", "mpsadbw xmm1,xmm2,3" = "660f3a42ca03", "mpsadbw xmm1,[rdi],6" = "660f3a420f06";
    /// The least word and where it is.
    [Phminposuw], exact (m, i) { least_word(m, i) }
    "phminposuw xmm1,xmm2" = "660f3841ca";

    /// Absolute values of bytes.
    [Pabsb], exact (m, i) { absolute(m, i, W8) }
    "pabsb xmm1,xmm2" = "660f381cca", "pabsb mm1,mm2" = "0f381cca";
    /// Absolute values of words.
    [Pabsw], exact (m, i) { absolute(m, i, W16) }
    "pabsw xmm1,xmm2" = "660f381dca", "pabsw mm1,mm2" = "0f381dca";
    /// Absolute values of double words.
    [Pabsd], exact (m, i) { absolute(m, i, W32) }
    "pabsd xmm1,xmm2" = "660f381eca", "pabsd mm1,[rdi]" = "0f381e0f";
    /// Bytes by the sign of others.
    [Psignb], exact (m, i) { by_sign(m, i, W8) }
    "psignb xmm1,xmm2" = "660f3808ca", "psignb mm1,mm2" = "0f3808ca";
    /// Words by the sign of others.
    [Psignw], exact (m, i) { by_sign(m, i, W16) }
    "psignw xmm1,xmm2" = "660f3809ca", "psignw mm1,mm2" = "0f3809ca";
    /// Double words by the sign of others.
    [Psignd], exact (m, i) { by_sign(m, i, W32) }
    "psignd xmm1,xmm2" = "660f380aca", "psignd mm1,mm2" = "0f380aca";

    /// Sums of neighbouring words.
    [Phaddw], exact (m, i) { horizontal(m, i, Int(Add), W16) }
    "phaddw xmm1,xmm2" = "660f3801ca", "phaddw xmm1,[rdi]" = "660f38010f", "phaddw mm1,mm2" = "0f3801ca";
    /// Sums of neighbouring double words.
    [Phaddd], exact (m, i) { horizontal(m, i, Int(Add), W32) }
    "phaddd xmm1,xmm2" = "660f3802ca", "phaddd mm1,mm2" = "0f3802ca";
    /// Sums of neighbouring words, clamped.
    [Phaddsw], exact (m, i) { horizontal(m, i, AddSatSigned, W16) }
    "phaddsw xmm1,xmm2" = "660f3803ca", "phaddsw mm1,mm2" = "0f3803ca";
    /// Differences of neighbouring words.
    [Phsubw], exact (m, i) { horizontal(m, i, Int(Sub), W16) }
    "phsubw xmm1,xmm2" = "660f3805ca", "phsubw mm1,mm2" = "0f3805ca";
    /// Differences of neighbouring double words.
    [Phsubd], exact (m, i) { horizontal(m, i, Int(Sub), W32) }
    "phsubd xmm1,xmm2" = "660f3806ca", "phsubd mm1,mm2" = "0f3806ca";
    /// Differences of neighbouring words, clamped.
    [Phsubsw], exact (m, i) { horizontal(m, i, SubSatSigned, W16) }
    "phsubsw xmm1,xmm2" = "660f3807ca", "phsubsw mm1,mm2" = "0f3807ca";
}

fn lanewise<M: X86>(m: &mut M, i: &Insn, op: LaneOp, lane: Width) {
    let (b, a) = (source(m, i, 1), source(m, i, 0));
    let result = m.lanes(op, lane, a, b);
    set(m, i, result);
}

fn greater<M: X86>(m: &mut M, i: &Insn, lane: Width) {
    let (b, a) = (source(m, i, 1), source(m, i, 0));
    let result = m.lanes(Cmp(CmpOp::Slt), lane, b, a);
    set(m, i, result);
}

fn test_bits<M: X86>(m: &mut M, i: &Insn) {
    let (a, b) = (source(m, i, 0), source(m, i, 1));
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
    let (low, high) = (m.lane(a, W64, 0), m.lane(a, W64, 1));
    let any = m.bin(Or, low, high);
    let zero = m.int(W64, 0);
    m.cmp(CmpOp::Eq, any, zero)
}

/// Shifts by an immediate or by the low quad word of operand 1. A count of the lane width or more leaves
/// nothing, or only signs.
fn shift_by_operand<M: X86>(m: &mut M, i: &Insn, op: BinOp, lane: Width) {
    if i.op_kind(1) == iced_x86::OpKind::Immediate8 {
        return shift_by_constant(m, i, op, lane, i.immediate8().into());
    }
    let count = source(m, i, 1);
    let count = m.lane(count, W64, 0);
    let limit = m.int(W64, lane.bits().into());
    let in_range = m.cmp(CmpOp::Ult, count, limit);
    let most = m.int(W64, if op == AShr { lane.bits() - 1 } else { 0 }.into());
    let count = m.select(in_range, count, most);
    let count = m.trunc(count, lane);
    let counts = m.vec_splat(count, 128);
    let value = source(m, i, 0);
    let mut result = m.lanes(Int(op), lane, value, counts);
    if op != AShr {
        let (ones, zero) = (m.int(W64, u64::MAX), m.int(W64, 0));
        let keep = m.select(in_range, ones, zero);
        let keep = m.vec_splat(keep, 128);
        result = bitwise(m, And, result, keep);
    }
    set(m, i, result);
}

fn shift_by_constant<M: X86>(m: &mut M, i: &Insn, op: BinOp, lane: Width, count: u32) {
    let value = source(m, i, 0);
    let result = match (op, count < lane.bits()) {
        (_, true) => shift(m, op, lane, value, count),
        (AShr, false) => shift(m, op, lane, value, lane.bits() - 1),
        _ => m.vec_zero(128),
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
    let (b, a) = (source(m, i, 1), source(m, i, 0));
    let (even_a, even_b) = (sign_extended_low(m, W32, a), sign_extended_low(m, W32, b));
    let (odd_a, odd_b) = (shift(m, AShr, W32, a, 16), shift(m, AShr, W32, b, 16));
    let (even, odd) = (m.lanes(Int(Mul), W32, even_a, even_b), m.lanes(Int(Mul), W32, odd_a, odd_b));
    let result = m.lanes(Int(Add), W32, even, odd);
    set(m, i, result);
}

/// PMADDUBSW. No product exceeds 16 signed bits.
fn multiply_add_bytes<M: X86>(m: &mut M, i: &Insn) {
    let (b, a) = (source(m, i, 1), source(m, i, 0));
    let low = splat(m, W16, 0xff);
    let (even_a, even_b) = (bitwise(m, And, a, low), sign_extended_low(m, W16, b));
    let (odd_a, odd_b) = (shift(m, LShr, W16, a, 8), shift(m, AShr, W16, b, 8));
    let (even, odd) = (m.lanes(Int(Mul), W16, even_a, even_b), m.lanes(Int(Mul), W16, odd_a, odd_b));
    let result = m.lanes(AddSatSigned, W16, even, odd);
    set(m, i, result);
}

/// PMULHRSW: ((product >> 14) + 1) >> 1, put together from both halves of the product.
fn multiply_round<M: X86>(m: &mut M, i: &Insn) {
    let (b, a) = (source(m, i, 1), source(m, i, 0));
    let (high, low) = (m.lanes(MulHighSigned, W16, a, b), m.lanes(Int(Mul), W16, a, b));
    let (high, top) = (shift(m, Shl, W16, high, 1), shift(m, LShr, W16, low, 15));
    let scaled = bitwise(m, Or, high, top);
    let next = shift(m, LShr, W16, low, 14);
    let one = splat(m, W16, 1);
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
    let (b, a) = (source(m, i, 1), source(m, i, 0));
    let mut sum = difference(m, W8, a, b);
    for lane in [W16, W32, W64] {
        let half = lane.half();
        let low = splat(m, lane, half.mask() as u64);
        let (even, odd) = (bitwise(m, And, sum, low), shift(m, LShr, lane, sum, half.bits()));
        sum = m.lanes(Int(Add), lane, even, odd);
    }
    set(m, i, sum);
}

/// MPSADBW.
fn sliding_differences<M: X86>(m: &mut M, i: &Insn) {
    let (b, a) = (source(m, i, 1), source(m, i, 0));
    let (from_a, from_b) = (i.immediate8() & 4, (i.immediate8() & 3) * 4);
    let mut sum = m.vec_zero(128);
    for step in 0..4 {
        let window: [u8; 16] = core::array::from_fn(|n| (from_a + step + n as u8) & 15);
        let window = m.shuffle(W8, a, a, &window);
        let block = m.shuffle(W8, b, b, &[from_b + step; 16]);
        let distance = difference(m, W8, window, block);
        let distance = m.widen_low(distance, W8, false);
        sum = m.lanes(Int(Add), W16, sum, distance);
    }
    set(m, i, sum);
}

/// PHMINPOSUW: of equal ones the first. Words are made unique by their index below them.
fn least_word<M: X86>(m: &mut M, i: &Insn) {
    let a = source(m, i, 1);
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

fn absolute<M: X86>(m: &mut M, i: &Insn, lane: Width) {
    let a = source(m, i, 1);
    let zero = m.vec_zero(128);
    let negative = m.lanes(Int(Sub), lane, zero, a);
    let result = m.lanes(MaxSigned, lane, a, negative);
    set(m, i, result);
}

/// PSIGN: negated where the other is negative, zero where it is zero.
fn by_sign<M: X86>(m: &mut M, i: &Insn, lane: Width) {
    let (b, a) = (source(m, i, 1), source(m, i, 0));
    let zero = m.vec_zero(128);
    let negative = m.lanes(Cmp(CmpOp::Slt), lane, b, zero);
    let nonzero = m.lanes(Cmp(CmpOp::Ne), lane, b, zero);
    let flipped = bitwise(m, Xor, a, negative);
    let signed = m.lanes(Int(Sub), lane, flipped, negative);
    let result = bitwise(m, And, signed, nonzero);
    set(m, i, result);
}

/// Neighbouring lanes of operand 0, then of operand 1. MMX registers stand side by side in one vector.
fn horizontal<M: X86>(m: &mut M, i: &Insn, op: LaneOp, lane: Width) {
    let (mut b, mut a) = (source(m, i, 1), source(m, i, 0));
    if is_mmx(i) {
        a = m.shuffle(W64, a, b, &[0, 2]);
        b = a;
    }
    let count = (128 / lane.bits()) as usize;
    let even: [u8; 8] = core::array::from_fn(|n| 2 * n as u8);
    let odd: [u8; 8] = core::array::from_fn(|n| 2 * n as u8 + 1);
    let (even, odd) = (m.shuffle(lane, a, b, &even[..count]), m.shuffle(lane, a, b, &odd[..count]));
    let result = m.lanes(op, lane, even, odd);
    set(m, i, result);
}
