//! The register stack, its tags, exceptions and condition codes.

use super::super::X87;
use super::Request;
use crate::softfloat::exception::{ALL, DENORMAL, DIVIDE_BY_ZERO, INEXACT, INVALID};
use crate::softfloat::{Context, Float, Format, NanChoice, RoundingMode};

/// FSW: stack fault.
pub(super) const STACK_FAULT: u16 = 1 << 6;
/// FSW: an unmasked exception is pending (ES).
pub(super) const SUMMARY: u16 = 1 << 7;
/// FSW: condition codes.
pub(super) const C0: u16 = 1 << 8;
pub(super) const C1: u16 = 1 << 9;
pub(super) const C2: u16 = 1 << 10;
pub(super) const C3: u16 = 1 << 14;
/// FSW: copy of [`SUMMARY`].
const BUSY: u16 = 1 << 15;
/// FSW: position of TOP.
const TOP: u32 = 11;
/// What an unmasked overflow or underflow adds to the exponent (SDM vol. 1, 8.5.4).
const WRAP: i32 = 24576;

/// The unit during one operation.
pub(super) struct Unit<'a> {
    pub(super) state: &'a mut X87,
    /// Modes of the operation, and what it raises.
    pub(super) context: Context,
}

impl<'a> Unit<'a> {
    pub(super) fn new(state: &'a mut X87) -> Unit<'a> {
        let context = Context {
            rounding: RoundingMode::from_x86(u32::from(state.control) >> 10),
            masked: state.control as u8 & ALL,
            wrap_exponent: Some(WRAP),
            ..Context::new(NanChoice::Larger)
        };
        Unit { state, context }
    }

    pub(super) fn exception_is_pending(&self) -> bool {
        self.state.status & SUMMARY != 0
    }

    /// Remember where the instruction and its memory operand are. (Its opcode is not kept.)
    pub(super) fn note_instruction(&mut self, request: &Request, addresses: u128) {
        self.state.instruction = addresses as u64;
        if request.in_memory {
            self.state.data = (addresses >> 64) as u64;
        }
    }

    /// Precision of arithmetic as the control word has it; the exponent range is always the full one.
    pub(super) fn precision(&self) -> Format {
        let precision = match self.state.control >> 8 & 3 {
            0 => 24,
            2 => 53,
            _ => 64,
        };
        Format { precision, ..Format::X87 }
    }

    // ---- the stack ----

    pub(super) fn top(&self) -> usize {
        usize::from(self.state.status >> TOP & 7)
    }

    pub(super) fn set_top(&mut self, top: usize) {
        self.state.status = self.state.status & !(7 << TOP) | (top as u16 & 7) << TOP;
    }

    fn physical(&self, index: u8) -> usize {
        (self.top() + usize::from(index)) & 7
    }

    pub(super) fn is_empty(&self, index: u8) -> bool {
        self.state.valid >> self.physical(index) & 1 == 0
    }

    pub(super) fn set_empty(&mut self, index: u8) {
        self.state.valid &= !(1 << self.physical(index));
    }

    /// ST(index), whatever its tag.
    pub(super) fn raw(&self, index: u8) -> (u16, u64) {
        let n = self.physical(index);
        (self.state.sign_exponent[n], self.state.significand[n])
    }

    /// Set ST(index), but not its tag.
    pub(super) fn set_raw(&mut self, index: u8, (sign_exponent, significand): (u16, u64)) {
        let n = self.physical(index);
        (self.state.sign_exponent[n], self.state.significand[n]) = (sign_exponent, significand);
    }

    /// ST(index), unless it is empty.
    pub(super) fn get(&self, index: u8) -> Option<Float> {
        let (sign_exponent, significand) = self.raw(index);
        (!self.is_empty(index)).then(|| Float::from_x87(sign_exponent, significand))
    }

    pub(super) fn set(&mut self, index: u8, value: Float) {
        self.set_bits(index, value.to_x87());
    }

    pub(super) fn set_bits(&mut self, index: u8, bits: (u16, u64)) {
        self.set_raw(index, bits);
        self.state.valid |= 1 << self.physical(index);
    }

    pub(super) fn pop(&mut self) {
        self.set_empty(0);
        self.set_top(self.top() + 1);
    }

    /// FINCSTP, FDECSTP.
    pub(super) fn turn(&mut self, by: i8) {
        self.set_c1(false);
        self.set_top((self.top() as i8 + by) as usize & 7);
    }

    /// FFREE, FFREEP.
    pub(super) fn free(&mut self, request: Request) {
        self.set_c1(false);
        self.set_empty(request.bits as u8 & 7);
        (0..request.pops).for_each(|_| self.pop());
    }

    // ---- exceptions ----

    pub(super) fn set_c1(&mut self, value: bool) {
        self.set_conditions(C1, if value { C1 } else { 0 });
    }

    /// Of the condition codes in `mask`, set those in `value` and clear the others.
    pub(super) fn set_conditions(&mut self, mask: u16, value: u16) {
        self.state.status = self.state.status & !mask | value;
    }

    /// Bring ES and B up to date with flags and masks.
    pub(super) fn summarize(&mut self) {
        let unmasked = self.state.status & !self.state.control & u16::from(ALL);
        self.set_conditions(SUMMARY | BUSY, if unmasked != 0 { SUMMARY | BUSY } else { 0 });
    }

    /// Enter what the operation raised into the status word. False if an unmasked exception that precedes the
    /// computation forbids any result.
    pub(super) fn settle(&mut self) -> bool {
        let before = self.context.raised & (INVALID | DENORMAL | DIVIDE_BY_ZERO);
        let proceeds = before & !self.context.masked == 0;
        let raised = if proceeds { self.context.raised } else { before };
        self.state.status |= u16::from(raised);
        self.set_c1(raised & INEXACT != 0 && self.context.rounded_up);
        self.summarize();
        proceeds
    }

    /// Enter a stack fault. False if it is not masked.
    pub(super) fn stack_fault(&mut self, overflow: bool) -> bool {
        self.context.raise(INVALID);
        self.state.status |= STACK_FAULT;
        let masked = self.settle();
        self.set_c1(overflow);
        masked
    }

    /// An operand of an operation on ST(destination) was empty.
    pub(super) fn underflow(&mut self, destination: u8, pops: u8) {
        if self.stack_fault(false) {
            self.set(destination, Float::INDEFINITE);
            (0..pops).for_each(|_| self.pop());
        }
    }

    /// Finish an operation whose result goes to ST(destination).
    pub(super) fn deliver(&mut self, destination: u8, value: Float, pops: u8) {
        if self.settle() {
            self.set(destination, value);
            (0..pops).for_each(|_| self.pop());
        }
    }

    /// Push, where the stack has room.
    pub(super) fn push(&mut self, value: (u16, u64)) {
        if !self.is_empty(7) {
            if self.stack_fault(true) {
                self.set_top(self.top() + 7);
                self.set(0, Float::INDEFINITE);
            }
            return;
        }
        if self.settle() {
            self.set_top(self.top() + 7);
            self.set_bits(0, value);
        }
    }
}
