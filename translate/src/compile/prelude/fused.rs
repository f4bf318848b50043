//! What the oldest x86-64 hosts lack: fused multiplication and addition, and half precision. The runtime does them, one
//! lane after the other, under the host's MXCSR; what it raises goes there.

use super::Operation;
use crate::ir::{Memory, built};
use crate::layout::RuntimeCall;
use inkwell::types::BasicTypeEnum;
use inkwell::values::{BasicValueEnum, IntValue, PointerValue};
use tranship_isa::x86_64::coprocessor;

/// MXCSR: where the rounding mode is.
const ROUNDING: u64 = 13;

pub(super) fn multiply_add<'c>(op: &Operation<'_, 'c>, name: &str) -> Option<BasicValueEnum<'c>> {
    let double = lane_kind(op.result_type()) == op.ir.context.f64_type().into();
    let parts = [
        (double, coprocessor::FUSED_DOUBLE),
        (name.starts_with("fn"), coprocessor::FUSED_NEGATED_PRODUCT),
        (name.ends_with('s'), coprocessor::FUSED_NEGATED_ADDEND),
    ];
    let operation =
        parts.iter().filter(|(is, _)| *is).fold(coprocessor::FUSED, |operation, (_, part)| operation | part);
    by_lanes(op, operation, 3, None)
}

pub(super) fn from_half<'c>(op: &Operation<'_, 'c>) -> Option<BasicValueEnum<'c>> {
    by_lanes(op, coprocessor::FROM_HALF, 1, None)
}

pub(super) fn to_half<'c>(op: &Operation<'_, 'c>, rounding: &str) -> Option<BasicValueEnum<'c>> {
    by_lanes(op, coprocessor::TO_HALF, 1, mode(rounding))
}

/// Set the rounding mode, where one is named; MXCSR as it was.
pub(super) fn begin_quiet<'c>(op: &Operation<'_, 'c>, rounding: &str) -> BasicValueEnum<'c> {
    let control = slot(op);
    op.ir.intrinsic("llvm.x86.sse.stmxcsr", &[], &[control.into()]);
    let word = op.ir.context.i32_type();
    let before = op.ir.load(Memory::State, word, control).into_int_value();
    if let Some(mode) = mode(rounding) {
        op.ir.store(Memory::State, control, with_mode(op, before, mode));
        op.ir.intrinsic("llvm.x86.sse.ldmxcsr", &[], &[control.into()]);
    }
    built(op.ir.builder.build_int_z_extend(before, op.ir.context.i64_type(), "")).into()
}

/// Put MXCSR back, its exception flags with it.
pub(super) fn end_quiet<'c>(op: &Operation<'_, 'c>) -> BasicValueEnum<'c> {
    let control = slot(op);
    let before = op.arguments[0].into_int_value();
    let before = built(op.ir.builder.build_int_truncate(before, op.ir.context.i32_type(), ""));
    op.ir.store(Memory::State, control, before);
    op.ir.intrinsic("llvm.x86.sse.ldmxcsr", &[], &[control.into()]);
    op.ir.i64(0).into()
}

/// MXCSR's number of a rounding mode, unless it is the current one.
fn mode(rounding: &str) -> Option<u64> {
    ["nearest", "down", "up", "zero"].iter().position(|name| *name == rounding).map(|mode| mode as u64)
}

fn with_mode<'c>(op: &Operation<'_, 'c>, mxcsr: IntValue<'c>, mode: u64) -> IntValue<'c> {
    let word = op.ir.context.i32_type();
    let rest = word.const_int(u64::from(!(3_u32 << ROUNDING)), false);
    let rest = built(op.ir.builder.build_and(mxcsr, rest, ""));
    built(op.ir.builder.build_or(rest, word.const_int(mode << ROUNDING, false), ""))
}

fn lane_kind(kind: BasicTypeEnum<'_>) -> BasicTypeEnum<'_> {
    match kind {
        BasicTypeEnum::VectorType(v) => v.get_element_type(),
        scalar => scalar,
    }
}

/// `operation` of the coprocessor on each lane of the first `count` arguments; the thread comes behind them.
fn by_lanes<'c>(
    op: &Operation<'_, 'c>,
    operation: u32,
    count: usize,
    rounding: Option<u64>,
) -> Option<BasicValueEnum<'c>> {
    let thread = op.arguments.get(count)?.into_pointer_value();
    let (operands, control) = (slot(op), slot(op));
    op.ir.intrinsic("llvm.x86.sse.stmxcsr", &[], &[control.into()]);
    let word = op.ir.context.i32_type();
    let mxcsr = op.ir.load(Memory::State, word, control).into_int_value();
    let used = rounding.map_or(mxcsr, |mode| with_mode(op, mxcsr, mode));
    let lanes = match op.result_type() {
        BasicTypeEnum::VectorType(v) => v.get_size(),
        _ => 0,
    };
    let mut raised = mxcsr;
    let mut result = op.result_type().const_zero();
    for n in 0..lanes.max(1) {
        let words: Vec<IntValue<'c>> = op.arguments[..count].iter().map(|&a| lane_bits(op, a, n)).collect();
        let zero = op.ir.context.i128_type().const_zero();
        let second = words.get(1).copied().unwrap_or(zero);
        let third = words.get(2).copied().unwrap_or(zero);
        let wide = built(op.ir.builder.build_int_z_extend(used, op.ir.context.i128_type(), ""));
        let (bits, exceptions) =
            ask(op, thread, operands, operation, [join(op, words[0], second), join(op, third, wide)]);
        raised = built(op.ir.builder.build_or(raised, exceptions, ""));
        result = set_lane(op, result, n, bits);
    }
    op.ir.store(Memory::State, control, raised);
    op.ir.intrinsic("llvm.x86.sse.ldmxcsr", &[], &[control.into()]);
    Some(result)
}

/// Room for two 128-bit operands on the host's stack.
fn slot<'c>(op: &Operation<'_, 'c>) -> PointerValue<'c> {
    let slot = built(op.ir.builder.build_alloca(op.ir.context.i128_type().array_type(2), ""));
    slot.as_instruction().expect("a variable is an alloca").set_alignment(16).expect("so it has one");
    slot
}

/// The result, and the exceptions, of one operation.
fn ask<'c>(
    op: &Operation<'_, 'c>,
    thread: PointerValue<'c>,
    operands: PointerValue<'c>,
    operation: u32,
    [a, b]: [IntValue<'c>; 2],
) -> (IntValue<'c>, IntValue<'c>) {
    let (wide, word) = (op.ir.context.i128_type(), op.ir.context.i32_type());
    op.ir.store(Memory::State, operands, a);
    op.ir.store(Memory::State, op.ir.byte_offset(operands, op.ir.i64(16)), b);
    let code = op.ir.byte_offset(thread, op.ir.i64(RuntimeCall::COPROCESSOR.offset() as u64));
    let code = op.ir.load(Memory::State, op.ir.ptr_type(), code).into_pointer_value();
    let pointer = op.ir.ptr_type().into();
    let kind = op.ir.context.void_type().fn_type(&[pointer, word.into(), pointer], false);
    let operation = word.const_int(operation.into(), false);
    op.ir.call_pointer(kind, 0, code, &[thread.into(), operation.into(), operands.into()]);
    let answer = op.ir.load(Memory::State, wide, operands).into_int_value();
    let raised = built(op.ir.builder.build_right_shift(answer, wide.const_int(64, false), false, ""));
    (answer, built(op.ir.builder.build_int_truncate(raised, word, "")))
}

/// `high` and `low`, each of 64 bits at most, in one integer.
fn join<'c>(op: &Operation<'_, 'c>, low: IntValue<'c>, high: IntValue<'c>) -> IntValue<'c> {
    let by = op.ir.context.i128_type().const_int(64, false);
    let high = built(op.ir.builder.build_left_shift(high, by, ""));
    built(op.ir.builder.build_or(low, high, ""))
}

/// The bits of lane `n`, or of a scalar, in 128.
fn lane_bits<'c>(op: &Operation<'_, 'c>, value: BasicValueEnum<'c>, n: u32) -> IntValue<'c> {
    let index = op.ir.context.i32_type().const_int(n.into(), false);
    let lane = match value {
        BasicValueEnum::VectorValue(v) => built(op.ir.builder.build_extract_element(v, index, "")),
        scalar => scalar,
    };
    let bits = match lane {
        BasicValueEnum::FloatValue(float) => {
            let kind = if float.get_type() == op.ir.context.f64_type() {
                op.ir.context.i64_type()
            } else {
                op.ir.context.i32_type()
            };
            built(op.ir.builder.build_bit_cast(float, kind, "")).into_int_value()
        }
        other => other.into_int_value(),
    };
    built(op.ir.builder.build_int_z_extend(bits, op.ir.context.i128_type(), ""))
}

/// `whole` with the low bits of `bits` as lane `n`, or as the scalar it is.
fn set_lane<'c>(
    op: &Operation<'_, 'c>,
    whole: BasicValueEnum<'c>,
    n: u32,
    bits: IntValue<'c>,
) -> BasicValueEnum<'c> {
    let kind = lane_kind(op.result_type());
    let lane: BasicValueEnum<'c> = match kind {
        BasicTypeEnum::FloatType(float) => {
            let integer = if float == op.ir.context.f64_type() {
                op.ir.context.i64_type()
            } else {
                op.ir.context.i32_type()
            };
            let bits = built(op.ir.builder.build_int_truncate(bits, integer, ""));
            built(op.ir.builder.build_bit_cast(bits, float, ""))
        }
        other => built(op.ir.builder.build_int_truncate(bits, other.into_int_type(), "")).into(),
    };
    match whole {
        BasicValueEnum::VectorValue(v) => {
            let index = op.ir.context.i32_type().const_int(n.into(), false);
            built(op.ir.builder.build_insert_element(v, lane, index, "")).into()
        }
        _ => lane,
    }
}
