//! The guest's registers within one stretch of straight-line code: values read or written stay at hand, and
//! go to the state block where control may leave ([`Lifter::flush`]).

use super::Lifter;
use super::bit::Bit;
use crate::hostconv::slot_type;
use crate::ir::{Memory, built};
use crate::layout::{self, Slot, SlotSet};
use crate::region::FlagSet;
use inkwell::IntPredicate;
use inkwell::basic_block::BasicBlock;
use inkwell::values::{BasicValueEnum, IntValue, PointerValue, VectorValue};
use tranship_isa::machine::{Machine, OperandRule, Width};
use tranship_isa::x86_64::{ClearedHalves, Flag, LazyFlags, VEC_BYTES, lazy_flags};

/// The first part of a vector register's upper half.
const FIRST_UPPER: u32 = ClearedHalves::START as u32 / 16;

/// What is known of a slot's value.
#[derive(Clone, Copy)]
pub(super) enum Known<'c> {
    Value(BasicValueEnum<'c>),
    Bit(Bit<'c>),
}

/// Known values, and which of them memory does not have yet.
#[derive(Clone)]
pub(super) struct Registers<'c> {
    known: [Option<Known<'c>>; Slot::COUNT],
    dirty: SlotSet,
    written: SlotSet,
    /// What the status flags follow from, if all of them do that are dirty.
    followed: Option<Followed<'c>>,
    /// The block where faults of the instruction at this address go as long as nothing changes.
    landing: Option<(u64, BasicBlock<'c>)>,
}

/// What the status flags follow from: a rule of [`LazyFlags`] and what it is about, 64 bits each.
#[derive(Clone, Copy)]
enum Followed<'c> {
    Operands(u64, IntValue<'c>, IntValue<'c>),
    /// What a result tells follows from this one.
    Result(u64, IntValue<'c>),
}

impl Default for Registers<'_> {
    fn default() -> Self {
        Registers {
            known: [None; Slot::COUNT],
            dirty: SlotSet::default(),
            written: SlotSet::default(),
            followed: None,
            landing: None,
        }
    }
}

impl<'c> Registers<'c> {
    fn set(&mut self, slot: Slot, value: Known<'c>) {
        self.known[slot.index()] = Some(value);
        self.dirty.insert(slot);
        self.written.insert(slot);
        self.landing = None;
    }

    /// The block where faults of the instruction at `address` go, if there is one for these registers.
    pub(super) fn landing(&self, address: u64) -> Option<BasicBlock<'c>> {
        self.landing.filter(|&(of, _)| of == address).map(|(_, landing)| landing)
    }

    pub(super) fn set_landing(&mut self, address: u64, landing: BasicBlock<'c>) {
        self.landing = Some((address, landing));
    }

    /// Forget the values, which memory has.
    pub(super) fn forget(&mut self) {
        debug_assert_eq!(self.dirty, SlotSet::default());
        self.known = [None; Slot::COUNT];
        self.landing = None;
    }

    /// Forget the values after code that memory has new ones from.
    pub(super) fn forget_overwritten(&mut self) {
        self.forget();
        self.written = Slot::all().collect();
    }

    /// After code that ran conditionally since `before`: what both ways agree on.
    pub(super) fn merge(&mut self, before: Registers<'c>) {
        for slot in Slot::all() {
            let kept = before.known[slot.index()].filter(|_| !self.written.contains(slot));
            self.known[slot.index()] = kept;
        }
        self.written = self.written.union(before.written);
        self.followed = None;
        self.landing = None;
    }

    /// Start counting writes anew; for [`Registers::merge`].
    pub(super) fn forget_writes(&mut self) {
        self.written = SlotSet::default();
    }
}

impl<'c> Lifter<'_, 'c> {
    /// The address of the thread block's field at `offset`: computed in the entry block, once per function.
    pub(super) fn field(&mut self, offset: usize) -> PointerValue<'c> {
        if let Some(&address) = self.fields.get(&offset) {
            return address;
        }
        let here = self.ir.here();
        match self.entry.get_first_instruction() {
            Some(first) => self.ir.builder.position_before(&first),
            None => self.ir.builder.position_at_end(self.entry),
        }
        let address = self.ir.byte_offset(self.thread, self.ir.i64(offset as u64));
        self.ir.builder.position_at_end(here);
        self.fields.insert(offset, address);
        address
    }

    /// Load a 64-bit field of the thread block.
    pub(super) fn load_field(&mut self, offset: usize, width: Width) -> IntValue<'c> {
        let from = self.field(offset);
        self.ir.load(Memory::State, self.ir.int_type(width), from).into_int_value()
    }

    /// Store a field of the thread block that is no slot.
    pub(super) fn store_field(&mut self, offset: usize, value: IntValue<'c>) {
        let to = self.field(offset);
        self.ir.store(Memory::State, to, value);
    }

    fn load_slot(&mut self, slot: Slot) -> BasicValueEnum<'c> {
        let from = self.field(slot.offset());
        self.ir.load(Memory::State, slot_type(self.ir, slot), from)
    }

    fn slot_value(&mut self, slot: Slot) -> BasicValueEnum<'c> {
        if let Some(Known::Value(value)) = self.registers.known[slot.index()] {
            return value;
        }
        let value = self.load_slot(slot);
        self.registers.known[slot.index()] = Some(Known::Value(value));
        value
    }

    pub(super) fn gpr(&mut self, number: u8) -> IntValue<'c> {
        self.slot_value(Slot::gpr(number)).into_int_value()
    }

    pub(super) fn set_gpr(&mut self, number: u8, value: IntValue<'c>) {
        self.registers.set(Slot::gpr(number), Known::Value(value.into()));
    }

    pub(super) fn vec_part(&mut self, index: u32, part: u32) -> VectorValue<'c> {
        let slot = Slot::vec(index, part);
        let is_known = self.registers.known[slot.index()].is_some();
        let value = self.slot_value(slot).into_vector_value();
        if is_known || part < FIRST_UPPER {
            return value;
        }
        let cleared = self.slot_value(Slot::CLEARED).into_int_value();
        let bit = self.ir.i64(ClearedHalves::bit(index));
        let cleared = built(self.ir.builder.build_and(cleared, bit, ""));
        let is_cleared = self.ir.compare(IntPredicate::NE, cleared, self.ir.i64(0));
        let zero = value.get_type().const_zero();
        let value = built(self.ir.builder.build_select(is_cleared, zero, value, "")).into_vector_value();
        self.registers.known[slot.index()] = Some(Known::Value(value.into()));
        value
    }

    /// Set a part of a vector register; of the upper half, both parts are to be set.
    pub(super) fn set_vec_part(&mut self, index: u32, part: u32, value: VectorValue<'c>) {
        if part >= FIRST_UPPER {
            let others = self.ir.i64(!ClearedHalves::bit(index));
            self.change_cleared(|lifter, cleared| built(lifter.ir.builder.build_and(cleared, others, "")));
        }
        self.registers.set(Slot::vec(index, part), Known::Value(value.into()));
    }

    /// Clear all of a vector register from a part on that is not above its upper half's first.
    pub(super) fn clear_vec_parts(&mut self, index: u32, first: u32) {
        let zero = self.ir.vec_type(Width::W64, 128).const_zero();
        for part in first..VEC_BYTES as u32 / 16 {
            let slot = Slot::vec(index, part);
            self.registers.set(slot, Known::Value(zero.into()));
            if part >= FIRST_UPPER {
                self.registers.dirty.remove(slot);
            }
        }
        if first <= FIRST_UPPER {
            let bit = self.ir.i64(ClearedHalves::bit(index));
            self.change_cleared(|lifter, cleared| built(lifter.ir.builder.build_or(cleared, bit, "")));
        }
    }

    /// Change which upper halves are noted as zero.
    fn change_cleared(&mut self, change: impl FnOnce(&Self, IntValue<'c>) -> IntValue<'c>) {
        let cleared = self.slot_value(Slot::CLEARED).into_int_value();
        let cleared = change(self, cleared);
        self.registers.set(Slot::CLEARED, Known::Value(cleared.into()));
    }

    pub(super) fn flag_bit(&mut self, flag: Flag) -> Bit<'c> {
        let slot = Slot::flag(flag);
        if let Some(Known::Bit(bit)) = self.registers.known[slot.index()] {
            return bit;
        }
        let byte = self.load_slot(slot).into_int_value();
        let bit =
            Bit::Value(built(self.ir.builder.build_int_truncate(byte, self.ir.context.bool_type(), "")));
        self.registers.known[slot.index()] = Some(Known::Bit(bit));
        bit
    }

    pub(super) fn set_flag_bit(&mut self, flag: Flag, bit: Bit<'c>) {
        let is_apart = matches!(self.registers.followed, Some(Followed::Result(..)))
            && LazyFlags::BESIDE_RESULT.contains(&flag);
        if flag != Flag::Df && !is_apart {
            self.registers.followed = None;
        }
        self.registers.set(Slot::flag(flag), Known::Bit(bit));
    }

    // ---- where faults are exact: what the status flags of a block follow from, for landings ----

    /// The status flags, just set, follow by `rule` from operands.
    pub(super) fn note_operands(&mut self, rule: OperandRule, left: IntValue<'c>, right: IntValue<'c>) {
        if self.is_exact() {
            let rule = LazyFlags::operands(rule, self.width(left));
            let [left, right] = [left, right].map(|operand| self.zext(operand, Width::W64));
            self.registers.followed = Some(Followed::Operands(rule, left, right));
        }
    }

    /// What a result tells of the status flags, just set, follows from this one.
    pub(super) fn note_result(&mut self, result: IntValue<'c>) {
        if self.is_exact() {
            let rule = LazyFlags::result(self.width(result));
            let result = self.zext(result, Width::W64);
            self.registers.followed = Some(Followed::Result(rule, result));
        }
    }

    /// Leave the status flags to the runtime: store what they follow from.
    fn flush_status_flags(&mut self) {
        let is_dirty = |slot: &Slot| self.registers.dirty.contains(*slot);
        if !Flag::STATUS.map(Slot::flag).iter().any(is_dirty) {
            return;
        }
        let (rule, left, right) = match self.registers.followed {
            Some(Followed::Operands(rule, left, right)) => (rule, left, Some(right)),
            Some(Followed::Result(rule, result)) => {
                let others = lazy_flags::bits(self, &LazyFlags::BESIDE_RESULT, Lifter::flag_bit);
                (rule, result, Some(others))
            }
            None => (LazyFlags::BITS, lazy_flags::bits(self, &Flag::STATUS, Lifter::flag_bit), None),
        };
        let words = [Some(self.ir.i64(rule)), Some(left), right];
        for (offset, word) in layout::FLAGS_FOLLOW.into_iter().zip(words) {
            if let Some(word) = word {
                self.store_field(offset, word);
            }
        }
        for slot in Flag::STATUS.map(Slot::flag) {
            self.registers.dirty.remove(slot);
        }
    }

    /// Store what memory does not have yet, flags in `flags` only; the others' values are given up.
    pub(super) fn flush(&mut self, flags: FlagSet) {
        for flag in Flag::ALL.into_iter().filter(|&f| !flags.contains(f)) {
            let slot = Slot::flag(flag);
            if self.registers.dirty.contains(slot) {
                self.registers.dirty.remove(slot);
                self.registers.known[slot.index()] = None;
            }
        }
        for slot in self.registers.dirty.iter() {
            let Some(known) = self.registers.known[slot.index()] else { continue };
            let value = match known {
                Known::Value(value) => value,
                Known::Bit(bit) => {
                    let bit = self.materialize(bit);
                    built(self.ir.builder.build_int_z_extend(bit, self.ir.context.i8_type(), "")).into()
                }
            };
            let to = self.field(slot.offset());
            self.ir.store(Memory::State, to, value);
        }
        self.registers.dirty = SlotSet::default();
        (self.registers.followed, self.registers.landing) = (None, None);
    }

    /// [`Lifter::flush`] on a path that leaves for the runtime, while the code goes on elsewhere with what it knows.
    pub(super) fn flush_aside(&mut self) {
        let registers = self.registers.clone();
        if self.is_exact() {
            self.flush_status_flags();
        }
        self.flush(FlagSet::ALL);
        self.registers = registers;
    }
}
