//! Control, status, environment and whole images of the unit; and MMX registers.

use super::Operation::{self, *};
use super::unit::{STACK_FAULT, SUMMARY, Unit};
use crate::softfloat::exception::ALL;
use crate::softfloat::{Class, Float};

/// Control word after FNINIT.
const INITIAL_CONTROL: u16 = 0x37f;
/// FCW: bits that hold nothing, bit 6 reads as one.
const CONTROL_USED: u16 = 0x1f3f;
const CONTROL_ONES: u16 = 0x40;

impl Unit<'_> {
    /// Operations that no pending exception hinders, if `operation` is one.
    pub(super) fn transfer(&mut self, operation: Operation, a: u128, b: u128) -> Option<u128> {
        let index = a as u8 & 7;
        Some(match operation {
            ControlWord => self.state.control.into(),
            StatusWord => self.state.status.into(),
            ClearExceptions => self.done(|unit| unit.clear_exceptions()),
            Initialize => self.done(|unit| unit.initialize()),
            MaskAll => self.done(|unit| {
                unit.state.control |= u16::from(ALL);
                unit.summarize();
            }),
            EnvironmentLow => self.environment(),
            EnvironmentHigh => self.environment_high(),
            Register => {
                let (sign_exponent, significand) = self.raw(index);
                u128::from(sign_exponent) << 64 | u128::from(significand)
            }
            SetRegister => self.done(|unit| unit.set_raw(index, ((b >> 64) as u16, b as u64))),
            ImageLow => self.image(),
            ImageHigh => {
                if self.exception_is_pending() {
                    self.state.data.into()
                } else {
                    0
                }
            }
            SetImage => self.done(|unit| unit.set_image(a, b as u64)),
            _ => return None,
        })
    }

    /// Operations that are no arithmetic and leave no trace of where they are, if `operation` is one.
    pub(super) fn control(&mut self, operation: Operation, a: u128, b: u128) -> Option<u128> {
        Some(match operation {
            Wait => 0,
            SetControlWord => self.done(|unit| unit.set_control(a as u16)),
            SetEnvironment => self.done(|unit| unit.set_environment(a, b)),
            MmxRead => self.state.significand[a as usize & 7].into(),
            MmxEnter => self.done(|unit| unit.enter_mmx()),
            MmxWrite => self.done(|unit| {
                unit.enter_mmx();
                unit.state.significand[a as usize & 7] = b as u64;
                unit.state.sign_exponent[a as usize & 7] = 0xffff;
            }),
            MmxEmpty => self.done(|unit| {
                unit.enter_mmx();
                unit.state.valid = 0;
            }),
            _ => return None,
        })
    }

    fn done(&mut self, action: impl FnOnce(&mut Self)) -> u128 {
        action(self);
        0
    }

    fn clear_exceptions(&mut self) {
        self.set_conditions(u16::from(ALL) | STACK_FAULT | SUMMARY, 0);
        self.summarize();
    }

    fn initialize(&mut self) {
        let state = &mut self.state;
        (state.control, state.status, state.valid) = (INITIAL_CONTROL, 0, 0);
        (state.instruction, state.data, state.opcode) = (0, 0, 0);
    }

    fn set_control(&mut self, control: u16) {
        self.state.control = control & CONTROL_USED | CONTROL_ONES;
        self.summarize();
    }

    fn enter_mmx(&mut self) {
        self.set_top(0);
        self.state.valid = 0xff;
    }

    /// The full tag word: two bits per physical register, 0 valid, 1 zero, 2 special, 3 empty.
    fn tags(&self) -> u16 {
        (0..8).fold(0, |tags, n| {
            let value = Float::from_x87(self.state.sign_exponent[n], self.state.significand[n]);
            let tag = match value.class {
                _ if self.state.valid >> n & 1 == 0 => 3,
                Class::Zero => 1,
                Class::Finite if !value.denormal => 0,
                _ => 2,
            };
            tags | tag << (2 * n)
        })
    }

    /// FCW, FSW, FTW, FIP as the 32-bit protected mode format has them; SDM vol. 1, figure 8-9.
    fn environment(&self) -> u128 {
        let words = [self.state.control, self.state.status, self.tags()].map(|w| 0xffff_0000 | u128::from(w));
        words[0] | words[1] << 32 | words[2] << 64 | (self.state.instruction as u32 as u128) << 96
    }

    /// FOP, FDP; selectors are zero.
    fn environment_high(&self) -> u128 {
        u128::from(self.state.opcode) << 16 | (self.state.data as u32 as u128) << 32 | 0xffff_0000 << 64
    }

    fn set_environment(&mut self, low: u128, high: u128) {
        self.state.status = (low >> 32) as u16;
        let tags = (low >> 64) as u16;
        self.state.valid = (0..8).filter(|n| tags >> (2 * n) & 3 != 3).fold(0, |valid, n| valid | 1 << n);
        self.state.instruction = u64::from((low >> 96) as u32);
        self.state.opcode = (high >> 16) as u16 & 0x7ff;
        self.state.data = u64::from((high >> 32) as u32);
        self.set_control(low as u16);
    }

    /// FCW, FSW, abridged tags, FOP, FIP as FXSAVE64 has them; SDM vol. 1, table 10-2. The last two only while
    /// an exception is pending, as AMD does it (APM vol. 2, 11.4.4).
    fn image(&self) -> u128 {
        let state = &self.state;
        let words =
            u128::from(state.control) | u128::from(state.status) << 16 | u128::from(state.valid) << 32;
        let pointers = u128::from(state.opcode) << 48 | u128::from(state.instruction) << 64;
        if self.exception_is_pending() { words | pointers } else { words }
    }

    fn set_image(&mut self, low: u128, data: u64) {
        self.state.status = (low >> 16) as u16;
        self.state.valid = (low >> 32) as u8;
        self.set_control(low as u16);
        if self.exception_is_pending() {
            self.state.opcode = (low >> 48) as u16 & 0x7ff;
            self.state.instruction = (low >> 64) as u64;
            self.state.data = data;
        }
    }
}
