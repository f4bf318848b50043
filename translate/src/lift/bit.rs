//! One-bit values. Float comparisons stay symbolic until they are used: `ucomisd` sets three flags, a
//! condition then joins some of them, and what comes out is mostly one comparison of the host's.

use super::Lifter;
use crate::ir::{Ir, built};
use inkwell::values::{BasicValueEnum, FloatValue, IntValue};

/// The four ways in which two floats compare, as a set: bits as in LLVM's predicates, where 2 is greater.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Outcomes(u8);

impl Outcomes {
    pub(super) const EQUAL: Outcomes = Outcomes(1);
    pub(super) const LESS: Outcomes = Outcomes(4);
    pub(super) const UNORDERED: Outcomes = Outcomes(8);

    pub(super) const fn union(self, other: Outcomes) -> Outcomes {
        Outcomes(self.0 | other.0)
    }

    const fn complement(self) -> Outcomes {
        Outcomes(!self.0 & 15)
    }

    const fn intersection(self, other: Outcomes) -> Outcomes {
        Outcomes(self.0 & other.0)
    }

    /// The predicate as LLVM's constrained comparisons name it, where it is neither never nor always true.
    const fn predicate(self) -> Option<&'static str> {
        const NAMES: [&str; 16] = [
            "", "oeq", "ogt", "oge", "olt", "ole", "one", "ord", "uno", "ueq", "ugt", "uge", "ult", "ule",
            "une", "",
        ];
        match self.0 {
            0 | 15 => None,
            n => Some(NAMES[n as usize]),
        }
    }
}

/// A comparison of two floats: true for some of its outcomes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct FloatTest<'c> {
    pub(super) a: FloatValue<'c>,
    pub(super) b: FloatValue<'c>,
    /// A quiet NaN raises the invalid exception.
    pub(super) signalling: bool,
    pub(super) outcomes: Outcomes,
}

impl<'c> FloatTest<'c> {
    fn with(self, outcomes: Outcomes) -> Bit<'c> {
        match outcomes {
            Outcomes(0) => Bit::Known(false),
            Outcomes(15) => Bit::Known(true),
            _ => Bit::Float(FloatTest { outcomes, ..self }),
        }
    }

    fn same_operands(self, other: FloatTest<'c>) -> bool {
        self.a == other.a && self.b == other.b && self.signalling == other.signalling
    }
}

/// One bit.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Bit<'c> {
    Known(bool),
    Value(IntValue<'c>),
    Float(FloatTest<'c>),
}

impl<'c> Bit<'c> {
    /// An `i1`, seen through if it is constant.
    pub(super) fn of(value: IntValue<'c>) -> Bit<'c> {
        match value.get_zero_extended_constant() {
            Some(constant) => Bit::Known(constant != 0),
            None => Bit::Value(value),
        }
    }
}

/// Emit a comparison that raises exceptions as the guest's does, of floats or lane by lane. One whose
/// outcome nothing reads may be left out, so that two flags of one comparison share one.
pub(super) fn constrained_compare<'c>(
    ir: &Ir<'c>,
    outcomes: Outcomes,
    signalling: bool,
    a: BasicValueEnum<'c>,
    b: BasicValueEnum<'c>,
) -> BasicValueEnum<'c> {
    let predicate = outcomes.predicate().expect("a comparison that is always or never true is a constant");
    let name =
        if signalling { "llvm.experimental.constrained.fcmps" } else { "llvm.experimental.constrained.fcmp" };
    let text = |t| ir.context.metadata_string(t).into();
    Ir::result(ir.intrinsic(
        name,
        &[a.get_type()],
        &[a.into(), b.into(), text(predicate), text("fpexcept.maytrap")],
    ))
}

impl<'c> Lifter<'_, 'c> {
    /// The bit as an `i1`.
    pub(super) fn materialize(&mut self, bit: Bit<'c>) -> IntValue<'c> {
        match bit {
            Bit::Known(value) => self.ir.context.bool_type().const_int(value.into(), false),
            Bit::Value(value) => value,
            Bit::Float(FloatTest { a, b, signalling, outcomes }) => {
                constrained_compare(self.ir, outcomes, signalling, a.into(), b.into()).into_int_value()
            }
        }
    }

    pub(super) fn bit_and(&mut self, a: Bit<'c>, b: Bit<'c>) -> Bit<'c> {
        match (a, b) {
            (Bit::Known(false), _) | (_, Bit::Known(false)) => Bit::Known(false),
            (Bit::Known(true), other) | (other, Bit::Known(true)) => other,
            (Bit::Float(x), Bit::Float(y)) if x.same_operands(y) => {
                x.with(x.outcomes.intersection(y.outcomes))
            }
            _ => {
                let (a, b) = (self.materialize(a), self.materialize(b));
                Bit::of(built(self.ir.builder.build_and(a, b, "")))
            }
        }
    }

    pub(super) fn bit_or(&mut self, a: Bit<'c>, b: Bit<'c>) -> Bit<'c> {
        match (a, b) {
            (Bit::Known(true), _) | (_, Bit::Known(true)) => Bit::Known(true),
            (Bit::Known(false), other) | (other, Bit::Known(false)) => other,
            (Bit::Float(x), Bit::Float(y)) if x.same_operands(y) => x.with(x.outcomes.union(y.outcomes)),
            _ => {
                let (a, b) = (self.materialize(a), self.materialize(b));
                Bit::of(built(self.ir.builder.build_or(a, b, "")))
            }
        }
    }

    pub(super) fn bit_xor(&mut self, a: Bit<'c>, b: Bit<'c>) -> Bit<'c> {
        match (a, b) {
            (Bit::Known(false), other) | (other, Bit::Known(false)) => other,
            (Bit::Known(true), other) | (other, Bit::Known(true)) => self.bit_not(other),
            _ => {
                let (a, b) = (self.materialize(a), self.materialize(b));
                Bit::of(built(self.ir.builder.build_xor(a, b, "")))
            }
        }
    }

    pub(super) fn bit_not(&mut self, a: Bit<'c>) -> Bit<'c> {
        match a {
            Bit::Known(value) => Bit::Known(!value),
            Bit::Value(value) => Bit::of(built(self.ir.builder.build_not(value, ""))),
            Bit::Float(test) => test.with(test.outcomes.complement()),
        }
    }
}
