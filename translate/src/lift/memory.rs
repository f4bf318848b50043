//! Accesses to guest memory: what they point to, which of them are private to the function, and for exact faults where a
//! fault of theirs goes. No instruction changes a register before its last access, so the registers are then what they
//! were at its start, or, of one that goes lane by lane or element by element, at the lane or element.

use super::Lifter;
use super::bit::Bit;
use crate::ir::{Memory, built};
use crate::layout::Slot;
use inkwell::AtomicOrdering::{AcquireRelease, Monotonic};
use inkwell::basic_block::BasicBlock;
use inkwell::values::{BasicValue, InstructionOpcode, IntValue, PointerValue, VectorValue};
use inkwell::{AtomicRMWBinOp, IntPredicate};
use tranship_isa::machine::{Machine, Width};
use tranship_isa::x86_64::Reg;

/// Bits of a vector that every host loads and stores at once.
const PIECE: u32 = 128;
/// Bytes of the smallest page of a host.
const PAGE: u64 = 4096;
/// Elements of a repeated instruction that take no longer one by one than the runtime takes to begin.
const FEW_ELEMENTS: u64 = 128;

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

    // ---- for exact faults: a fault has the interpreter execute the instruction, which raises it ----

    /// Load an integer.
    pub(super) fn load_exactly(&mut self, address: IntValue<'c>, width: Width) -> IntValue<'c> {
        if width == Width::W128 {
            let both = self.load_vec_exactly(address, width.bits());
            return built(self.ir.builder.build_bit_cast(both, self.ir.int_type(width), "")).into_int_value();
        }
        let (from, _) = self.guest_pointer(address);
        let value = self.ir.faulting_load(width.bits(), from).into_int_value();
        self.leave_if_faulted();
        built(self.ir.builder.build_int_truncate_or_bit_cast(value, self.ir.int_type(width), ""))
    }

    /// Store an integer.
    pub(super) fn store_exactly(&mut self, address: IntValue<'c>, value: IntValue<'c>) {
        if self.width(value) == Width::W128 {
            let both = built(self.ir.builder.build_bit_cast(value, self.ir.vec_type(Width::W64, 128), ""));
            return self.store_vec_exactly(address, both.into_vector_value());
        }
        let (to, _) = self.guest_pointer(address);
        self.ir.faulting_store(self.width(value).bits(), to, value.into());
        self.leave_if_faulted();
    }

    /// Load a vector, in as many pieces as need be on any host.
    pub(super) fn load_vec_exactly(&mut self, address: IntValue<'c>, bits: u32) -> VectorValue<'c> {
        let pieces = (0..bits / PIECE).map(|n| self.load_piece(address, n)).collect();
        self.join(pieces)
    }

    fn load_piece(&mut self, address: IntValue<'c>, n: u32) -> VectorValue<'c> {
        let from = self.piece_pointer(address, n);
        let piece = self.ir.faulting_load(PIECE, from).into_vector_value();
        self.leave_if_faulted();
        piece
    }

    /// Store a vector. In several pieces, none may be stored before another one faults: those on one page do so together,
    /// and of two pages the second is written to first, without a change.
    pub(super) fn store_vec_exactly(&mut self, address: IntValue<'c>, value: VectorValue<'c>) {
        let bits = self.vector_bits(value);
        if bits > PIECE {
            let on_page = built(self.ir.builder.build_and(address, self.ir.i64(PAGE - 1), ""));
            let last = self.ir.i64(PAGE - u64::from(bits / 8));
            let crosses = self.ir.compare(IntPredicate::UGT, on_page, last);
            let end = self.piece_pointer(address, bits / PIECE);
            self.write_before_if(crosses, end);
        }
        for n in 0..bits / PIECE {
            let to = self.piece_pointer(address, n);
            let piece = self.extract_part(value, n);
            self.ir.faulting_store(PIECE, to, piece.into());
            self.leave_if_faulted();
        }
    }

    fn piece_pointer(&self, address: IntValue<'c>, n: u32) -> PointerValue<'c> {
        let (first, _) = self.guest_pointer(address);
        if n == 0 { first } else { self.ir.byte_offset(first, self.ir.i64(u64::from(n * PIECE / 8))) }
    }

    /// Go on only if the access just made has not faulted.
    fn leave_if_faulted(&mut self) {
        let (landing, on) = (self.landing(), self.new_block());
        let faulted = self.ir.has_faulted();
        self.ir.branch_unlikely(faulted, landing, on);
        self.ir.builder.position_at_end(on);
    }

    /// An access comes that is neither a load nor a store: from a complete thread block the runtime finds its way by itself.
    pub(super) fn before_other_access(&mut self) {
        if self.is_exact() {
            self.emit_checkpoint();
        }
    }

    /// Whether a repeated instruction does its elements at once. Where faults are exact they go one by one, with registers
    /// as they are in between; the interpreter does them here if they are many, and leaves none.
    pub(super) fn moves_at_once(&mut self, count: Reg) -> bool {
        if !self.is_exact() {
            return true;
        }
        let elements = self.reg(count);
        let many = self.ir.compare(IntPredicate::UGT, elements, self.ir.i64(FEW_ELEMENTS));
        self.when(Bit::of(many), &mut Self::emit_interpreted);
        false
    }

    /// If a condition holds, write to the byte before `end` what it has.
    fn write_before_if(&mut self, condition: IntValue<'c>, end: PointerValue<'c>) {
        let (write, on) = (self.new_block(), self.new_block());
        self.ir.branch_unlikely(condition, write, on);
        self.ir.builder.position_at_end(write);
        let registers = self.registers.clone();
        self.emit_checkpoint();
        self.registers = registers;
        let byte = self.ir.byte_offset(end, self.ir.i64(1u64.wrapping_neg()));
        let none = self.ir.context.i8_type().const_zero();
        // The host's instruction for a logical "or" would become a fence and a load.
        let same = built(self.ir.builder.build_atomicrmw(AtomicRMWBinOp::UMax, byte, none, Monotonic));
        if let Some(write) = same.as_instruction() {
            write.set_volatile(true).expect("atomic operations can be volatile");
        }
        self.ir.branch(on);
        self.ir.builder.position_at_end(on);
    }

    /// Where a fault goes with the registers as they are now. Several accesses of an instruction have one in common.
    fn landing(&mut self) -> BasicBlock<'c> {
        if let Some(landing) = self.registers.landing(self.address) {
            return landing;
        }
        let (here, landing) = (self.ir.here(), self.new_block());
        self.ir.builder.position_at_end(landing);
        self.leave("tranship.interpret_one", self.address);
        self.ir.builder.position_at_end(here);
        self.registers.set_landing(self.address, landing);
        landing
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
