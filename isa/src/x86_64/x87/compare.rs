//! Comparison and classification.

use super::unit::{C0, C1, C2, C3, Unit};
use super::{Request, WITHHELD};
use crate::softfloat::{Class, Float};
use core::cmp::Ordering;

impl Unit<'_> {
    /// FCOM, FUCOM and theirs.
    pub(super) fn compare(&mut self, request: Request, signalling: bool) {
        let operand = self.operand(&request);
        if let Some(order) = self.order(operand, signalling) {
            let codes = match order {
                Some(Ordering::Less) => C0,
                Some(Ordering::Equal) => C3,
                Some(Ordering::Greater) => 0,
                None => C0 | C2 | C3,
            };
            self.set_conditions(C0 | C2 | C3, codes);
            (0..request.pops).for_each(|_| self.pop());
        }
    }

    /// FCOMI, FUCOMI and theirs.
    pub(super) fn compare_flags(&mut self, request: Request, signalling: bool) -> u128 {
        let operand = self.operand(&request);
        let Some(order) = self.order(operand, signalling) else { return WITHHELD };
        (0..request.pops).for_each(|_| self.pop());
        match order {
            Some(Ordering::Less) => 1,
            Some(Ordering::Equal) => 4,
            Some(Ordering::Greater) => 0,
            None => 7,
        }
    }

    pub(super) fn test(&mut self) {
        if let Some(order) = self.order(Some(Float::zero(false)), true) {
            let codes = match order {
                Some(Ordering::Less) => C0,
                Some(Ordering::Equal) => C3,
                Some(Ordering::Greater) => 0,
                None => C0 | C2 | C3,
            };
            self.set_conditions(C0 | C2 | C3, codes);
        }
    }

    /// How ST(0) compares with the operand; an empty register is unordered. Nothing if an unmasked exception forbids an answer.
    fn order(&mut self, operand: Option<Float>, signalling: bool) -> Option<Option<Ordering>> {
        let (Some(x), Some(y)) = (self.get(0), operand) else {
            return self.stack_fault(false).then_some(None);
        };
        let order = self.context.compare(signalling, x, y);
        self.settle().then_some(order)
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
