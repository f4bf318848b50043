//! Vector operations. A vector value is a bag of bits, `<n x i64>`; each operation sees it in the lanes it
//! needs, and LLVM removes the casts between.

use super::Lifter;
use super::machine::predicate;
use crate::ir::{Ir, built};
use inkwell::module::Linkage;
use inkwell::types::{BasicTypeEnum, VectorType};
use inkwell::values::{BasicValueEnum, FloatValue, InstructionOpcode, IntValue, VectorValue};
use tranship_isa::machine::{BinOp, FloatFormat, LaneOp, Width};

/// The float whose bits `value` is, if it has just been made of one. It is kept in the vector unit: LLVM does
/// not see that inserting its bits as an integer is the same.
fn float_behind(value: IntValue<'_>) -> Option<FloatValue<'_>> {
    let cast = value.as_instruction().filter(|i| i.get_opcode() == InstructionOpcode::BitCast)?;
    match cast.get_operand(0)?.value()? {
        BasicValueEnum::FloatValue(float) => Some(float),
        _ => None,
    }
}

/// Whether a vector is seen to have the same value in all lanes: a constant, or a splat.
fn is_uniform(mut v: VectorValue<'_>) -> bool {
    loop {
        let Some(instruction) = v.as_instruction() else { return v.is_const() };
        if instruction.get_opcode() != InstructionOpcode::BitCast {
            return instruction.get_opcode() == InstructionOpcode::ShuffleVector;
        }
        match instruction.get_operand(0).and_then(|operand| operand.value()) {
            Some(BasicValueEnum::VectorValue(operand)) => v = operand,
            _ => return false,
        }
    }
}

impl<'c> Lifter<'_, 'c> {
    /// Bits of a vector in lanes of any integer or float type.
    pub(super) fn vector_bits(&self, v: VectorValue<'c>) -> u32 {
        let lane = match v.get_type().get_element_type() {
            BasicTypeEnum::IntType(t) => t.get_bit_width(),
            BasicTypeEnum::FloatType(t) => t.get_bit_width(),
            _ => 64,
        };
        lane * v.get_type().get_size()
    }

    fn cast(&self, v: VectorValue<'c>, kind: VectorType<'c>) -> VectorValue<'c> {
        built(self.ir.builder.build_bit_cast(v, kind, "")).into_vector_value()
    }

    /// As integer lanes.
    pub(super) fn to_lanes(&self, v: VectorValue<'c>, lane: Width) -> VectorValue<'c> {
        self.cast(v, self.ir.vec_type(lane, self.vector_bits(v)))
    }

    /// As float lanes.
    pub(super) fn to_float_lanes(&self, v: VectorValue<'c>, format: FloatFormat) -> VectorValue<'c> {
        let lanes = self.vector_bits(v) / format.width().bits();
        self.cast(v, super::float::float_type(self.ir, format).vec_type(lanes))
    }

    /// As a bag of bits.
    pub(super) fn to_bag(&self, v: VectorValue<'c>) -> VectorValue<'c> {
        self.to_lanes(v, Width::W64)
    }

    fn index(&self, index: u32) -> IntValue<'c> {
        self.ir.context.i32_type().const_int(index.into(), false)
    }

    /// Lanes of `a` then `b`, by number.
    fn pick(
        &self,
        a: VectorValue<'c>,
        b: VectorValue<'c>,
        lanes: impl Iterator<Item = u32>,
    ) -> VectorValue<'c> {
        let mask: Vec<_> = lanes.map(|n| self.index(n)).collect();
        built(self.ir.builder.build_shuffle_vector(a, b, VectorType::const_vector(&mask), ""))
    }

    /// The lowest `count` lanes.
    pub(super) fn low_lanes(&self, v: VectorValue<'c>, count: u32) -> VectorValue<'c> {
        self.pick(v, v, 0..count)
    }

    /// `low` with `high` above it.
    pub(super) fn concatenate(&self, low: VectorValue<'c>, high: VectorValue<'c>) -> VectorValue<'c> {
        self.pick(low, high, 0..2 * low.get_type().get_size())
    }

    /// One bag of several, as many as a power of two, the lowest first.
    pub(super) fn join(&self, mut parts: Vec<VectorValue<'c>>) -> VectorValue<'c> {
        while parts.len() > 1 {
            parts = parts.chunks(2).map(|pair| self.concatenate(pair[0], pair[1])).collect();
        }
        parts[0]
    }

    /// The lower and the upper half of a bag.
    pub(super) fn halves(&self, v: VectorValue<'c>) -> [VectorValue<'c>; 2] {
        let lanes = v.get_type().get_size();
        [0..lanes / 2, lanes / 2..lanes].map(|half| self.pick(v, v, half))
    }

    /// 128 bits of a bag.
    pub(super) fn extract_part(&self, v: VectorValue<'c>, part: u32) -> VectorValue<'c> {
        match v.get_type().get_size() {
            2 => v,
            _ => self.pick(v, v, 2 * part..2 * part + 2),
        }
    }

    /// A bag of `bits` with `low` at the bottom and zeros above.
    pub(super) fn zero_above(&self, low: VectorValue<'c>, bits: u32) -> VectorValue<'c> {
        let mut v = low;
        while self.vector_bits(v) < bits {
            v = self.concatenate(v, v.get_type().const_zero());
        }
        self.to_bag(v)
    }

    pub(super) fn vector_splat(&mut self, value: IntValue<'c>, bits: u32) -> VectorValue<'c> {
        let lanes = bits / value.get_type().get_bit_width();
        let poison = value.get_type().vec_type(lanes).get_poison();
        let one = built(self.ir.builder.build_insert_element(poison, value, self.index(0), ""));
        let all = self.pick(one, one, (0..lanes).map(|_| 0));
        self.to_bag(all)
    }

    pub(super) fn vector_lane(&mut self, v: VectorValue<'c>, lane: Width, index: u32) -> IntValue<'c> {
        if lane == Width::W128 {
            let part = self.extract_part(v, index);
            return built(self.ir.builder.build_bit_cast(part, self.ir.context.i128_type(), ""))
                .into_int_value();
        }
        let v = self.to_lanes(v, lane);
        built(self.ir.builder.build_extract_element(v, self.index(index), "")).into_int_value()
    }

    pub(super) fn vector_set_lane(
        &mut self,
        v: VectorValue<'c>,
        index: u32,
        value: IntValue<'c>,
    ) -> VectorValue<'c> {
        let bits = value.get_type().get_bit_width();
        if bits == 128 {
            let lanes = self.cast(v, value.get_type().vec_type(self.vector_bits(v) / 128));
            let lanes = built(self.ir.builder.build_insert_element(lanes, value, self.index(index), ""));
            return self.to_bag(lanes);
        }
        let lanes = self.vector_bits(v) / bits;
        let inserted = match float_behind(value) {
            Some(float) => {
                let v = self.cast(v, float.get_type().vec_type(lanes));
                self.ir.builder.build_insert_element(v, float, self.index(index), "")
            }
            None => {
                let v = self.cast(v, value.get_type().vec_type(lanes));
                self.ir.builder.build_insert_element(v, value, self.index(index), "")
            }
        };
        self.to_bag(built(inserted))
    }

    pub(super) fn vector_shuffle(
        &mut self,
        lane: Width,
        a: VectorValue<'c>,
        b: VectorValue<'c>,
        indices: &[u8],
    ) -> VectorValue<'c> {
        let (a, b) = (self.to_lanes(a, lane), self.to_lanes(b, lane));
        let picked = self.pick(a, b, indices.iter().map(|&n| n.into()));
        self.to_bag(picked)
    }

    /// A call of a function whose body is the steps; the host's own instruction may take their place
    /// ([`crate::compile`]).
    pub(super) fn vector_instruction(
        &mut self,
        name: &str,
        operands: &[VectorValue<'c>],
        steps: fn(&mut Self, &[VectorValue<'c>]) -> VectorValue<'c>,
    ) -> VectorValue<'c> {
        let kind = operands[0].get_type();
        let types: Vec<_> = operands.iter().map(|_| kind.into()).collect();
        let name = format!("tranship.insn.{name}.v{}i64", kind.get_size());
        let function = self.ir.function(&name, kind.fn_type(&types, false));
        if function.count_basic_blocks() == 0 {
            let here = self.ir.here();
            self.ir.builder.position_at_end(self.ir.block(function, "entry"));
            let parameters: Vec<_> = function.get_param_iter().map(|p| p.into_vector_value()).collect();
            let result = steps(self, &parameters);
            self.ir.return_value(result);
            self.ir.builder.position_at_end(here);
            function.set_linkage(Linkage::Internal);
            self.ir.add_attribute(function, "alwaysinline");
        }
        let values: Vec<_> = operands.iter().map(|&v| v.into()).collect();
        Ir::result(self.ir.call(function, &values)).into_vector_value()
    }

    fn extend(&self, v: VectorValue<'c>, lane: Width, signed: bool) -> VectorValue<'c> {
        let kind = self.ir.int_type(lane).vec_type(v.get_type().get_size());
        built(match signed {
            true => self.ir.builder.build_int_s_extend(v, kind, ""),
            false => self.ir.builder.build_int_z_extend(v, kind, ""),
        })
    }

    fn truncate(&self, v: VectorValue<'c>, lane: Width) -> VectorValue<'c> {
        let kind = self.ir.int_type(lane).vec_type(v.get_type().get_size());
        built(self.ir.builder.build_int_truncate(v, kind, ""))
    }

    pub(super) fn vector_widen_low(
        &mut self,
        v: VectorValue<'c>,
        lane: Width,
        signed: bool,
    ) -> VectorValue<'c> {
        let v = self.to_lanes(v, lane);
        let low = self.low_lanes(v, v.get_type().get_size() / 2);
        let wide = self.extend(low, lane.double(), signed);
        self.to_bag(wide)
    }

    pub(super) fn vector_narrow(
        &mut self,
        a: VectorValue<'c>,
        b: VectorValue<'c>,
        lane: Width,
        to_signed: bool,
    ) -> VectorValue<'c> {
        let (a, b) = (self.to_lanes(a, lane), self.to_lanes(b, lane));
        let lanes = 2 * a.get_type().get_size();
        let result = self.ir.int_type(lane.half()).vec_type(lanes);
        let sign = if to_signed { 's' } else { 'u' };
        let name = format!("tranship.narrow.v{}i{}.{sign}{}", lanes / 2, lane.bits(), lane.half().bits());
        let narrow = self.ir.prelude(&name, result.into(), &[a.into(), b.into()]);
        self.to_bag(narrow.into_vector_value())
    }

    pub(super) fn vector_lookup(
        &mut self,
        table: VectorValue<'c>,
        indices: VectorValue<'c>,
    ) -> VectorValue<'c> {
        let (table, indices) = (self.to_lanes(table, Width::W8), self.to_lanes(indices, Width::W8));
        let name = format!("tranship.lookup.v{}i8", table.get_type().get_size());
        let found = self.ir.prelude(&name, table.get_type().into(), &[table.into(), indices.into()]);
        self.to_bag(found.into_vector_value())
    }

    pub(super) fn vector_permute(
        &mut self,
        lane: Width,
        table: VectorValue<'c>,
        indices: VectorValue<'c>,
    ) -> VectorValue<'c> {
        let (table, indices) = (self.to_lanes(table, lane), self.to_lanes(indices, lane));
        let name = format!("tranship.permute.v{}i{}", table.get_type().get_size(), lane.bits());
        let found = self.ir.prelude(&name, table.get_type().into(), &[table.into(), indices.into()]);
        self.to_bag(found.into_vector_value())
    }

    /// Whether the top bit of each lane is set.
    pub(super) fn lane_signs(&self, v: VectorValue<'c>, lane: Width) -> VectorValue<'c> {
        let v = self.to_lanes(v, lane);
        let zero = v.get_type().const_zero();
        built(self.ir.builder.build_int_compare(inkwell::IntPredicate::SLT, v, zero, ""))
    }

    pub(super) fn vector_sign_mask(&mut self, v: VectorValue<'c>, lane: Width, width: Width) -> IntValue<'c> {
        let signs = self.lane_signs(v, lane);
        let count = std::num::NonZeroU32::new(signs.get_type().get_size()).expect("a vector has lanes");
        let packed = self.ir.context.custom_width_int_type(count).expect("a mask has at most 64 bits");
        let mask = built(self.ir.builder.build_bit_cast(signs, packed, "")).into_int_value();
        let kind = self.ir.int_type(width);
        match mask.get_type().get_bit_width() == width.bits() {
            true => mask,
            false => built(self.ir.builder.build_int_z_extend(mask, kind, "")),
        }
    }

    pub(super) fn vector_mask_lanes(
        &mut self,
        mask: IntValue<'c>,
        lane: Width,
        bits: u32,
    ) -> VectorValue<'c> {
        let lanes = bits / lane.bits();
        let count = std::num::NonZeroU32::new(lanes).expect("a vector has lanes");
        let packed = self.ir.context.custom_width_int_type(count).expect("a mask has at most 64 bits");
        let mask = match lanes == mask.get_type().get_bit_width() {
            true => mask,
            false => built(self.ir.builder.build_int_truncate(mask, packed, "")),
        };
        let signs = self.ir.context.bool_type().vec_type(lanes);
        let signs = built(self.ir.builder.build_bit_cast(mask, signs, "")).into_vector_value();
        let wide = self.extend(signs, lane, true);
        self.to_bag(wide)
    }

    pub(super) fn vector_lanes(
        &mut self,
        op: LaneOp,
        lane: Width,
        a: VectorValue<'c>,
        b: VectorValue<'c>,
    ) -> VectorValue<'c> {
        let (a, b) = (self.to_lanes(a, lane), self.to_lanes(b, lane));
        let named = |name| {
            let call = self.ir.intrinsic(name, &[a.get_type().into()], &[a.into(), b.into()]);
            Ir::result(call).into_vector_value()
        };
        let result = match op {
            LaneOp::Int(BinOp::Shl) if !is_uniform(b) => {
                let name = format!("tranship.shl.v{}i{}", a.get_type().get_size(), lane.bits());
                self.ir.prelude(&name, a.get_type().into(), &[a.into(), b.into()]).into_vector_value()
            }
            LaneOp::Int(op) => self.lane_arithmetic(op, a, b),
            LaneOp::AddSatSigned => named("llvm.sadd.sat"),
            LaneOp::AddSatUnsigned => named("llvm.uadd.sat"),
            LaneOp::SubSatSigned => named("llvm.ssub.sat"),
            LaneOp::SubSatUnsigned => named("llvm.usub.sat"),
            LaneOp::MinSigned => named("llvm.smin"),
            LaneOp::MinUnsigned => named("llvm.umin"),
            LaneOp::MaxSigned => named("llvm.smax"),
            LaneOp::MaxUnsigned => named("llvm.umax"),
            LaneOp::MulHighSigned => self.multiply_high(a, b, lane, true),
            LaneOp::MulHighUnsigned => self.multiply_high(a, b, lane, false),
            LaneOp::AverageUnsigned => self.average(a, b, lane),
            LaneOp::Cmp(op) => {
                let holds = built(self.ir.builder.build_int_compare(predicate(op), a, b, ""));
                self.extend(holds, lane, true)
            }
        };
        self.to_bag(result)
    }

    fn lane_arithmetic(&self, op: BinOp, a: VectorValue<'c>, b: VectorValue<'c>) -> VectorValue<'c> {
        let builder = &self.ir.builder;
        built(match op {
            BinOp::Add => builder.build_int_add(a, b, ""),
            BinOp::Sub => builder.build_int_sub(a, b, ""),
            BinOp::Mul => builder.build_int_mul(a, b, ""),
            BinOp::And => builder.build_and(a, b, ""),
            BinOp::Or => builder.build_or(a, b, ""),
            BinOp::Xor => builder.build_xor(a, b, ""),
            BinOp::Shl => builder.build_left_shift(a, b, ""),
            BinOp::LShr => builder.build_right_shift(a, b, false, ""),
            BinOp::AShr => builder.build_right_shift(a, b, true, ""),
            BinOp::UDiv => builder.build_int_unsigned_div(a, b, ""),
            BinOp::URem => builder.build_int_unsigned_rem(a, b, ""),
            BinOp::SDiv => builder.build_int_signed_div(a, b, ""),
            BinOp::SRem => builder.build_int_signed_rem(a, b, ""),
        })
    }

    fn lane_constant(&self, like: VectorValue<'c>, lane: Width, value: u64) -> VectorValue<'c> {
        let value = self.ir.int_type(lane).const_int(value, false);
        VectorType::const_vector(&vec![value; like.get_type().get_size() as usize])
    }

    fn multiply_high(
        &self,
        a: VectorValue<'c>,
        b: VectorValue<'c>,
        lane: Width,
        signed: bool,
    ) -> VectorValue<'c> {
        let wide = lane.double();
        let product =
            self.lane_arithmetic(BinOp::Mul, self.extend(a, wide, signed), self.extend(b, wide, signed));
        let by = self.lane_constant(product, wide, lane.bits().into());
        self.truncate(self.lane_arithmetic(BinOp::LShr, product, by), lane)
    }

    fn average(&self, a: VectorValue<'c>, b: VectorValue<'c>, lane: Width) -> VectorValue<'c> {
        let wide = lane.double();
        let sum = self.lane_arithmetic(BinOp::Add, self.extend(a, wide, false), self.extend(b, wide, false));
        let one = self.lane_constant(sum, wide, 1);
        let sum = self.lane_arithmetic(BinOp::Add, sum, one);
        self.truncate(self.lane_arithmetic(BinOp::LShr, sum, one), lane)
    }
}
