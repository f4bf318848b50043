//! Operations on vectors wider than the host's: two of half the width, lane by lane the same.

use super::{Operation, PREFIX};
use crate::ir::built;
use inkwell::types::{BasicType, BasicTypeEnum, VectorType};
use inkwell::values::{BasicValueEnum, VectorValue};

/// Bits in a vector register of every host.
const HOST_BITS: u32 = 128;

/// Bits of a vector; zero for a scalar.
fn bits(kind: BasicTypeEnum<'_>) -> u32 {
    let BasicTypeEnum::VectorType(vector) = kind else { return 0 };
    let lane = match vector.get_element_type() {
        BasicTypeEnum::IntType(t) => t.get_bit_width(),
        BasicTypeEnum::FloatType(t) => t.get_bit_width(),
        _ => 0,
    };
    lane * vector.get_size()
}

/// Whether an operand or the result is wider than the host's vectors.
pub(super) fn is_wide(op: &Operation<'_, '_>) -> bool {
    let operands = op.arguments.iter().map(|argument| argument.get_type());
    operands.chain([op.result_type()]).any(|kind| bits(kind) > HOST_BITS)
}

/// The operation named by `words` on the low and on the high halves. Scalar operands are both halves'.
pub(super) fn by_halves<'c>(op: &Operation<'_, 'c>, words: &[&str]) -> Option<BasicValueEnum<'c>> {
    let names: Option<Vec<String>> = words.iter().map(|word| half_name(word)).collect();
    let name = format!("{PREFIX}{}", names?.join("."));
    let BasicTypeEnum::VectorType(result) = op.result_type() else { return None };
    let kind = match result.get_element_type() {
        BasicTypeEnum::IntType(t) => t.vec_type(result.get_size() / 2),
        other => other.into_float_type().vec_type(result.get_size() / 2),
    };
    let half = |upper: bool| {
        let arguments: Vec<_> = op.arguments.iter().map(|&argument| half_of(op, argument, upper)).collect();
        op.ir.prelude(&name, kind.as_basic_type_enum(), &arguments).into_vector_value()
    };
    let (low, high) = (half(false), half(true));
    Some(pick(op, low, high, 0..2 * low.get_type().get_size()).into())
}

/// A word of a name with half as many lanes, where it counts any: `v8f32` to `v4f32`.
fn half_name(word: &str) -> Option<String> {
    let lanes = word
        .strip_prefix('v')
        .and_then(|rest| rest.find(|c: char| !c.is_ascii_digit()).map(|n| rest.split_at(n)));
    match lanes {
        Some((count, kind)) if !count.is_empty() => {
            let count: u32 = count.parse().ok()?;
            Some(format!("v{}{kind}", count / 2))
        }
        _ => Some(word.to_owned()),
    }
}

fn half_of<'c>(op: &Operation<'_, 'c>, value: BasicValueEnum<'c>, upper: bool) -> BasicValueEnum<'c> {
    let BasicValueEnum::VectorValue(vector) = value else { return value };
    let count = vector.get_type().get_size() / 2;
    let first = if upper { count } else { 0 };
    pick(op, vector, vector, first..first + count).into()
}

fn pick<'c>(
    op: &Operation<'_, 'c>,
    a: VectorValue<'c>,
    b: VectorValue<'c>,
    lanes: std::ops::Range<u32>,
) -> VectorValue<'c> {
    let index = op.ir.context.i32_type();
    let mask: Vec<_> = lanes.map(|n| index.const_int(n.into(), false)).collect();
    built(op.ir.builder.build_shuffle_vector(a, b, VectorType::const_vector(&mask), ""))
}
