//! Comparison and classification.

use super::Request;
use super::unit::{C0, C1, C2, C3, Unit};
use crate::softfloat::{Class, Float};
use core::cmp::Ordering;

impl Unit<'_> {
    /// FCOM, FUCOM and theirs.
    pub(super) fn compare(&mut self, request: Request, signalling: bool) {
        let operand = self.operand(&request);
        let (order, proceeds) = self.order(operand, signalling);
        self.set_codes(order);
        if proceeds {
            (0..request.pops).for_each(|_| self.pop());
        }
    }

    /// FCOMI, FUCOMI and theirs: bit 0 for CF, 1 for PF, 2 for ZF. C1 stays unless the stack underflows
    /// (undefined; as AMD has it).
    pub(super) fn compare_flags(&mut self, request: Request, signalling: bool) -> u128 {
        let operand = self.operand(&request);
        let c1 = self.state.status & C1;
        let underflow = self.is_empty(0) || operand.is_none();
        let (order, proceeds) = self.order(operand, signalling);
        if !underflow {
            self.set_conditions(C1, c1);
        }
        if proceeds {
            (0..request.pops).for_each(|_| self.pop());
        }
        match order {
            Some(Ordering::Less) => 1,
            Some(Ordering::Equal) => 4,
            Some(Ordering::Greater) => 0,
            None => 7,
        }
    }

    pub(super) fn test(&mut self) {
        let (order, _) = self.order(Some(Float::zero(false)), true);
        self.set_codes(order);
    }

    fn set_codes(&mut self, order: Option<Ordering>) {
        let codes = match order {
            Some(Ordering::Less) => C0,
            Some(Ordering::Equal) => C3,
            Some(Ordering::Greater) => 0,
            None => C0 | C2 | C3,
        };
        self.set_conditions(C0 | C2 | C3, codes);
    }

    /// How ST(0) compares with the operand (an empty register is unordered), and whether no unmasked
    /// exception keeps the stack from being popped.
    fn order(&mut self, operand: Option<Float>, signalling: bool) -> (Option<Ordering>, bool) {
        let (Some(x), Some(y)) = (self.get(0), operand) else {
            return (None, self.stack_fault(false));
        };
        let order = self.context.compare(signalling, x, y);
        (order, self.settle())
    }

    /// FXAM.
    pub(super) fn examine(&mut self) {
        let (sign_exponent, significand) = self.raw(0);
        let x = Float::from_x87(sign_exponent, significand);
        let class = match x.class {
            _ if self.is_empty(0) => C3 | C0,
            Class::Unsupported => 0,
            Class::Nan => C0,
            Class::Infinity => C2 | C0,
            Class::Zero => C3,
            Class::Finite if x.denormal => C3 | C2,
            Class::Finite => C2,
        };
        let sign = if x.negative { C1 } else { 0 };
        self.set_conditions(C0 | C1 | C2 | C3, class | sign);
    }
}
