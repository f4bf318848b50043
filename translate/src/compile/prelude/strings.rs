//! Bulk copies and fills for any host: 16 bytes at a time where the ranges allow it, then element by element. Their
//! accesses are in no order among themselves (SDM vol. 1, 7.3.9.3), so they are as free as private ones, between fences.

use super::Operation;
use crate::ir::{Ir, Memory, built};
use inkwell::types::BasicTypeEnum;
use inkwell::values::{BasicValueEnum, IntValue, PointerValue, VectorValue};
use inkwell::{AtomicOrdering, IntPredicate};
use tranship_isa::machine::Width;

fn pointer<'c>(ir: &Ir<'c>, address: IntValue<'c>) -> PointerValue<'c> {
    built(ir.builder.build_int_to_ptr(address, ir.ptr_type(), ""))
}

/// Run `body` for offset `start`, `start + step`, … as long as `offset + step` does not pass `end`; where it
/// stopped.
fn strided<'c>(
    op: &Operation<'_, 'c>,
    start: IntValue<'c>,
    end: IntValue<'c>,
    step: u64,
    body: impl Fn(IntValue<'c>),
) -> IntValue<'c> {
    let builder = &op.ir.builder;
    let before = op.ir.here();
    let block = |name| op.ir.block(op.function, name);
    let (test, inner, after) = (block("test"), block("step"), block("after"));
    op.ir.branch(test);
    builder.position_at_end(test);
    let phi = built(builder.build_phi(start.get_type(), ""));
    let offset = phi.as_basic_value().into_int_value();
    let left = built(builder.build_int_sub(end, offset, ""));
    let enough = op.ir.compare(IntPredicate::UGE, left, op.ir.i64(step));
    built(builder.build_conditional_branch(enough, inner, after));
    builder.position_at_end(inner);
    body(offset);
    let next = built(builder.build_int_add(offset, op.ir.i64(step), ""));
    phi.add_incoming(&[(&start, before), (&next, inner)]);
    op.ir.branch(test);
    builder.position_at_end(after);
    offset
}

fn bytes<'c>(op: &Operation<'_, 'c>, count: IntValue<'c>, element: u64) -> IntValue<'c> {
    built(op.ir.builder.build_int_mul(count, op.ir.i64(element), ""))
}

fn element_bits(op: &Operation<'_, '_>) -> u64 {
    let name = op.function.get_name().to_string_lossy().into_owned();
    name.rsplit('.').next().and_then(|bits| bits.parse().ok()).unwrap_or(8)
}

/// `(to, from, count)`. Blocks are as good as elements unless the target starts inside the source.
pub(super) fn copy_forward<'c>(op: &Operation<'_, 'c>) -> BasicValueEnum<'c> {
    let builder = &op.ir.builder;
    let (to, from) = (op.arguments[0].into_int_value(), op.arguments[1].into_int_value());
    let element = element_bits(op) / 8;
    let end = bytes(op, op.arguments[2].into_int_value(), element);
    let kind: BasicTypeEnum<'c> = match element {
        1 => op.ir.context.i8_type().into(),
        2 => op.ir.context.i16_type().into(),
        4 => op.ir.context.i32_type().into(),
        _ => op.ir.context.i64_type().into(),
    };
    let move_one = |kind: BasicTypeEnum<'c>, offset| {
        let at = |base| pointer(op.ir, built(builder.build_int_add(base, offset, "")));
        let value = op.ir.load(Memory::Frame, kind, at(from));
        op.ir.store(Memory::Frame, at(to), value);
    };
    let distance = built(builder.build_int_sub(to, from, ""));
    let overlaps = op.ir.compare(IntPredicate::ULT, distance, end);
    let in_blocks = built(builder.build_select(overlaps, op.ir.i64(0), end, "")).into_int_value();
    let block = op.ir.vec_type(Width::W64, 128).into();
    fence(op);
    let done = strided(op, op.ir.i64(0), in_blocks, 16, |offset| move_one(block, offset));
    strided(op, done, end, element, |offset| move_one(kind, offset));
    fence(op);
    op.ir.i64(0).into()
}

/// `(to, value, count)`.
pub(super) fn fill_forward<'c>(op: &Operation<'_, 'c>) -> BasicValueEnum<'c> {
    let builder = &op.ir.builder;
    let (to, value) = (op.arguments[0].into_int_value(), op.arguments[1].into_int_value());
    let element = element_bits(op) / 8;
    let end = bytes(op, op.arguments[2].into_int_value(), element);
    let at = |offset| pointer(op.ir, built(builder.build_int_add(to, offset, "")));
    let block = splat(op, value, (16 / element) as u32);
    fence(op);
    let done = strided(op, op.ir.i64(0), end, 16, |offset| op.ir.store(Memory::Frame, at(offset), block));
    strided(op, done, end, element, |offset| op.ir.store(Memory::Frame, at(offset), value));
    fence(op);
    op.ir.i64(0).into()
}

/// What is before is seen before what is behind.
fn fence(op: &Operation<'_, '_>) {
    built(op.ir.builder.build_fence(AtomicOrdering::AcquireRelease, false, ""));
}

fn splat<'c>(op: &Operation<'_, 'c>, value: IntValue<'c>, lanes: u32) -> VectorValue<'c> {
    let number = |n: u32| op.ir.context.i32_type().const_int(n.into(), false);
    (0..lanes).fold(value.get_type().vec_type(lanes).get_poison(), |v, n| {
        built(op.ir.builder.build_insert_element(v, value, number(n), ""))
    })
}
