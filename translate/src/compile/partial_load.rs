//! A way around a bug of LLVM's on x86: where a part of a register is loaded from an address in that register
//! (`mov al,[rax]`), its code generator may forget that the rest is still needed
//! (<https://github.com/llvm/llvm-project/issues/205291>; seen in LLVM 22). The part is hidden from it here, so that it
//! is brought in by an instruction of its own.

use crate::ir::{Ir, built};
use inkwell::values::{BasicValueEnum, InstructionOpcode, InstructionValue, IntValue};

/// How far behind a part a load is looked for.
const DEPTH: u32 = 3;

/// Hide the parts in the module, which is as it goes to the code generator.
pub(super) fn hide(ir: &Ir<'_>) {
    for join in ir.instructions().into_iter().filter(|i| i.get_opcode() == InstructionOpcode::Or) {
        for n in 0..2 {
            if let Some(part) = operand(join, n).filter(|&part| is_loaded_part(part)) {
                ir.builder.position_before(&join);
                join.set_operand(n, opaque(ir, part));
            }
        }
    }
}

/// Operand `n`, if it is an integer. Those of calls are not looked at: some are metadata, of which inkwell makes no value.
fn operand(i: InstructionValue<'_>, n: u32) -> Option<IntValue<'_>> {
    if i.get_opcode() == InstructionOpcode::Call {
        return None;
    }
    match i.get_operand(n)?.value()? {
        BasicValueEnum::IntValue(value) => Some(value),
        _ => None,
    }
}

/// 8 or 16 bits, extended, that depend on a load.
fn is_loaded_part(value: IntValue<'_>) -> bool {
    let extension = value.as_instruction().filter(|i| i.get_opcode() == InstructionOpcode::ZExt);
    let part = extension.and_then(|i| operand(i, 0));
    part.is_some_and(|p| matches!(p.get_type().get_bit_width(), 8 | 16) && depends_on_load(p, DEPTH))
}

fn depends_on_load(value: IntValue<'_>, depth: u32) -> bool {
    let Some(i) = value.as_instruction() else { return false };
    i.get_opcode() == InstructionOpcode::Load
        || depth > 0
            && (0..i.get_num_operands())
                .filter_map(|n| operand(i, n))
                .any(|operand| depends_on_load(operand, depth - 1))
}

/// The same value, of which LLVM knows nothing.
fn opaque<'c>(ir: &Ir<'c>, value: IntValue<'c>) -> IntValue<'c> {
    let kind = value.get_type().fn_type(&[value.get_type().into()], false);
    let nothing = ir.context.create_inline_asm(kind, String::new(), "=r,0".into(), false, false, None, false);
    let call = built(ir.builder.build_indirect_call(kind, nothing, &[value.into()], ""));
    Ir::result(call).into_int_value()
}
