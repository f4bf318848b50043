//! Guest instructions of which hosts have one that does the same: rounds of ciphers and digests. Lifted code calls them as
//! functions (`tranship.insn.aesenc.v2i64`) whose bodies are the steps; here a host's own instruction takes their place.

use super::{Operation, PREFIX};
use crate::compile::Host;
use crate::ir::{Ir, built};
use inkwell::values::{BasicValueEnum, FunctionValue, IntValue, VectorValue};
use tranship_abi::block::machine_id;

/// Take the steps away from what the host has an instruction for.
pub(super) fn prefer_the_hosts(ir: &Ir<'_>, host: &Host) {
    let has_one = |function: &FunctionValue| {
        let name = function.get_name().to_string_lossy().into_owned();
        let words: Vec<&str> = name.strip_prefix(PREFIX).unwrap_or_default().split('.').collect();
        matches!(words[..], ["insn", name, ..] if needs(host, name).is_some_and(|feature| host.has(feature)))
    };
    for function in ir.module.get_functions().filter(has_one) {
        for block in function.get_basic_blocks() {
            // SAFETY: the steps are a single block, to which nothing refers.
            let _ = unsafe { block.delete() };
        }
    }
}

/// The feature with which the host has this instruction.
fn needs(host: &Host, name: &str) -> Option<&'static str> {
    match (host.machine, name) {
        (machine_id::X86_64 | machine_id::AARCH64, name) if name.starts_with("aes") => Some("aes"),
        (machine_id::X86_64, name) if name.starts_with("sha") => Some("sha"),
        _ => None,
    }
}

/// The body of an instruction on 128 bits, or of a product, if the host has it.
pub(super) fn define<'c>(host: &Host, op: &Operation<'_, 'c>, words: &[&str]) -> Option<BasicValueEnum<'c>> {
    match (words, host.machine) {
        (["insn", "sha1rnds4", constant, _], machine_id::X86_64) => {
            let constant = op.ir.context.i8_type().const_int(constant.parse().ok()?, false);
            let arguments = [as_words(op, op.arguments[0]), as_words(op, op.arguments[1]), constant.into()];
            Some(call(op, "llvm.x86.sha1rnds4", &arguments))
        }
        (["insn", name, _], machine_id::X86_64) if name.starts_with("sha") => {
            let arguments: Vec<_> = op.arguments.iter().map(|&a| as_words(op, a)).collect();
            Some(call(op, &format!("llvm.x86.{name}"), &arguments))
        }
        (["insn", name, _], machine_id::X86_64) => {
            Some(call(op, &format!("llvm.x86.aesni.{name}"), &op.arguments))
        }
        (["insn", name, _], machine_id::AARCH64) => Some(aes_of_arm(op, name)),
        (["carryless_mul"], machine_id::X86_64) if host.has("pclmul") => {
            let [a, b] = [0, 1].map(|n| as_low(op, op.arguments[n].into_int_value()));
            let lowest = op.ir.context.i8_type().const_zero().into();
            Some(call(op, "llvm.x86.pclmulqdq", &[a, b, lowest]))
        }
        (["carryless_mul"], machine_id::AARCH64) if host.has("aes") => {
            Some(call(op, "llvm.aarch64.neon.pmull64", &op.arguments))
        }
        _ => None,
    }
}

/// AESE and AESD add their key first, x86's last (Arm ARM, C7.2; SDM vol. 2): they get none, and it is added here.
fn aes_of_arm<'c>(op: &Operation<'_, 'c>, name: &str) -> BasicValueEnum<'c> {
    let zero = as_bytes(op, op.result_type().const_zero());
    let crypto = |name: &str, arguments: &[BasicValueEnum<'c>]| {
        op.intrinsic(&format!("llvm.aarch64.crypto.{name}"), arguments)
    };
    let state = as_bytes(op, op.arguments[0]);
    let result = match name {
        "aesenc" => crypto("aesmc", &[crypto("aese", &[state, zero])]),
        "aesenclast" => crypto("aese", &[state, zero]),
        "aesdec" => crypto("aesimc", &[crypto("aesd", &[state, zero])]),
        "aesdeclast" => crypto("aesd", &[state, zero]),
        _ => return as_result(op, crypto("aesimc", &[state])),
    };
    let result = as_result(op, result).into_vector_value();
    built(op.ir.builder.build_xor(result, op.arguments[1].into_vector_value(), "")).into()
}

fn call<'c>(op: &Operation<'_, 'c>, name: &str, arguments: &[BasicValueEnum<'c>]) -> BasicValueEnum<'c> {
    as_result(op, op.intrinsic(name, arguments))
}

fn as_result<'c>(op: &Operation<'_, 'c>, value: BasicValueEnum<'c>) -> BasicValueEnum<'c> {
    built(op.ir.builder.build_bit_cast(value, op.result_type(), ""))
}

fn as_words<'c>(op: &Operation<'_, 'c>, value: BasicValueEnum<'c>) -> BasicValueEnum<'c> {
    built(op.ir.builder.build_bit_cast(value, op.ir.context.i32_type().vec_type(4), ""))
}

fn as_bytes<'c>(op: &Operation<'_, 'c>, value: BasicValueEnum<'c>) -> BasicValueEnum<'c> {
    built(op.ir.builder.build_bit_cast(value, op.ir.context.i8_type().vec_type(16), ""))
}

/// A 64-bit value as the lower lane of a vector.
fn as_low<'c>(op: &Operation<'_, 'c>, value: IntValue<'c>) -> BasicValueEnum<'c> {
    let zero: VectorValue<'c> = value.get_type().vec_type(2).const_zero();
    built(op.ir.builder.build_insert_element(zero, value, op.ir.context.i32_type().const_zero(), "")).into()
}
