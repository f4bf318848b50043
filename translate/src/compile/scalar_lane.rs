//! x86's scalar float operations keep the rest of their first operand (`addsd`), and LLVM's code generator knows: a sum that
//! is put back into the vector that its first summand is from is one instruction. But only if nothing else needs the sum by
//! itself; if so, it is joined with the vector by an instruction of its own, on which the next sum then waits. So whoever
//! needs it in other blocks takes it from the vector.

use crate::ir::{Ir, built};
use inkwell::values::{
    AnyValue, AnyValueEnum, BasicValue, BasicValueEnum, CallSiteValue, FloatValue, InstructionOpcode,
    InstructionValue, VectorValue,
};

/// Operations that have such an instruction, and whether their operands can be exchanged.
const OPERATIONS: [(&str, bool); 4] = [("fadd", true), ("fmul", true), ("fsub", false), ("fdiv", false)];

/// Do so in the module, which is as it goes to the code generator.
pub(super) fn take_from_vector(ir: &Ir<'_>) {
    let is_insertion = |i: &InstructionValue| i.get_opcode() == InstructionOpcode::InsertElement;
    for insertion in ir.instructions().into_iter().filter(is_insertion) {
        if let Some(result) = result_put_back(insertion)
            && let Some(others) = other_uses(result, insertion)
        {
            others.into_iter().for_each(|(user, operand)| redirect(ir, insertion, user, operand));
        }
    }
}

/// What is inserted as the lowest lane, if it is the result of an operation on that lane.
fn result_put_back(insertion: InstructionValue<'_>) -> Option<FloatValue<'_>> {
    let vector = vector(insertion, 0)?;
    let BasicValueEnum::FloatValue(result) = insertion.get_operand(1)?.value()? else { return None };
    let operation = result.as_instruction().filter(|i| i.get_opcode() == InstructionOpcode::Call)?;
    let callee = CallSiteValue::try_from(operation).ok()?.get_called_fn_value()?;
    let callee = callee.get_name().to_str().ok()?.strip_prefix("llvm.experimental.constrained.")?;
    let &(_, commutes) = OPERATIONS.iter().find(|(name, _)| callee.split('.').next() == Some(*name))?;
    let is_lane = |n| lane_of(operation, n) == Some(vector);
    let is_ours = is_lowest(insertion, 2) && (is_lane(0) || commutes && is_lane(1));
    (is_ours && operation.get_parent() == insertion.get_parent()).then_some(result)
}

fn vector(i: InstructionValue<'_>, n: u32) -> Option<VectorValue<'_>> {
    match i.get_operand(n)?.value()? {
        BasicValueEnum::VectorValue(value) => Some(value),
        _ => None,
    }
}

fn is_lowest(i: InstructionValue<'_>, n: u32) -> bool {
    let index = i.get_operand(n).and_then(|o| o.value());
    matches!(index, Some(BasicValueEnum::IntValue(index)) if index.get_zero_extended_constant() == Some(0))
}

/// The vector that operand `n` is the lowest lane of.
fn lane_of(operation: InstructionValue<'_>, n: u32) -> Option<VectorValue<'_>> {
    let BasicValueEnum::FloatValue(lane) = operation.get_operand(n)?.value()? else { return None };
    let extraction = lane.as_instruction()?;
    let is_lane = extraction.get_opcode() == InstructionOpcode::ExtractElement && is_lowest(extraction, 1);
    is_lane.then(|| vector(extraction, 0)).flatten()
}

/// Who uses `result`, and as which operand, besides `insertion`; `None` if somebody has to have it as it is.
fn other_uses<'c>(
    result: FloatValue<'c>,
    insertion: InstructionValue<'c>,
) -> Option<Vec<(InstructionValue<'c>, u32)>> {
    let mut uses = Vec::new();
    let mut next = result.get_first_use();
    while let Some(found) = next {
        next = found.get_next_use();
        let user = instruction(found.get_user())?;
        if user == insertion {
            continue;
        }
        if user.get_opcode() == InstructionOpcode::Phi || user.get_parent() == insertion.get_parent() {
            return None;
        }
        let is_it = |n: &u32| user.get_operand(*n).and_then(|o| o.value()) == Some(result.into());
        uses.push((user, (0..user.get_num_operands()).find(is_it)?));
    }
    Some(uses)
}

fn instruction(value: AnyValueEnum<'_>) -> Option<InstructionValue<'_>> {
    match value {
        AnyValueEnum::InstructionValue(i) => Some(i),
        AnyValueEnum::FloatValue(value) => value.as_instruction(),
        AnyValueEnum::IntValue(value) => value.as_instruction(),
        AnyValueEnum::VectorValue(value) => value.as_instruction(),
        _ => None,
    }
}

/// Have `user` take its operand out of the vector, in its own block: in that of the insertion LLVM would see through it.
fn redirect<'c>(ir: &Ir<'c>, insertion: InstructionValue<'c>, user: InstructionValue<'c>, operand: u32) {
    let Ok(vector) = VectorValue::try_from(insertion.as_any_value_enum()) else { return };
    ir.builder.position_before(&user);
    let index = ir.context.i64_type().const_zero();
    let lane = built(ir.builder.build_extract_element(vector, index, ""));
    user.set_operand(operand, lane);
}
