//! Arithmetic on ST(0) and one operand.

use super::unit::Unit;
use super::{Operation, Request};
use crate::softfloat::exception::DIVIDE_BY_ZERO;
use crate::softfloat::{Class, Float, Format};

impl Unit<'_> {
    /// The six with two operands.
    pub(super) fn binary(&mut self, operation: Operation, request: Request) {
        let (x, y) = (self.get(request.destination), self.operand(&request));
        let (Some(x), Some(y)) = (x, y) else {
            return self.underflow(request.destination, request.pops);
        };
        let format = self.precision();
        let context = &mut self.context;
        let result = match operation {
            Operation::Add => context.add(format, x, y),
            Operation::Mul => context.mul(format, x, y),
            Operation::Sub => context.sub(format, x, y),
            Operation::SubReverse => context.sub(format, y, x),
            Operation::Div => context.div(format, x, y),
            _ => context.div(format, y, x),
        };
        self.deliver(request.destination, result, request.pops);
    }

    /// FCHS, FABS: bits only.
    pub(super) fn change_sign(&mut self, negate: bool) {
        if self.is_empty(0) {
            return self.underflow(0, 0);
        }
        self.settle();
        let (sign_exponent, significand) = self.raw(0);
        let sign_exponent = if negate { sign_exponent ^ 1 << 15 } else { sign_exponent & 0x7fff };
        self.set_raw(0, (sign_exponent, significand));
    }

    pub(super) fn square_root(&mut self) {
        let Some(x) = self.get(0) else { return self.underflow(0, 0) };
        let format = self.precision();
        let root = self.context.sqrt(format, x);
        self.deliver(0, root, 0);
    }

    /// FRNDINT.
    pub(super) fn round(&mut self) {
        let Some(x) = self.get(0) else { return self.underflow(0, 0) };
        let result = match self.context.nan_result(&[x]) {
            Some(nan) => nan,
            None => {
                self.context.note_denormals(&[x]);
                self.context.round_to_integral(self.context.rounding, x)
            }
        };
        self.deliver(0, result, 0);
    }

    /// FSCALE: ST(0) × 2^trunc(ST(1)).
    pub(super) fn scale(&mut self) {
        let (Some(x), Some(by)) = (self.get(0), self.get(1)) else { return self.underflow(0, 0) };
        let result = self.scaled(x, by);
        self.deliver(0, result, 0);
    }

    fn scaled(&mut self, x: Float, by: Float) -> Float {
        if let Some(nan) = self.context.nan_result(&[x, by]) {
            return nan;
        }
        match (x.class, by.class, by.negative) {
            (Class::Zero, Class::Infinity, false) | (Class::Infinity, Class::Infinity, true) => {
                return self.context.invalid();
            }
            _ => self.context.note_denormals(&[x, by]),
        }
        match (x.class, by.class) {
            (_, Class::Infinity) if by.negative => Float::zero(x.negative),
            (_, Class::Infinity) => Float::infinity(x.negative),
            (Class::Finite, Class::Finite) => {
                let exponent = x.exponent + truncated(by);
                self.context.round(Format::X87, x.negative, exponent, u128::from(x.significand) << 64)
            }
            _ => x,
        }
    }

    /// FXTRACT: the exponent replaces ST(0), then the significand is pushed.
    pub(super) fn extract(&mut self) {
        let Some(x) = self.get(0) else { return self.underflow_pair() };
        if !self.is_empty(7) {
            return self.overflow_pair();
        }
        let (exponent, significand) = match self.context.nan_result(&[x]) {
            Some(nan) => (nan, nan),
            None => self.taken_apart(x),
        };
        self.deliver_pair(exponent, significand);
    }

    fn taken_apart(&mut self, x: Float) -> (Float, Float) {
        self.context.note_denormals(&[x]);
        match x.class {
            Class::Zero => {
                self.context.raise(DIVIDE_BY_ZERO);
                (Float::infinity(true), x)
            }
            Class::Finite => {
                let exponent = self.context.from_int(Format::X87, x.exponent.into());
                (exponent, Float::finite(x.negative, 0, x.significand))
            }
            _ => (Float::infinity(false), x),
        }
    }

    /// The operand of an operation with two results was empty.
    pub(super) fn underflow_pair(&mut self) {
        if self.stack_fault(false) {
            self.replace_and_push(Float::INDEFINITE, Float::INDEFINITE);
        }
    }

    /// There is no room for the second of two results.
    pub(super) fn overflow_pair(&mut self) {
        if self.stack_fault(true) {
            self.replace_and_push(Float::INDEFINITE, Float::INDEFINITE);
        }
    }

    /// Finish an operation with two results.
    pub(super) fn deliver_pair(&mut self, first: Float, second: Float) {
        if self.settle() {
            self.replace_and_push(first, second);
        }
    }

    fn replace_and_push(&mut self, first: Float, second: Float) {
        self.set(0, first);
        self.set_top(self.top() + 7);
        self.set(0, second);
    }
}

/// The integer part, clamped to what moves any exponent out of range.
fn truncated(x: Float) -> i32 {
    const LIMIT: i32 = 1 << 17;
    let magnitude = match x.exponent {
        ..0 => 0,
        0..17 => (x.significand >> (63 - x.exponent)) as i32,
        _ => LIMIT,
    };
    if x.negative { -magnitude } else { magnitude }
}
