//! AVX-512's conversions beside SSE's: of unsigned integers, and of quad words in vectors. SDM vol. 2. What no unsigned
//! integer has becomes all ones.

use super::sse_float::NAN;
use crate::machine::{BinOp, FloatCmp, FloatFormat, FloatOp, Rounding, Width};
use crate::x86_64::Insn;
use crate::x86_64::operand::{X86, read, write};
use crate::x86_64::vector::{
    bitwise, blend, chosen, complement, from_low, last, lanes_at, numbers, scalar, set_few, set_lanes, set_scalar, shift, splat, zero,
};
use BinOp::{And, LShr, Or, Xor};
use FloatFormat::{F32, F64};
use Rounding::{Current, Zero};
use Width::{W32, W64};

extension! { "avx512_convert";
    /// Singles to quad words.
    [Vcvtps2qq], exact (m, i) { to_quads(m, i, F32, Current) }
    "vcvtps2qq zmm1{k1},ymm2" = "62f17d497bca", "vcvtps2qq ymm1{k1}{z},[rdi]" = "62f17da97b0f", "vcvtps2qq xmm1,[rdi]{1to2}" = "62f17d187b0f", "vcvtps2qq zmm1{ru-sae},ymm2" = "62f17d587bca";
    /// Singles to quad words, truncating.
    [Vcvttps2qq], exact (m, i) { to_quads(m, i, F32, Zero) }
    "vcvttps2qq zmm1{k1},ymm2" = "62f17d497aca", "vcvttps2qq xmm1,[rdi]" = "62f17d087a0f", "vcvttps2qq zmm1{sae},ymm2" = "62f17d187aca";
    /// Doubles to quad words.
    [Vcvtpd2qq], exact (m, i) { to_quads(m, i, F64, Current) }
    "vcvtpd2qq zmm1{k1},zmm2" = "62f1fd497bca", "vcvtpd2qq ymm1{k1}{z},[rdi]" = "62f1fda97b0f", "vcvtpd2qq xmm1,[rdi]{1to2}" = "62f1fd187b0f", "vcvtpd2qq zmm1{rd-sae},zmm2" = "62f1fd387bca";
    /// Doubles to quad words, truncating.
    [Vcvttpd2qq], exact (m, i) { to_quads(m, i, F64, Zero) }
    "vcvttpd2qq zmm1{k1},zmm2" = "62f1fd497aca", "vcvttpd2qq xmm1,[rdi]" = "62f1fd087a0f", "vcvttpd2qq zmm1{sae},zmm2" = "62f1fd187aca";
    /// Quad words to singles.
    [Vcvtqq2ps], exact (m, i) { from_quads(m, i, F32) }
    "vcvtqq2ps ymm1{k1},zmm2" = "62f1fc495bca", "vcvtqq2ps xmm1{k1}{z},ymm2" = "62f1fca95bca", "vcvtqq2ps xmm1{k1},xmm2" = "62f1fc095bca", "vcvtqq2ps ymm1{rz-sae},zmm2" = "62f1fc785bca";
    /// Quad words to doubles.
    [Vcvtqq2pd], exact (m, i) { from_quads(m, i, F64) }
    "vcvtqq2pd zmm1{k1},zmm2" = "62f1fe49e6ca", "vcvtqq2pd xmm1{k1}{z},[rdi]" = "62f1fe89e60f", "vcvtqq2pd ymm1,[rdi]{1to4}" = "62f1fe38e60f", "vcvtqq2pd zmm1{ru-sae},zmm2" = "62f1fe58e6ca";

    /// Singles to unsigned double words.
    [Vcvtps2udq], exact (m, i) { to_unsigned(m, i, F32, Current, W32) }
    "vcvtps2udq zmm1{k1},zmm2" = "62f17c4979ca", "vcvtps2udq xmm1{k1}{z},[rdi]" = "62f17c89790f", "vcvtps2udq zmm1{rd-sae},zmm2" = "62f17c3879ca";
    /// Singles to unsigned double words, truncating.
    [Vcvttps2udq], exact (m, i) { to_unsigned(m, i, F32, Zero, W32) }
    "vcvttps2udq zmm1{k1},zmm2" = "62f17c4978ca", "vcvttps2udq ymm1,[rdi]{1to8}" = "62f17c38780f", "vcvttps2udq zmm1{sae},zmm2" = "62f17c1878ca";
    /// Doubles to unsigned double words.
    [Vcvtpd2udq], exact (m, i) { to_unsigned(m, i, F64, Current, W32) }
    "vcvtpd2udq ymm1{k1},zmm2" = "62f1fc4979ca", "vcvtpd2udq xmm1{k1}{z},ymm2" = "62f1fca979ca", "vcvtpd2udq xmm1{k1},xmm2" = "62f1fc0979ca", "vcvtpd2udq ymm1{ru-sae},zmm2" = "62f1fc5879ca";
    /// Doubles to unsigned double words, truncating.
    [Vcvttpd2udq], exact (m, i) { to_unsigned(m, i, F64, Zero, W32) }
    "vcvttpd2udq ymm1{k1},zmm2" = "62f1fc4978ca", "vcvttpd2udq xmm1,xmm2" = "62f1fc0878ca", "vcvttpd2udq ymm1{sae},zmm2" = "62f1fc1878ca";
    /// Singles to unsigned quad words.
    [Vcvtps2uqq], exact (m, i) { to_unsigned(m, i, F32, Current, W64) }
    "vcvtps2uqq zmm1{k1},ymm2" = "62f17d4979ca", "vcvtps2uqq ymm1{k1}{z},[rdi]" = "62f17da9790f", "vcvtps2uqq zmm1{ru-sae},ymm2" = "62f17d5879ca";
    /// Singles to unsigned quad words, truncating.
    [Vcvttps2uqq], exact (m, i) { to_unsigned(m, i, F32, Zero, W64) }
    "vcvttps2uqq zmm1{k1},ymm2" = "62f17d4978ca", "vcvttps2uqq xmm1,[rdi]{1to2}" = "62f17d18780f", "vcvttps2uqq zmm1{sae},ymm2" = "62f17d1878ca";
    /// Doubles to unsigned quad words.
    [Vcvtpd2uqq], exact (m, i) { to_unsigned(m, i, F64, Current, W64) }
    "vcvtpd2uqq zmm1{k1},zmm2" = "62f1fd4979ca", "vcvtpd2uqq ymm1{k1}{z},[rdi]" = "62f1fda9790f", "vcvtpd2uqq zmm1{rz-sae},zmm2" = "62f1fd7879ca";
    /// Doubles to unsigned quad words, truncating.
    [Vcvttpd2uqq], exact (m, i) { to_unsigned(m, i, F64, Zero, W64) }
    "vcvttpd2uqq zmm1{k1},zmm2" = "62f1fd4978ca", "vcvttpd2uqq xmm1,xmm2" = "62f1fd0878ca", "vcvttpd2uqq zmm1{sae},zmm2" = "62f1fd1878ca";
    /// Unsigned double words to singles.
    [Vcvtudq2ps], exact (m, i) { doubles_from_unsigned(m, i, F32) }
    "vcvtudq2ps zmm1{k1},zmm2" = "62f17f497aca", "vcvtudq2ps xmm1{k1}{z},[rdi]" = "62f17f897a0f", "vcvtudq2ps zmm1{rd-sae},zmm2" = "62f17f387aca";
    /// Unsigned double words to doubles.
    [Vcvtudq2pd], exact (m, i) { doubles_from_unsigned(m, i, F64) }
    "vcvtudq2pd zmm1{k1},ymm2" = "62f17e497aca", "vcvtudq2pd xmm1{k1}{z},[rdi]" = "62f17e897a0f", "vcvtudq2pd ymm1,[rdi]{1to4}" = "62f17e387a0f";
    /// Unsigned quad words to singles.
    [Vcvtuqq2ps], exact (m, i) { quads_from_unsigned(m, i, F32) }
    "vcvtuqq2ps ymm1{k1},zmm2" = "62f1ff497aca", "vcvtuqq2ps xmm1{k1}{z},ymm2" = "62f1ffa97aca", "vcvtuqq2ps xmm1{k1},xmm2" = "62f1ff097aca", "vcvtuqq2ps ymm1{ru-sae},zmm2" = "62f1ff587aca";
    /// Unsigned quad words to doubles.
    [Vcvtuqq2pd], exact (m, i) { quads_from_unsigned(m, i, F64) }
    "vcvtuqq2pd zmm1{k1},zmm2" = "62f1fe497aca", "vcvtuqq2pd xmm1{k1}{z},[rdi]" = "62f1fe897a0f", "vcvtuqq2pd zmm1{rd-sae},zmm2" = "62f1fe387aca";

    /// Lowest single to unsigned integer.
    [Vcvtss2usi], exact (m, i) { single_to_unsigned(m, i, F32, Current) }
    "vcvtss2usi eax,xmm2" = "62f17e0879c2", "vcvtss2usi rax,[rdi]" = "62f1fe087907", "vcvtss2usi rax{ru-sae},xmm2" = "62f1fe5879c2";
    /// Lowest single to unsigned integer, truncating.
    [Vcvttss2usi], exact (m, i) { single_to_unsigned(m, i, F32, Zero) }
    "vcvttss2usi eax,xmm2" = "62f17e0878c2", "vcvttss2usi rax,xmm22" = "62b1fe0878c6", "vcvttss2usi eax{sae},xmm2" = "62f17e1878c2";
    /// Lowest double to unsigned integer.
    [Vcvtsd2usi], exact (m, i) { single_to_unsigned(m, i, F64, Current) }
    "vcvtsd2usi eax,xmm2" = "62f17f0879c2", "vcvtsd2usi rax,[rdi]" = "62f1ff087907", "vcvtsd2usi rax{rd-sae},xmm2" = "62f1ff3879c2";
    /// Lowest double to unsigned integer, truncating.
    [Vcvttsd2usi], exact (m, i) { single_to_unsigned(m, i, F64, Zero) }
    "vcvttsd2usi eax,xmm2" = "62f17f0878c2", "vcvttsd2usi rax,xmm22" = "62b1ff0878c6", "vcvttsd2usi eax{sae},xmm2" = "62f17f1878c2";
    /// Unsigned integer to lowest single.
    [Vcvtusi2ss], exact (m, i) { single_from_unsigned(m, i, F32) }
    "vcvtusi2ss xmm1,xmm2,eax" = "62f16e087bc8", "vcvtusi2ss xmm21,xmm22,rax" = "62e1ce007be8", "vcvtusi2ss xmm1,xmm2,qword ptr [rdi]" = "62f1ee087b0f", "vcvtusi2ss xmm1{ru-sae},xmm2,rax" = "62f1ee587bc8";
    /// Unsigned integer to lowest double.
    [Vcvtusi2sd], exact (m, i) { single_from_unsigned(m, i, F64) }
    "vcvtusi2sd xmm1,xmm2,eax" = "62f16f087bc8", "vcvtusi2sd xmm21,xmm22,rax" = "62e1cf007be8", "vcvtusi2sd xmm1,xmm2,dword ptr [rdi]" = "62f16f087b0f", "vcvtusi2sd xmm1{rd-sae},xmm2,rax" = "62f1ef387bc8";
}

/// The integer indefinite of quad words.
const INDEFINITE: u64 = 1 << 63;

fn to_quads<M: X86>(m: &mut M, i: &Insn, format: FloatFormat, rounding: Rounding) {
    let a = floats(m, i, format, W64);
    let result = m.float_to_int_lanes(format, rounding, a, W64, INDEFINITE);
    set_lanes(m, i, W64, result);
}

/// Operand 1, of which as many lanes count as there are of the wider of `format` and `to`: 1 where the mask leaves them
/// out, 0 above.
fn floats<M: X86>(m: &mut M, i: &Insn, format: FloatFormat, to: Width) -> M::Vec {
    let a = numbers(m, i, 1, format);
    if to <= format.width() {
        return a;
    }
    let half = m.vec_bits(a) / 2 / format.width().bits();
    let lower = m.int(W64, (1 << half) - 1);
    let lower = m.mask_lanes(lower, format.width(), m.vec_bits(a));
    bitwise(m, And, lower, a)
}

/// Operand 1 as integers: 0 where the mask leaves them out.
fn integers<M: X86>(m: &mut M, i: &Insn, lane: Width) -> M::Vec {
    let a = lanes_at(m, i, 1);
    match chosen(m, i, lane, m.vec_bits(a)) {
        None => a,
        Some(mask) => bitwise(m, And, mask, a),
    }
}

/// Write what quad words have become.
fn set_floats<M: X86>(m: &mut M, i: &Insn, format: FloatFormat, result: M::Vec) {
    let count = m.vec_bits(result) / 64;
    set_few(m, i, format.width(), count, result);
}

fn from_quads<M: X86>(m: &mut M, i: &Insn, format: FloatFormat) {
    let a = integers(m, i, W64);
    let result = m.int_to_float_lanes(a, W64, format);
    set_floats(m, i, format, result);
}

/// To doubles as quad words; to singles by halves, of which the sum alone is rounded.
fn doubles_from_unsigned<M: X86>(m: &mut M, i: &Insn, format: FloatFormat) {
    let a = integers(m, i, W32);
    let result = if format == F64 {
        let wide = m.widen_low(a, W32, false);
        m.int_to_float_lanes(wide, W64, F64)
    } else {
        let most = splat(m, a, W32, 0xffff);
        let halves = [shift(m, LShr, W32, a, 16), bitwise(m, And, a, most)];
        let [high, low] = halves.map(|half| m.int_to_float_lanes(half, W32, F32));
        let scale = splat(m, high, W32, u64::from(65536_f32.to_bits()));
        let high = m.float_lanes(FloatOp::Mul, F32, NAN, high, scale);
        m.float_lanes(FloatOp::Add, F32, NAN, high, low)
    };
    set_lanes(m, i, format.width(), result);
}

/// Those beyond signed ones are halved, the bit that falls out kept for rounding, and doubled afterwards.
fn quads_from_unsigned<M: X86>(m: &mut M, i: &Insn, format: FloatFormat) {
    let a = integers(m, i, W64);
    let (beyond, size) = (m.sign_mask(a, W64, W64), m.vec_bits(a));
    let one = splat(m, a, W64, 1);
    let (half, lowest) = (shift(m, LShr, W64, a, 1), bitwise(m, And, a, one));
    let half = bitwise(m, Or, half, lowest);
    let halved = m.mask_lanes(beyond, W64, size);
    let a = blend(m, halved, a, half);
    let result = m.int_to_float_lanes(a, W64, format);
    let twice = m.float_lanes(FloatOp::Add, format, NAN, result, result);
    let doubled = m.mask_lanes(beyond, format.width(), size);
    let result = blend(m, doubled, result, twice);
    set_floats(m, i, format, result);
}

fn single_from_unsigned<M: X86>(m: &mut M, i: &Insn, format: FloatFormat) {
    let a = read(m, i, last(i));
    let (one, wide) = (m.bin_const(And, a, 1), m.zext(a, W64));
    let beyond = m.is_negative(wide);
    let half = m.bin_const(LShr, wide, 1);
    let lowest = m.zext(one, W64);
    let half = m.bin(Or, half, lowest);
    let a = m.select(beyond, half, wide);
    let result = m.int_to_float(a, format);
    let twice = m.float(FloatOp::Add, format, NAN, result, result);
    let result = m.select(beyond, twice, result);
    set_scalar(m, i, result);
}

fn to_unsigned<M: X86>(m: &mut M, i: &Insn, format: FloatFormat, rounding: Rounding, to: Width) {
    let a = floats(m, i, format, to);
    let result = unsigned(m, format, rounding, a, to);
    set_few(m, i, to, m.vec_bits(a) / format.width().bits().max(to.bits()), result);
}

fn single_to_unsigned<M: X86>(m: &mut M, i: &Insn, format: FloatFormat, rounding: Rounding) {
    let width = if i.op0_register().is_gpr64() { W64 } else { W32 };
    let a = scalar(m, i, last(i), format.width());
    let a = from_low(m, a);
    let result = unsigned(m, format, rounding, a, width);
    let result = m.lane(result, width, 0);
    write(m, i, 0, result);
}

/// The bits of 2^`power`.
const fn power_of_two(format: FloatFormat, power: u64) -> u64 {
    match format {
        F32 => (127 + power) << 23,
        F64 => (1023 + power) << 52,
    }
}

/// Floats to unsigned integers of `width`, through signed ones. What the upper half of them has is taken down to those,
/// which is exact; what none has becomes a NaN before it is converted, which is invalid and nothing else.
fn unsigned<M: X86>(m: &mut M, format: FloatFormat, rounding: Rounding, a: M::Vec, width: Width) -> M::Vec {
    let (lane, indefinite) = (format.width(), 1 << (width.bits() - 1));
    let rounded = m.float_round_lanes(format, rounding, NAN, false, a);
    let [end, half] = [0, 1].map(|less| splat(m, a, lane, power_of_two(format, u64::from(width.bits() - less))));
    let zero = zero(m, a);
    let positive = m.float_cmp_lanes(FloatCmp::Le, format, false, zero, rounded);
    let before_end = m.float_cmp_lanes(FloatCmp::Lt, format, false, rounded, end);
    let inside = bitwise(m, And, positive, before_end);
    let outside = complement(m, inside);
    let upper = m.float_cmp_lanes(FloatCmp::Le, format, false, half, rounded);
    let upper = bitwise(m, And, upper, inside);
    let large = blend(m, upper, half, a);
    let less = m.float_lanes(FloatOp::Sub, format, NAN, large, half);
    let a = blend(m, upper, a, less);
    let a = bitwise(m, Or, a, outside);
    let converted = m.float_to_int_lanes(format, rounding, a, width, indefinite);
    let size = m.vec_bits(a);
    let [upper, outside] = [upper, outside].map(|lanes| {
        let mask = m.sign_mask(lanes, lane, W64);
        m.mask_lanes(mask, width, size)
    });
    let top = splat(m, upper, width, indefinite);
    let top = bitwise(m, And, upper, top);
    let converted = bitwise(m, Xor, converted, top);
    bitwise(m, Or, converted, outside)
}
