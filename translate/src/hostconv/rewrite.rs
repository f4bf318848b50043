//! The rewriting itself, function by function.

use super::dataflow::{self, BlockEvents, Event, Transfer};
use super::{CHECKPOINT, EXACT, HostConv, NOTHING_PRESERVED};
use crate::ir::{Ir, Memory, REGION_CALL_CONV, built};
use crate::layout::{Slot, SlotKind, SlotSet};
use inkwell::attributes::AttributeLoc;
use inkwell::basic_block::BasicBlock;
use inkwell::llvm_sys::LLVMTailCallKind;
use inkwell::module::Linkage;
use inkwell::types::{BasicTypeEnum, FunctionType, StructType};
use inkwell::values::{
    AnyValueEnum, BasicMetadataValueEnum, BasicValue, BasicValueEnum, CallSiteValue, FunctionValue,
    InstructionOpcode, InstructionValue, IntValue, PointerValue, StructValue,
};
use std::collections::HashMap;
use tranship_isa::machine::Width;

/// The host's signature, in one context.
pub(crate) struct Signature<'c> {
    pub(crate) number: u32,
    pub(crate) positions: Vec<Option<Slot>>,
    results: StructType<'c>,
    pub(crate) kind: FunctionType<'c>,
}

impl<'c> Signature<'c> {
    pub(crate) fn new(ir: &Ir<'c>, conv: &HostConv) -> Signature<'c> {
        let positions: Vec<_> = conv.positions().collect();
        let argument = |p: &Option<Slot>| p.map_or(ir.ptr_type().into(), |s| slot_type(ir, s));
        let result = |p: &Option<Slot>| p.map_or(ir.context.i64_type().into(), |s| slot_type(ir, s));
        let arguments: Vec<_> = positions.iter().map(|p| argument(p).into()).collect();
        let results: Vec<BasicTypeEnum<'c>> = positions.iter().map(result).collect();
        let results = ir.context.struct_type(&results, false);
        Signature { number: conv.number, results, kind: results.fn_type(&arguments, false), positions }
    }

    /// Call `code` in the host's convention.
    pub(crate) fn call(
        &self,
        ir: &Ir<'c>,
        code: PointerValue<'c>,
        arguments: &[BasicMetadataValueEnum<'c>],
    ) -> CallSiteValue<'c> {
        let call = ir.call_pointer(self.kind, self.number, code, arguments);
        call.add_attribute(AttributeLoc::Function, ir.string_attribute(NOTHING_PRESERVED));
        call
    }

    /// Position of the thread block's address and of the guest PC.
    pub(crate) fn thread(&self) -> u32 {
        self.positions.iter().position(Option::is_none).map_or(0, |n| n as u32)
    }
}

/// LLVM's type of a slot's value.
pub(crate) fn slot_type<'c>(ir: &Ir<'c>, slot: Slot) -> BasicTypeEnum<'c> {
    match slot.kind() {
        SlotKind::Gpr | SlotKind::ClearedHalves => ir.context.i64_type().into(),
        SlotKind::Flag => ir.context.i8_type().into(),
        SlotKind::Vec => ir.vec_type(Width::W64, 128).into(),
    }
}

/// Give every region function of the module the convention.
pub(crate) fn rewrite(ir: &Ir<'_>, conv: &HostConv) {
    let signature = Signature::new(ir, conv);
    let carried: SlotSet = signature.positions.iter().flatten().copied().collect();
    let regions: Vec<_> =
        ir.module.get_functions().filter(|f| f.get_call_conventions() == REGION_CALL_CONV).collect();
    let pairs: Vec<_> = regions.into_iter().map(|old| (old, declare(ir, &signature, old))).collect();
    for &(old, new) in &pairs {
        if old.count_basic_blocks() > 0 {
            move_body(old, new);
            Rewriter::new(ir, &signature, carried, old, new).run();
        }
    }
    for (old, _) in pairs {
        // SAFETY: its body is gone and nothing refers to it any more.
        unsafe { old.delete() };
    }
}

/// The function with the host's signature that takes `old`'s name and uses.
fn declare<'c>(ir: &Ir<'c>, signature: &Signature<'c>, old: FunctionValue<'c>) -> FunctionValue<'c> {
    let name = old.get_name().to_string_lossy().into_owned();
    old.as_global_value().set_name("");
    let new = ir.module.add_function(&name, signature.kind, Some(Linkage::External));
    new.set_call_conventions(signature.number);
    new.as_global_value().set_visibility(inkwell::GlobalVisibility::Hidden);
    for attribute in old.attributes(AttributeLoc::Function) {
        new.add_attribute(AttributeLoc::Function, attribute);
    }
    new.add_attribute(AttributeLoc::Param(signature.thread()), ir.attribute("noalias"));
    new.add_attribute(AttributeLoc::Function, ir.string_attribute(NOTHING_PRESERVED));
    old.replace_all_uses_with(new);
    new
}

fn move_body<'c>(old: FunctionValue<'c>, new: FunctionValue<'c>) {
    for block in old.get_basic_blocks() {
        block.remove_from_function().expect("the block is in a function");
        new.append_existing_basic_block(block);
    }
}

/// A boundary as it was found.
#[derive(Clone, Copy)]
struct Crossing<'c> {
    instruction: InstructionValue<'c>,
    block: usize,
    event: usize,
}

struct Rewriter<'a, 'c> {
    ir: &'a Ir<'c>,
    signature: &'a Signature<'c>,
    carried: SlotSet,
    function: FunctionValue<'c>,
    thread: PointerValue<'c>,
    blocks: Vec<BasicBlock<'c>>,
    /// Addresses of slots' fields, as the neutral code has them, and what they become.
    fields: HashMap<PointerValue<'c>, Slot>,
    variables: HashMap<Slot, PointerValue<'c>>,
}

impl<'a, 'c> Rewriter<'a, 'c> {
    fn new(
        ir: &'a Ir<'c>,
        signature: &'a Signature<'c>,
        carried: SlotSet,
        old: FunctionValue<'c>,
        new: FunctionValue<'c>,
    ) -> Self {
        let old_thread = old.get_first_param().expect("a region has a parameter").into_pointer_value();
        let thread = new.get_nth_param(signature.thread()).expect("the thread block is a parameter");
        let thread = thread.into_pointer_value();
        old_thread.replace_all_uses_with(thread);
        Rewriter {
            ir,
            signature,
            carried,
            function: new,
            thread,
            blocks: new.get_basic_blocks(),
            fields: slot_fields(thread),
            variables: HashMap::new(),
        }
    }

    fn run(mut self) {
        let (events, crossings) = self.find_events();
        let touched: SlotSet = self.fields.values().copied().collect();
        let considered = touched.minus(self.carried);
        let transfers = dataflow::solve(&events, considered);
        let in_memory = transfers.not_worth_it(&events, considered);
        self.fields.retain(|_, slot| !in_memory.contains(*slot));
        let elsewhere = in_memory.union(self.carried);
        self.make_variables(
            touched.minus(in_memory).union(self.carried),
            transfers.at_entry.minus(elsewhere),
        );
        for crossing in crossings {
            let Transfer { store, load } = transfers.at[&(crossing.block, crossing.event)];
            let transfer = Transfer { store: store.minus(in_memory), load: load.minus(elsewhere) };
            self.cross(crossing.instruction, transfer);
        }
    }

    // ---- what is there ----

    fn find_events(&self) -> (Vec<BlockEvents>, Vec<Crossing<'c>>) {
        let numbers: HashMap<_, _> = self.blocks.iter().enumerate().map(|(n, b)| (*b, n)).collect();
        let mut crossings = Vec::new();
        let mut all = Vec::new();
        for (n, block) in self.blocks.iter().enumerate() {
            let mut events = Vec::new();
            for instruction in block.get_instructions() {
                let Some(event) = self.event(instruction) else { continue };
                if matches!(event, Event::Boundary | Event::Checkpoint | Event::Leave) {
                    crossings.push(Crossing { instruction, block: n, event: events.len() });
                }
                events.push(event);
            }
            let end = block.get_terminator().expect("every block has a terminator");
            let successors = end.get_operands().flatten().filter_map(|o| o.block());
            all.push(BlockEvents { events, successors: successors.map(|b| numbers[&b]).collect() });
        }
        (all, crossings)
    }

    fn event(&self, instruction: InstructionValue<'c>) -> Option<Event> {
        let slot = |n| {
            let address = instruction.get_operand(n)?.value()?;
            self.fields.get(&address.into_pointer_value()).copied()
        };
        match instruction.get_opcode() {
            InstructionOpcode::Load => slot(0).map(Event::Read),
            InstructionOpcode::Store => {
                slot(1).map(if is_discarded(instruction) { Event::Discard } else { Event::Write })
            }
            InstructionOpcode::Call => match kind_of_call(instruction) {
                CallKind::Tail => Some(Event::Leave),
                CallKind::Region | CallKind::Exact => Some(Event::Boundary),
                CallKind::Checkpoint => Some(Event::Checkpoint),
                CallKind::Other => None,
            },
            InstructionOpcode::Return if !follows_tail_call(instruction) => Some(Event::Leave),
            _ => None,
        }
    }

    // ---- what it becomes ----

    /// A local variable for each slot, filled at the function's entry.
    fn make_variables(&mut self, slots: SlotSet, loaded: SlotSet) {
        let entry = self.blocks[0];
        let first = entry.get_first_instruction().expect("every block has a terminator");
        self.ir.builder.position_before(&first);
        for slot in slots.iter() {
            let variable = built(self.ir.builder.build_alloca(slot_type(self.ir, slot), ""));
            self.variables.insert(slot, variable);
        }
        for (n, position) in (0..).zip(&self.signature.positions) {
            if let Some(slot) = position {
                let argument = self.function.get_nth_param(n).expect("a parameter for each position");
                self.set(*slot, argument);
            }
        }
        self.load_in(loaded);
        for (&field, slot) in &self.fields {
            field.replace_all_uses_with(self.variables[slot]);
        }
    }

    fn get(&self, slot: Slot) -> BasicValueEnum<'c> {
        built(self.ir.builder.build_load(slot_type(self.ir, slot), self.variables[&slot], ""))
    }

    fn set(&self, slot: Slot, value: BasicValueEnum<'c>) {
        built(self.ir.builder.build_store(self.variables[&slot], value));
    }

    fn field(&self, slot: Slot) -> PointerValue<'c> {
        self.ir.byte_offset(self.thread, self.ir.i64(slot.offset() as u64))
    }

    fn store_out(&self, slots: SlotSet) {
        self.store_out_to(Memory::State, slots);
    }

    fn store_out_to(&self, memory: Memory, slots: SlotSet) {
        for slot in slots.iter() {
            self.ir.store(memory, self.field(slot), self.get(slot));
        }
    }

    fn load_in(&self, slots: SlotSet) {
        for slot in slots.iter() {
            self.set(slot, self.ir.load(Memory::State, slot_type(self.ir, slot), self.field(slot)));
        }
    }

    fn cross(&self, instruction: InstructionValue<'c>, transfer: Transfer) {
        self.ir.builder.position_before(&instruction);
        if instruction.get_opcode() == InstructionOpcode::Return {
            return self.cross_by_return(instruction, transfer);
        }
        match kind_of_call(instruction) {
            CallKind::Region => self.cross_by_call(instruction, transfer),
            CallKind::Tail => self.cross_by_tail_call(instruction, transfer),
            CallKind::Checkpoint => {
                self.store_out_to(Memory::SharedState, transfer.store.union(self.carried));
                instruction.erase_from_basic_block();
            }
            _ => self.cross_to_runtime(instruction, transfer),
        }
    }

    fn cross_by_return(&self, instruction: InstructionValue<'c>, transfer: Transfer) {
        let pc = instruction.get_operand(0).and_then(|o| o.value()).expect("a region returns the guest PC");
        self.store_out(transfer.store);
        let results = (0..).zip(&self.signature.positions).fold(
            self.signature.results.get_poison(),
            |results: StructValue<'c>, (n, position)| {
                let value = position.map_or(pc, |slot| self.get(slot));
                built(self.ir.builder.build_insert_value(results, value, n, "")).into_struct_value()
            },
        );
        self.ir.return_value(results);
        instruction.erase_from_basic_block();
    }

    /// The call in the host's convention, with all that goes before it.
    fn host_call(&self, instruction: InstructionValue<'c>, transfer: Transfer) -> CallSiteValue<'c> {
        self.store_out(transfer.store);
        let arguments: Vec<BasicMetadataValueEnum<'c>> = self
            .signature
            .positions
            .iter()
            .map(|position| position.map_or(self.thread.into(), |slot| self.get(slot).into()))
            .collect();
        let callee = instruction.get_operand(instruction.get_num_operands() - 1).and_then(|o| o.value());
        let callee = callee.expect("a call has a callee").into_pointer_value();
        self.signature.call(self.ir, callee, &arguments)
    }

    fn cross_by_tail_call(&self, instruction: InstructionValue<'c>, transfer: Transfer) {
        let call = self.host_call(instruction, transfer);
        call.set_tail_call_kind(LLVMTailCallKind::LLVMTailCallKindMustTail);
        self.ir.return_value(Ir::result(call));
        if let Some(end) = instruction.get_next_instruction() {
            end.erase_from_basic_block();
        }
        instruction.erase_from_basic_block();
    }

    fn cross_by_call(&self, instruction: InstructionValue<'c>, transfer: Transfer) {
        let results = Ir::result(self.host_call(instruction, transfer)).into_struct_value();
        let mut pc: Option<IntValue<'c>> = None;
        for (n, position) in (0..).zip(&self.signature.positions) {
            let value = built(self.ir.builder.build_extract_value(results, n, ""));
            match position {
                Some(slot) => self.set(*slot, value),
                None => pc = Some(value.into_int_value()),
            }
        }
        self.load_in(transfer.load);
        let old = IntValue::try_from(instruction).expect("a region returns the guest PC");
        old.replace_all_uses_with(pc.expect("the guest PC is among the results"));
        instruction.erase_from_basic_block();
    }

    fn cross_to_runtime(&self, instruction: InstructionValue<'c>, transfer: Transfer) {
        self.store_out(transfer.store.union(self.carried));
        let after = instruction.get_next_instruction().expect("a call is not a terminator");
        self.ir.builder.position_before(&after);
        self.load_in(transfer.load.union(self.carried));
    }
}

/// Whether a store is of no value in particular.
fn is_discarded(store: InstructionValue<'_>) -> bool {
    let value = store.get_operand(0).and_then(|o| o.value());
    value.is_some_and(|value| value.is_int_value() && value.into_int_value().is_undef())
}

/// The addresses of slots among those computed from the thread block's.
fn slot_fields(thread: PointerValue<'_>) -> HashMap<PointerValue<'_>, Slot> {
    let mut fields = HashMap::new();
    let mut next = thread.get_first_use();
    while let Some(found) = next {
        next = found.get_next_use();
        let AnyValueEnum::PointerValue(address) = found.get_user() else { continue };
        let Some(user) =
            address.as_instruction().filter(|i| i.get_opcode() == InstructionOpcode::GetElementPtr)
        else {
            continue;
        };
        let distance = user.get_operand(1).and_then(|o| o.value()).map(|v| v.into_int_value());
        let offset = distance.and_then(|d| d.get_zero_extended_constant()).map(|o| o as usize);
        let slot = offset.and_then(|o| Slot::containing(o).filter(|s| s.offset() == o));
        if let Some(slot) = slot {
            fields.insert(address, slot);
        }
    }
    fields
}

enum CallKind {
    Region,
    Tail,
    Exact,
    Checkpoint,
    Other,
}

fn kind_of_call(instruction: InstructionValue<'_>) -> CallKind {
    let Ok(call) = CallSiteValue::try_from(instruction) else { return CallKind::Other };
    if call.get_call_convention() == REGION_CALL_CONV {
        let tail = call.get_tail_call_kind() == LLVMTailCallKind::LLVMTailCallKindMustTail;
        return if tail { CallKind::Tail } else { CallKind::Region };
    }
    let has = |attribute| call.get_string_attribute(AttributeLoc::Function, attribute).is_some();
    match () {
        () if has(EXACT) => CallKind::Exact,
        () if has(CHECKPOINT) => CallKind::Checkpoint,
        () => CallKind::Other,
    }
}

fn follows_tail_call(instruction: InstructionValue<'_>) -> bool {
    instruction.get_previous_instruction().is_some_and(|i| {
        i.get_opcode() == InstructionOpcode::Call && matches!(kind_of_call(i), CallKind::Tail)
    })
}
