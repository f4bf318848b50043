//! The x87 unit: what its operations do to its part of the register file. Blocks compute addresses and
//! access memory, and exchange 128-bit values with it through [`Machine::coprocessor`].
//!
//! An operation takes a [`Request`] as first operand and, as second, where the instruction is (low half) and
//! where its memory operand is (high half). Sources: SDM vol. 1, chapter 8; vol. 2 for each instruction.
//!
//! [`Machine::coprocessor`]: crate::machine::Machine::coprocessor

mod arithmetic;
mod compare;
mod environment;
mod memory;
mod remainder;
mod transcendental;
mod unit;
mod wide;

use super::X87;
use crate::softfloat::RoundingMode;
use unit::Unit;

/// Bit of an answer: an unmasked exception of an earlier instruction was pending, and nothing was done.
pub const PENDING: u128 = 1 << 127;
/// Bit of an answer: an unmasked exception keeps the result from its destination outside of the unit.
pub const WITHHELD: u128 = 1 << 126;

/// First number of [`Operation`].
pub const FIRST: u32 = 0x100;

macro_rules! operations {
    ($(#[doc = $first_doc:literal])+ $first:ident, $($(#[doc = $doc:literal])+ $name:ident,)+) => {
        /// What the unit can be asked to do. Compiled code holds these numbers.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u32)]
        pub enum Operation {
            $(#[doc = $first_doc])+
            $first = FIRST,
            $($(#[doc = $doc])+ $name,)+
        }

        impl Operation {
            /// The operation of a number.
            pub fn from_number(number: u32) -> Option<Operation> {
                [Operation::$first, $(Operation::$name),+].get(number.checked_sub(FIRST)? as usize).copied()
            }
        }
    };
}

operations! {
    /// Push the operand.
    Load,
    /// Push the constant that the operand counts: 1, log2 10, log2 e, π, log10 2, ln 2, 0.
    LoadConstant,
    /// Yield ST(0) in the operand's format. Nothing else changes: memory may refuse the store.
    Store,
    /// [`Operation::Store`], truncating.
    StoreTruncated,
    /// The store has been made (or withheld): enter its exceptions, pop.
    Stored,
    /// [`Operation::Stored`], truncating.
    StoredTruncated,
    /// Copy ST(0) to ST(operand).
    StoreRegister,
    /// Exchange ST(0) with ST(operand).
    Exchange,
    /// Copy ST(operand) to ST(0) if bit 8 of the operand is set.
    MoveIf,
    /// Sum.
    Add,
    /// Product.
    Mul,
    /// Destination less operand.
    Sub,
    /// Operand less destination.
    SubReverse,
    /// Destination by operand.
    Div,
    /// Operand by destination.
    DivReverse,
    /// Change sign.
    Negate,
    /// Clear sign.
    Absolute,
    /// Square root.
    SquareRoot,
    /// Round to integral.
    Round,
    /// Scale by a power of two.
    Scale,
    /// Take apart into exponent and significand.
    Extract,
    /// Truncating remainder.
    Remainder,
    /// IEEE remainder.
    RemainderNearest,
    /// Compare into condition codes.
    Compare,
    /// The same; a quiet NaN is not invalid.
    CompareQuiet,
    /// Compare; yields bit 0: below or unordered, 1: unordered, 2: equal or unordered.
    CompareFlags,
    /// The same; a quiet NaN is not invalid.
    CompareFlagsQuiet,
    /// Compare with zero.
    Test,
    /// Classify.
    Examine,
    /// 2^x − 1.
    Exp2Minus1,
    /// y log2 x.
    YLog2X,
    /// y log2 (x + 1).
    YLog2XPlus1,
    /// Sine.
    Sine,
    /// Cosine.
    Cosine,
    /// Sine, and cosine pushed.
    SineCosine,
    /// Tangent, and 1 pushed.
    Tangent,
    /// Arctangent of y ÷ x.
    Arctangent,
    /// Empty ST(operand).
    Free,
    /// Turn the stack, up.
    IncrementTop,
    /// Turn the stack, down.
    DecrementTop,
    /// Look for a pending exception.
    Wait,
    /// Nothing at all (FNOP).
    Nothing,
    /// Yield the control word. Never pending.
    ControlWord,
    /// Set the control word.
    SetControlWord,
    /// Yield the status word. Never pending.
    StatusWord,
    /// Clear exceptions. Never pending.
    ClearExceptions,
    /// FNINIT. Never pending.
    Initialize,
    /// Mask all exceptions. Never pending.
    MaskAll,
    /// The first 16 bytes of a 28-byte environment. Never pending.
    EnvironmentLow,
    /// The last 12 bytes of a 28-byte environment. Never pending.
    EnvironmentHigh,
    /// Set the environment: 16 bytes, 12 bytes.
    SetEnvironment,
    /// Raw bits of ST(operand). Never pending.
    Register,
    /// Set the raw bits of ST(first operand) to the second. Never pending.
    SetRegister,
    /// The first 16 bytes of an FXSAVE image. Never pending.
    ImageLow,
    /// The data pointer, 64 bits. Never pending.
    ImageHigh,
    /// Set the unit from the first 24 bytes of an FXSAVE image. Never pending.
    SetImage,
    /// MMX register. The unit stays in x87 state.
    MmxRead,
    /// Set MMX register (first operand) to the second.
    MmxWrite,
    /// Enter MMX state.
    MmxEnter,
    /// EMMS: all registers empty.
    MmxEmpty,
}

/// What kind of operand a [`Request`] has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Format {
    /// The register ST(bits).
    Register,
    /// binary32.
    F32,
    /// binary64.
    F64,
    /// Double extended.
    F80,
    /// 16-bit integer.
    I16,
    /// 32-bit integer.
    I32,
    /// 64-bit integer.
    I64,
    /// Packed decimal, 18 digits.
    Decimal,
}

/// An operand and what to do with it, as it is packed into 128 bits. The low 80 bits are the operand's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// Memory operand's bits, or number of the stack register.
    pub bits: u128,
    /// How to read them.
    pub format: Format,
    /// Result goes to ST(destination).
    pub destination: u8,
    /// Values to pop afterwards.
    pub pops: u8,
    /// It has a memory operand.
    pub in_memory: bool,
}

impl Request {
    /// As an operand of [`Machine::coprocessor`](crate::machine::Machine::coprocessor).
    pub const fn pack(self) -> u128 {
        self.bits
            | (self.format as u128) << 80
            | (self.destination as u128) << 84
            | (self.pops as u128) << 88
            | (self.in_memory as u128) << 96
    }

    const fn unpack(a: u128) -> Request {
        Request {
            bits: a & ((1 << 80) - 1),
            format: match a >> 80 & 15 {
                0 => Format::Register,
                1 => Format::F32,
                2 => Format::F64,
                3 => Format::F80,
                4 => Format::I16,
                5 => Format::I32,
                6 => Format::I64,
                _ => Format::Decimal,
            },
            destination: (a >> 84 & 7) as u8,
            pops: (a >> 88 & 3) as u8,
            in_memory: a >> 96 & 1 != 0,
        }
    }
}

/// Do the operation of number `operation`; an unknown one does nothing.
pub fn run(state: &mut X87, operation: u32, a: u128, b: u128) -> u128 {
    let Some(operation) = Operation::from_number(operation) else { return 0 };
    let mut unit = Unit::new(state);
    if let Some(answer) = unit.transfer(operation, a, b) {
        return answer;
    }
    if unit.exception_is_pending() {
        return PENDING;
    }
    if let Some(answer) = unit.control(operation, a, b) {
        return answer;
    }
    let request = Request::unpack(a);
    if let Some(mode) = unit.mode_of_store(operation) {
        return unit.store(request.format, mode);
    }
    unit.note_instruction(&request, b);
    unit.operate(operation, request)
}

impl Unit<'_> {
    /// How a store rounds, if `operation` is one.
    fn mode_of_store(&self, operation: Operation) -> Option<RoundingMode> {
        match operation {
            Operation::Store => Some(self.context.rounding),
            Operation::StoreTruncated => Some(RoundingMode::Zero),
            _ => None,
        }
    }

    /// Operations on values.
    fn operate(&mut self, operation: Operation, request: Request) -> u128 {
        use Operation::*;
        match operation {
            Load => self.load(request),
            LoadConstant => self.load_constant(request.bits as usize),
            Stored => self.stored(request, self.context.rounding),
            StoredTruncated => self.stored(request, RoundingMode::Zero),
            StoreRegister => self.store_register(request),
            Exchange => self.exchange(request.bits as u8 & 7),
            MoveIf => self.move_if(request.bits as u8 & 7, request.bits >> 8 & 1 != 0),
            Add | Mul | Sub | SubReverse | Div | DivReverse => self.binary(operation, request),
            Negate | Absolute => self.change_sign(operation == Negate),
            SquareRoot => self.square_root(),
            Round => self.round(),
            Scale => self.scale(),
            Extract => self.extract(),
            Remainder => self.remainder(false),
            RemainderNearest => self.remainder(true),
            Compare => self.compare(request, true),
            CompareQuiet => self.compare(request, false),
            CompareFlags => return self.compare_flags(request, true),
            CompareFlagsQuiet => return self.compare_flags(request, false),
            Test => self.test(),
            Examine => self.examine(),
            Exp2Minus1 | Sine | Cosine => self.transcendental(operation),
            YLog2X | YLog2XPlus1 | Arctangent => self.transcendental_pair(operation),
            SineCosine | Tangent => self.transcendental_push(operation),
            Free => self.free(request),
            IncrementTop => self.turn(1),
            DecrementTop => self.turn(-1),
            _ => {}
        }
        0
    }
}
