//! Integer operations for any host: division of double-width dividends, carry-less products, saturating
//! narrowing, byte lookup.

use super::Operation;
use crate::ir::{Ir, Memory, built};
use inkwell::IntPredicate;
use inkwell::types::VectorType;
use inkwell::values::{BasicValueEnum, IntValue, PhiValue, VectorValue};

pub(super) fn define<'c>(op: &Operation<'_, 'c>, words: &[&str]) -> Option<BasicValueEnum<'c>> {
    match words {
        ["divide", "u64"] => Some(pair(op, divide_unsigned(op, int(op, 0), int(op, 1), int(op, 2)))),
        ["divide", "s64"] => Some(pair(op, divide_signed(op))),
        ["splits", bits] => splits(op, bits),
        ["carryless_mul"] => Some(carryless_mul(op)),
        ["narrow", _, to] => narrow(op, to),
        ["lookup", _] => Some(lookup(op)),
        ["shl", _] => {
            let (value, counts) = (op.arguments[0].into_vector_value(), op.arguments[1].into_vector_value());
            Some(built(op.ir.builder.build_left_shift(value, counts, "")).into())
        }
        ["permute", _] => Some(permute(op)),
        _ => None,
    }
}

fn int<'c>(op: &Operation<'_, 'c>, n: usize) -> IntValue<'c> {
    op.arguments[n].into_int_value()
}

fn pair<'c>(
    op: &Operation<'_, 'c>,
    (quotient, remainder): (IntValue<'c>, IntValue<'c>),
) -> BasicValueEnum<'c> {
    let poison = op.result_type().into_struct_type().get_poison();
    let first = built(op.ir.builder.build_insert_value(poison, quotient, 0, ""));
    built(op.ir.builder.build_insert_value(first, remainder, 1, "")).into_struct_value().into()
}

/// A counted loop of 64 rounds over `start` values; `round` makes the next values of the last.
fn sixty_four_rounds<'c, const N: usize>(
    op: &Operation<'_, 'c>,
    start: [IntValue<'c>; N],
    round: impl Fn([IntValue<'c>; N]) -> [IntValue<'c>; N],
) -> [IntValue<'c>; N] {
    let before = op.ir.here();
    let (again, after) = (op.ir.block(op.function, "round"), op.ir.block(op.function, "rounds_done"));
    op.ir.branch(again);
    op.ir.builder.position_at_end(again);
    let count = built(op.ir.builder.build_phi(op.ir.context.i64_type(), ""));
    let phis: [PhiValue<'c>; N] = start.map(|v| built(op.ir.builder.build_phi(v.get_type(), "")));
    let next = round(phis.map(|p| p.as_basic_value().into_int_value()));
    let counted = count.as_basic_value().into_int_value();
    let counted = built(op.ir.builder.build_int_add(counted, op.ir.i64(1), ""));
    count.add_incoming(&[(&op.ir.i64(0), before), (&counted, again)]);
    for ((phi, first), later) in phis.iter().zip(&start).zip(&next) {
        phi.add_incoming(&[(first, before), (later, again)]);
    }
    let done = op.ir.compare(IntPredicate::EQ, counted, op.ir.i64(64));
    built(op.ir.builder.build_conditional_branch(done, after, again));
    op.ir.builder.position_at_end(after);
    next
}

/// Quotient and remainder of `high:low / divisor`, where the quotient fits: at once where `high` is zero, else bit
/// by bit.
fn divide_unsigned<'c>(
    op: &Operation<'_, 'c>,
    high: IntValue<'c>,
    low: IntValue<'c>,
    divisor: IntValue<'c>,
) -> (IntValue<'c>, IntValue<'c>) {
    let builder = &op.ir.builder;
    let block = |name| op.ir.block(op.function, name);
    let (short, long, done) = (block("short"), block("long"), block("divided"));
    let fits = op.ir.compare(IntPredicate::EQ, high, op.ir.i64(0));
    op.ir.branch_unlikely(built(builder.build_not(fits, "")), long, short);

    builder.position_at_end(short);
    let short_quotient = built(builder.build_int_unsigned_div(low, divisor, ""));
    let short_remainder = built(builder.build_int_unsigned_rem(low, divisor, ""));
    op.ir.branch(done);

    builder.position_at_end(long);
    let one = op.ir.i64(1);
    let top = |v| built(builder.build_right_shift(v, op.ir.i64(63), false, ""));
    let shifted = |v, bit| built(builder.build_or(built(builder.build_left_shift(v, one, "")), bit, ""));
    let [remainder, quotient] = sixty_four_rounds(op, [high, low], |[rest, bits]| {
        let carried = op.ir.compare(IntPredicate::NE, top(rest), op.ir.i64(0));
        let rest = shifted(rest, top(bits));
        let enough = op.ir.compare(IntPredicate::UGE, rest, divisor);
        let subtract = built(builder.build_or(carried, enough, ""));
        let less = built(builder.build_int_sub(rest, divisor, ""));
        let bit = built(builder.build_int_z_extend(subtract, op.ir.context.i64_type(), ""));
        [built(builder.build_select(subtract, less, rest, "")).into_int_value(), shifted(bits, bit)]
    });
    let long = op.ir.here();
    op.ir.branch(done);

    builder.position_at_end(done);
    let merge = |a: IntValue<'c>, b: IntValue<'c>| {
        let phi = built(builder.build_phi(a.get_type(), ""));
        phi.add_incoming(&[(&a, short), (&b, long)]);
        phi.as_basic_value().into_int_value()
    };
    (merge(short_quotient, quotient), merge(short_remainder, remainder))
}

/// By magnitudes; the quotient's sign is that of both, the remainder's that of the dividend.
fn divide_signed<'c>(op: &Operation<'_, 'c>) -> (IntValue<'c>, IntValue<'c>) {
    let builder = &op.ir.builder;
    let (high, low, divisor) = (int(op, 0), int(op, 1), int(op, 2));
    let zero = op.ir.i64(0);
    let negative = |v| op.ir.compare(IntPredicate::SLT, v, zero);
    let negated_if = |condition, v| {
        let negated = built(builder.build_int_neg(v, ""));
        built(builder.build_select(condition, negated, v, "")).into_int_value()
    };
    let (below, divisor_below) = (negative(high), negative(divisor));
    let low_is_zero = op.ir.compare(IntPredicate::EQ, low, zero);
    let borrow = built(builder.build_not(low_is_zero, ""));
    let borrow = built(builder.build_int_z_extend(borrow, high.get_type(), ""));
    let negated_high = built(builder.build_int_sub(built(builder.build_int_neg(high, "")), borrow, ""));
    let magnitude_high = built(builder.build_select(below, negated_high, high, "")).into_int_value();
    let (magnitude_low, divisor) = (negated_if(below, low), negated_if(divisor_below, divisor));
    let (quotient, remainder) = divide_unsigned(op, magnitude_high, magnitude_low, divisor);
    let differ = built(builder.build_xor(below, divisor_below, ""));
    (negated_if(differ, quotient), negated_if(below, remainder))
}

/// Whether an access of `bits` is misaligned, and so not atomic.
fn splits<'c>(op: &Operation<'_, 'c>, bits: &str) -> Option<BasicValueEnum<'c>> {
    let low = op.ir.i64(bits.parse::<u64>().ok()? / 8 - 1);
    let low = built(op.ir.builder.build_and(int(op, 0), low, ""));
    Some(op.ir.compare(IntPredicate::NE, low, op.ir.i64(0)).into())
}

/// 128-bit product of two 64-bit polynomials.
fn carryless_mul<'c>(op: &Operation<'_, 'c>) -> BasicValueEnum<'c> {
    let builder = &op.ir.builder;
    let wide = op.ir.context.i128_type();
    let a = built(builder.build_int_z_extend(int(op, 0), wide, ""));
    let one = wide.const_int(1, false);
    let [_, _, product] = sixty_four_rounds(op, [a, int(op, 1), wide.const_zero()], |[a, b, product]| {
        let bit = built(builder.build_int_truncate(b, op.ir.context.bool_type(), ""));
        let term = built(builder.build_select(bit, a, wide.const_zero(), "")).into_int_value();
        let b = built(builder.build_right_shift(b, op.ir.i64(1), false, ""));
        [built(builder.build_left_shift(a, one, "")), b, built(builder.build_xor(product, term, ""))]
    });
    product.into()
}

fn splat<'c>(like: VectorValue<'c>, value: i64) -> VectorValue<'c> {
    let kind = like.get_type().get_element_type().into_int_type();
    VectorType::const_vector(&vec![kind.const_int(value as u64, true); like.get_type().get_size() as usize])
}

/// Clamped, truncated, and put one after the other.
fn narrow<'c>(op: &Operation<'_, 'c>, to: &str) -> Option<BasicValueEnum<'c>> {
    let bits: u32 = to.get(1..)?.parse().ok()?;
    let (least, most) = match to.starts_with('s') {
        true => (-(1i64 << (bits - 1)), (1i64 << (bits - 1)) - 1),
        false => (0, (1i64 << bits) - 1),
    };
    let builder = &op.ir.builder;
    let half = |v: VectorValue<'c>| {
        let named = |name, a: VectorValue<'c>, b: VectorValue<'c>| {
            Ir::result(op.ir.intrinsic(name, &[a.get_type().into()], &[a.into(), b.into()]))
                .into_vector_value()
        };
        let v = named("llvm.smin", named("llvm.smax", v, splat(v, least)), splat(v, most));
        let kind = op.result_type().into_vector_type().get_element_type().into_int_type();
        built(builder.build_int_truncate(v, kind.vec_type(v.get_type().get_size()), ""))
    };
    let (a, b) = (half(op.arguments[0].into_vector_value()), half(op.arguments[1].into_vector_value()));
    let index = |n: u32| op.ir.context.i32_type().const_int(n.into(), false);
    let all: Vec<_> = (0..2 * a.get_type().get_size()).map(index).collect();
    Some(built(builder.build_shuffle_vector(a, b, VectorType::const_vector(&all), "")).into())
}

/// Byte by byte; hosts that can do better say so.
fn lookup<'c>(op: &Operation<'_, 'c>) -> BasicValueEnum<'c> {
    let builder = &op.ir.builder;
    let (table, indices) = (op.arguments[0].into_vector_value(), op.arguments[1].into_vector_value());
    let number = |n: u32| op.ir.context.i32_type().const_int(n.into(), false);
    let byte = op.ir.context.i8_type();
    let mut found = table.get_type().const_zero();
    for n in 0..table.get_type().get_size() {
        let index = built(builder.build_extract_element(indices, number(n), "")).into_int_value();
        let within = op.ir.compare(IntPredicate::ULT, index, byte.const_int(16, false));
        let safe = built(builder.build_and(index, byte.const_int(15, false), ""));
        let safe = built(builder.build_int_z_extend(safe, op.ir.context.i32_type(), ""));
        let place = built(builder.build_int_add(safe, number(n / 16 * 16), ""));
        let value = built(builder.build_extract_element(table, place, ""));
        let value = built(builder.build_select(within, value, byte.const_zero().into(), ""));
        found = built(builder.build_insert_element(found, value, number(n), ""));
    }
    found.into()
}

/// Through memory, lane by lane.
fn permute<'c>(op: &Operation<'_, 'c>) -> BasicValueEnum<'c> {
    let builder = &op.ir.builder;
    let (table, indices) = (op.arguments[0].into_vector_value(), op.arguments[1].into_vector_value());
    let kind = table.get_type().get_element_type().into_int_type();
    let count = table.get_type().get_size();
    let slot = built(builder.build_alloca(kind.array_type(count), ""));
    op.ir.store(Memory::State, slot, table);
    let number = |n: u32| op.ir.context.i32_type().const_int(n.into(), false);
    let mut found = indices.get_type().get_poison();
    for n in 0..indices.get_type().get_size() {
        let index = built(builder.build_extract_element(indices, number(n), "")).into_int_value();
        let index =
            built(builder.build_and(index, index.get_type().const_int((count - 1).into(), false), ""));
        let bytes = op.ir.context.i64_type();
        let index = match kind.get_bit_width() {
            64 => index,
            _ => built(builder.build_int_z_extend(index, bytes, "")),
        };
        let size = op.ir.i64(u64::from(kind.get_bit_width() / 8));
        let at = op.ir.byte_offset(slot, built(builder.build_int_mul(index, size, "")));
        let value = op.ir.load(Memory::State, kind, at);
        found = built(builder.build_insert_element(found, value, number(n), ""));
    }
    found.into()
}
