//! Floating point for any host with IEEE 754 arithmetic: LLVM's constrained operations (the rounding mode and
//! the exceptions are the host's at run time), and x86's rules for NaNs put right afterwards, where there
//! is one.

use super::Operation;
use crate::ir::{Ir, built};
use inkwell::types::{BasicTypeEnum, IntType, VectorType};
use inkwell::values::{BasicMetadataValueEnum, BasicValueEnum, IntValue};

pub(super) fn define<'c>(op: &Operation<'_, 'c>, words: &[&str]) -> Option<BasicValueEnum<'c>> {
    match words {
        [name @ ("add" | "sub" | "mul" | "div" | "sqrt"), _] => {
            Some(exact_nans(op, &op.arguments, plain(op, name)))
        }
        [name @ ("fma" | "fms" | "fnma" | "fnms"), _] => Some(fused(op, name)),
        ["begin_quiet", rounding] => Some(begin_quiet(op, rounding)),
        ["end_quiet"] => Some(end_quiet(op)),
        ["from_half", _] => Some(from_half(op)),
        ["to_half", _, rounding] => Some(in_direction(op, rounding, to_half)),
        ["min_x86", _] => Some(choose(op, op.arguments[0], op.arguments[1])),
        ["max_x86", _] => Some(choose(op, op.arguments[1], op.arguments[0])),
        ["to_int", _, to, rounding] => to_int(op, to, rounding),
        ["from_int", ..] => Some(rounded(op, "llvm.experimental.constrained.sitofp", true)),
        ["convert", from, _] => Some(match from.ends_with("64") {
            true => rounded(op, "llvm.experimental.constrained.fptrunc", true),
            false => rounded(op, "llvm.experimental.constrained.fpext", false),
        }),
        ["round", _, rounding, exactness] => Some(round(op, rounding, exactness)),
        _ => None,
    }
}

const EXCEPTIONS: &str = "fpexcept.strict";

/// A constrained operation on `arguments`, overloaded on their type.
fn constrained<'c>(
    op: &Operation<'_, 'c>,
    name: &str,
    arguments: &[BasicValueEnum<'c>],
    rounds: bool,
) -> BasicValueEnum<'c> {
    let mut all: Vec<BasicMetadataValueEnum<'c>> = arguments.iter().map(|&a| a.into()).collect();
    if rounds {
        all.push(op.metadata("round.dynamic"));
    }
    all.push(op.metadata(EXCEPTIONS));
    let name = format!("llvm.experimental.constrained.{name}");
    Ir::result(op.ir.intrinsic(&name, &[arguments[0].get_type()], &all))
}

/// The host's own arithmetic.
pub(super) fn plain<'c>(op: &Operation<'_, 'c>, name: &str) -> BasicValueEnum<'c> {
    let name = if name == "sqrt" { "sqrt".into() } else { format!("f{name}") };
    constrained(op, &name, &op.arguments, true)
}

/// The product and the sum in one, with what `name` says negated.
fn fused<'c>(op: &Operation<'_, 'c>, name: &str) -> BasicValueEnum<'c> {
    let negated = |value: BasicValueEnum<'c>| -> BasicValueEnum<'c> {
        match value {
            BasicValueEnum::VectorValue(v) => built(op.ir.builder.build_float_neg(v, "")).into(),
            other => built(op.ir.builder.build_float_neg(other.into_float_value(), "")).into(),
        }
    };
    let operands = &op.arguments[..3];
    let mut used = [operands[0], operands[1], operands[2]];
    if name.starts_with("fn") {
        used[0] = negated(used[0]);
    }
    if name.ends_with('s') {
        used[2] = negated(used[2]);
    }
    exact_nans(op, operands, constrained(op, "fma", &used, true))
}

/// Half precision comes and goes as integers, which every host can pass.
fn from_half<'c>(op: &Operation<'_, 'c>) -> BasicValueEnum<'c> {
    let lanes = op.arguments[0].into_vector_value();
    let half = op.ir.context.f16_type().vec_type(lanes.get_type().get_size());
    let half = built(op.ir.builder.build_bit_cast(lanes, half, ""));
    rounded_from(op, half, op.result_type(), "llvm.experimental.constrained.fpext", false)
}

fn to_half<'c>(op: &Operation<'_, 'c>) -> BasicValueEnum<'c> {
    let lanes = op.arguments[0].into_vector_value().get_type().get_size();
    let half = op.ir.context.f16_type().vec_type(lanes).into();
    let half = rounded_from(op, op.arguments[0], half, "llvm.experimental.constrained.fptrunc", true);
    built(op.ir.builder.build_bit_cast(half, op.result_type(), ""))
}

/// The bits of FPCR that are a rounding mode.
const MODE_BITS: u64 = 3 << 22;

fn get<'c>(op: &Operation<'_, 'c>, register: &str) -> IntValue<'c> {
    let name = format!("llvm.aarch64.get.{register}");
    Ir::result(op.ir.intrinsic(&name, &[], &[])).into_int_value()
}

/// Set the rounding mode of an arm64 host, where one is named; FPCR and, above it, FPSR as they were.
fn begin_quiet<'c>(op: &Operation<'_, 'c>, rounding: &str) -> BasicValueEnum<'c> {
    let builder = &op.ir.builder;
    let (control, status) = (get(op, "fpcr"), get(op, "fpsr"));
    if let Some(mode) = ["nearest", "up", "down", "zero"].iter().position(|name| *name == rounding) {
        let rest = built(builder.build_and(control, op.ir.i64(!MODE_BITS), ""));
        let chosen = built(builder.build_or(rest, op.ir.i64((mode as u64) << 22), ""));
        op.ir.intrinsic("llvm.aarch64.set.fpcr", &[], &[chosen.into()]);
    }
    let high = built(builder.build_left_shift(status, op.ir.i64(32), ""));
    built(builder.build_or(control, high, "")).into()
}

fn end_quiet<'c>(op: &Operation<'_, 'c>) -> BasicValueEnum<'c> {
    let builder = &op.ir.builder;
    let both = op.arguments[0].into_int_value();
    let control = built(builder.build_and(both, op.ir.i64(0xffff_ffff), ""));
    let status = built(builder.build_right_shift(both, op.ir.i64(32), false, ""));
    op.ir.intrinsic("llvm.aarch64.set.fpcr", &[], &[control.into()]);
    op.ir.intrinsic("llvm.aarch64.set.fpsr", &[], &[status.into()]);
    op.ir.i64(0).into()
}

/// `operation` while the host rounds as `rounding` says; exceptions are raised as ever.
fn in_direction<'c>(
    op: &Operation<'_, 'c>,
    rounding: &str,
    operation: fn(&Operation<'_, 'c>) -> BasicValueEnum<'c>,
) -> BasicValueEnum<'c> {
    let Some(mode) = ["nearest", "up", "down", "zero"].iter().position(|name| *name == rounding) else {
        return operation(op);
    };
    let builder = &op.ir.builder;
    let before = get(op, "fpcr");
    let rest = built(builder.build_and(before, op.ir.i64(!MODE_BITS), ""));
    let chosen = built(builder.build_or(rest, op.ir.i64((mode as u64) << 22), ""));
    op.ir.intrinsic("llvm.aarch64.set.fpcr", &[], &[chosen.into()]);
    let result = operation(op);
    op.ir.intrinsic("llvm.aarch64.set.fpcr", &[], &[before.into()]);
    result
}

/// A conversion, overloaded on result and operand.
fn rounded<'c>(op: &Operation<'_, 'c>, name: &str, rounds: bool) -> BasicValueEnum<'c> {
    rounded_from(op, op.arguments[0], op.result_type(), name, rounds)
}

fn rounded_from<'c>(
    op: &Operation<'_, 'c>,
    from: BasicValueEnum<'c>,
    to: BasicTypeEnum<'c>,
    name: &str,
    rounds: bool,
) -> BasicValueEnum<'c> {
    let mut all: Vec<BasicMetadataValueEnum<'c>> = vec![from.into()];
    if rounds {
        all.push(op.metadata("round.dynamic"));
    }
    all.push(op.metadata(EXCEPTIONS));
    Ir::result(op.ir.intrinsic(name, &[to, from.get_type()], &all))
}

/// A comparison, of floats or lane by lane: `i1`s.
fn compare<'c>(
    op: &Operation<'_, 'c>,
    name: &str,
    predicate: &str,
    a: BasicValueEnum<'c>,
    b: BasicValueEnum<'c>,
) -> BasicValueEnum<'c> {
    let all = [a.into(), b.into(), op.metadata(predicate), op.metadata(EXCEPTIONS)];
    Ir::result(op.ir.intrinsic(&format!("llvm.experimental.constrained.{name}"), &[a.get_type()], &all))
}

fn select<'c>(
    op: &Operation<'_, 'c>,
    condition: BasicValueEnum<'c>,
    a: BasicValueEnum<'c>,
    b: BasicValueEnum<'c>,
) -> BasicValueEnum<'c> {
    match condition {
        BasicValueEnum::VectorValue(v) => built(op.ir.builder.build_select(v, a, b, "")),
        other => built(op.ir.builder.build_select(other.into_int_value(), a, b, "")),
    }
}

/// `a < b ? a : b` with a comparison that any NaN disturbs.
fn choose<'c>(
    op: &Operation<'_, 'c>,
    less: BasicValueEnum<'c>,
    greater: BasicValueEnum<'c>,
) -> BasicValueEnum<'c> {
    let (a, b) = (op.arguments[0], op.arguments[1]);
    let holds = compare(op, "fcmps", "olt", less, greater);
    select(op, holds, a, b)
}

/// Whether any lane of a condition holds.
fn any<'c>(op: &Operation<'_, 'c>, condition: BasicValueEnum<'c>) -> IntValue<'c> {
    let BasicValueEnum::VectorValue(lanes) = condition else { return condition.into_int_value() };
    Ir::result(op.ir.intrinsic("llvm.vector.reduce.or", &[lanes.get_type().into()], &[lanes.into()]))
        .into_int_value()
}

/// The bits of a float type, and a constant of them in every lane.
fn bits_of<'c>(
    op: &Operation<'_, 'c>,
    kind: BasicTypeEnum<'c>,
    value: impl Fn(bool) -> u64,
) -> BasicValueEnum<'c> {
    let element = |is_double: bool| -> (IntType<'c>, u64) {
        (if is_double { op.ir.context.i64_type() } else { op.ir.context.i32_type() }, value(is_double))
    };
    match kind {
        BasicTypeEnum::VectorType(v) => {
            let (kind, value) = element(v.get_element_type().into_float_type() == op.ir.context.f64_type());
            VectorType::const_vector(&vec![kind.const_int(value, false); v.get_size() as usize]).into()
        }
        other => {
            let (kind, value) = element(other.into_float_type() == op.ir.context.f64_type());
            kind.const_int(value, false).into()
        }
    }
}

/// `result`, but x86's choice of NaN where it is one: the first operand that is a NaN, quieted, or the negative
/// default.
fn exact_nans<'c>(
    op: &Operation<'_, 'c>,
    operands: &[BasicValueEnum<'c>],
    result: BasicValueEnum<'c>,
) -> BasicValueEnum<'c> {
    let kind = result.get_type();
    let is_nan = compare(op, "fcmp", "uno", result, result);
    let (usual, rare, done) =
        (op.ir.here(), op.ir.block(op.function, "nan"), op.ir.block(op.function, "done"));
    op.ir.branch_unlikely(any(op, is_nan), rare, done);

    op.ir.builder.position_at_end(rare);
    let quiet = bits_of(op, kind, |double| if double { 1 << 51 } else { 1 << 22 });
    let default = bits_of(op, kind, |double| if double { 0xfff8 << 48 } else { 0xffc0_0000 });
    let mut chosen = built(op.ir.builder.build_bit_cast(default, kind, ""));
    for &operand in operands.iter().rev() {
        let operand_is_nan = compare(op, "fcmp", "uno", operand, operand);
        chosen = select(op, operand_is_nan, quieted(op, operand, quiet), chosen);
    }
    let fixed = select(op, is_nan, chosen, result);
    op.ir.branch(done);

    op.ir.builder.position_at_end(done);
    let merged = built(op.ir.builder.build_phi(kind, ""));
    merged.add_incoming(&[(&result, usual), (&fixed, rare)]);
    merged.as_basic_value()
}

fn quieted<'c>(
    op: &Operation<'_, 'c>,
    nan: BasicValueEnum<'c>,
    quiet: BasicValueEnum<'c>,
) -> BasicValueEnum<'c> {
    let bits = built(op.ir.builder.build_bit_cast(nan, quiet.get_type(), ""));
    let bits: BasicValueEnum<'c> = match (bits, quiet) {
        (BasicValueEnum::VectorValue(a), BasicValueEnum::VectorValue(b)) => {
            built(op.ir.builder.build_or(a, b, "")).into()
        }
        (a, b) => built(op.ir.builder.build_or(a.into_int_value(), b.into_int_value(), "")).into(),
    };
    built(op.ir.builder.build_bit_cast(bits, nan.get_type(), ""))
}

/// An integral value in a given direction. What is inexact in any direction is inexact in the current one.
fn round<'c>(op: &Operation<'_, 'c>, rounding: &str, exactness: &str) -> BasicValueEnum<'c> {
    let integral = |name, rounds| constrained(op, name, &op.arguments, rounds);
    if exactness == "inexact" {
        let current = integral("rint", true);
        if rounding == "current" {
            return current;
        }
    }
    match rounding {
        "nearest" => integral("roundeven", false),
        "down" => integral("floor", false),
        "up" => integral("ceil", false),
        "zero" => integral("trunc", false),
        _ => integral("nearbyint", true),
    }
}

/// Rounded, then converted with saturation, which says what a host does with the rest; those become
/// `otherwise`.
fn to_int<'c>(op: &Operation<'_, 'c>, to: &str, rounding: &str) -> Option<BasicValueEnum<'c>> {
    let value = match rounding {
        "current" => constrained(op, "nearbyint", &op.arguments[..1], true),
        "zero" => op.arguments[0],
        _ => return None,
    };
    let wide = to.ends_with("64");
    let kind = value.get_type();
    let result = op.ir.intrinsic("llvm.fptosi.sat", &[op.result_type(), kind], &[value.into()]);
    let limit = |scale: f64| splat_float(op, kind, scale);
    // The first value too large, and the first too small: for a 32-bit result there are doubles between the
    // least integer and the next one down, and they round to it.
    let above = if wide { 9_223_372_036_854_775_808.0 } else { 2_147_483_648.0 };
    let (below, predicate) =
        if wide || is_single(op, kind) { (-above, "oge") } else { (-above - 1.0, "ogt") };
    let small_enough = compare(op, "fcmp", "olt", value, limit(above));
    let large_enough = compare(op, "fcmp", predicate, value, limit(below));
    let otherwise = match op.result_type() {
        BasicTypeEnum::VectorType(v) => {
            let one = op.arguments[1].into_int_value();
            splat_int(op, one, v.get_size())
        }
        _ => op.arguments[1],
    };
    if rounding == "current" {
        // Inexact is what was rounded and fits; what does not fit is invalid and no more.
        let zero = kind.const_zero();
        let fitting = select(op, small_enough, op.arguments[0], zero);
        let fitting = select(op, large_enough, fitting, zero);
        constrained(op, "rint", &[fitting], true);
    }
    let converted = select(op, small_enough, Ir::result(result), otherwise);
    Some(select(op, large_enough, converted, otherwise))
}

fn is_single<'c>(op: &Operation<'_, 'c>, kind: BasicTypeEnum<'c>) -> bool {
    let element = match kind {
        BasicTypeEnum::VectorType(v) => v.get_element_type(),
        other => other,
    };
    element.into_float_type() == op.ir.context.f32_type()
}

fn splat_float<'c>(op: &Operation<'_, 'c>, kind: BasicTypeEnum<'c>, value: f64) -> BasicValueEnum<'c> {
    let _ = op;
    match kind {
        BasicTypeEnum::VectorType(v) => {
            let one = v.get_element_type().into_float_type().const_float(value);
            VectorType::const_vector(&vec![one; v.get_size() as usize]).into()
        }
        other => other.into_float_type().const_float(value).into(),
    }
}

fn splat_int<'c>(op: &Operation<'_, 'c>, one: IntValue<'c>, lanes: u32) -> BasicValueEnum<'c> {
    let index = op.ir.context.i32_type();
    let poison = one.get_type().vec_type(lanes).get_poison();
    let first = built(op.ir.builder.build_insert_element(poison, one, index.const_zero(), ""));
    let zeros = VectorType::const_vector(&vec![index.const_zero(); lanes as usize]);
    built(op.ir.builder.build_shuffle_vector(first, first, zeros, "")).into()
}
