//! Where control leaves an instruction: edges within the region, and the transfers to other regions and to
//! the runtime. A transfer is a call or tail call of a function in the region convention; everything rare is
//! one of the object's shared stubs (`tranship.*`, defined by [`crate::compile`]).

use super::Lifter;
use super::bit::Bit;
use crate::discover::linkage_slot;
use crate::hostconv::CHECKPOINT;
use crate::ir::{Ir, Memory, REGION_CALL_CONV, built};
use crate::layout;
use crate::region::{Exit, FlagSet, JumpTable};
use inkwell::IntPredicate;
use inkwell::attributes::AttributeLoc;
use inkwell::basic_block::BasicBlock;
use inkwell::llvm_sys::LLVMTailCallKind;
use inkwell::module::Linkage;
use inkwell::values::{CallSiteValue, FunctionValue, IntValue, PointerValue};
use tranship_abi::block::branch_cache_offset;
use tranship_isa::machine::{Machine, Target, Trap, Width};

/// Places in a table of labels: bytes of guest code.
const LONGEST_LABEL_TABLE: u64 = 1 << 17;

/// Guest code that a transfer goes to.
enum Code<'c> {
    Region(FunctionValue<'c>),
    Looked(PointerValue<'c>),
}

impl<'c> Lifter<'_, 'c> {
    pub(super) fn new_block(&self) -> BasicBlock<'c> {
        self.ir.block(self.function, "")
    }

    /// A guest address known at link time, as the guest sees it at run time.
    pub(super) fn guest_address(&self, address: u64) -> IntValue<'c> {
        let constant = self.ir.i64(address);
        let Some(slot) = self.bias_slot else { return constant };
        let bias = self.ir.load(Memory::State, self.ir.context.i64_type(), slot).into_int_value();
        built(self.ir.builder.build_int_add(bias, constant, ""))
    }

    fn set_rip(&mut self, address: IntValue<'c>) {
        self.store_field(layout::RIP, address);
    }

    // ---- the transfers themselves ----

    /// Host code for guest code at `target`: its region where that is known, else what the branch cache has,
    /// else the stub that looks it up. The PC is stored where the code may need it.
    fn code_at(&mut self, target: Target<IntValue<'c>>) -> Code<'c> {
        let address = match target {
            Target::Direct(address) if self.program.enters(address) => {
                return Code::Region(self.ir.region(&super::region_name(address)));
            }
            Target::Direct(address) => self.guest_address(address),
            Target::Indirect(address) => address,
        };
        self.set_rip(address);
        Code::Looked(self.cached_code(address))
    }

    fn cached_code(&mut self, target: IntValue<'c>) -> PointerValue<'c> {
        let mask = self.ir.i64(branch_cache_offset(u64::MAX));
        let offset = built(self.ir.builder.build_and(target, mask, ""));
        let lines = self.field(layout::BRANCH_CACHE);
        let line = self.ir.byte_offset(lines, offset);
        let at = |field: usize| self.ir.byte_offset(line, self.ir.i64(field as u64));
        let guest = self.ir.load(Memory::State, self.ir.context.i64_type(), at(layout::LINE_GUEST));
        let host = self.ir.load(Memory::State, self.ir.ptr_type(), at(layout::LINE_HOST));
        let hit = self.ir.compare(IntPredicate::EQ, guest.into_int_value(), target);
        let miss = self.ir.region("tranship.lookup").as_global_value().as_pointer_value();
        built(self.ir.builder.build_select(hit, host.into_pointer_value(), miss, "")).into_pointer_value()
    }

    fn call_code(&self, code: Code<'c>) -> CallSiteValue<'c> {
        let arguments = [self.thread.into()];
        match code {
            Code::Region(function) => self.ir.call(function, &arguments),
            Code::Looked(code) => {
                self.ir.call_pointer(self.ir.region_type(), REGION_CALL_CONV, code, &arguments)
            }
        }
    }

    fn tail_call(&self, code: Code<'c>) {
        let call = self.call_code(code);
        call.set_tail_call_kind(LLVMTailCallKind::LLVMTailCallKindMustTail);
        self.ir.return_value(Ir::result(call));
    }

    /// Call, and go on only if control comes back to `expected`; else return to whoever it belongs to.
    fn call_and_check(&mut self, code: Code<'c>, expected: u64) {
        let pc = Ir::result(self.call_code(code)).into_int_value();
        let expected = self.guest_address(expected);
        let elsewhere = self.ir.compare(IntPredicate::NE, pc, expected);
        let (pass_on, go_on) = (self.new_block(), self.new_block());
        self.ir.branch_unlikely(elsewhere, pass_on, go_on);
        self.ir.builder.position_at_end(pass_on);
        self.ir.return_value(pc);
        self.ir.builder.position_at_end(go_on);
        self.registers.forget_overwritten();
    }

    /// Leave for good through a stub, with the guest PC at `address` and all registers exact.
    pub(super) fn leave(&mut self, stub: &str, address: u64) {
        self.flush_aside();
        let address = self.guest_address(address);
        self.set_rip(address);
        self.tail_call(Code::Region(self.ir.region(stub)));
    }

    /// Leave through `stub` where `condition` holds, which is rare.
    pub(super) fn leave_if(&mut self, condition: IntValue<'c>, stub: &str, address: u64) {
        let (rare, usual) = (self.new_block(), self.new_block());
        self.ir.branch_unlikely(condition, rare, usual);
        self.ir.builder.position_at_end(rare);
        self.leave(stub, address);
        self.ir.builder.position_at_end(usual);
    }

    /// Have the interpreter execute this instruction where its atomic access is one that the host does not have:
    /// aligned ones of all widths it has, and x86 demands that of 128 bits itself.
    pub(super) fn leave_if_split(&mut self, address: IntValue<'c>, bits: u32) {
        if (16..=64).contains(&bits) {
            let name = format!("tranship.splits.{bits}");
            let split = self.ir.prelude(&name, self.ir.context.bool_type().into(), &[address.into()]);
            self.leave_if(split.into_int_value(), "tranship.interpret_one", self.address);
        }
    }

    // ---- safepoints ----

    /// Look whether somebody wants the thread to stop at `address`.
    pub(super) fn emit_safepoint(&mut self, address: u64) {
        let pending = self.field(layout::PENDING);
        let kind = self.ir.context.i8_type();
        let pending = self.ir.load(Memory::State, kind, pending);
        if let Some(load) = inkwell::values::BasicValue::as_instruction_value(&pending) {
            load.set_volatile(true).expect("loads can be volatile");
        }
        let asked = self.ir.compare(IntPredicate::NE, pending.into_int_value(), kind.const_zero());
        self.leave_if(asked, "tranship.safepoint", address);
    }

    /// The same, and whether the host stack is used up: a request makes its limit higher than any address.
    pub(super) fn emit_entry_check(&mut self, address: u64) {
        let here = Ir::result(self.ir.intrinsic("llvm.stacksave", &[self.ir.ptr_type().into()], &[]));
        let here = built(self.ir.builder.build_ptr_to_int(
            here.into_pointer_value(),
            self.ir.context.i64_type(),
            "",
        ));
        let limit = self.load_field(layout::HOST_STACK_LIMIT, Width::W64);
        let has_to_leave = self.ir.compare(IntPredicate::ULT, here, limit);
        self.leave_if(has_to_leave, "tranship.safepoint", address);
    }

    // ---- what instructions ask for ----

    /// The LLVM block for control going to `address`: the region's, or a new one that leaves the region.
    fn edge(&mut self, address: u64) -> BasicBlock<'c> {
        if let Some(&block) = self.blocks.get(&address) {
            return block;
        }
        let (here, out) = (self.ir.here(), self.new_block());
        self.ir.builder.position_at_end(out);
        let code = self.code_at(Target::Direct(address));
        self.tail_call(code);
        self.ir.builder.position_at_end(here);
        out
    }

    /// End the guest block by going to `address`.
    pub(super) fn go(&mut self, address: u64) {
        self.flush(self.flags_out);
        let to = self.edge(address);
        self.ir.branch(to);
    }

    pub(super) fn emit_jump(&mut self, target: Target<IntValue<'c>>) {
        match (target, self.exit) {
            (Target::Direct(address), _) => self.go(address),
            (Target::Indirect(value), Exit::Switch(table)) => self.emit_switch(table, value),
            (Target::Indirect(value), _) => {
                self.flush(self.flags_out);
                match self.crossroads() {
                    Some((crossroads, slot)) => {
                        self.ir.store(Memory::State, slot, value);
                        self.ir.branch(crossroads);
                    }
                    None => self.jump_elsewhere(value),
                }
            }
        }
    }

    fn jump_elsewhere(&mut self, target: IntValue<'c>) {
        let code = self.code_at(Target::Indirect(target));
        self.tail_call(code);
    }

    // ---- labels ----

    /// Where all indirect jumps of a region with labels meet, because each may go to any of them, and the variable that
    /// has the target. One for all: LLVM's time grows with the number of edges.
    fn crossroads(&mut self) -> Option<(BasicBlock<'c>, PointerValue<'c>)> {
        if self.crossroads.is_none() && self.label_span().is_some() {
            self.crossroads = Some((self.new_block(), self.variable(self.ir.context.i64_type())));
        }
        self.crossroads
    }

    /// The first label, and the number of bytes from there to behind the last one, if a table may have as many places.
    fn label_span(&self) -> Option<(u64, u64)> {
        let (first, last) = (self.region.labels.first()?, self.region.labels.last()?);
        Some((*first, last - first + 1)).filter(|(_, span)| *span <= LONGEST_LABEL_TABLE)
    }

    /// From a target to the label there: a table says the number of the label at each address.
    pub(super) fn define_crossroads(&mut self) {
        let (Some((block, slot)), Some((first, span))) = (self.crossroads, self.label_span()) else { return };
        let labels: Vec<u64> =
            self.region.labels.iter().copied().filter(|l| self.blocks.contains_key(l)).collect();
        let (near, elsewhere) = (self.new_block(), self.new_block());
        self.ir.builder.position_at_end(block);
        let target = self.ir.load(Memory::State, self.ir.context.i64_type(), slot).into_int_value();
        let distance = built(self.ir.builder.build_int_sub(target, self.guest_address(first), ""));
        let is_near = self.ir.compare(IntPredicate::ULT, distance, self.ir.i64(span));
        built(self.ir.builder.build_conditional_branch(is_near, near, elsewhere));
        self.ir.builder.position_at_end(near);
        let number = self.label_number(&labels, distance, span);
        let kind = number.get_type();
        let targets = [elsewhere].into_iter().chain(labels.iter().map(|label| self.blocks[label]));
        let cases: Vec<_> =
            (0u64..).zip(targets).map(|(n, block)| (kind.const_int(n, false), block)).collect();
        // There is no other number, so the host need not look whether there is.
        let none = self.new_block();
        built(self.ir.builder.build_switch(number, none, &cases));
        self.ir.builder.position_at_end(none);
        built(self.ir.builder.build_unreachable());
        self.ir.builder.position_at_end(elsewhere);
        self.jump_elsewhere(target);
    }

    /// The number of the label at `distance` from the first, from 1; 0 where none is.
    fn label_number(&self, labels: &[u64], distance: IntValue<'c>, span: u64) -> IntValue<'c> {
        let kind = self.ir.context.i16_type();
        let mut numbers = vec![kind.const_zero(); span as usize];
        for (n, label) in (1u64..).zip(labels) {
            if let Some(number) = labels.first().and_then(|first| numbers.get_mut((label - first) as usize)) {
                *number = kind.const_int(n, false);
            }
        }
        let table = self.ir.module.add_global(kind.array_type(span as u32), None, "labels");
        table.set_linkage(Linkage::Private);
        table.set_constant(true);
        table.set_initializer(&kind.const_array(&numbers));
        let place = built(self.ir.builder.build_left_shift(distance, self.ir.i64(1), ""));
        let place = self.ir.byte_offset(table.as_pointer_value(), place);
        self.ir.load(Memory::State, kind, place).into_int_value()
    }

    fn emit_switch(&mut self, table: &JumpTable, target: IntValue<'c>) {
        self.flush(self.flags_out);
        let slot = self.table_index(table);
        let index = self.ir.load(Memory::State, self.ir.context.i64_type(), slot).into_int_value();
        let default = self.new_block();
        let here = self.ir.here();
        let cases: Vec<_> = (0u64..)
            .zip(&table.targets)
            .filter_map(|(n, to)| Some((self.ir.i64(n), self.case(table, target, *to, default)?)))
            .collect();
        self.ir.builder.position_at_end(here);
        built(self.ir.builder.build_switch(index, default, &cases));
        self.ir.builder.position_at_end(default);
        if table.proven {
            built(self.ir.builder.build_unreachable());
        } else {
            let code = self.code_at(Target::Indirect(target));
            self.tail_call(code);
        }
    }

    /// The block for one index: the guest's, behind a comparison unless the table is proven.
    fn case(
        &self,
        table: &JumpTable,
        target: IntValue<'c>,
        to: u64,
        other: BasicBlock<'c>,
    ) -> Option<BasicBlock<'c>> {
        let block = *self.blocks.get(&to)?;
        if table.proven {
            return Some(block);
        }
        let check = self.new_block();
        self.ir.builder.position_at_end(check);
        let differs = self.ir.compare(IntPredicate::NE, target, self.guest_address(to));
        self.ir.branch_unlikely(differs, other, block);
        Some(check)
    }

    pub(super) fn emit_branch(&mut self, condition: Bit<'c>, target: u64) {
        match condition {
            Bit::Known(true) => self.go(target),
            Bit::Known(false) => {}
            _ => {
                let condition = self.materialize(condition);
                self.flush(self.flags_out);
                let (taken, next) = (self.edge(target), self.edge(self.next));
                built(self.ir.builder.build_conditional_branch(condition, taken, next));
            }
        }
    }

    pub(super) fn emit_call(&mut self, target: Target<IntValue<'c>>, return_address: u64) {
        self.flush(self.flags_out);
        let target = self.behind_stub(target);
        let code = self.code_at(target);
        self.call_and_check(code, return_address);
        self.go(return_address);
    }

    /// Where a call of a procedure linkage table's stub goes, so that the stub's own way in is left out.
    fn behind_stub(&mut self, target: Target<IntValue<'c>>) -> Target<IntValue<'c>> {
        let Target::Direct(address) = target else { return target };
        let Some(slot) = linkage_slot(self.elf.bytes_at(address), address) else { return target };
        // A fault of the slot's load is the stub's: the call is done.
        let call = std::mem::replace(&mut self.address, address);
        let target = self.load(self.guest_address(slot), Width::W64);
        self.address = call;
        Target::Indirect(target)
    }

    pub(super) fn emit_return(&mut self, target: IntValue<'c>) {
        self.flush(self.flags_out);
        self.ir.return_value(target);
    }

    /// Have the runtime do something with the guest at `address`, and go on behind this instruction.
    pub(super) fn emit_stub_call(&mut self, stub: &str, address: u64) {
        self.flush(FlagSet::ALL);
        let address = self.guest_address(address);
        self.set_rip(address);
        let code = Code::Region(self.ir.region(stub));
        self.call_and_check(code, self.next);
    }

    /// Have everything in the thread block as it is now, with the guest at this instruction.
    pub(super) fn emit_checkpoint(&mut self) {
        self.flush(FlagSet::ALL);
        let (address, rip) = (self.guest_address(self.address), self.field(layout::RIP));
        self.ir.store(Memory::SharedState, rip, address);
        let nothing = self.ir.intrinsic("llvm.donothing", &[], &[]);
        nothing.add_attribute(AttributeLoc::Function, self.ir.string_attribute(CHECKPOINT));
    }

    /// Have the runtime interpret this instruction, and go on behind it.
    pub(super) fn emit_interpreted(&mut self) {
        self.emit_stub_call("tranship.interpret_one", self.address);
    }

    pub(super) fn emit_trap(&mut self, condition: Bit<'c>, trap: Trap) {
        let stub = format!("tranship.trap.{}", trap as u32);
        let address = match trap {
            Trap::Breakpoint | Trap::Debug => self.next,
            _ => self.address,
        };
        match condition {
            Bit::Known(false) => {}
            Bit::Known(true) => {
                self.leave(&stub, address);
                let unreachable = self.new_block();
                self.ir.builder.position_at_end(unreachable);
            }
            _ => {
                let condition = self.materialize(condition);
                self.leave_if(condition, &stub, address);
            }
        }
    }
}
