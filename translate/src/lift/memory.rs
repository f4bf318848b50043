//! Accesses to guest memory: what they point to, which of them are private to the function, and for exact faults which of
//! them are effects.

use super::Lifter;
use crate::ir::{Memory, built};
use crate::layout::Slot;
use inkwell::AtomicOrdering::AcquireRelease;
use inkwell::values::{BasicValue, InstructionOpcode, IntValue, PointerValue};

/// What `address` is a constant distance from, and that.
fn base_and_distance(address: IntValue<'_>) -> (IntValue<'_>, u64) {
    let (mut base, mut distance) = (address, 0u64);
    while let Some((operand, more)) = sum_with_constant(base) {
        (base, distance) = (operand, distance.wrapping_add(more));
    }
    (base, distance)
}

/// The operand and the distance where `value` is a sum with a constant.
fn sum_with_constant(value: IntValue<'_>) -> Option<(IntValue<'_>, u64)> {
    let sum = value.as_instruction().filter(|i| i.get_opcode() == InstructionOpcode::Add)?;
    let operand = |n| sum.get_operand(n)?.value().map(|v| v.into_int_value());
    Some((operand(0)?, operand(1)?.get_zero_extended_constant()?))
}

impl<'c> Lifter<'_, 'c> {
    /// The pointer that a guest address is, and whose memory that is. Constant distances become offsets of one base,
    /// for LLVM's alias analysis to see what overlaps.
    pub(super) fn guest_pointer(&self, address: IntValue<'c>) -> (PointerValue<'c>, Memory) {
        let (base, distance) = base_and_distance(address);
        let pointer = built(self.ir.builder.build_int_to_ptr(base, self.ir.ptr_type(), ""));
        let is_private = self.is_in_frame(base) && !self.is_exact();
        let memory = if is_private { Memory::Frame } else { Memory::Guest };
        match distance {
            0 => (pointer, memory),
            _ => (self.ir.byte_offset(pointer, self.ir.i64(distance)), memory),
        }
    }

    /// `bytes` at `address` are loaded.
    pub(super) fn note_load(&mut self, address: IntValue<'c>, bytes: u64) {
        if !self.is_exact() {
            return;
        }
        let (base, distance) = base_and_distance(address);
        if self.is_in_frame(base)
            && let Some(loads) = &mut self.frame_loads
        {
            loads.push((base, distance, bytes));
        }
    }

    /// `bytes` at `address` are stored. For exact faults that is an effect, unless a fault behind it can have it done again.
    pub(super) fn note_store(&mut self, address: IntValue<'c>, bytes: u64) {
        if !self.is_exact() {
            return;
        }
        let (base, distance) = base_and_distance(address);
        let overlaps = |&(other, from, more): &(IntValue<'c>, u64, u64)| {
            other != base || distance.wrapping_sub(from) < more || from.wrapping_sub(distance) < bytes
        };
        let can_be_again = self.frame_loads.as_ref().is_some_and(|loads| !loads.iter().any(overlaps));
        self.has_effect |= !(can_be_again && self.is_in_frame(base));
    }

    /// Whether a constant distance from `base` is in the frame, and nobody else looks there.
    fn is_in_frame(&self, base: IntValue<'c>) -> bool {
        const RSP: u8 = 4;
        const RBP: u8 = 5;
        let from = base.as_instruction().filter(|i| i.get_opcode() == InstructionOpcode::Load);
        let from = from.and_then(|load| load.get_operand(0)?.value());
        let is = |register| {
            let field = self.fields.get(&Slot::gpr(register).offset());
            from.is_some_and(|from| field.is_some_and(|&field| from == field.as_basic_value_enum()))
        };
        (self.uses_stack || !self.frame.is_shared) && (is(RSP) || self.frame.has_pointer && is(RBP))
    }

    /// LLVM exchanges no accesses across this. For those that cannot be `volatile`.
    pub(super) fn stay_in_order(&self) {
        built(self.ir.builder.build_fence(AcquireRelease, true, ""));
    }
}
