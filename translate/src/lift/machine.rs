//! The abstract machine that records: every operation of a semantics block becomes LLVM instructions.

use super::Lifter;
use super::bit::{Bit, FloatTest, Outcomes};
use super::float;
use crate::ir::{Ir, Memory, built};
use crate::layout::{self, RuntimeCall};
use crate::region::FlagSet;
use inkwell::AtomicOrdering::SequentiallyConsistent;
use inkwell::AtomicRMWBinOp;
use inkwell::IntPredicate;
use inkwell::values::{BasicValue, IntValue, VectorValue};
use tranship_isa::machine::{
    AtomicOp, BinOp, CmpOp, FloatCmp, FloatFormat, FloatOp, LaneOp, Machine, NanRule, Negated, OperandRule,
    Rounding, Target, Trap, UnOp, Width,
};
use tranship_isa::x86_64::Reg;

/// The longest vector that is loaded or stored with one mask. Where LLVM takes a longer one apart itself, for a host that
/// has masks for this length, a half with none of its lanes set has been seen to become a load of all of them (LLVM 22).
const MASKED_BITS: u32 = 256;

/// LLVM's name of a comparison.
pub(super) fn predicate(op: CmpOp) -> IntPredicate {
    match op {
        CmpOp::Eq => IntPredicate::EQ,
        CmpOp::Ne => IntPredicate::NE,
        CmpOp::Ult => IntPredicate::ULT,
        CmpOp::Ule => IntPredicate::ULE,
        CmpOp::Slt => IntPredicate::SLT,
        CmpOp::Sle => IntPredicate::SLE,
    }
}

impl<'c> Lifter<'_, 'c> {
    /// The address of what comes after one vector with a mask.
    fn above_masked(&self, address: IntValue<'c>) -> IntValue<'c> {
        built(self.ir.builder.build_int_add(address, self.ir.i64(u64::from(MASKED_BITS / 8)), ""))
    }

    /// A call of the runtime's that neither reads nor writes slots.
    pub(super) fn call_runtime_aside(
        &mut self,
        call: RuntimeCall,
        arguments: &[inkwell::values::BasicMetadataValueEnum<'c>],
    ) {
        let code = self.field(call.offset());
        let code = self.ir.load(Memory::State, self.ir.ptr_type(), code).into_pointer_value();
        let mut all = vec![self.thread.into()];
        all.extend_from_slice(arguments);
        let kinds: Vec<_> = all.iter().map(metadata_type).collect();
        let kind = self.ir.context.void_type().fn_type(&kinds, false);
        self.ir.call_pointer(kind, 0, code, &all);
    }

    pub(super) fn arithmetic(&self, op: BinOp, a: IntValue<'c>, b: IntValue<'c>) -> IntValue<'c> {
        let builder = &self.ir.builder;
        built(match op {
            BinOp::Add => builder.build_int_add(a, b, ""),
            BinOp::Sub => match b.get_zero_extended_constant() {
                Some(_) => builder.build_int_add(a, b.const_neg(), ""),
                None => builder.build_int_sub(a, b, ""),
            },
            BinOp::Mul => builder.build_int_mul(a, b, ""),
            BinOp::And => builder.build_and(a, b, ""),
            BinOp::Or => builder.build_or(a, b, ""),
            BinOp::Xor => builder.build_xor(a, b, ""),
            BinOp::Shl => builder.build_left_shift(a, b, ""),
            BinOp::LShr => builder.build_right_shift(a, b, false, ""),
            BinOp::AShr => builder.build_right_shift(a, b, true, ""),
            BinOp::UDiv | BinOp::URem | BinOp::SDiv | BinOp::SRem => return self.division(op, a, b),
        })
    }

    /// A quotient or remainder. In 128 bits it is that of a double-width dividend by an extended divisor, which is
    /// what guests divide and no host does on the whole: an operation of the prelude on the dividend's halves.
    fn division(&self, op: BinOp, a: IntValue<'c>, b: IntValue<'c>) -> IntValue<'c> {
        let builder = &self.ir.builder;
        let wide = a.get_type();
        if wide.get_bit_width() < 128 {
            return self.plain_division(op, a, b);
        }
        let half = self.ir.context.i64_type();
        let signed = matches!(op, BinOp::SDiv | BinOp::SRem);
        let shift = wide.const_int(64, false);
        let high = built(builder.build_right_shift(a, shift, false, ""));
        let high = built(builder.build_int_truncate(high, half, ""));
        let low = built(builder.build_int_truncate(a, half, ""));
        let divisor = built(builder.build_int_truncate(b, half, ""));
        let pair = self.ir.context.struct_type(&[half.into(), half.into()], false);
        let name = if signed { "tranship.divide.s64" } else { "tranship.divide.u64" };
        let both = self.ir.prelude(name, pair.into(), &[high.into(), low.into(), divisor.into()]);
        let part = u32::from(matches!(op, BinOp::URem | BinOp::SRem));
        let part = built(builder.build_extract_value(both.into_struct_value(), part, "")).into_int_value();
        built(if signed {
            builder.build_int_s_extend(part, wide, "")
        } else {
            builder.build_int_z_extend(part, wide, "")
        })
    }

    fn plain_division(&self, op: BinOp, a: IntValue<'c>, b: IntValue<'c>) -> IntValue<'c> {
        let builder = &self.ir.builder;
        built(match op {
            BinOp::UDiv => builder.build_int_unsigned_div(a, b, ""),
            BinOp::URem => builder.build_int_unsigned_rem(a, b, ""),
            BinOp::SDiv => builder.build_int_signed_div(a, b, ""),
            _ => builder.build_int_signed_rem(a, b, ""),
        })
    }
}

fn metadata_type<'c>(
    value: &inkwell::values::BasicMetadataValueEnum<'c>,
) -> inkwell::types::BasicMetadataTypeEnum<'c> {
    use inkwell::values::BasicMetadataValueEnum as V;
    match value {
        V::IntValue(v) => v.get_type().into(),
        V::PointerValue(v) => v.get_type().into(),
        _ => unreachable!("the runtime takes integers and pointers"),
    }
}

impl<'c> Machine for Lifter<'_, 'c> {
    type Int = IntValue<'c>;
    type Bool = Bit<'c>;
    type Vec = VectorValue<'c>;
    type Reg = Reg;

    fn int(&mut self, width: Width, value: u64) -> IntValue<'c> {
        self.ir.int_type(width).const_int(value & width.mask() as u64, false)
    }
    fn address(&mut self, address: u64) -> IntValue<'c> {
        self.guest_address(address)
    }
    fn width(&self, value: IntValue<'c>) -> Width {
        match value.get_type().get_bit_width() {
            8 => Width::W8,
            16 => Width::W16,
            32 => Width::W32,
            64 => Width::W64,
            _ => Width::W128,
        }
    }
    fn bin(&mut self, op: BinOp, a: IntValue<'c>, b: IntValue<'c>) -> IntValue<'c> {
        self.arithmetic(op, a, b)
    }
    fn un(&mut self, op: UnOp, a: IntValue<'c>) -> IntValue<'c> {
        let kind = [a.get_type().into()];
        let exact = self.ir.context.bool_type().const_zero().into();
        let call = match op {
            UnOp::Not => return built(self.ir.builder.build_not(a, "")),
            UnOp::Neg => return built(self.ir.builder.build_int_neg(a, "")),
            UnOp::CountOnes => self.ir.intrinsic("llvm.ctpop", &kind, &[a.into()]),
            UnOp::LeadingZeros => self.ir.intrinsic("llvm.ctlz", &kind, &[a.into(), exact]),
            UnOp::TrailingZeros => self.ir.intrinsic("llvm.cttz", &kind, &[a.into(), exact]),
            UnOp::SwapBytes if a.get_type().get_bit_width() == 8 => return a,
            UnOp::SwapBytes => self.ir.intrinsic("llvm.bswap", &kind, &[a.into()]),
        };
        Ir::result(call).into_int_value()
    }
    fn cmp(&mut self, op: CmpOp, a: IntValue<'c>, b: IntValue<'c>) -> Bit<'c> {
        Bit::of(self.ir.compare(predicate(op), a, b))
    }
    fn zext(&mut self, a: IntValue<'c>, width: Width) -> IntValue<'c> {
        match self.width(a) == width {
            true => a,
            false => built(self.ir.builder.build_int_z_extend(a, self.ir.int_type(width), "")),
        }
    }
    fn sext(&mut self, a: IntValue<'c>, width: Width) -> IntValue<'c> {
        match self.width(a) == width {
            true => a,
            false => built(self.ir.builder.build_int_s_extend(a, self.ir.int_type(width), "")),
        }
    }
    fn trunc(&mut self, a: IntValue<'c>, width: Width) -> IntValue<'c> {
        match self.width(a) == width {
            true => a,
            false => built(self.ir.builder.build_int_truncate(a, self.ir.int_type(width), "")),
        }
    }
    fn select(&mut self, cond: Bit<'c>, a: IntValue<'c>, b: IntValue<'c>) -> IntValue<'c> {
        match cond {
            Bit::Known(true) => a,
            Bit::Known(false) => b,
            _ => {
                let cond = self.materialize(cond);
                built(self.ir.builder.build_select(cond, a, b, "")).into_int_value()
            }
        }
    }

    fn bool(&mut self, value: bool) -> Bit<'c> {
        Bit::Known(value)
    }
    fn and(&mut self, a: Bit<'c>, b: Bit<'c>) -> Bit<'c> {
        self.bit_and(a, b)
    }
    fn or(&mut self, a: Bit<'c>, b: Bit<'c>) -> Bit<'c> {
        self.bit_or(a, b)
    }
    fn xor(&mut self, a: Bit<'c>, b: Bit<'c>) -> Bit<'c> {
        self.bit_xor(a, b)
    }
    fn not(&mut self, a: Bit<'c>) -> Bit<'c> {
        self.bit_not(a)
    }
    fn bool_to_int(&mut self, a: Bit<'c>, width: Width) -> IntValue<'c> {
        let bit = self.materialize(a);
        built(self.ir.builder.build_int_z_extend(bit, self.ir.int_type(width), ""))
    }

    fn vec_bits(&self, v: VectorValue<'c>) -> u32 {
        self.vector_bits(v)
    }
    fn vec_resize(&mut self, v: VectorValue<'c>, bits: u32) -> VectorValue<'c> {
        if bits < self.vector_bits(v) { self.low_lanes(v, bits / 64) } else { self.zero_above(v, bits) }
    }
    fn vec_zero(&mut self, bits: u32) -> VectorValue<'c> {
        self.ir.vec_type(Width::W64, bits).const_zero()
    }
    fn vec_splat(&mut self, value: IntValue<'c>, bits: u32) -> VectorValue<'c> {
        self.vector_splat(value, bits)
    }
    fn lane(&mut self, v: VectorValue<'c>, lane: Width, index: u32) -> IntValue<'c> {
        self.vector_lane(v, lane, index)
    }
    fn set_lane(&mut self, v: VectorValue<'c>, index: u32, value: IntValue<'c>) -> VectorValue<'c> {
        self.vector_set_lane(v, index, value)
    }
    fn lanes(&mut self, op: LaneOp, lane: Width, a: VectorValue<'c>, b: VectorValue<'c>) -> VectorValue<'c> {
        self.vector_lanes(op, lane, a, b)
    }
    fn shuffle(
        &mut self,
        lane: Width,
        a: VectorValue<'c>,
        b: VectorValue<'c>,
        indices: &[u8],
    ) -> VectorValue<'c> {
        self.vector_shuffle(lane, a, b, indices)
    }
    fn widen_low(&mut self, v: VectorValue<'c>, lane: Width, signed: bool) -> VectorValue<'c> {
        self.vector_widen_low(v, lane, signed)
    }
    fn narrow_saturating(
        &mut self,
        a: VectorValue<'c>,
        b: VectorValue<'c>,
        lane: Width,
        to_signed: bool,
    ) -> VectorValue<'c> {
        self.vector_narrow(a, b, lane, to_signed)
    }
    fn sign_mask(&mut self, v: VectorValue<'c>, lane: Width, width: Width) -> IntValue<'c> {
        self.vector_sign_mask(v, lane, width)
    }
    fn mask_lanes(&mut self, mask: IntValue<'c>, lane: Width, bits: u32) -> VectorValue<'c> {
        self.vector_mask_lanes(mask, lane, bits)
    }
    fn lookup(&mut self, table: VectorValue<'c>, indices: VectorValue<'c>) -> VectorValue<'c> {
        self.vector_lookup(table, indices)
    }
    fn permute(&mut self, lane: Width, table: VectorValue<'c>, indices: VectorValue<'c>) -> VectorValue<'c> {
        self.vector_permute(lane, table, indices)
    }
    fn instruction(
        &mut self,
        name: &'static str,
        operands: &[VectorValue<'c>],
        steps: fn(&mut Self, &[VectorValue<'c>]) -> VectorValue<'c>,
    ) -> VectorValue<'c> {
        self.vector_instruction(name, operands, steps)
    }
    fn carryless_mul(&mut self, a: IntValue<'c>, b: IntValue<'c>) -> IntValue<'c> {
        let kind = self.ir.context.i128_type().into();
        self.ir.prelude("tranship.carryless_mul", kind, &[a.into(), b.into()]).into_int_value()
    }

    fn float(
        &mut self,
        op: FloatOp,
        format: FloatFormat,
        nan: NanRule,
        a: IntValue<'c>,
        b: IntValue<'c>,
    ) -> IntValue<'c> {
        let NanRule::X86 = nan;
        let (a, b) = (self.pinned(a), self.pinned(b));
        let (a, b) = (self.to_float(a, format), self.to_float(b, format));
        let result = float::binary(self.ir, op, format, 1, a.as_basic_value_enum(), b.as_basic_value_enum());
        self.pinned(self.to_bits(result.into_float_value(), format))
    }
    fn float_fma(
        &mut self,
        format: FloatFormat,
        negated: Negated,
        nan: NanRule,
        operands: [IntValue<'c>; 3],
    ) -> IntValue<'c> {
        let NanRule::X86 = nan;
        let operands = operands.map(|value| self.to_float(value, format).as_basic_value_enum());
        let result = float::fma(self.ir, format, negated, 1, operands, self.thread);
        self.to_bits(result.into_float_value(), format)
    }
    fn float_sqrt(&mut self, format: FloatFormat, nan: NanRule, a: IntValue<'c>) -> IntValue<'c> {
        let NanRule::X86 = nan;
        let a = self.to_float(a, format);
        let result = float::sqrt(self.ir, format, 1, a.as_basic_value_enum());
        self.to_bits(result.into_float_value(), format)
    }
    fn float_cmp(
        &mut self,
        op: FloatCmp,
        format: FloatFormat,
        signalling: bool,
        a: IntValue<'c>,
        b: IntValue<'c>,
    ) -> Bit<'c> {
        let (a, b) = (self.to_float(a, format), self.to_float(b, format));
        Bit::Float(FloatTest { a, b, signalling, outcomes: Outcomes::of(op) })
    }
    fn float_to_int(
        &mut self,
        format: FloatFormat,
        rounding: Rounding,
        a: IntValue<'c>,
        width: Width,
        otherwise: u64,
    ) -> IntValue<'c> {
        let a = self.to_float(self.pinned(a), format);
        let result = float::to_int(self.ir, format, rounding, 1, a.as_basic_value_enum(), width, otherwise);
        self.pinned(result.into_int_value())
    }
    fn int_to_float(&mut self, a: IntValue<'c>, format: FloatFormat) -> IntValue<'c> {
        let result = float::from_int(self.ir, 1, a.as_basic_value_enum(), format);
        self.to_bits(result.into_float_value(), format)
    }
    fn float_convert(
        &mut self,
        from: FloatFormat,
        to: FloatFormat,
        nan: NanRule,
        a: IntValue<'c>,
    ) -> IntValue<'c> {
        let NanRule::X86 = nan;
        let a = self.to_float(a, from);
        let result = float::convert(self.ir, from, to, 1, a.as_basic_value_enum());
        self.to_bits(result.into_float_value(), to)
    }
    fn float_round(
        &mut self,
        format: FloatFormat,
        rounding: Rounding,
        nan: NanRule,
        inexact: bool,
        a: IntValue<'c>,
    ) -> IntValue<'c> {
        let NanRule::X86 = nan;
        let a = self.to_float(self.pinned(a), format);
        let result = float::round(self.ir, format, rounding, inexact, 1, a.as_basic_value_enum());
        self.pinned(self.to_bits(result.into_float_value(), format))
    }
    fn float_lanes(
        &mut self,
        op: FloatOp,
        format: FloatFormat,
        nan: NanRule,
        a: VectorValue<'c>,
        b: VectorValue<'c>,
    ) -> VectorValue<'c> {
        let NanRule::X86 = nan;
        let (a, b) = (self.pinned_lanes(a), self.pinned_lanes(b));
        let (x, y) = (self.to_float_lanes(a, format), self.to_float_lanes(b, format));
        let lanes = x.get_type().get_size();
        let result =
            float::binary(self.ir, op, format, lanes, x.as_basic_value_enum(), y.as_basic_value_enum());
        self.pinned_lanes(self.to_bag(result.into_vector_value()))
    }
    fn float_fma_lanes(
        &mut self,
        format: FloatFormat,
        negated: Negated,
        nan: NanRule,
        operands: [VectorValue<'c>; 3],
    ) -> VectorValue<'c> {
        let NanRule::X86 = nan;
        let lanes = self.vector_bits(operands[0]) / format.width().bits();
        let operands = operands.map(|value| self.to_float_lanes(value, format).as_basic_value_enum());
        let result = float::fma(self.ir, format, negated, lanes, operands, self.thread);
        self.to_bag(result.into_vector_value())
    }
    fn float_sqrt_lanes(&mut self, format: FloatFormat, nan: NanRule, a: VectorValue<'c>) -> VectorValue<'c> {
        let NanRule::X86 = nan;
        let a = self.to_float_lanes(a, format);
        let result = float::sqrt(self.ir, format, a.get_type().get_size(), a.as_basic_value_enum());
        self.to_bag(result.into_vector_value())
    }
    fn float_cmp_lanes(
        &mut self,
        op: FloatCmp,
        format: FloatFormat,
        signalling: bool,
        a: VectorValue<'c>,
        b: VectorValue<'c>,
    ) -> VectorValue<'c> {
        let (x, y) = (self.to_float_lanes(a, format), self.to_float_lanes(b, format));
        let holds = float::compare_lanes(self.ir, Outcomes::of(op), signalling, x, y);
        let bits = self.vector_bits(a);
        let mask =
            built(self.ir.builder.build_int_s_extend(holds, self.ir.vec_type(format.width(), bits), ""));
        self.to_bag(mask)
    }
    fn float_round_lanes(
        &mut self,
        format: FloatFormat,
        rounding: Rounding,
        nan: NanRule,
        inexact: bool,
        a: VectorValue<'c>,
    ) -> VectorValue<'c> {
        let NanRule::X86 = nan;
        let a = self.to_float_lanes(self.pinned_lanes(a), format);
        let lanes = a.get_type().get_size();
        let result = float::round(self.ir, format, rounding, inexact, lanes, a.as_basic_value_enum());
        self.pinned_lanes(self.to_bag(result.into_vector_value()))
    }
    fn float_to_int_lanes(
        &mut self,
        format: FloatFormat,
        rounding: Rounding,
        a: VectorValue<'c>,
        width: Width,
        otherwise: u64,
    ) -> VectorValue<'c> {
        let bits = self.vector_bits(a);
        let lanes = bits / format.width().bits().max(width.bits());
        let a = self.to_float_lanes(self.pinned_lanes(a), format);
        let a = self.low_lanes(a, lanes);
        let result =
            float::to_int(self.ir, format, rounding, lanes, a.as_basic_value_enum(), width, otherwise);
        self.pinned_lanes(self.zero_above(result.into_vector_value(), bits))
    }
    fn int_to_float_lanes(
        &mut self,
        a: VectorValue<'c>,
        lane: Width,
        format: FloatFormat,
    ) -> VectorValue<'c> {
        let bits = self.vector_bits(a);
        let lanes = bits / format.width().bits().max(lane.bits());
        let a = self.to_lanes(a, lane);
        let a = self.low_lanes(a, lanes);
        let result = float::from_int(self.ir, lanes, a.as_basic_value_enum(), format);
        self.zero_above(result.into_vector_value(), bits)
    }
    fn float_convert_lanes(
        &mut self,
        from: FloatFormat,
        to: FloatFormat,
        nan: NanRule,
        a: VectorValue<'c>,
    ) -> VectorValue<'c> {
        let NanRule::X86 = nan;
        let bits = self.vector_bits(a);
        let lanes = bits / from.width().bits().max(to.width().bits());
        let a = self.to_float_lanes(a, from);
        let a = self.low_lanes(a, lanes);
        let result = float::convert(self.ir, from, to, lanes, a.as_basic_value_enum());
        self.zero_above(result.into_vector_value(), bits)
    }

    fn half_to_single_lanes(&mut self, nan: NanRule, a: VectorValue<'c>) -> VectorValue<'c> {
        let NanRule::X86 = nan;
        let lanes = self.to_lanes(a, Width::W16);
        let lanes = self.low_lanes(lanes, self.vector_bits(a) / 32);
        let result = float::from_half(self.ir, lanes, self.thread);
        self.to_bag(result)
    }
    fn single_to_half_lanes(
        &mut self,
        rounding: Rounding,
        nan: NanRule,
        a: VectorValue<'c>,
    ) -> VectorValue<'c> {
        let NanRule::X86 = nan;
        let lanes = self.to_float_lanes(a, FloatFormat::F32);
        let result = float::to_half(self.ir, rounding, lanes, self.thread);
        self.zero_above(result, self.vector_bits(a))
    }

    fn reg(&mut self, reg: Reg) -> IntValue<'c> {
        match reg {
            Reg::Gpr(number) => self.gpr(number),
            Reg::Flag(flag) => {
                let bit = self.flag_bit(flag);
                self.bool_to_int(bit, Width::W64)
            }
            Reg::OtherFlags => self.load_field(layout::OTHER_FLAGS, Width::W64),
            Reg::FsBase => self.load_field(layout::FS_BASE, Width::W64),
            Reg::GsBase => self.load_field(layout::GS_BASE, Width::W64),
            Reg::Opmask(number) => self.load_field(layout::OPMASK + 8 * usize::from(number), Width::W64),
            Reg::Mxcsr => self.read_mxcsr(),
        }
    }
    fn set_reg(&mut self, reg: Reg, value: IntValue<'c>) {
        match reg {
            Reg::Gpr(number) => self.set_gpr(number, value),
            Reg::Flag(flag) => {
                let zero = value.get_type().const_zero();
                let bit = self.cmp(CmpOp::Ne, value, zero);
                self.set_flag_bit(flag, bit);
            }
            Reg::OtherFlags => self.store_field(layout::OTHER_FLAGS, value),
            Reg::FsBase => self.store_field(layout::FS_BASE, value),
            Reg::GsBase => self.store_field(layout::GS_BASE, value),
            Reg::Opmask(number) => self.store_field(layout::OPMASK + 8 * usize::from(number), value),
            Reg::Mxcsr => self.write_mxcsr(value),
        }
    }
    fn flag(&mut self, flag: Reg) -> Bit<'c> {
        match flag {
            Reg::Flag(flag) => self.flag_bit(flag),
            other => {
                let value = self.reg(other);
                let zero = value.get_type().const_zero();
                self.cmp(CmpOp::Ne, value, zero)
            }
        }
    }
    fn set_flag(&mut self, flag: Reg, value: Bit<'c>) {
        match flag {
            Reg::Flag(flag) => self.set_flag_bit(flag, value),
            other => {
                let value = self.bool_to_int(value, Width::W64);
                self.set_reg(other, value);
            }
        }
    }
    fn vec_reg(&mut self, index: u32, bits: u32) -> VectorValue<'c> {
        let parts = (0..bits / 128).map(|part| self.vec_part(index, part)).collect();
        self.join(parts)
    }
    fn set_vec_reg(&mut self, index: u32, value: VectorValue<'c>) {
        for part in 0..self.vector_bits(value) / 128 {
            let value = self.extract_part(value, part);
            self.set_vec_part(index, part, value);
        }
    }
    fn clear_vec_reg(&mut self, index: u32, bits: u32) {
        self.clear_vec_parts(index, bits / 128);
    }

    fn load(&mut self, address: IntValue<'c>, width: Width) -> IntValue<'c> {
        if self.is_exact() {
            return self.load_exactly(address, width);
        }
        let (from, memory) = self.guest_pointer(address);
        self.ir.load(memory, self.ir.int_type(width), from).into_int_value()
    }
    fn store(&mut self, address: IntValue<'c>, value: IntValue<'c>) {
        if self.is_exact() {
            return self.store_exactly(address, value);
        }
        let (to, memory) = self.guest_pointer(address);
        self.ir.store(memory, to, value);
    }
    fn load_vec(&mut self, address: IntValue<'c>, bits: u32) -> VectorValue<'c> {
        if self.is_exact() {
            return self.load_vec_exactly(address, bits);
        }
        let (from, memory) = self.guest_pointer(address);
        self.ir.load(memory, self.ir.vec_type(Width::W64, bits), from).into_vector_value()
    }
    fn store_vec(&mut self, address: IntValue<'c>, value: VectorValue<'c>) {
        if self.is_exact() {
            return self.store_vec_exactly(address, value);
        }
        let (to, memory) = self.guest_pointer(address);
        self.ir.store(memory, to, value);
    }
    fn load_masked(&mut self, address: IntValue<'c>, lane: Width, mask: VectorValue<'c>) -> VectorValue<'c> {
        if self.vector_bits(mask) > MASKED_BITS {
            let ([low, high], above) = (self.halves(mask), self.above_masked(address));
            let (low, high) = (self.load_masked(address, lane, low), self.load_masked(above, lane, high));
            return self.concatenate(low, high);
        }
        self.before_other_access();
        let (from, _) = self.guest_pointer(address);
        let mask = self.lane_signs(mask, lane);
        let zero = self.ir.int_type(lane).vec_type(mask.get_type().get_size()).const_zero();
        let types = [zero.get_type().into(), from.get_type().into()];
        self.stay_in_order();
        let call = self.ir.intrinsic("llvm.masked.load", &types, &[from.into(), mask.into(), zero.into()]);
        self.stay_in_order();
        self.to_bag(Ir::result(call).into_vector_value())
    }
    fn store_masked(
        &mut self,
        address: IntValue<'c>,
        lane: Width,
        mask: VectorValue<'c>,
        value: VectorValue<'c>,
    ) {
        if self.vector_bits(mask) > MASKED_BITS {
            let ([low, high], above) = (self.halves(mask), self.above_masked(address));
            let [low_value, high_value] = self.halves(value);
            self.store_masked(address, lane, low, low_value);
            return self.store_masked(above, lane, high, high_value);
        }
        self.before_other_access();
        let (to, _) = self.guest_pointer(address);
        let (mask, value) = (self.lane_signs(mask, lane), self.to_lanes(value, lane));
        let types = [value.get_type().into(), to.get_type().into()];
        self.stay_in_order();
        self.ir.intrinsic("llvm.masked.store", &types, &[value.into(), to.into(), mask.into()]);
        self.stay_in_order();
    }
    fn atomic(&mut self, op: AtomicOp, address: IntValue<'c>, value: IntValue<'c>) -> IntValue<'c> {
        self.leave_if_split(address, value.get_type().get_bit_width());
        self.before_other_access();
        let (at, _) = self.guest_pointer(address);
        let op = match op {
            AtomicOp::Exchange => AtomicRMWBinOp::Xchg,
            AtomicOp::Add => AtomicRMWBinOp::Add,
            AtomicOp::Sub => AtomicRMWBinOp::Sub,
            AtomicOp::And => AtomicRMWBinOp::And,
            AtomicOp::Or => AtomicRMWBinOp::Or,
            AtomicOp::Xor => AtomicRMWBinOp::Xor,
        };
        built(self.ir.builder.build_atomicrmw(op, at, value, SequentiallyConsistent))
    }
    fn compare_exchange(
        &mut self,
        address: IntValue<'c>,
        expected: IntValue<'c>,
        new: IntValue<'c>,
    ) -> IntValue<'c> {
        self.leave_if_split(address, new.get_type().get_bit_width());
        self.before_other_access();
        let (at, _) = self.guest_pointer(address);
        let builder = &self.ir.builder;
        let both =
            built(builder.build_cmpxchg(at, expected, new, SequentiallyConsistent, SequentiallyConsistent));
        built(builder.build_extract_value(both, 0, "")).into_int_value()
    }
    fn fence(&mut self) {
        built(self.ir.builder.build_fence(SequentiallyConsistent, false, ""));
    }

    fn in_bulk(&mut self, count: Reg) -> bool {
        self.moves_at_once(count)
    }
    fn copy_forward(&mut self, dst: Reg, src: Reg, count: Reg, width: Width) {
        let (to, from, n) = (self.reg(dst), self.reg(src), self.reg(count));
        let name = format!("tranship.copy_forward.{}", width.bits());
        self.ir.prelude(&name, self.ir.context.i64_type().into(), &[to.into(), from.into(), n.into()]);
        let bytes = self.elements_to_bytes(n, width);
        let (to, from) = (self.arithmetic(BinOp::Add, to, bytes), self.arithmetic(BinOp::Add, from, bytes));
        self.set_reg(dst, to);
        self.set_reg(src, from);
        self.set_reg(count, self.ir.i64(0));
    }
    fn fill_forward(&mut self, dst: Reg, count: Reg, value: IntValue<'c>) {
        let (to, n) = (self.reg(dst), self.reg(count));
        let width = self.width(value);
        let name = format!("tranship.fill_forward.{}", width.bits());
        self.ir.prelude(&name, self.ir.context.i64_type().into(), &[to.into(), value.into(), n.into()]);
        let bytes = self.elements_to_bytes(n, width);
        let to = self.arithmetic(BinOp::Add, to, bytes);
        self.set_reg(dst, to);
        self.set_reg(count, self.ir.i64(0));
    }

    fn quietly(&mut self, rounding: Rounding, body: &mut dyn FnMut(&mut Self)) {
        let before = float::begin_quiet(self.ir, rounding);
        body(self);
        float::end_quiet(self.ir, before);
    }

    fn when(&mut self, cond: Bit<'c>, body: &mut dyn FnMut(&mut Self)) {
        match cond {
            Bit::Known(false) => {}
            Bit::Known(true) => body(self),
            _ => self.conditionally(cond, body),
        }
    }
    fn repeat(&mut self, body: &mut dyn FnMut(&mut Self) -> Bit<'c>) {
        self.flush(FlagSet::ALL);
        let (again, after) = (self.new_block(), self.new_block());
        self.ir.branch(again);
        self.ir.builder.position_at_end(again);
        self.registers.forget();
        let cond = body(self);
        let cond = self.materialize(cond);
        self.flush(FlagSet::ALL);
        built(self.ir.builder.build_conditional_branch(cond, again, after));
        self.ir.builder.position_at_end(after);
        self.registers.forget();
    }

    fn jump(&mut self, target: Target<IntValue<'c>>) {
        self.emit_jump(target);
    }
    fn jump_if(&mut self, cond: Bit<'c>, target: u64) {
        self.emit_branch(cond, target);
    }
    fn call(&mut self, target: Target<IntValue<'c>>, return_address: u64) {
        self.emit_call(target, return_address);
    }
    fn ret(&mut self, target: IntValue<'c>) {
        self.emit_return(target);
    }
    fn syscall(&mut self) {
        self.emit_stub_call("tranship.syscall", self.next);
    }
    fn flags_follow(&mut self, rule: OperandRule, left: IntValue<'c>, right: IntValue<'c>) {
        self.note_operands(rule, left, right);
    }
    fn flags_follow_result(&mut self, result: IntValue<'c>) {
        self.note_result(result);
    }
    fn interpreted(&mut self) -> bool {
        self.emit_interpreted();
        true
    }
    fn trap_if(&mut self, cond: Bit<'c>, trap: Trap) {
        self.emit_trap(cond, trap);
    }

    fn coprocessor(&mut self, operation: u32, a: IntValue<'c>, b: IntValue<'c>) -> IntValue<'c> {
        let operands = self.coprocessor_operands();
        let second = self.ir.byte_offset(operands, self.ir.i64(16));
        self.ir.store(Memory::State, operands, a);
        self.ir.store(Memory::State, second, b);
        let operation = self.ir.context.i32_type().const_int(operation.into(), false);
        self.call_runtime_aside(RuntimeCall::COPROCESSOR, &[operation.into(), operands.into()]);
        self.ir.load(Memory::State, self.ir.context.i128_type(), operands).into_int_value()
    }
}

impl<'c> Lifter<'_, 'c> {
    fn elements_to_bytes(&self, n: IntValue<'c>, width: Width) -> IntValue<'c> {
        let shift = self.ir.i64(width.bytes().trailing_zeros().into());
        self.arithmetic(BinOp::Shl, n, shift)
    }

    fn conditionally(&mut self, cond: Bit<'c>, body: &mut dyn FnMut(&mut Self)) {
        let cond = self.materialize(cond);
        self.flush(FlagSet::ALL);
        let (then, after) = (self.new_block(), self.new_block());
        built(self.ir.builder.build_conditional_branch(cond, then, after));
        self.ir.builder.position_at_end(then);
        let before = self.registers.clone();
        self.registers.forget_writes();
        body(self);
        if !self.ir.is_terminated() {
            self.flush(FlagSet::ALL);
            self.ir.branch(after);
        }
        self.registers.merge(before);
        self.ir.builder.position_at_end(after);
    }
}
