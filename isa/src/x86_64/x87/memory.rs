//! Values in and out: loads, stores, constants, moves within the stack.

use super::unit::Unit;
use super::{Format, Request, WITHHELD};
use crate::softfloat::exception::{DENORMAL, INEXACT, INVALID, OVERFLOW, UNDERFLOW};
use crate::softfloat::{self, Float, RoundingMode};

/// The packed decimal indefinite.
const DECIMAL_INDEFINITE: u128 = 0xffff_c000_0000_0000_0000;
/// Bits of the constants' exponents and significands; log2 10, log2 e, π, log10 2, ln 2 with 128 bits.
const CONSTANTS: [(i32, u128); 7] = [
    (0, 1 << 127),
    (1, 0xd49a_784b_cd1b_8afe_492b_f6ff_4daf_db4c),
    (0, 0xb8aa_3b29_5c17_f0bb_be87_fed0_691d_3e88),
    (1, 0xc90f_daa2_2168_c234_c4c6_628b_80dc_1cd1),
    (-2, 0x9a20_9a84_fbcf_f798_8f89_59ac_0b7c_9178),
    (-1, 0xb172_17f7_d1cf_79ab_c9e3_b398_03f2_f6af),
    (0, 0),
];

impl Unit<'_> {
    /// The operand as a value. Single and double precision ones are converted, with the exceptions of that.
    pub(super) fn operand(&mut self, request: &Request) -> Option<Float> {
        let bits = request.bits;
        Some(match request.format {
            Format::Register => return self.get(bits as u8 & 7),
            Format::F32 => Float::from_bits(softfloat::Format::F32, bits as u64),
            Format::F64 => Float::from_bits(softfloat::Format::F64, bits as u64),
            Format::F80 => Float::from_x87((bits >> 64) as u16, bits as u64),
            Format::I16 => self.integer(i64::from(bits as i16)),
            Format::I32 => self.integer(i64::from(bits as i32)),
            Format::I64 => self.integer(bits as i64),
            Format::Decimal => decimal(bits),
        })
    }

    fn integer(&mut self, value: i64) -> Float {
        self.context.from_int(softfloat::Format::X87, value)
    }

    pub(super) fn load(&mut self, request: Request) {
        match request.format {
            Format::F80 => self.push(((request.bits >> 64) as u16, request.bits as u64)),
            Format::Register if self.is_empty(request.bits as u8 & 7) => self.load_empty(),
            Format::Register => self.push(self.raw(request.bits as u8 & 7)),
            _ => {
                let Some(value) = self.operand(&request) else { return };
                let value = self.context.convert(softfloat::Format::X87, value);
                if !self.is_empty(7) {
                    self.context.raised = 0;
                }
                // A denormal value is loaded even if that exception is unmasked.
                self.context.masked |= DENORMAL;
                self.push(value.to_x87());
            }
        }
    }

    fn load_empty(&mut self) {
        if self.stack_fault(false) {
            self.set_top(self.top() + 7);
            self.set(0, Float::INDEFINITE);
        }
    }

    pub(super) fn load_constant(&mut self, number: usize) {
        let (exponent, significand) = CONSTANTS[number % CONSTANTS.len()];
        let value = match significand {
            0 => Float::zero(false),
            _ => self.context.round(softfloat::Format::X87, false, exponent, significand),
        };
        self.context.raised = 0;
        self.push(value.to_x87());
    }

    /// The bits of ST(0) in a format, unless they are withheld. Only the context changes.
    pub(super) fn store(&mut self, format: Format, mode: RoundingMode) -> u128 {
        let bits = match self.get(0) {
            Some(value) => self.converted(format, mode, value),
            None => {
                self.context.raise(INVALID);
                indefinite(format)
            }
        };
        let unmasked = self.context.raised & !self.context.masked;
        if unmasked & (INVALID | OVERFLOW | UNDERFLOW) == 0 {
            return bits;
        }
        self.context.raised &= !INEXACT;
        WITHHELD
    }

    /// [`Unit::store`] with its consequences.
    pub(super) fn stored(&mut self, request: Request, mode: RoundingMode) {
        let withheld = self.store(request.format, mode) == WITHHELD;
        if self.is_empty(0) {
            self.stack_fault(false);
        } else {
            self.settle();
        }
        if !withheld {
            (0..request.pops).for_each(|_| self.pop());
        }
    }

    fn converted(&mut self, format: Format, mode: RoundingMode, value: Float) -> u128 {
        match format {
            Format::F32 => self.convert_float(softfloat::Format::F32, value),
            Format::F64 => self.convert_float(softfloat::Format::F64, value),
            Format::I16 => self.convert_integer(mode, value, 16),
            Format::I32 => self.convert_integer(mode, value, 32),
            Format::I64 => self.convert_integer(mode, value, 64),
            Format::Decimal => self.convert_decimal(mode, value),
            Format::F80 | Format::Register => {
                let (sign_exponent, significand) = self.raw(0);
                u128::from(sign_exponent) << 64 | u128::from(significand)
            }
        }
    }

    /// A denormal value is no exception to a store.
    fn convert_float(&mut self, to: softfloat::Format, value: Float) -> u128 {
        self.context.wrap_exponent = None;
        let converted = self.context.convert(to, value);
        self.context.raised &= !DENORMAL;
        converted.to_bits(to).into()
    }

    fn convert_integer(&mut self, mode: RoundingMode, value: Float, bits: u32) -> u128 {
        let integer = self.context.to_int(mode, value, bits).unwrap_or(i64::MIN >> (64 - bits));
        u128::from(integer as u64) & ((1 << bits) - 1)
    }

    fn convert_decimal(&mut self, mode: RoundingMode, value: Float) -> u128 {
        let before = self.context;
        let integer = self.context.to_int(mode, value, 64);
        let Some(mut rest) = integer.map(i64::unsigned_abs).filter(|&n| n < 10u64.pow(18)) else {
            self.context = before;
            self.context.raise(INVALID);
            return DECIMAL_INDEFINITE;
        };
        let mut bits = u128::from(value.negative) << 79;
        for digit in 0..18 {
            bits |= u128::from(rest % 10) << (4 * digit);
            rest /= 10;
        }
        bits
    }

    pub(super) fn store_register(&mut self, request: Request) {
        if self.is_empty(0) {
            return self.underflow(request.destination, request.pops);
        }
        self.settle();
        self.set_bits(request.destination, self.raw(0));
        (0..request.pops).for_each(|_| self.pop());
    }

    /// FXCH. An empty register is taken for an indefinite one.
    pub(super) fn exchange(&mut self, other: u8) {
        if (self.is_empty(0) || self.is_empty(other)) && !self.stack_fault(false) {
            return;
        }
        self.set_c1(false);
        for index in [0, other] {
            if self.is_empty(index) {
                self.set(index, Float::INDEFINITE);
            }
        }
        let (a, b) = (self.raw(0), self.raw(other));
        self.set_raw(0, b);
        self.set_raw(other, a);
    }

    /// FCMOVcc. C1 stays unless the stack underflows (undefined; as AMD has it).
    pub(super) fn move_if(&mut self, from: u8, condition: bool) {
        if self.is_empty(0) || self.is_empty(from) {
            return self.underflow(0, 0);
        }
        if condition {
            self.set_bits(0, self.raw(from));
        }
    }
}

/// What a masked invalid store stores.
fn indefinite(format: Format) -> u128 {
    match format {
        Format::F32 => 0xffc0_0000,
        Format::F64 => 0xfff8 << 48,
        Format::F80 | Format::Register => 0xffff_c000 << 48,
        Format::I16 => 1 << 15,
        Format::I32 => 1 << 31,
        Format::I64 => 1 << 63,
        Format::Decimal => DECIMAL_INDEFINITE,
    }
}

/// A packed decimal's value: 18 digits and a sign.
fn decimal(bits: u128) -> Float {
    let magnitude = (0..18).rev().fold(0u64, |sum, digit| sum * 10 + (bits >> (4 * digit) & 15) as u64);
    Float::finite(bits >> 79 != 0, 63, magnitude)
}
