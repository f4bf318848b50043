//! Where an x86-64 host does what an x86 guest means with one instruction of its own. NaNs come out right by
//! themselves, save that LLVM may exchange the operands of a sum or product, which decides between two NaNs.

use super::{Operation, PREFIX, floats, fused};
use crate::ir::built;
use inkwell::types::{BasicType, BasicTypeEnum, VectorType};
use inkwell::values::{BasicValueEnum, IntValue, VectorValue};

pub(super) fn define<'c>(op: &Operation<'_, 'c>, words: &[&str]) -> Option<BasicValueEnum<'c>> {
    match words {
        ["float", name @ ("add" | "sub" | "mul" | "div" | "sqrt"), _] => Some(floats::plain(op, name)),
        ["float", "min_x86", kind] => min_max(op, "min", kind),
        ["float", "max_x86", kind] => min_max(op, "max", kind),
        ["float", "to_int", from, to, rounding @ ("zero" | "current")] => to_int(op, from, to, rounding),
        ["float", "round", kind, rounding, exactness] => round(op, kind, rounding, exactness),
        ["splits", _] => Some(op.ir.context.bool_type().const_zero().into()),
        ["divide", "s64"] => Some(divide(op, "idivq")),
        ["divide", "u64"] => Some(divide(op, "divq")),
        ["copy_forward", bits] => copy_forward(op, bits),
        ["fill_forward", bits] => fill_forward(op, bits),
        ["narrow", from, to] => narrow(op, from, to),
        ["shl", kind] => shift_left(op, kind),
        ["float", name @ ("fma" | "fms" | "fnma" | "fnms"), _] => fused::multiply_add(op, name),
        ["float", "begin_quiet", rounding] => Some(fused::begin_quiet(op, rounding)),
        ["float", "end_quiet"] => Some(fused::end_quiet(op)),
        ["float", "from_half", _] => fused::from_half(op),
        ["float", "to_half", _, rounding] => fused::to_half(op, rounding),
        ["lookup", "v16i8"] => Some(op.intrinsic("llvm.x86.ssse3.pshuf.b.128", &op.arguments)),
        _ => None,
    }
}

/// One instruction of a host that has FMA. LLVM's operation does not say which of several NaNs the result is.
pub(super) fn multiply_add<'c>(op: &Operation<'_, 'c>, name: &str, kind: &str) -> Option<BasicValueEnum<'c>> {
    let suffix = match kind {
        "f32" => "ss",
        "f64" => "sd",
        "v4f32" | "v8f32" => "ps",
        "v2f64" | "v4f64" => "pd",
        _ => return None,
    };
    let operation = match name {
        "fma" => "vfmadd",
        "fms" => "vfmsub",
        "fnma" => "vfnmadd",
        _ => "vfnmsub",
    };
    let text = format!("{operation}231{suffix} $3, $2, $0");
    let [a, b, c] = *op.arguments.first_chunk()?;
    // It depends on MXCSR, and changes it.
    Some(op.assembly(&text, "=x,0,x,x", true, op.result_type(), &[c, a, b]))
}

/// A scalar as the lowest lane of a 128-bit vector, the rest undefined.
fn as_vector<'c>(op: &Operation<'_, 'c>, scalar: BasicValueEnum<'c>) -> VectorValue<'c> {
    let kind = scalar.get_type().into_float_type();
    let lanes = if kind == op.ir.context.f32_type() { 4 } else { 2 };
    let zero = kind.vec_type(lanes).const_zero();
    let index = op.ir.context.i32_type().const_zero();
    built(op.ir.builder.build_insert_element(zero, scalar.into_float_value(), index, ""))
}

fn lowest<'c>(op: &Operation<'_, 'c>, vector: BasicValueEnum<'c>) -> BasicValueEnum<'c> {
    let index = op.ir.context.i32_type().const_zero();
    built(op.ir.builder.build_extract_element(vector.into_vector_value(), index, ""))
}

fn min_max<'c>(op: &Operation<'_, 'c>, name: &str, kind: &str) -> Option<BasicValueEnum<'c>> {
    let packed = match kind {
        "v4f32" => Some(format!("llvm.x86.sse.{name}.ps")),
        "v2f64" => Some(format!("llvm.x86.sse2.{name}.pd")),
        _ => None,
    };
    if let Some(intrinsic) = packed {
        return Some(op.intrinsic(&intrinsic, &op.arguments));
    }
    let intrinsic = match kind {
        "f32" => format!("llvm.x86.sse.{name}.ss"),
        "f64" => format!("llvm.x86.sse2.{name}.sd"),
        _ => return None,
    };
    let vectors: Vec<_> = op.arguments.iter().map(|&a| as_vector(op, a).into()).collect();
    Some(lowest(op, op.intrinsic(&intrinsic, &vectors)))
}

/// The hardware's out-of-range result is the one that x86 blocks ask for, so `otherwise` needs no look.
fn to_int<'c>(op: &Operation<'_, 'c>, from: &str, to: &str, rounding: &str) -> Option<BasicValueEnum<'c>> {
    let t = if rounding == "zero" { "t" } else { "" };
    let argument = op.arguments[0];
    let scalar = match (from, to) {
        ("f32", "i32") => format!("llvm.x86.sse.cvt{t}ss2si"),
        ("f32", "i64") => format!("llvm.x86.sse.cvt{t}ss2si64"),
        ("f64", "i32") => format!("llvm.x86.sse2.cvt{t}sd2si"),
        ("f64", "i64") => format!("llvm.x86.sse2.cvt{t}sd2si64"),
        ("v4f32", "v4i32") => return Some(op.intrinsic(&format!("llvm.x86.sse2.cvt{t}ps2dq"), &[argument])),
        ("v2f64", "v2i32") => {
            let four = op.intrinsic(&format!("llvm.x86.sse2.cvt{t}pd2dq"), &[argument]).into_vector_value();
            let index = |n| op.ir.context.i32_type().const_int(n, false);
            let mask = VectorType::const_vector(&[index(0), index(1)]);
            return Some(built(op.ir.builder.build_shuffle_vector(four, four, mask, "")).into());
        }
        ("v2f32" | "v2f64", "v2i64") => return Some(to_int_by_lanes(op, from, rounding)),
        _ => return None,
    };
    Some(op.intrinsic(&scalar, &[as_vector(op, argument).into()]))
}

/// Quad words one after the other.
fn to_int_by_lanes<'c>(op: &Operation<'_, 'c>, from: &str, rounding: &str) -> BasicValueEnum<'c> {
    let word = op.ir.context.i64_type();
    let name = format!("{PREFIX}float.to_int.{}.i64.{rounding}", &from[2..]);
    let mut result = word.vec_type(2).get_poison();
    for n in 0..2 {
        let index = op.ir.context.i32_type().const_int(n, false);
        let lane = built(op.ir.builder.build_extract_element(op.arguments[0].into_vector_value(), index, ""));
        let converted = op.ir.prelude(&name, word.into(), &[lane, op.arguments[1]]);
        result = built(op.ir.builder.build_insert_element(result, converted, index, ""));
    }
    result.into()
}

/// SSE4.1 rounding; its immediate has the mode, and bit 3 keeps inexact quiet.
fn round<'c>(
    op: &Operation<'_, 'c>,
    kind: &str,
    rounding: &str,
    exactness: &str,
) -> Option<BasicValueEnum<'c>> {
    let mode = match rounding {
        "nearest" => 0,
        "down" => 1,
        "up" => 2,
        "zero" => 3,
        _ => 4,
    };
    let mode = mode | if exactness == "quiet" { 8 } else { 0 };
    let mode = op.ir.context.i32_type().const_int(mode, false).into();
    let argument = op.arguments[0];
    match kind {
        "v4f32" => Some(op.intrinsic("llvm.x86.sse41.round.ps", &[argument, mode])),
        "v2f64" => Some(op.intrinsic("llvm.x86.sse41.round.pd", &[argument, mode])),
        "f32" | "f64" => {
            let vector = as_vector(op, argument).into();
            let name = if kind == "f32" { "llvm.x86.sse41.round.ss" } else { "llvm.x86.sse41.round.sd" };
            Some(lowest(op, op.intrinsic(name, &[vector, vector, mode])))
        }
        _ => None,
    }
}

/// Shifts by powers of two, each where the count has its bit. What LLVM makes of lanes' own counts goes through floating
/// point where the host has no such shift, and raises its exceptions.
fn shift_left<'c>(op: &Operation<'_, 'c>, kind: &str) -> Option<BasicValueEnum<'c>> {
    let builder = &op.ir.builder;
    let (mut value, counts) = (op.arguments[0].into_vector_value(), op.arguments[1].into_vector_value());
    let lanes = value.get_type().get_size() as usize;
    let lane = value.get_type().get_element_type().into_int_type();
    let bits: u32 = kind.rsplit('i').next()?.parse().ok()?;
    let every = |n: u64| VectorType::const_vector(&vec![lane.const_int(n, false); lanes]);
    for step in 0..bits.trailing_zeros() {
        let bit = built(builder.build_and(counts, every(1 << step), ""));
        let unset = built(builder.build_int_compare(inkwell::IntPredicate::EQ, bit, every(0), ""));
        let shifted = built(builder.build_left_shift(value, every(1 << step), ""));
        value = built(builder.build_select(unset, value, shifted, "")).into_vector_value();
    }
    Some(value.into())
}

fn narrow<'c>(op: &Operation<'_, 'c>, from: &str, to: &str) -> Option<BasicValueEnum<'c>> {
    let name = match (from, to) {
        ("v8i16", "s8") => "llvm.x86.sse2.packsswb.128",
        ("v8i16", "u8") => "llvm.x86.sse2.packuswb.128",
        ("v4i32", "s16") => "llvm.x86.sse2.packssdw.128",
        ("v4i32", "u16") => "llvm.x86.sse41.packusdw",
        _ => return None,
    };
    Some(op.intrinsic(name, &op.arguments))
}

/// DIV and IDIV: quotient and remainder of the double-width dividend (high, low).
fn divide<'c>(op: &Operation<'_, 'c>, mnemonic: &str) -> BasicValueEnum<'c> {
    let constraints = "={ax},={dx},{dx},{ax},rm,~{flags}";
    // The arguments are high, low, divisor; operands 0 and 1 are the results.
    op.assembly(&format!("{mnemonic} $4"), constraints, false, op.result_type(), &op.arguments)
}

fn suffix(bits: &str) -> Option<&'static str> {
    Some(match bits {
        "8" => "b",
        "16" => "w",
        "32" => "l",
        "64" => "q",
        _ => return None,
    })
}

fn triple<'c>(op: &Operation<'_, 'c>) -> BasicTypeEnum<'c> {
    let word = op.ir.context.i64_type().into();
    op.ir.context.struct_type(&[word, word, word], false).as_basic_type_enum()
}

/// Host memory accesses of the assembly are the guest's: the clobber keeps them in order.
fn copy_forward<'c>(op: &Operation<'_, 'c>, bits: &str) -> Option<BasicValueEnum<'c>> {
    let text = format!("rep movs{}", suffix(bits)?);
    let constraints = "={di},={si},={cx},0,1,2,~{memory},~{flags}";
    op.assembly(&text, constraints, true, triple(op), &op.arguments);
    Some(op.ir.i64(0).into())
}

fn fill_forward<'c>(op: &Operation<'_, 'c>, bits: &str) -> Option<BasicValueEnum<'c>> {
    let text = format!("rep stos{}", suffix(bits)?);
    let (to, value, count) = (op.arguments[0], op.arguments[1], op.arguments[2]);
    let word = op.ir.context.i64_type();
    let wide: IntValue<'c> = match bits {
        "64" => value.into_int_value(),
        _ => built(op.ir.builder.build_int_z_extend(value.into_int_value(), word, "")),
    };
    let pair = op.ir.context.struct_type(&[word.into(), word.into()], false);
    let constraints = "={di},={cx},{ax},0,1,~{memory},~{flags}";
    op.assembly(&text, constraints, true, pair.into(), &[wide.into(), to, count]);
    Some(op.ir.i64(0).into())
}
