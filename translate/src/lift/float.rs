//! Floating point: operations of the prelude, one name per operation and type, because what NaNs and
//! out-of-range values give is the guest's rule, and how cheaply it is kept depends on the host.

use super::Lifter;
use super::bit::Outcomes;
use crate::ir::{Ir, built};
use crate::layout::{self, RuntimeCall};
use inkwell::IntPredicate;
use inkwell::types::{BasicType, BasicTypeEnum, FloatType};
use inkwell::values::{BasicValueEnum, FloatValue, IntValue, PointerValue, VectorValue};
use tranship_isa::machine::{FloatCmp, FloatFormat, FloatOp, Negated, Rounding, Width};

impl Outcomes {
    pub(super) fn of(op: FloatCmp) -> Outcomes {
        match op {
            FloatCmp::Eq => Outcomes::EQUAL,
            FloatCmp::Lt => Outcomes::LESS,
            FloatCmp::Le => Outcomes::LESS.union(Outcomes::EQUAL),
            FloatCmp::Unordered => Outcomes::UNORDERED,
        }
    }
}

impl<'c> Lifter<'_, 'c> {
    pub(super) fn read_mxcsr(&mut self) -> IntValue<'c> {
        self.call_runtime_aside(RuntimeCall::FP_COLLECT, &[]);
        self.load_field(layout::MXCSR, Width::W32)
    }

    /// With an exception unmasked the interpreter goes on: compiled code does not raise them.
    pub(super) fn write_mxcsr(&mut self, value: IntValue<'c>) {
        const MASKS: u64 = 0x1f80;
        let all = value.get_type().const_int(MASKS, false);
        let masked = built(self.ir.builder.build_and(value, all, ""));
        let unmasked = self.ir.compare(IntPredicate::NE, masked, all);
        self.leave_if(unmasked, "tranship.interpret_one", self.address);
        self.store_field(layout::MXCSR, value);
        self.call_runtime_aside(RuntimeCall::FP_APPLY, &[]);
    }

    /// `value`, which is made before what comes later, and from what came before, even if LLVM takes the operation that makes
    /// it for one that does not depend on modes: where modes change.
    pub(super) fn pinned(&self, value: IntValue<'c>) -> IntValue<'c> {
        if !self.changes_modes {
            return value;
        }
        let name = format!("tranship.pin.i{}", value.get_type().get_bit_width());
        self.ir.prelude(&name, value.get_type().into(), &[value.into()]).into_int_value()
    }

    /// [`Self::pinned`] of a bag.
    pub(super) fn pinned_lanes(&self, value: VectorValue<'c>) -> VectorValue<'c> {
        if !self.changes_modes {
            return value;
        }
        let name = format!("tranship.pin.v{}i64", value.get_type().get_size());
        self.ir.prelude(&name, value.get_type().into(), &[value.into()]).into_vector_value()
    }

    /// `value` as a float of `format`.
    pub(super) fn to_float(&self, value: IntValue<'c>, format: FloatFormat) -> FloatValue<'c> {
        let kind = float_type(self.ir, format);
        built(self.ir.builder.build_bit_cast(value, kind, "")).into_float_value()
    }

    /// A float's bits.
    pub(super) fn to_bits(&self, value: FloatValue<'c>, format: FloatFormat) -> IntValue<'c> {
        let kind = self.ir.int_type(format.width());
        built(self.ir.builder.build_bit_cast(value, kind, "")).into_int_value()
    }
}

/// LLVM's type of a format.
pub(crate) fn float_type<'c>(ir: &Ir<'c>, format: FloatFormat) -> FloatType<'c> {
    match format {
        FloatFormat::F32 => ir.context.f32_type(),
        FloatFormat::F64 => ir.context.f64_type(),
    }
}

/// `lanes` of `kind`; one lane is a scalar.
fn laned<'c>(kind: impl BasicType<'c>, lanes: u32) -> BasicTypeEnum<'c> {
    match (lanes, kind.as_basic_type_enum()) {
        (1, scalar) => scalar,
        (_, BasicTypeEnum::FloatType(t)) => t.vec_type(lanes).into(),
        (_, BasicTypeEnum::IntType(t)) => t.vec_type(lanes).into(),
        _ => unreachable!("lanes are floats or integers"),
    }
}

fn suffix(letter: char, width: Width, lanes: u32) -> String {
    match lanes {
        1 => format!("{letter}{}", width.bits()),
        _ => format!("v{lanes}{letter}{}", width.bits()),
    }
}

fn rounding_name(rounding: Rounding) -> &'static str {
    match rounding {
        Rounding::Current => "current",
        Rounding::NearestEven => "nearest",
        Rounding::Down => "down",
        Rounding::Up => "up",
        Rounding::Zero => "zero",
    }
}

/// A two-operand operation.
pub(super) fn binary<'c>(
    ir: &Ir<'c>,
    op: FloatOp,
    format: FloatFormat,
    lanes: u32,
    a: BasicValueEnum<'c>,
    b: BasicValueEnum<'c>,
) -> BasicValueEnum<'c> {
    let name = match op {
        FloatOp::Add => "add",
        FloatOp::Sub => "sub",
        FloatOp::Mul => "mul",
        FloatOp::Div => "div",
        FloatOp::MinX86 => "min_x86",
        FloatOp::MaxX86 => "max_x86",
    };
    let name = format!("tranship.float.{name}.{}", suffix('f', format.width(), lanes));
    ir.prelude(&name, a.get_type(), &[a, b])
}

/// A square root.
pub(super) fn sqrt<'c>(
    ir: &Ir<'c>,
    format: FloatFormat,
    lanes: u32,
    a: BasicValueEnum<'c>,
) -> BasicValueEnum<'c> {
    ir.prelude(&format!("tranship.float.sqrt.{}", suffix('f', format.width(), lanes)), a.get_type(), &[a])
}

/// A fused multiplication and addition. Hosts that do not have it ask the runtime, by `thread`.
pub(super) fn fma<'c>(
    ir: &Ir<'c>,
    format: FloatFormat,
    negated: Negated,
    lanes: u32,
    [a, b, c]: [BasicValueEnum<'c>; 3],
    thread: PointerValue<'c>,
) -> BasicValueEnum<'c> {
    let name = match (negated.product, negated.addend) {
        (false, false) => "fma",
        (false, true) => "fms",
        (true, false) => "fnma",
        (true, true) => "fnms",
    };
    let name = format!("tranship.float.{name}.{}", suffix('f', format.width(), lanes));
    ir.prelude(&name, a.get_type(), &[a, b, c, thread.into()])
}

/// Exceptions are not noted, and `rounding` holds, until [`end_quiet`] gets what this yields.
pub(super) fn begin_quiet<'c>(ir: &Ir<'c>, rounding: Rounding) -> BasicValueEnum<'c> {
    let name = format!("tranship.float.begin_quiet.{}", rounding_name(rounding));
    ir.prelude(&name, ir.context.i64_type().into(), &[])
}

/// See [`begin_quiet`].
pub(super) fn end_quiet<'c>(ir: &Ir<'c>, before: BasicValueEnum<'c>) {
    ir.prelude("tranship.float.end_quiet", ir.context.i64_type().into(), &[before]);
}

/// Half precision, as 16-bit integers, to singles.
pub(super) fn from_half<'c>(ir: &Ir<'c>, a: VectorValue<'c>, thread: PointerValue<'c>) -> VectorValue<'c> {
    let lanes = a.get_type().get_size();
    let result = ir.context.f32_type().vec_type(lanes);
    let name = format!("tranship.float.from_half.v{lanes}i16");
    ir.prelude(&name, result.into(), &[a.into(), thread.into()]).into_vector_value()
}

/// Singles to half precision, as 16-bit integers.
pub(super) fn to_half<'c>(
    ir: &Ir<'c>,
    rounding: Rounding,
    a: VectorValue<'c>,
    thread: PointerValue<'c>,
) -> VectorValue<'c> {
    let lanes = a.get_type().get_size();
    let result = ir.context.i16_type().vec_type(lanes);
    let name = format!("tranship.float.to_half.v{lanes}f32.{}", rounding_name(rounding));
    ir.prelude(&name, result.into(), &[a.into(), thread.into()]).into_vector_value()
}

/// To signed integers of `width`.
pub(super) fn to_int<'c>(
    ir: &Ir<'c>,
    format: FloatFormat,
    rounding: Rounding,
    lanes: u32,
    a: BasicValueEnum<'c>,
    width: Width,
    otherwise: u64,
) -> BasicValueEnum<'c> {
    let (from, to) = (suffix('f', format.width(), lanes), suffix('i', width, lanes));
    let name = format!("tranship.float.to_int.{from}.{to}.{}", rounding_name(rounding));
    let otherwise = ir.int_type(width).const_int(otherwise & width.mask() as u64, false);
    ir.prelude(&name, laned(ir.int_type(width), lanes), &[a, otherwise.into()])
}

/// From signed integers.
pub(super) fn from_int<'c>(
    ir: &Ir<'c>,
    lanes: u32,
    a: BasicValueEnum<'c>,
    format: FloatFormat,
) -> BasicValueEnum<'c> {
    let width = match a.get_type() {
        BasicTypeEnum::VectorType(t) => t.get_element_type().into_int_type().get_bit_width(),
        other => other.into_int_type().get_bit_width(),
    };
    let width = if width == 64 { Width::W64 } else { Width::W32 };
    let (from, to) = (suffix('i', width, lanes), suffix('f', format.width(), lanes));
    ir.prelude(&format!("tranship.float.from_int.{from}.{to}"), laned(float_type(ir, format), lanes), &[a])
}

/// Between formats.
pub(super) fn convert<'c>(
    ir: &Ir<'c>,
    from: FloatFormat,
    to: FloatFormat,
    lanes: u32,
    a: BasicValueEnum<'c>,
) -> BasicValueEnum<'c> {
    let result = laned(float_type(ir, to), lanes);
    let (from, to) = (suffix('f', from.width(), lanes), suffix('f', to.width(), lanes));
    ir.prelude(&format!("tranship.float.convert.{from}.{to}"), result, &[a])
}

/// To an integral value.
pub(super) fn round<'c>(
    ir: &Ir<'c>,
    format: FloatFormat,
    rounding: Rounding,
    inexact: bool,
    lanes: u32,
    a: BasicValueEnum<'c>,
) -> BasicValueEnum<'c> {
    let exactness = if inexact { "inexact" } else { "quiet" };
    let kind = suffix('f', format.width(), lanes);
    let name = format!("tranship.float.round.{kind}.{}.{exactness}", rounding_name(rounding));
    ir.prelude(&name, a.get_type(), &[a])
}

/// Lane-wise comparison: a vector of `i1`.
pub(super) fn compare_lanes<'c>(
    ir: &Ir<'c>,
    outcomes: Outcomes,
    signalling: bool,
    a: VectorValue<'c>,
    b: VectorValue<'c>,
) -> VectorValue<'c> {
    super::bit::constrained_compare(ir, outcomes, signalling, a.into(), b.into()).into_vector_value()
}
