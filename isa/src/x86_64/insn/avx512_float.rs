//! AVX-512's functions of floats beside arithmetic, which no host has: the coprocessor does them, lane by lane. SDM
//! vol. 2C.

use super::evex::embedded;
use super::sse_float::scales;
use crate::interpret::FloatFunction;
use crate::interpret::float::{ROUNDING, rounding_field};
use crate::machine::{BinOp, FloatFormat, Trap, Width};
use crate::x86_64::coprocessor::{FLOAT_FUNCTION, FUSED_DOUBLE};
use crate::x86_64::operand::X86;
use crate::x86_64::vector::{from_low, lanes_at, last, operand, scalar, set_lanes, set_scalar, zero};
use crate::x86_64::{Insn, Reg};
use BinOp::{And, LShr, Or, Shl};
use FloatFormat::{F32, F64};
use FloatFunction::{
    Classify, Exponent, FixUp, Range, Reciprocal, ReciprocalRoot, Reduce, RoundScaled, Scale, Significand,
};
use Width::{W32, W128};

extension! { "avx512_float";
    /// Exponents of singles.
    [Vgetexpps], exact (m, i) { packed(m, i, Exponent, F32) }
    "vgetexpps zmm1{k1},zmm2" = "62f27d4942ca", "vgetexpps xmm1{k1}{z},[rdi]" = "62f27d89420f", "vgetexpps ymm1,[rdi]{1to8}" = "62f27d38420f", "vgetexpps zmm1{sae},zmm2" = "62f27d1842ca";
    /// Exponents of doubles.
    [Vgetexppd], exact (m, i) { packed(m, i, Exponent, F64) }
    "vgetexppd zmm1{k1},zmm2" = "62f2fd4942ca", "vgetexppd xmm1{k1}{z},[rdi]" = "62f2fd89420f", "vgetexppd zmm1{sae},zmm2" = "62f2fd1842ca";
    /// Exponent of the lowest single.
    [Vgetexpss], exact (m, i) { single(m, i, Exponent, F32) }
    "vgetexpss xmm1{k1},xmm2,xmm3" = "62f26d0943cb", "vgetexpss xmm1,xmm2,[rdi]" = "62f26d08430f", "vgetexpss xmm1{sae},xmm2,xmm3" = "62f26d1843cb";
    /// Exponent of the lowest double.
    [Vgetexpsd], exact (m, i) { single(m, i, Exponent, F64) }
    "vgetexpsd xmm1{k1}{z},xmm2,xmm3" = "62f2ed8943cb", "vgetexpsd xmm1{sae},xmm2,xmm3" = "62f2ed1843cb";
    /// Significands of singles.
    [Vgetmantps], exact (m, i) { packed(m, i, Significand, F32) }
    "vgetmantps zmm1{k1},zmm2,0" = "62f37d4926ca00", "vgetmantps xmm1{k1}{z},[rdi],5" = "62f37d89260f05", "vgetmantps ymm1,ymm2,0xb" = "62f37d2826ca0b", "vgetmantps zmm1{sae},zmm2,2" = "62f37d1826ca02";
    /// Significands of doubles.
    [Vgetmantpd], exact (m, i) { packed(m, i, Significand, F64) }
    "vgetmantpd zmm1{k1},zmm2,0" = "62f3fd4926ca00", "vgetmantpd xmm1{k1}{z},[rdi],5" = "62f3fd89260f05", "vgetmantpd ymm1,ymm2,0xb" = "62f3fd2826ca0b", "vgetmantpd zmm1{sae},zmm2,2" = "62f3fd1826ca02";
    /// Significand of the lowest single.
    [Vgetmantss], exact (m, i) { single(m, i, Significand, F32) }
    "vgetmantss xmm1{k1},xmm2,xmm3,1" = "62f36d0927cb01", "vgetmantss xmm1,xmm2,[rdi],8" = "62f36d08270f08", "vgetmantss xmm1{sae},xmm2,xmm3,3" = "62f36d1827cb03";
    /// Significand of the lowest double.
    [Vgetmantsd], exact (m, i) { single(m, i, Significand, F64) }
    "vgetmantsd xmm1{k1},xmm2,xmm3,1" = "62f3ed0927cb01", "vgetmantsd xmm1{sae},xmm2,xmm3,3" = "62f3ed1827cb03";
    /// Singles times powers of two.
    [Vscalefps], exact (m, i) { packed(m, i, Scale, F32) }
    "vscalefps zmm1{k1},zmm2,zmm3" = "62f26d492ccb", "vscalefps xmm1{k1}{z},xmm2,[rdi]" = "62f26d892c0f", "vscalefps zmm1{ru-sae},zmm2,zmm3" = "62f26d582ccb";
    /// Doubles times powers of two.
    [Vscalefpd], exact (m, i) { packed(m, i, Scale, F64) }
    "vscalefpd zmm1{k1},zmm2,zmm3" = "62f2ed492ccb", "vscalefpd xmm1{k1}{z},xmm2,[rdi]{1to2}" = "62f2ed992c0f", "vscalefpd zmm1{rd-sae},zmm2,zmm3" = "62f2ed382ccb";
    /// The lowest single times a power of two.
    [Vscalefss], exact (m, i) { single(m, i, Scale, F32) }
    "vscalefss xmm1{k1},xmm2,xmm3" = "62f26d092dcb", "vscalefss xmm1,xmm2,[rdi]" = "62f26d082d0f", "vscalefss xmm1{rz-sae},xmm2,xmm3" = "62f26d782dcb";
    /// The lowest double times a power of two.
    [Vscalefsd], exact (m, i) { single(m, i, Scale, F64) }
    "vscalefsd xmm1{k1},xmm2,xmm3" = "62f2ed092dcb", "vscalefsd xmm1{rne-sae},xmm2,xmm3" = "62f2ed182dcb";
    /// The lesser or greater singles.
    [Vrangeps], exact (m, i) { packed(m, i, Range, F32) }
    "vrangeps zmm1{k1},zmm2,zmm3,4" = "62f36d4950cb04", "vrangeps xmm1{k1}{z},xmm2,[rdi],1" = "62f36d89500f01", "vrangeps ymm1,ymm2,ymm3,0xa" = "62f36d2850cb0a", "vrangeps zmm1{sae},zmm2,zmm3,0xf" = "62f36d1850cb0f";
    /// The lesser or greater doubles.
    [Vrangepd], exact (m, i) { packed(m, i, Range, F64) }
    "vrangepd zmm1{k1},zmm2,zmm3,4" = "62f3ed4950cb04", "vrangepd xmm1{k1}{z},xmm2,[rdi],1" = "62f3ed89500f01", "vrangepd zmm1{sae},zmm2,zmm3,6" = "62f3ed1850cb06";
    /// The lesser or greater of the lowest singles.
    [Vrangess], exact (m, i) { single(m, i, Range, F32) }
    "vrangess xmm1{k1},xmm2,xmm3,5" = "62f36d0951cb05", "vrangess xmm1,xmm2,[rdi],2" = "62f36d08510f02", "vrangess xmm1{sae},xmm2,xmm3,3" = "62f36d1851cb03";
    /// The lesser or greater of the lowest doubles.
    [Vrangesd], exact (m, i) { single(m, i, Range, F64) }
    "vrangesd xmm1{k1},xmm2,xmm3,5" = "62f3ed0951cb05", "vrangesd xmm1{sae},xmm2,xmm3,3" = "62f3ed1851cb03";
    /// What singles are beyond multiples of a power of two.
    [Vreduceps], exact (m, i) { packed(m, i, Reduce, F32) }
    "vreduceps zmm1{k1},zmm2,0x10" = "62f37d4956ca10", "vreduceps xmm1{k1}{z},[rdi],0x23" = "62f37d89560f23", "vreduceps ymm1,ymm2,4" = "62f37d2856ca04", "vreduceps zmm1{sae},zmm2,0x39" = "62f37d1856ca39";
    /// What doubles are beyond multiples of a power of two.
    [Vreducepd], exact (m, i) { packed(m, i, Reduce, F64) }
    "vreducepd zmm1{k1},zmm2,0x10" = "62f3fd4956ca10", "vreducepd xmm1{k1}{z},[rdi],0x23" = "62f3fd89560f23", "vreducepd zmm1{sae},zmm2,0x3a" = "62f3fd1856ca3a";
    /// What the lowest single is beyond a multiple of a power of two.
    [Vreducess], exact (m, i) { single(m, i, Reduce, F32) }
    "vreducess xmm1{k1},xmm2,xmm3,0x11" = "62f36d0957cb11", "vreducess xmm1,xmm2,[rdi],2" = "62f36d08570f02", "vreducess xmm1{sae},xmm2,xmm3,3" = "62f36d1857cb03";
    /// What the lowest double is beyond a multiple of a power of two.
    [Vreducesd], exact (m, i) { single(m, i, Reduce, F64) }
    "vreducesd xmm1{k1},xmm2,xmm3,0x11" = "62f3ed0957cb11", "vreducesd xmm1{sae},xmm2,xmm3,3" = "62f3ed1857cb03";
    /// Singles rounded to multiples of a power of two.
    [Vrndscaleps] if scales(i), exact (m, i) { packed(m, i, RoundScaled, F32) }
    "vrndscaleps zmm1{k1},zmm2,0x10" = "62f37d4908ca10", "vrndscaleps xmm1{k1}{z},[rdi],0x2b" = "62f37d89080f2b", "vrndscaleps zmm1{sae},zmm2,0x31" = "62f37d1808ca31";
    /// Doubles rounded to multiples of a power of two.
    [Vrndscalepd] if scales(i), exact (m, i) { packed(m, i, RoundScaled, F64) }
    "vrndscalepd zmm1{k1},zmm2,0x10" = "62f3fd4909ca10", "vrndscalepd ymm1{k1}{z},[rdi],0x2b" = "62f3fda9090f2b", "vrndscalepd zmm1{sae},zmm2,0x32" = "62f3fd1809ca32";
    /// The lowest single rounded to a multiple of a power of two.
    [Vrndscaless] if scales(i), exact (m, i) { single(m, i, RoundScaled, F32) }
    "vrndscaless xmm1{k1},xmm2,xmm3,-0xc" = "62f36d090acbf4", "vrndscaless xmm1{sae},xmm2,xmm3,0x33" = "62f36d180acb33";
    /// The lowest double rounded to a multiple of a power of two.
    [Vrndscalesd] if scales(i), exact (m, i) { single(m, i, RoundScaled, F64) }
    "vrndscalesd xmm1{k1},xmm2,xmm3,0x44" = "62f3ed090bcb44", "vrndscalesd xmm1{sae},xmm2,xmm3,0x33" = "62f3ed180bcb33";
    /// Singles replaced by what a table says for others' classes.
    [Vfixupimmps], exact (m, i) { packed(m, i, FixUp, F32) }
    "vfixupimmps zmm1{k1},zmm2,zmm3,0" = "62f36d4954cb00", "vfixupimmps xmm1{k1}{z},xmm2,[rdi],-1" = "62f36d89540fff", "vfixupimmps zmm1{sae},zmm2,zmm3,0x31" = "62f36d1854cb31";
    /// Doubles replaced by what a table says for others' classes.
    [Vfixupimmpd], exact (m, i) { packed(m, i, FixUp, F64) }
    "vfixupimmpd zmm1{k1},zmm2,zmm3,0" = "62f3ed4954cb00", "vfixupimmpd ymm1{k1}{z},ymm2,[rdi]{1to4},-1" = "62f3edb9540fff", "vfixupimmpd zmm1{sae},zmm2,zmm3,0x31" = "62f3ed1854cb31";
    /// The lowest single replaced by what a table says for another one's class.
    [Vfixupimmss], exact (m, i) { single(m, i, FixUp, F32) }
    "vfixupimmss xmm1{k1},xmm2,xmm3,0x5a" = "62f36d0955cb5a", "vfixupimmss xmm1,xmm2,[rdi],0" = "62f36d08550f00", "vfixupimmss xmm1{sae},xmm2,xmm3,3" = "62f36d1855cb03";
    /// The lowest double replaced by what a table says for another one's class.
    [Vfixupimmsd], exact (m, i) { single(m, i, FixUp, F64) }
    "vfixupimmsd xmm1{k1},xmm2,xmm3,0x5a" = "62f3ed0955cb5a", "vfixupimmsd xmm1{sae},xmm2,xmm3,3" = "62f3ed1855cb03";
    /// The mask of singles that are of one of the classes that the immediate says.
    [Vfpclassps], exact (m, i) { packed(m, i, Classify, F32) }
    "vfpclassps k2{k1},zmm2,0x1e" = "62f37d4966d21e", "vfpclassps k2,xmm2,-0x7f" = "62f37d0866d281", "vfpclassps k2{k1},[rdi]{1to8},0x60" = "62f37d39661760";
    /// The mask of doubles that are of one of the classes that the immediate says.
    [Vfpclasspd], exact (m, i) { packed(m, i, Classify, F64) }
    "vfpclasspd k2{k1},zmm2,0x1e" = "62f3fd4966d21e", "vfpclasspd k2,xmm2,-0x7f" = "62f3fd0866d281", "vfpclasspd k2{k1},[rdi]{1to4},0x60" = "62f3fd39661760";
    /// Whether the lowest single is of one of the classes that the immediate says, as a mask.
    [Vfpclassss], exact (m, i) { single(m, i, Classify, F32) }
    "vfpclassss k2{k1},xmm2,0x1e" = "62f37d0967d21e", "vfpclassss k2,[rdi],0x61" = "62f37d08671761";
    /// Whether the lowest double is of one of the classes that the immediate says, as a mask.
    [Vfpclasssd], exact (m, i) { single(m, i, Classify, F64) }
    "vfpclasssd k2{k1},xmm2,0x1e" = "62f3fd0967d21e", "vfpclasssd k2,[rdi],0x61" = "62f3fd08671761";
    /// Approximate reciprocals of singles.
    [Vrcp14ps], approximate("as AMD's CPUs, bit for bit; others may differ within the relative error of 2^-14 that the manual allows") (m, i) { packed(m, i, Reciprocal, F32) }
    "vrcp14ps zmm1{k1},zmm2" = "62f27d494cca", "vrcp14ps ymm1{k1}{z},[rdi]{1to8}" = "62f27db94c0f";
    /// Approximate reciprocals of doubles.
    [Vrcp14pd], approximate("as AMD's CPUs, bit for bit; others may differ within the relative error of 2^-14 that the manual allows") (m, i) { packed(m, i, Reciprocal, F64) }
    "vrcp14pd zmm1{k1},zmm2" = "62f2fd494cca", "vrcp14pd xmm1,[rdi]" = "62f2fd084c0f";
    /// Approximate reciprocal of the lowest single.
    [Vrcp14ss], approximate("as AMD's CPUs, bit for bit; others may differ within the relative error of 2^-14 that the manual allows") (m, i) { single(m, i, Reciprocal, F32) }
    "vrcp14ss xmm1{k1},xmm2,xmm3" = "62f26d094dcb";
    /// Approximate reciprocal of the lowest double.
    [Vrcp14sd], approximate("as AMD's CPUs, bit for bit; others may differ within the relative error of 2^-14 that the manual allows") (m, i) { single(m, i, Reciprocal, F64) }
    "vrcp14sd xmm1{k1},xmm2,xmm3" = "62f2ed094dcb";
    /// Approximate reciprocal square roots of singles.
    [Vrsqrt14ps], approximate("as AMD's CPUs, bit for bit; others may differ within the relative error of 2^-14 that the manual allows") (m, i) { packed(m, i, ReciprocalRoot, F32) }
    "vrsqrt14ps zmm1{k1},zmm2" = "62f27d494eca", "vrsqrt14ps ymm1{k1}{z},[rdi]{1to8}" = "62f27db94e0f";
    /// Approximate reciprocal square roots of doubles.
    [Vrsqrt14pd], approximate("as AMD's CPUs, bit for bit; others may differ within the relative error of 2^-14 that the manual allows") (m, i) { packed(m, i, ReciprocalRoot, F64) }
    "vrsqrt14pd zmm1{k1},zmm2" = "62f2fd494eca", "vrsqrt14pd xmm1,[rdi]" = "62f2fd084e0f";
    /// Approximate reciprocal square root of the lowest single.
    [Vrsqrt14ss], approximate("as AMD's CPUs, bit for bit; others may differ within the relative error of 2^-14 that the manual allows") (m, i) { single(m, i, ReciprocalRoot, F32) }
    "vrsqrt14ss xmm1{k1},xmm2,xmm3" = "62f26d094fcb";
    /// Approximate reciprocal square root of the lowest double.
    [Vrsqrt14sd], approximate("as AMD's CPUs, bit for bit; others may differ within the relative error of 2^-14 that the manual allows") (m, i) { single(m, i, ReciprocalRoot, F64) }
    "vrsqrt14sd xmm1{k1},xmm2,xmm3" = "62f2ed094fcb";
}

/// The operands that are a function's, in its order.
fn operands_of(i: &Insn, function: FloatFunction) -> [Option<u32>; 3] {
    let last = last(i);
    match function {
        Scale | Range => [Some(last - 1), Some(last), None],
        FixUp => [Some(0), Some(1), Some(2)],
        _ => [Some(last), None, None],
    }
}

fn packed<M: X86>(m: &mut M, i: &Insn, function: FloatFunction, format: FloatFormat) {
    // Memory, which is last, is read first.
    let last_op = last(i);
    let last = lanes_at(m, i, last_op);
    let values = operands_of(i, function)
        .map(|op| op.map(|op| if op == last_op { last } else { operand(m, i, op) }));
    let (lane, mut call, mut result) = (format.width(), Call::new(m, i, function, format), zero(m, last));
    for n in 0..m.vec_bits(last) / lane.bits() {
        let lanes = values.map(|value| value.map(|value| m.lane(value, lane, n)));
        let value = call.make(m, i, n, lanes);
        result = m.set_lane(result, n, value);
    }
    call.note(m, i);
    set_lanes(m, i, lane, result);
}

fn single<M: X86>(m: &mut M, i: &Insn, function: FloatFunction, format: FloatFormat) {
    let mut lanes = [None; 3];
    // Memory, which is last, is read first.
    for (lane, op) in lanes.iter_mut().zip(operands_of(i, function)).rev() {
        *lane = op.map(|op| scalar(m, i, op, format.width()));
    }
    let mut call = Call::new(m, i, function, format);
    let result = call.make(m, i, 0, lanes);
    call.note(m, i);
    if function == Classify {
        let result = from_low(m, result);
        set_lanes(m, i, format.width(), result);
    } else {
        set_scalar(m, i, result);
    }
}

/// Calls of the coprocessor for the lanes of one instruction.
struct Call<M: X86> {
    operation: u32,
    format: FloatFormat,
    /// MXCSR and the immediate, where an operation wants them.
    modes: M::Int,
    /// The exceptions so far.
    raised: M::Int,
}

/// MXCSR: all exceptions' masks.
const MASKS: u64 = 0x1f80;
/// MXCSR: all exceptions' flags, and those that operands alone raise.
const FLAGS: u64 = 0x3f;
const OPERAND_FLAGS: u64 = 7;

impl<M: X86> Call<M> {
    fn new(m: &mut M, i: &Insn, function: FloatFunction, format: FloatFormat) -> Call<M> {
        let operation = FLOAT_FUNCTION + 2 * function as u32 + if format == F64 { FUSED_DOUBLE } else { 0 };
        let mut mxcsr = m.reg(Reg::Mxcsr);
        if let Some(rounding) = embedded(i) {
            mxcsr = m.bin_const(Or, mxcsr, MASKS);
            if let Some(field) = rounding_field(rounding) {
                mxcsr = m.bin_const(And, mxcsr, !(3 << ROUNDING));
                mxcsr = m.bin_const(Or, mxcsr, u64::from(field) << ROUNDING);
            }
        }
        let modes = m.zext(mxcsr, W128);
        let immediate = m.int(W128, u64::from(i.immediate8()) << 32);
        let modes = m.bin(Or, modes, immediate);
        let modes = m.bin_const(Shl, modes, 64);
        let raised = m.int(W32, 0);
        Call { operation, format, modes, raised }
    }

    /// The function of lane `n`. Its exceptions count if the mask chooses it.
    fn make(&mut self, m: &mut M, i: &Insn, n: u32, lanes: [Option<M::Int>; 3]) -> M::Int {
        let zero = m.int(W128, 0);
        let [a, b, c] = lanes.map(|lane| lane.map_or(zero, |lane| m.zext(lane, W128)));
        let b = m.bin_const(Shl, b, 64);
        let (first, second) = (m.bin(Or, a, b), m.bin(Or, c, self.modes));
        let answer = m.coprocessor(self.operation, first, second);
        let raised = m.bin_const(LShr, answer, 64);
        let mut raised = m.trunc(raised, W32);
        if i.has_op_mask() {
            let mask = m.reg(Reg::Opmask(i.op_mask().number() as u8));
            let (chosen, none) = (m.bit(mask, n), m.int(W32, 0));
            raised = m.select(chosen, raised, none);
        }
        self.raised = m.bin(Or, self.raised, raised);
        m.trunc(answer, self.format.width())
    }

    /// Note the exceptions; one that MXCSR does not mask stops the instruction, and one that operands raise does so before
    /// results can.
    fn note(&self, m: &mut M, i: &Insn) {
        if embedded(i).is_some() {
            return;
        }
        let all = self.raised;
        let any = m.is_nonzero(all);
        m.when(any, &mut |m| {
            let mxcsr = m.reg(Reg::Mxcsr);
            let masked = m.bin_const(LShr, mxcsr, 7);
            let unmasked = m.un(crate::machine::UnOp::Not, masked);
            let unmasked = m.bin_const(And, unmasked, FLAGS);
            let early = m.bin_const(And, all, OPERAND_FLAGS);
            let stopping = m.bin(And, early, unmasked);
            let stops_early = m.is_nonzero(stopping);
            let raised = m.select(stops_early, early, all);
            let noted = m.bin(Or, mxcsr, raised);
            m.set_reg(Reg::Mxcsr, noted);
            let stopping = m.bin(And, raised, unmasked);
            let stops = m.is_nonzero(stopping);
            m.trap_if(stops, Trap::FloatingPoint);
        });
    }
}
