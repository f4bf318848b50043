//! Regions to host-neutral LLVM IR.
//!
//! A region becomes a function `i64 @r_ADDRESS(ptr thread)`, marked by its calling convention
//! ([`crate::ir::REGION_CALL_CONV`]): guest registers are loaded from and stored to the thread block, a guest
//! call is a call, the guest PC at which it leaves is returned. That is correct as it stands, and
//! [`crate::hostconv`] then moves registers into host registers. A region that is entered elsewhere than at its start, at
//! loop headers or labels, has a second function, `r_ADDRESS.osr`, that begins at `cpu.rip`; its attribute
//! [`ENTRIES`] lists these places.

mod bit;
mod exit;
mod float;
mod frame;
mod machine;
mod memory;
mod registers;
mod vector;

use crate::elf::{GuestElf, Placement};
use crate::ir::{Ir, Memory, built};
use crate::layout;
use crate::region::{Discovery, Exit, Faults, FlagSet, JumpTable, Region};
use frame::{Frame, instructions};
use iced_x86::OpKind;
use inkwell::GlobalVisibility;
use inkwell::attributes::AttributeLoc;
use inkwell::basic_block::BasicBlock;
use inkwell::module::Linkage;
use inkwell::values::{FunctionValue, PointerValue};
use registers::Registers;
use std::collections::HashMap;
use tranship_isa::machine::Width;
use tranship_isa::x86_64::insn::changes_modes;
use tranship_isa::x86_64::{self, Insn, Mnemonic};

/// Name of the function attribute that lists the guest addresses at which an `.osr` function can be entered:
/// hexadecimal, separated by commas.
pub(crate) const ENTRIES: &str = "tranship-entries";

/// Function attribute of functions that are lifted with [`Faults::Exact`].
pub(crate) const FAULTS_EXACT: &str = "tranship-faults-exact";

/// The global variable that holds the guest load bias of a position-independent guest file.
pub(crate) const BIAS: &str = "tranship.bias";

/// Name of the function for the region entered at `address`.
pub(crate) fn region_name(address: u64) -> String {
    format!("r_{address:x}")
}

/// The region whose function `name` is, and whether it is the copy for loop headers.
pub(crate) fn parse_region_name(name: &str) -> Option<(u64, bool)> {
    let name = name.strip_prefix("r_")?;
    let (address, osr) = name.strip_suffix(".osr").map_or((name, false), |a| (a, true));
    Some((u64::from_str_radix(address, 16).ok()?, osr))
}

/// Lift `region` into the module.
pub(crate) fn lift_region(ir: &Ir<'_>, elf: &GuestElf, program: &Discovery, region: &Region) {
    let name = region_name(region.entry);
    if region.entries.contains(&region.entry) {
        let mut lifter = Lifter::new(ir, elf, program, region, &name);
        lifter.lift_blocks();
        lifter.enter_at_start();
    }
    if region.entries.iter().any(|at| *at != region.entry) {
        let mut lifter = Lifter::new(ir, elf, program, region, &format!("{name}.osr"));
        lifter.lift_blocks();
        lifter.enter_in_the_middle();
    }
}

/// One function being lifted, and where in it we are.
struct Lifter<'a, 'c> {
    ir: &'a Ir<'c>,
    elf: &'a GuestElf,
    program: &'a Discovery,
    region: &'a Region,
    function: FunctionValue<'c>,
    thread: PointerValue<'c>,
    /// Dominates everything: addresses of fields, local variables, the way in.
    entry: BasicBlock<'c>,
    blocks: HashMap<u64, BasicBlock<'c>>,
    fields: HashMap<usize, PointerValue<'c>>,
    bias_slot: Option<PointerValue<'c>>,
    /// By the instruction at whose start the index is captured.
    table_indices: HashMap<u64, (u8, PointerValue<'c>)>,
    operands: Option<PointerValue<'c>>,
    /// Where indirect jumps meet, and the variable that has their target.
    crossroads: Option<(BasicBlock<'c>, PointerValue<'c>)>,
    registers: Registers<'c>,
    frame: Frame,
    /// The current guest block's.
    exit: &'a Exit,
    flags_out: FlagSet,
    /// The current instruction and the one behind it.
    address: u64,
    next: u64,
    /// The current instruction pushes or pops.
    uses_stack: bool,
    /// Some instruction runs in other floating-point modes than the guest's: no operation may come into another one's.
    changes_modes: bool,
}

impl<'a, 'c> Lifter<'a, 'c> {
    fn new(
        ir: &'a Ir<'c>,
        elf: &'a GuestElf,
        program: &'a Discovery,
        region: &'a Region,
        name: &str,
    ) -> Self {
        let function = ir.region(name);
        let thread = function.get_first_param().expect("a region has a parameter").into_pointer_value();
        let entry = ir.block(function, "entry");
        if program.faults == Faults::Exact {
            let attribute = ir.string_attribute(FAULTS_EXACT);
            function.add_attribute(AttributeLoc::Function, attribute);
        }
        let insns: Vec<Insn> = instructions(elf, region).collect();
        let mut lifter = Lifter {
            ir,
            elf,
            program,
            region,
            function,
            thread,
            entry,
            blocks: HashMap::new(),
            fields: HashMap::new(),
            bias_slot: (elf.placement == Placement::PositionIndependent).then(|| bias_slot(ir)),
            table_indices: HashMap::new(),
            operands: None,
            crossroads: None,
            registers: Registers::default(),
            frame: Frame::of(&insns),
            uses_stack: false,
            changes_modes: insns.iter().any(changes_modes),
            exit: &Exit::Undecodable,
            flags_out: FlagSet::ALL,
            address: region.entry,
            next: region.entry,
        };
        for &start in region.blocks.keys() {
            let block = ir.block(function, &format!("g_{start:x}"));
            lifter.blocks.insert(start, block);
        }
        for block in region.blocks.values() {
            if let Exit::Switch(table) = &block.exit {
                lifter.table_index(table);
            }
        }
        lifter
    }

    // ---- ways in ----

    fn enter_at_start(&mut self) {
        self.ir.builder.position_at_end(self.entry);
        // Nothing that the blocks knew holds here.
        self.registers = Registers::default();
        if self.may_run_forever() {
            self.emit_entry_check(self.region.entry);
        }
        let first = self.blocks[&self.region.entry];
        self.ir.branch(first);
    }

    /// Whether going round and round through this region is possible otherwise than by its loops, which have
    /// safepoints of their own: by calls and by jumps to other regions.
    fn may_run_forever(&self) -> bool {
        self.region.blocks.values().any(|block| match &block.exit {
            Exit::Return | Exit::Trap | Exit::Undecodable => false,
            Exit::Call { .. } | Exit::IndirectJump => true,
            Exit::Switch(_) => false,
            Exit::Next(edge) | Exit::Jump(edge) => edge.leaves(),
            Exit::Branch { taken, next } => taken.leaves() || next.leaves(),
        })
    }

    fn enter_in_the_middle(&mut self) {
        self.ir.builder.position_at_end(self.entry);
        let entries = || self.region.entries.iter().filter(|at| **at != self.region.entry);
        let rip = self.load_field(layout::RIP, Width::W64);
        let rip = match self.bias_slot {
            Some(_) => built(self.ir.builder.build_int_sub(rip, self.guest_address(0), "")),
            None => rip,
        };
        let stray = self.new_block();
        let cases: Vec<_> = entries().map(|h| (self.ir.i64(*h), self.blocks[h])).collect();
        built(self.ir.builder.build_switch(rip, stray, &cases));
        self.ir.builder.position_at_end(stray);
        built(self.ir.builder.build_unreachable());
        let list: Vec<String> = entries().map(|h| format!("{h:x}")).collect();
        let attribute = self.ir.context.create_string_attribute(ENTRIES, &list.join(","));
        self.function.add_attribute(AttributeLoc::Function, attribute);
    }

    // ---- blocks ----

    fn lift_blocks(&mut self) {
        for (&start, block) in &self.region.blocks {
            self.ir.builder.position_at_end(self.blocks[&start]);
            self.registers = Registers::default();
            (self.exit, self.flags_out) = (&block.exit, block.flags_live_out);
            if self.region.loop_headers.contains(&start) {
                self.emit_safepoint(start);
            }
            self.next = start;
            while self.next < block.end && !self.ir.is_terminated() {
                self.lift_next();
            }
            if !self.ir.is_terminated() {
                self.end_block();
            }
        }
        self.define_crossroads();
    }

    /// The block's last instruction did not transfer control.
    fn end_block(&mut self) {
        match self.exit {
            Exit::Trap => {
                built(self.ir.builder.build_unreachable());
            }
            Exit::Undecodable => self.leave("tranship.unwind", self.next),
            _ => self.go(self.next),
        }
    }

    fn lift_next(&mut self) {
        self.address = self.next;
        let Ok(insn) = x86_64::decode(self.elf.bytes_at(self.address), self.address) else {
            return self.leave("tranship.unwind", self.address);
        };
        self.next = insn.next_ip();
        self.uses_stack = insn.is_stack_instruction();
        self.capture_table_index();
        if reads_outer_frames(&insn) || self.is_exact() && stores_in_parts(&insn) {
            return self.emit_interpreted();
        }
        if x86_64::insn::execute(self, &insn).is_err() {
            self.leave("tranship.unwind", self.address);
        }
    }

    /// Whether handlers of faults are to find the exact state.
    fn is_exact(&self) -> bool {
        self.program.faults == Faults::Exact
    }

    // ---- local variables ----

    fn variable(&self, kind: impl inkwell::types::BasicType<'c>) -> PointerValue<'c> {
        let here = self.ir.builder.get_insert_block();
        match self.entry.get_first_instruction() {
            Some(first) => self.ir.builder.position_before(&first),
            None => self.ir.builder.position_at_end(self.entry),
        }
        let variable = built(self.ir.builder.build_alloca(kind, ""));
        if let Some(here) = here {
            self.ir.builder.position_at_end(here);
        }
        variable
    }

    /// Where the index of a jump table is kept from its capture to the jump.
    fn table_index(&mut self, table: &JumpTable) -> PointerValue<'c> {
        if let Some(&(_, slot)) = self.table_indices.get(&table.at) {
            return slot;
        }
        let slot = self.variable(self.ir.context.i64_type());
        self.table_indices.insert(table.at, (table.index, slot));
        slot
    }

    fn capture_table_index(&mut self) {
        if let Some(&(register, slot)) = self.table_indices.get(&self.address) {
            let value = self.gpr(register);
            self.ir.store(Memory::State, slot, value);
        }
    }

    /// Two 128-bit operands for the coprocessor.
    fn coprocessor_operands(&mut self) -> PointerValue<'c> {
        if let Some(operands) = self.operands {
            return operands;
        }
        let operands = self.variable(self.ir.context.i128_type().array_type(2));
        // The runtime takes them as the host's own 128-bit integers.
        operands.as_instruction().expect("a variable is an alloca").set_alignment(16).expect("so it has one");
        self.operands = Some(operands);
        operands
    }
}

/// What it pushes may be what it reads: LLVM is told that pushes go where nothing else does.
fn reads_outer_frames(i: &Insn) -> bool {
    i.mnemonic() == Mnemonic::Enter && i.immediate8_2nd() & 31 != 0
}

/// Of a masked store a fault may find a part done, where the host has no such instruction.
fn stores_in_parts(i: &Insn) -> bool {
    use Mnemonic::{Maskmovdqu, Maskmovq, Vmaskmovdqu, Vmaskmovpd, Vmaskmovps, Vpmaskmovd, Vpmaskmovq};
    let masked = matches!(i.mnemonic(), Vmaskmovpd | Vmaskmovps | Vpmaskmovd | Vpmaskmovq);
    let implicit = matches!(i.mnemonic(), Maskmovdqu | Maskmovq | Vmaskmovdqu);
    implicit || masked && i.op0_kind() == OpKind::Memory
}

fn bias_slot<'c>(ir: &Ir<'c>) -> PointerValue<'c> {
    let global = ir.module.get_global(BIAS).unwrap_or_else(|| {
        let global = ir.module.add_global(ir.context.i64_type(), None, BIAS);
        global.set_linkage(Linkage::External);
        global.set_visibility(GlobalVisibility::Hidden);
        global
    });
    global.as_pointer_value()
}
