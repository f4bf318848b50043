//! The interpreter's [`Machine`]: every operation done at once on values.

use super::lanes::all_ones_if;
use super::{Fault, Host, Integer, Step, Vector, float};
use crate::machine::{
    AtomicOp, BinOp, CmpOp, FloatCmp, FloatFormat, FloatOp, LaneOp, Machine, NanRule, Negated, Rounding,
    Target, Trap, UnOp, Width,
};
use crate::x86_64::{Cpu, Reg, coprocessor};

/// One instruction in execution. Once a trap or a refused access has stopped it, nothing is written any
/// more and loads yield zero, so that a block needs no early exits.
pub struct Interpreter<'a, H> {
    cpu: &'a mut Cpu,
    host: &'a mut H,
    /// What `rip` becomes.
    next: u64,
    step: Step,
    /// Exceptions are not noted, and rounding is this.
    quiet: Option<Rounding>,
}

impl<'a, H: Host> Interpreter<'a, H> {
    /// About to execute the instruction at `cpu.rip` that ends at `next`.
    pub(super) fn new(cpu: &'a mut Cpu, host: &'a mut H, next: u64) -> Self {
        Interpreter { cpu, host, next, step: Step::Next, quiet: None }
    }

    /// Advance `rip` as the outcome asks.
    pub(super) fn finish(self) -> Step {
        let stays = match self.step {
            Step::Trapped(trap) => !matches!(trap, Trap::Breakpoint | Trap::Debug),
            Step::Faulted(_) | Step::Absent => true,
            _ => false,
        };
        if !stays {
            self.cpu.rip = self.next;
        }
        self.step
    }

    fn stopped(&self) -> bool {
        matches!(self.step, Step::Trapped(_) | Step::Faulted(_))
    }

    /// Do a memory access, unless stopped; a refused one stops the instruction.
    fn access<T: Default>(&mut self, access: impl FnOnce(&mut H) -> Result<T, Fault>) -> T {
        if self.stopped() {
            return T::default();
        }
        access(self.host).unwrap_or_else(|fault| {
            self.step = Step::Faulted(fault);
            T::default()
        })
    }

    /// Leave for `target`.
    fn leave(&mut self, step: Step, target: Target<Integer>) {
        if self.stopped() {
            return;
        }
        self.step = step;
        self.next = match target {
            Target::Direct(address) => address,
            Target::Indirect(address) => address.low(),
        };
    }

    /// Do a floating-point operation; an exception that MXCSR does not mask stops the instruction, and one
    /// that the operands raise does so before the result can raise any.
    fn float_op<T>(&mut self, operation: impl FnOnce(&mut u32) -> T) -> T {
        let mut mxcsr = self.cpu.mxcsr & !MXCSR_FLAGS;
        if let Some(rounding) = self.quiet {
            mxcsr |= MXCSR_FLAGS << MXCSR_MASK_SHIFT;
            if let Some(field) = float::rounding_field(rounding) {
                mxcsr = mxcsr & !(3 << float::ROUNDING) | field << float::ROUNDING;
            }
            return operation(&mut mxcsr);
        }
        let result = operation(&mut mxcsr);
        if !self.stopped() {
            let unmasked = !(self.cpu.mxcsr >> MXCSR_MASK_SHIFT) & MXCSR_FLAGS;
            let raised = mxcsr
                & if mxcsr & MXCSR_OPERAND_FLAGS & unmasked != 0 { MXCSR_OPERAND_FLAGS } else { MXCSR_FLAGS };
            self.cpu.mxcsr |= raised;
            if raised & unmasked != 0 {
                self.step = Step::Trapped(Trap::FloatingPoint);
            }
        }
        result
    }
}

/// Lane `i` of the result, `to` wide, made of lane `i` of `a`, for as many as both have; zero above.
fn convert_lanes(a: &Vector, from: Width, to: Width, mut convert: impl FnMut(Integer) -> u64) -> Vector {
    let mut result = Vector::zero(a.bits);
    for n in 0..a.lane_count(from).min(a.lane_count(to)) {
        result.set_lane(n, Integer::new(to, convert(a.lane(from, n)).into()));
    }
    result
}

/// The six sticky exception flags of MXCSR.
const MXCSR_FLAGS: u32 = 0x3f;
/// Those that depend on the operands alone: invalid, denormal, division by zero.
const MXCSR_OPERAND_FLAGS: u32 = 0x07;
/// Their masks are this far above them.
const MXCSR_MASK_SHIFT: u32 = 7;

impl<H: Host> Machine for Interpreter<'_, H> {
    type Int = Integer;
    type Bool = bool;
    type Vec = Vector;
    type Reg = Reg;

    #[inline]
    fn int(&mut self, width: Width, value: u64) -> Integer {
        Integer::new(width, value.into())
    }
    #[inline]
    fn address(&mut self, address: u64) -> Integer {
        Integer::new(Width::W64, address.into())
    }
    #[inline]
    fn width(&self, value: Integer) -> Width {
        value.width
    }
    #[inline]
    fn bin(&mut self, op: BinOp, a: Integer, b: Integer) -> Integer {
        Integer::bin(op, a, b)
    }
    #[inline]
    fn un(&mut self, op: UnOp, a: Integer) -> Integer {
        Integer::un(op, a)
    }
    #[inline]
    fn cmp(&mut self, op: CmpOp, a: Integer, b: Integer) -> bool {
        Integer::cmp(op, a, b)
    }
    #[inline]
    fn zext(&mut self, a: Integer, width: Width) -> Integer {
        debug_assert!(a.width <= width);
        Integer::new(width, a.bits)
    }
    #[inline]
    fn sext(&mut self, a: Integer, width: Width) -> Integer {
        debug_assert!(a.width <= width);
        Integer::new(width, a.signed() as u128)
    }
    #[inline]
    fn trunc(&mut self, a: Integer, width: Width) -> Integer {
        debug_assert!(a.width >= width);
        Integer::new(width, a.bits)
    }
    #[inline]
    fn select(&mut self, cond: bool, a: Integer, b: Integer) -> Integer {
        debug_assert_eq!(a.width, b.width);
        if cond { a } else { b }
    }

    #[inline]
    fn bool(&mut self, value: bool) -> bool {
        value
    }
    #[inline]
    fn and(&mut self, a: bool, b: bool) -> bool {
        a & b
    }
    #[inline]
    fn or(&mut self, a: bool, b: bool) -> bool {
        a | b
    }
    #[inline]
    fn xor(&mut self, a: bool, b: bool) -> bool {
        a ^ b
    }
    #[inline]
    fn not(&mut self, a: bool) -> bool {
        !a
    }
    #[inline]
    fn bool_to_int(&mut self, a: bool, width: Width) -> Integer {
        Integer::new(width, a.into())
    }

    fn vec_bits(&self, v: Vector) -> u32 {
        v.bits
    }
    fn vec_resize(&mut self, v: Vector, bits: u32) -> Vector {
        let mut resized = Vector::zero(bits);
        let bytes = v.bits.min(bits) as usize / 8;
        resized.bytes[..bytes].copy_from_slice(&v.bytes[..bytes]);
        resized
    }
    fn vec_zero(&mut self, bits: u32) -> Vector {
        Vector::zero(bits)
    }
    fn vec_splat(&mut self, value: Integer, bits: u32) -> Vector {
        Vector::splat(value, bits)
    }
    fn lane(&mut self, v: Vector, lane: Width, index: u32) -> Integer {
        v.lane(lane, index)
    }
    fn set_lane(&mut self, mut v: Vector, index: u32, value: Integer) -> Vector {
        v.set_lane(index, value);
        v
    }
    fn lanes(&mut self, op: LaneOp, lane: Width, a: Vector, b: Vector) -> Vector {
        Vector::lanes(op, lane, &a, &b)
    }
    fn shuffle(&mut self, lane: Width, a: Vector, b: Vector, indices: &[u8]) -> Vector {
        Vector::shuffle(lane, &a, &b, indices)
    }
    fn widen_low(&mut self, v: Vector, lane: Width, signed: bool) -> Vector {
        v.widen_low(lane, signed)
    }
    fn narrow_saturating(&mut self, a: Vector, b: Vector, lane: Width, to_signed: bool) -> Vector {
        Vector::narrow_saturating(&a, &b, lane, to_signed)
    }
    fn sign_mask(&mut self, v: Vector, lane: Width, width: Width) -> Integer {
        v.sign_mask(lane, width)
    }

    fn mask_lanes(&mut self, mask: Integer, lane: Width, bits: u32) -> Vector {
        Vector::from_lanes(lane, bits, |n| all_ones_if(mask.bits >> n & 1 != 0, lane))
    }

    fn lookup(&mut self, table: Vector, indices: Vector) -> Vector {
        Vector::lookup(&table, &indices)
    }
    fn permute(&mut self, lane: Width, table: Vector, indices: Vector) -> Vector {
        Vector::permute(lane, &table, &indices)
    }
    fn carryless_mul(&mut self, a: Integer, b: Integer) -> Integer {
        Integer::carryless_mul(a, b)
    }

    fn float(&mut self, op: FloatOp, format: FloatFormat, nan: NanRule, a: Integer, b: Integer) -> Integer {
        let bits = self.float_op(|mxcsr| float::binary(mxcsr, op, format, nan, a.low(), b.low()));
        Integer::new(format.width(), bits.into())
    }
    fn float_fma(
        &mut self,
        format: FloatFormat,
        negated: Negated,
        nan: NanRule,
        operands: [Integer; 3],
    ) -> Integer {
        let operands = operands.map(Integer::low);
        let bits = self.float_op(|mxcsr| float::multiply_add(mxcsr, format, negated, nan, operands));
        Integer::new(format.width(), bits.into())
    }
    fn float_sqrt(&mut self, format: FloatFormat, nan: NanRule, a: Integer) -> Integer {
        let bits = self.float_op(|mxcsr| float::sqrt(mxcsr, format, nan, a.low()));
        Integer::new(format.width(), bits.into())
    }
    fn float_cmp(
        &mut self,
        op: FloatCmp,
        format: FloatFormat,
        signalling: bool,
        a: Integer,
        b: Integer,
    ) -> bool {
        self.float_op(|mxcsr| float::compare(mxcsr, op, format, signalling, a.low(), b.low()))
    }
    fn float_to_int(
        &mut self,
        format: FloatFormat,
        rounding: Rounding,
        a: Integer,
        width: Width,
        otherwise: u64,
    ) -> Integer {
        let bits = self.float_op(|mxcsr| float::to_int(mxcsr, format, rounding, a.low(), width, otherwise));
        Integer::new(width, bits.into())
    }
    fn int_to_float(&mut self, a: Integer, format: FloatFormat) -> Integer {
        let bits = self.float_op(|mxcsr| float::from_int(mxcsr, a.signed() as i64, format));
        Integer::new(format.width(), bits.into())
    }
    fn float_convert(&mut self, from: FloatFormat, to: FloatFormat, nan: NanRule, a: Integer) -> Integer {
        let bits = self.float_op(|mxcsr| float::convert(mxcsr, from, to, nan, a.low()));
        Integer::new(to.width(), bits.into())
    }
    fn float_lanes(
        &mut self,
        op: FloatOp,
        format: FloatFormat,
        nan: NanRule,
        a: Vector,
        b: Vector,
    ) -> Vector {
        let lane = format.width();
        self.float_op(|mxcsr| {
            Vector::from_lanes(lane, a.bits, |n| {
                let (a, b) = (a.lane(lane, n).low(), b.lane(lane, n).low());
                Integer::new(lane, float::binary(mxcsr, op, format, nan, a, b).into())
            })
        })
    }
    fn float_fma_lanes(
        &mut self,
        format: FloatFormat,
        negated: Negated,
        nan: NanRule,
        operands: [Vector; 3],
    ) -> Vector {
        let lane = format.width();
        self.float_op(|mxcsr| {
            Vector::from_lanes(lane, operands[0].bits, |n| {
                let operands = operands.each_ref().map(|v| v.lane(lane, n).low());
                Integer::new(lane, float::multiply_add(mxcsr, format, negated, nan, operands).into())
            })
        })
    }
    fn float_sqrt_lanes(&mut self, format: FloatFormat, nan: NanRule, a: Vector) -> Vector {
        let lane = format.width();
        self.float_op(|mxcsr| convert_lanes(&a, lane, lane, |a| float::sqrt(mxcsr, format, nan, a.low())))
    }
    fn float_cmp_lanes(
        &mut self,
        op: FloatCmp,
        format: FloatFormat,
        signalling: bool,
        a: Vector,
        b: Vector,
    ) -> Vector {
        let lane = format.width();
        self.float_op(|mxcsr| {
            Vector::from_lanes(lane, a.bits, |n| {
                let (a, b) = (a.lane(lane, n).low(), b.lane(lane, n).low());
                all_ones_if(float::compare(mxcsr, op, format, signalling, a, b), lane)
            })
        })
    }
    fn float_round(
        &mut self,
        format: FloatFormat,
        rounding: Rounding,
        nan: NanRule,
        inexact: bool,
        a: Integer,
    ) -> Integer {
        let bits = self.float_op(|mxcsr| float::round(mxcsr, format, rounding, nan, inexact, a.low()));
        Integer::new(format.width(), bits.into())
    }
    fn float_round_lanes(
        &mut self,
        format: FloatFormat,
        rounding: Rounding,
        nan: NanRule,
        inexact: bool,
        a: Vector,
    ) -> Vector {
        let lane = format.width();
        self.float_op(|mxcsr| {
            convert_lanes(&a, lane, lane, |a| float::round(mxcsr, format, rounding, nan, inexact, a.low()))
        })
    }
    fn float_to_int_lanes(
        &mut self,
        format: FloatFormat,
        rounding: Rounding,
        a: Vector,
        width: Width,
        otherwise: u64,
    ) -> Vector {
        self.float_op(|mxcsr| {
            convert_lanes(&a, format.width(), width, |a| {
                float::to_int(mxcsr, format, rounding, a.low(), width, otherwise)
            })
        })
    }
    fn int_to_float_lanes(&mut self, a: Vector, lane: Width, format: FloatFormat) -> Vector {
        self.float_op(|mxcsr| {
            convert_lanes(&a, lane, format.width(), |a| float::from_int(mxcsr, a.signed() as i64, format))
        })
    }
    fn float_convert_lanes(&mut self, from: FloatFormat, to: FloatFormat, nan: NanRule, a: Vector) -> Vector {
        self.float_op(|mxcsr| {
            convert_lanes(&a, from.width(), to.width(), |a| float::convert(mxcsr, from, to, nan, a.low()))
        })
    }

    fn half_to_single_lanes(&mut self, nan: NanRule, a: Vector) -> Vector {
        self.float_op(|mxcsr| {
            convert_lanes(&a, Width::W16, Width::W32, |a| float::half_to_single(mxcsr, nan, a.low()))
        })
    }
    fn single_to_half_lanes(&mut self, rounding: Rounding, nan: NanRule, a: Vector) -> Vector {
        self.float_op(|mxcsr| {
            convert_lanes(&a, Width::W32, Width::W16, |a| {
                float::single_to_half(mxcsr, rounding, nan, a.low())
            })
        })
    }

    #[inline]
    fn reg(&mut self, reg: Reg) -> Integer {
        let (width, bits) = match reg {
            Reg::Gpr(number) => (Width::W64, self.cpu.gpr[usize::from(number)]),
            Reg::Flag(flag) => (Width::W8, self.cpu.flags[flag as usize].into()),
            Reg::OtherFlags => (Width::W64, self.cpu.other_flags),
            Reg::FsBase => (Width::W64, self.cpu.fs_base),
            Reg::GsBase => (Width::W64, self.cpu.gs_base),
            Reg::Opmask(number) => (Width::W64, self.cpu.opmask[usize::from(number)]),
            Reg::Mxcsr => (Width::W32, self.cpu.mxcsr.into()),
        };
        Integer { bits: bits.into(), width }
    }
    #[inline]
    fn set_reg(&mut self, reg: Reg, value: Integer) {
        if self.stopped() {
            return;
        }
        match reg {
            Reg::Gpr(number) => self.cpu.gpr[usize::from(number)] = value.low(),
            Reg::Flag(flag) => self.cpu.flags[flag as usize] = value.low() as u8 & 1,
            Reg::OtherFlags => self.cpu.other_flags = value.low(),
            Reg::FsBase => self.cpu.fs_base = value.low(),
            Reg::GsBase => self.cpu.gs_base = value.low(),
            Reg::Opmask(number) => self.cpu.opmask[usize::from(number)] = value.low(),
            Reg::Mxcsr => self.cpu.mxcsr = value.low() as u32,
        }
    }
    #[inline]
    fn flag(&mut self, flag: Reg) -> bool {
        self.reg(flag).bits != 0
    }
    #[inline]
    fn set_flag(&mut self, flag: Reg, value: bool) {
        self.set_reg(flag, Integer::new(Width::W8, value.into()));
    }
    fn vec_reg(&mut self, index: u32, bits: u32) -> Vector {
        let mut value = Vector::zero(bits);
        let size = bits as usize / 8;
        value.bytes[..size].copy_from_slice(&self.cpu.vec[index as usize][..size]);
        value
    }
    fn set_vec_reg(&mut self, index: u32, value: Vector) {
        if !self.stopped() {
            let bytes = value.as_slice();
            self.cpu.vec[index as usize][..bytes.len()].copy_from_slice(bytes);
        }
    }
    fn clear_vec_reg(&mut self, index: u32, bits: u32) {
        if !self.stopped() {
            self.cpu.vec[index as usize][bits as usize / 8..].fill(0);
        }
    }

    #[inline]
    fn load(&mut self, address: Integer, width: Width) -> Integer {
        Integer { bits: self.access(|host| host.load(address.low(), width)), width }
    }
    #[inline]
    fn store(&mut self, address: Integer, value: Integer) {
        self.access(|host| host.store(address.low(), value.width, value.bits));
    }
    fn load_vec(&mut self, address: Integer, bits: u32) -> Vector {
        let mut value = Vector::zero(bits);
        self.access(|host| host.load_bytes(address.low(), value.as_mut_slice()));
        value
    }
    fn store_vec(&mut self, address: Integer, value: Vector) {
        self.access(|host| host.store_bytes(address.low(), value.as_slice()));
    }
    fn load_masked(&mut self, address: Integer, lane: Width, mask: Vector) -> Vector {
        Vector::from_lanes(lane, mask.bits, |n| {
            if mask.lane(lane, n).signed() >= 0 {
                return Integer::new(lane, 0);
            }
            let at = address.low().wrapping_add((n * lane.bytes()).into());
            Integer::new(lane, self.access(|host| host.load(at, lane)))
        })
    }
    fn store_masked(&mut self, address: Integer, lane: Width, mask: Vector, value: Vector) {
        let at = |n: u32| address.low().wrapping_add((n * lane.bytes()).into());
        let chosen = (0..mask.lane_count(lane)).filter(|&n| mask.lane(lane, n).signed() < 0);
        // What is there is stored again, so that nothing is written if a later lane faults.
        for n in chosen.clone() {
            self.access(|host| host.load(at(n), lane).and_then(|old| host.store(at(n), lane, old)));
        }
        for n in chosen {
            self.access(|host| host.store(at(n), lane, value.lane(lane, n).bits));
        }
    }
    fn atomic(&mut self, op: AtomicOp, address: Integer, value: Integer) -> Integer {
        let old = self.access(|host| host.atomic(op, address.low(), value.width, value.bits));
        Integer { bits: old, width: value.width }
    }
    fn compare_exchange(&mut self, address: Integer, expected: Integer, new: Integer) -> Integer {
        debug_assert_eq!(expected.width, new.width);
        let width = new.width;
        let old = self.access(|host| host.compare_exchange(address.low(), width, expected.bits, new.bits));
        Integer { bits: old, width }
    }
    fn fence(&mut self) {
        self.host.fence();
    }

    fn in_bulk(&mut self, _count: Reg) -> bool {
        true
    }
    fn copy_forward(&mut self, dst: Reg, src: Reg, count: Reg, width: Width) {
        let size = u64::from(width.bytes());
        while self.reg(count).bits != 0 {
            let (to, from, left) = (self.reg(dst), self.reg(src), self.reg(count).low());
            let value = self.load(from, width);
            self.store(to, value);
            if self.stopped() {
                return;
            }
            self.set_reg(src, Integer::new(Width::W64, from.low().wrapping_add(size).into()));
            self.set_reg(dst, Integer::new(Width::W64, to.low().wrapping_add(size).into()));
            self.set_reg(count, Integer::new(Width::W64, (left - 1).into()));
        }
    }
    fn fill_forward(&mut self, dst: Reg, count: Reg, value: Integer) {
        let size = u64::from(value.width.bytes());
        while self.reg(count).bits != 0 {
            let (to, left) = (self.reg(dst), self.reg(count).low());
            self.store(to, value);
            if self.stopped() {
                return;
            }
            self.set_reg(dst, Integer::new(Width::W64, to.low().wrapping_add(size).into()));
            self.set_reg(count, Integer::new(Width::W64, (left - 1).into()));
        }
    }

    fn quietly(&mut self, rounding: Rounding, body: &mut dyn FnMut(&mut Self)) {
        let outer = self.quiet.replace(rounding);
        body(self);
        self.quiet = outer;
    }

    #[inline]
    fn when(&mut self, cond: bool, body: &mut dyn FnMut(&mut Self)) {
        if cond && !self.stopped() {
            body(self);
        }
    }
    fn repeat(&mut self, body: &mut dyn FnMut(&mut Self) -> bool) {
        while body(self) && !self.stopped() {}
    }

    fn jump(&mut self, target: Target<Integer>) {
        self.leave(Step::Jumped, target);
    }
    fn jump_if(&mut self, cond: bool, target: u64) {
        if cond {
            self.leave(Step::Jumped, Target::Direct(target));
        }
    }
    fn call(&mut self, target: Target<Integer>, return_address: u64) {
        self.leave(Step::Called { return_address }, target);
    }
    fn ret(&mut self, target: Integer) {
        self.leave(Step::Returned, Target::Indirect(target));
    }
    fn syscall(&mut self) {
        self.leave(Step::Syscall, Target::Direct(self.next));
    }
    fn trap_if(&mut self, cond: bool, trap: Trap) {
        if cond && !self.stopped() {
            self.step = Step::Trapped(trap);
        }
    }

    fn coprocessor(&mut self, operation: u32, a: Integer, b: Integer) -> Integer {
        let bits = if self.stopped() {
            0
        } else if operation == coprocessor::TIMESTAMP {
            self.host.timestamp().into()
        } else {
            coprocessor::run(self.cpu, operation, a.bits, b.bits)
        };
        Integer { bits, width: Width::W128 }
    }
}
