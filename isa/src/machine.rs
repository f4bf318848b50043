//! The small abstract machine that every instruction's meaning is written against.
//!
//! Values are opaque: an `Int` is an integer of a known [`Width`], a `Bool` one bit, a `Vec` a bag of
//! 128, 256 or 512 bits that operations read as lanes. Control flow inside one instruction goes through
//! [`Machine::when`] and [`Machine::repeat`]; whatever such a closure computes it leaves in registers or
//! memory. Nothing here is host- or guest-specific: what a guest defines differently (a NaN rule, an
//! out-of-range result) is passed in.

/// Width of an integer or a lane, in bits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub enum Width {
    /// 8 bits.
    W8,
    /// 16 bits.
    W16,
    /// 32 bits.
    W32,
    /// 64 bits.
    W64,
    /// 128 bits: double-width products and dividends, and the bits of an 80-bit float.
    W128,
}

impl Width {
    /// Number of bits.
    pub const fn bits(self) -> u32 {
        match self {
            Width::W8 => 8,
            Width::W16 => 16,
            Width::W32 => 32,
            Width::W64 => 64,
            Width::W128 => 128,
        }
    }

    /// Number of bytes.
    pub const fn bytes(self) -> u32 {
        self.bits() / 8
    }

    /// All bits of this width set.
    pub const fn mask(self) -> u128 {
        u128::MAX >> (128 - self.bits())
    }

    /// The next wider width; `W128` has none and stays.
    pub const fn double(self) -> Width {
        match self {
            Width::W8 => Width::W16,
            Width::W16 => Width::W32,
            Width::W32 => Width::W64,
            Width::W64 | Width::W128 => Width::W128,
        }
    }

    /// The next narrower width; `W8` has none and stays.
    pub const fn half(self) -> Width {
        match self {
            Width::W8 | Width::W16 => Width::W8,
            Width::W32 => Width::W16,
            Width::W64 => Width::W32,
            Width::W128 => Width::W64,
        }
    }
}

/// Two-operand integer operations; both operands and the result have one width.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BinOp {
    /// Sum, modulo 2^width.
    Add,
    /// Difference, modulo 2^width.
    Sub,
    /// Low half of the product.
    Mul,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
    /// Left shift; the caller has reduced the count below the width.
    Shl,
    /// Logical right shift; the caller has reduced the count below the width.
    LShr,
    /// Arithmetic right shift; the caller has reduced the count below the width.
    AShr,
    /// Unsigned quotient; the caller has excluded a zero divisor.
    UDiv,
    /// Unsigned remainder; the caller has excluded a zero divisor.
    URem,
    /// Signed quotient; the caller has excluded a zero divisor and overflow.
    SDiv,
    /// Signed remainder; the caller has excluded a zero divisor and overflow.
    SRem,
}

/// One-operand integer operations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UnOp {
    /// Bitwise complement.
    Not,
    /// Two's complement negation.
    Neg,
    /// Number of set bits.
    CountOnes,
    /// Number of leading zeros; the width for a zero operand.
    LeadingZeros,
    /// Number of trailing zeros; the width for a zero operand.
    TrailingZeros,
    /// Byte order reversed.
    SwapBytes,
}

/// Integer comparisons.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CmpOp {
    /// Equal.
    Eq,
    /// Not equal.
    Ne,
    /// Unsigned less than.
    Ult,
    /// Unsigned less than or equal.
    Ule,
    /// Signed less than.
    Slt,
    /// Signed less than or equal.
    Sle,
}

/// Lane-wise operations on two vectors of lanes of one width.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LaneOp {
    /// Any two-operand integer operation. Shift counts are per lane and below the lane width.
    Int(BinOp),
    /// Sum, clamped to the signed range.
    AddSatSigned,
    /// Sum, clamped to the unsigned range.
    AddSatUnsigned,
    /// Difference, clamped to the signed range.
    SubSatSigned,
    /// Difference, clamped to the unsigned range.
    SubSatUnsigned,
    /// Signed minimum.
    MinSigned,
    /// Unsigned minimum.
    MinUnsigned,
    /// Signed maximum.
    MaxSigned,
    /// Unsigned maximum.
    MaxUnsigned,
    /// High half of the signed product.
    MulHighSigned,
    /// High half of the unsigned product.
    MulHighUnsigned,
    /// Rounded unsigned average, `(a + b + 1) >> 1` without overflow.
    AverageUnsigned,
    /// All ones where the comparison holds, else zero.
    Cmp(CmpOp),
}

/// Floating-point formats that are computed in host registers. (80-bit values go through
/// [`Machine::coprocessor`].)
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FloatFormat {
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary64.
    F64,
}

/// What a fused multiplication and addition negates before it adds. A NaN operand keeps its sign.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Negated {
    /// The product.
    pub product: bool,
    /// What is added.
    pub addend: bool,
}

impl FloatFormat {
    /// Width of the format's bits.
    pub const fn width(self) -> Width {
        match self {
            FloatFormat::F32 => Width::W32,
            FloatFormat::F64 => Width::W64,
        }
    }
}

/// Floating-point operations under the guest's current rounding mode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FloatOp {
    /// Sum.
    Add,
    /// Difference.
    Sub,
    /// Product.
    Mul,
    /// Quotient.
    Div,
    /// x86 `MIN`: `a < b ? a : b`, so the second operand, unchanged, when either is a NaN or both are zero.
    /// Any NaN raises the invalid exception.
    MinX86,
    /// x86 `MAX`: `a > b ? a : b`, so the second operand, unchanged, when either is a NaN or both are zero.
    /// Any NaN raises the invalid exception.
    MaxX86,
}

/// Floating-point comparison predicates. The ordered ones are false on a NaN, `Unordered` true.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FloatCmp {
    /// Ordered and equal.
    Eq,
    /// Ordered and less than.
    Lt,
    /// Ordered and less than or equal.
    Le,
    /// Either operand is a NaN.
    Unordered,
}

/// How a float becomes an integer, or an integral float.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rounding {
    /// The guest's current rounding mode.
    Current,
    /// Nearest, ties to even.
    NearestEven,
    /// Towards minus infinity.
    Down,
    /// Towards plus infinity.
    Up,
    /// Towards zero.
    Zero,
}

/// What an operation yields when an operand is a NaN, and which NaN an invalid operation makes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NanRule {
    /// x86 SSE (SDM vol. 1, table 4-7): the first operand if it is a NaN, else the second, quieted; an
    /// invalid operation makes the negative quiet NaN.
    X86,
}

/// Atomic read-modify-write operations; each is sequentially consistent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AtomicOp {
    /// Replace.
    Exchange,
    /// Add.
    Add,
    /// Subtract.
    Sub,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
}

impl AtomicOp {
    /// What replaces `old`; what is above the access's width means nothing.
    pub fn apply(self, old: u128, value: u128) -> u128 {
        match self {
            AtomicOp::Exchange => value,
            AtomicOp::Add => old.wrapping_add(value),
            AtomicOp::Sub => old.wrapping_sub(value),
            AtomicOp::And => old & value,
            AtomicOp::Or => old | value,
            AtomicOp::Xor => old ^ value,
        }
    }
}

/// Where control goes.
#[derive(Clone, Copy, Debug)]
pub enum Target<I> {
    /// A guest address known from the instruction.
    Direct(u64),
    /// A guest address computed at run time.
    Indirect(I),
}

/// Synchronous exceptions that an instruction itself raises (faults of loads and stores aside).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trap {
    /// Division by zero or quotient overflow: #DE, SIGFPE.
    Divide,
    /// Breakpoint instruction (`int3`): #BP, SIGTRAP, reported after the instruction.
    Breakpoint,
    /// Undefined instruction by its own definition (`ud2`): #UD, SIGILL.
    Undefined,
    /// Misaligned operand of an aligning vector access, or a privileged instruction: #GP, SIGSEGV.
    GeneralProtection,
    /// Unmasked floating-point exception: #XM or #MF, SIGFPE.
    FloatingPoint,
    /// Debug exception instruction (`int1`): #DB, SIGTRAP, reported after the instruction.
    Debug,
}

impl Trap {
    /// All, each at the place that is its number (`as u32`), by which compiled code names it.
    pub const ALL: [Trap; 6] = [
        Trap::Divide,
        Trap::Breakpoint,
        Trap::Undefined,
        Trap::GeneralProtection,
        Trap::FloatingPoint,
        Trap::Debug,
    ];
}

const _: () = assert!(Trap::ALL[1] as u32 == 1 && Trap::ALL[3] as u32 == 3 && Trap::ALL[5] as u32 == 5);

/// How all status flags follow from two operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OperandRule {
    /// They are those of the sum.
    Sum,
    /// They are those of the difference.
    Difference,
}

/// An abstract machine that executes (or records) one guest's instructions. `Guest` names its registers.
///
/// Widths are checked where values meet: mixing them is a bug in a semantics block, and both
/// instantiations stop on it in tests.
pub trait Machine {
    /// An integer of a width the machine knows.
    type Int: Copy;
    /// One bit.
    type Bool: Copy;
    /// A vector of 128, 256 or 512 bits.
    type Vec: Copy;
    /// The guest's scalar registers and flags, e.g. [`crate::x86_64::Reg`].
    type Reg: Copy;

    // ---- integers ----

    /// The constant `value`, truncated to `width`.
    fn int(&mut self, width: Width, value: u64) -> Self::Int;
    /// The guest address `address` of code or data, known from the instruction: 64 bits. Where the guest
    /// program is position-independent, the lifter adds the load bias here and nowhere else.
    fn address(&mut self, address: u64) -> Self::Int;
    /// The width of a value.
    fn width(&self, value: Self::Int) -> Width;
    /// Two-operand arithmetic.
    fn bin(&mut self, op: BinOp, a: Self::Int, b: Self::Int) -> Self::Int;
    /// One-operand arithmetic.
    fn un(&mut self, op: UnOp, a: Self::Int) -> Self::Int;
    /// Comparison.
    fn cmp(&mut self, op: CmpOp, a: Self::Int, b: Self::Int) -> Self::Bool;
    /// Zero extension to `width` (or the value itself).
    fn zext(&mut self, a: Self::Int, width: Width) -> Self::Int;
    /// Sign extension to `width` (or the value itself).
    fn sext(&mut self, a: Self::Int, width: Width) -> Self::Int;
    /// Truncation to `width` (or the value itself).
    fn trunc(&mut self, a: Self::Int, width: Width) -> Self::Int;
    /// `cond ? a : b`.
    fn select(&mut self, cond: Self::Bool, a: Self::Int, b: Self::Int) -> Self::Int;

    // ---- conditions ----

    /// A known bit.
    fn bool(&mut self, value: bool) -> Self::Bool;
    /// Conjunction.
    fn and(&mut self, a: Self::Bool, b: Self::Bool) -> Self::Bool;
    /// Disjunction.
    fn or(&mut self, a: Self::Bool, b: Self::Bool) -> Self::Bool;
    /// Exclusive or.
    fn xor(&mut self, a: Self::Bool, b: Self::Bool) -> Self::Bool;
    /// Complement.
    fn not(&mut self, a: Self::Bool) -> Self::Bool;
    /// 0 or 1 of `width`.
    fn bool_to_int(&mut self, a: Self::Bool, width: Width) -> Self::Int;

    // ---- vectors ----

    /// The bits of a vector.
    fn vec_bits(&self, v: Self::Vec) -> u32;
    /// `v` in `bits` (128, 256 or 512): its low part, or zeros above it.
    fn vec_resize(&mut self, v: Self::Vec, bits: u32) -> Self::Vec;
    /// `bits` (128, 256 or 512) zeros.
    fn vec_zero(&mut self, bits: u32) -> Self::Vec;
    /// Every lane `value`; `bits` in all.
    fn vec_splat(&mut self, value: Self::Int, bits: u32) -> Self::Vec;
    /// Lane `index` of width `lane`.
    fn lane(&mut self, v: Self::Vec, lane: Width, index: u32) -> Self::Int;
    /// `v` with lane `index` (of `value`'s width) replaced.
    fn set_lane(&mut self, v: Self::Vec, index: u32, value: Self::Int) -> Self::Vec;
    /// Lane-wise operation.
    fn lanes(&mut self, op: LaneOp, lane: Width, a: Self::Vec, b: Self::Vec) -> Self::Vec;
    /// Lane `i` of the result is lane `indices[i]` of the concatenation `a, b` (as in LLVM's
    /// `shufflevector`); `indices` covers exactly as many bits as `a`.
    fn shuffle(&mut self, lane: Width, a: Self::Vec, b: Self::Vec, indices: &[u8]) -> Self::Vec;
    /// Widen the low half's lanes of width `lane` to twice that, by sign or by zero.
    fn widen_low(&mut self, v: Self::Vec, lane: Width, signed: bool) -> Self::Vec;
    /// Within each 128-bit block, lanes of `a` then of `b`, both signed and of width `lane`, clamped into lanes half as
    /// wide, to the signed or the unsigned range of those.
    fn narrow_saturating(&mut self, a: Self::Vec, b: Self::Vec, lane: Width, to_signed: bool) -> Self::Vec;
    /// The top bit of each lane, lane 0 lowest, zero-extended to `width`.
    fn sign_mask(&mut self, v: Self::Vec, lane: Width, width: Width) -> Self::Int;

    /// The reverse: lanes of width `lane`, `bits` in all, that are all ones where `mask` has a bit, lane 0 lowest.
    fn mask_lanes(&mut self, mask: Self::Int, lane: Width, bits: u32) -> Self::Vec;

    /// Byte table lookup within each 128-bit block: byte `i` of the result is the byte of `table`'s block that
    /// byte `i` of `indices` counts, and zero where that has its top bit set. Hosts differ in what they give for 16 to
    /// 127, which are not to be asked for.
    fn lookup(&mut self, table: Self::Vec, indices: Self::Vec) -> Self::Vec;
    /// Lane `i` of the result is the lane of `table` that lane `i` of `indices` counts, modulo the number of lanes.
    fn permute(&mut self, lane: Width, table: Self::Vec, indices: Self::Vec) -> Self::Vec;
    /// `steps` on operands of one length, which they leave as it is. Some hosts have an instruction that does the same,
    /// and know it by `name`.
    fn instruction(
        &mut self,
        _name: &'static str,
        operands: &[Self::Vec],
        steps: fn(&mut Self, &[Self::Vec]) -> Self::Vec,
    ) -> Self::Vec
    where
        Self: Sized,
    {
        steps(self, operands)
    }
    /// Carry-less product (of polynomials over GF(2)) of two 64-bit integers: 128 bits.
    fn carryless_mul(&mut self, a: Self::Int, b: Self::Int) -> Self::Int;

    // ---- floating point ----

    /// Scalar arithmetic on bits of `format`.
    fn float(
        &mut self,
        op: FloatOp,
        format: FloatFormat,
        nan: NanRule,
        a: Self::Int,
        b: Self::Int,
    ) -> Self::Int;
    /// `a × b + c`, rounded once. Of several NaN operands the first counts.
    fn float_fma(
        &mut self,
        format: FloatFormat,
        negated: Negated,
        nan: NanRule,
        operands: [Self::Int; 3],
    ) -> Self::Int;
    /// Scalar square root.
    fn float_sqrt(&mut self, format: FloatFormat, nan: NanRule, a: Self::Int) -> Self::Int;
    /// Scalar comparison. `signalling`: a quiet NaN raises the invalid exception too.
    fn float_cmp(
        &mut self,
        op: FloatCmp,
        format: FloatFormat,
        signalling: bool,
        a: Self::Int,
        b: Self::Int,
    ) -> Self::Bool;
    /// Scalar float to signed integer of `width`; `otherwise` is the result for a NaN or out of range.
    fn float_to_int(
        &mut self,
        format: FloatFormat,
        rounding: Rounding,
        a: Self::Int,
        width: Width,
        otherwise: u64,
    ) -> Self::Int;
    /// Signed integer to float.
    fn int_to_float(&mut self, a: Self::Int, format: FloatFormat) -> Self::Int;
    /// Between formats.
    fn float_convert(&mut self, from: FloatFormat, to: FloatFormat, nan: NanRule, a: Self::Int) -> Self::Int;
    /// Scalar float to an integral float of the same format. `inexact`: a value that changes raises the
    /// inexact exception.
    fn float_round(
        &mut self,
        format: FloatFormat,
        rounding: Rounding,
        nan: NanRule,
        inexact: bool,
        a: Self::Int,
    ) -> Self::Int;
    /// Lane-wise [`Machine::float`].
    fn float_lanes(
        &mut self,
        op: FloatOp,
        format: FloatFormat,
        nan: NanRule,
        a: Self::Vec,
        b: Self::Vec,
    ) -> Self::Vec;
    /// Lane-wise [`Machine::float_fma`].
    fn float_fma_lanes(
        &mut self,
        format: FloatFormat,
        negated: Negated,
        nan: NanRule,
        operands: [Self::Vec; 3],
    ) -> Self::Vec;
    /// Lane-wise [`Machine::float_sqrt`].
    fn float_sqrt_lanes(&mut self, format: FloatFormat, nan: NanRule, a: Self::Vec) -> Self::Vec;
    /// Lane-wise [`Machine::float_cmp`]: all ones where it holds.
    fn float_cmp_lanes(
        &mut self,
        op: FloatCmp,
        format: FloatFormat,
        signalling: bool,
        a: Self::Vec,
        b: Self::Vec,
    ) -> Self::Vec;

    /// Lane-wise [`Machine::float_round`].
    fn float_round_lanes(
        &mut self,
        format: FloatFormat,
        rounding: Rounding,
        nan: NanRule,
        inexact: bool,
        a: Self::Vec,
    ) -> Self::Vec;
    /// Lane-wise [`Machine::float_to_int`]: lane `i` of the result, `width` wide, comes from lane `i` of `a`,
    /// for as many lanes as both have. What is left above is zero, and those lanes raise nothing.
    fn float_to_int_lanes(
        &mut self,
        format: FloatFormat,
        rounding: Rounding,
        a: Self::Vec,
        width: Width,
        otherwise: u64,
    ) -> Self::Vec;
    /// Lane-wise [`Machine::int_to_float`] of lanes `lane` wide, laid out as in
    /// [`Machine::float_to_int_lanes`].
    fn int_to_float_lanes(&mut self, a: Self::Vec, lane: Width, format: FloatFormat) -> Self::Vec;
    /// Lane-wise [`Machine::float_convert`], laid out as in [`Machine::float_to_int_lanes`].
    fn float_convert_lanes(
        &mut self,
        from: FloatFormat,
        to: FloatFormat,
        nan: NanRule,
        a: Self::Vec,
    ) -> Self::Vec;
    /// Half precision to singles, laid out as in [`Machine::float_to_int_lanes`]. Denormals are never taken for zero
    /// nor raise an exception.
    fn half_to_single_lanes(&mut self, nan: NanRule, a: Self::Vec) -> Self::Vec;
    /// Singles to half precision, laid out as in [`Machine::float_to_int_lanes`]. Results are never flushed to zero.
    fn single_to_half_lanes(&mut self, rounding: Rounding, nan: NanRule, a: Self::Vec) -> Self::Vec;

    // ---- guest registers ----

    /// Read a scalar register at its full width.
    fn reg(&mut self, reg: Self::Reg) -> Self::Int;
    /// Write a scalar register at its full width.
    fn set_reg(&mut self, reg: Self::Reg, value: Self::Int);
    /// Read a one-bit flag.
    fn flag(&mut self, flag: Self::Reg) -> Self::Bool;
    /// Write a one-bit flag.
    fn set_flag(&mut self, flag: Self::Reg, value: Self::Bool);
    /// Read the low `bits` of vector register `index`.
    fn vec_reg(&mut self, index: u32, bits: u32) -> Self::Vec;
    /// Write the low bits of vector register `index`, as many as `value` has; the rest stays.
    fn set_vec_reg(&mut self, index: u32, value: Self::Vec);
    /// Clear vector register `index` from bit `bits` (0, 128, 256 or 512) up.
    fn clear_vec_reg(&mut self, index: u32, bits: u32);

    // ---- guest memory; addresses are 64 bits ----

    /// Load, little-endian, any alignment.
    fn load(&mut self, address: Self::Int, width: Width) -> Self::Int;
    /// Store, little-endian, any alignment.
    fn store(&mut self, address: Self::Int, value: Self::Int);
    /// Load a vector of `bits`, any alignment.
    fn load_vec(&mut self, address: Self::Int, bits: u32) -> Self::Vec;
    /// Store a vector, any alignment.
    fn store_vec(&mut self, address: Self::Int, value: Self::Vec);
    /// Load those lanes of a vector whose lane in `mask` has its top bit set. The others become zero, and their memory
    /// is not accessed.
    fn load_masked(&mut self, address: Self::Int, lane: Width, mask: Self::Vec) -> Self::Vec;
    /// Store those lanes of a vector whose lane in `mask` has its top bit set, or none if one of them faults.
    fn store_masked(&mut self, address: Self::Int, lane: Width, mask: Self::Vec, value: Self::Vec);
    /// Atomic read-modify-write; yields the old value.
    fn atomic(&mut self, op: AtomicOp, address: Self::Int, value: Self::Int) -> Self::Int;
    /// Atomic compare and exchange; yields the old value.
    fn compare_exchange(&mut self, address: Self::Int, expected: Self::Int, new: Self::Int) -> Self::Int;
    /// Full memory barrier.
    fn fence(&mut self);

    // ---- bulk memory; the operands are registers because they are exact after every element, so that a
    // ---- fault in the middle finds them as the hardware would leave them ----

    /// Whether a string instruction of register `count` elements is to use the two operations below. If not, its elements
    /// go one by one; a machine that has done them itself by then leaves `count` at zero.
    fn in_bulk(&mut self, count: Self::Reg) -> bool;
    /// While register `count` is not zero: copy an element of `width` from the address in register `src` to
    /// the one in `dst`, add its size to both and take one from `count`. Source and destination may overlap;
    /// the effect is that of copying element after element.
    fn copy_forward(&mut self, dst: Self::Reg, src: Self::Reg, count: Self::Reg, width: Width);
    /// While register `count` is not zero: store `value` at the address in register `dst`, add its size to
    /// that and take one from `count`.
    fn fill_forward(&mut self, dst: Self::Reg, count: Self::Reg, value: Self::Int);

    /// Run `body` with floating-point exceptions neither noted nor raised, and with `rounding`, unless it is the current
    /// one, in the place of the guest's.
    fn quietly(&mut self, rounding: Rounding, body: &mut dyn FnMut(&mut Self));

    // ---- control inside an instruction ----

    /// Run `body` only where `cond` holds.
    fn when(&mut self, cond: Self::Bool, body: &mut dyn FnMut(&mut Self));
    /// Run `body` as long as it yields true (so at least once).
    fn repeat(&mut self, body: &mut dyn FnMut(&mut Self) -> Self::Bool);

    // ---- leaving an instruction ----

    /// Go to `target`.
    fn jump(&mut self, target: Target<Self::Int>);
    /// Go to guest address `target` where `cond` holds, else fall through.
    fn jump_if(&mut self, cond: Self::Bool, target: u64);
    /// Call `target`; the block has already stored `return_address` where the guest's convention has it.
    fn call(&mut self, target: Target<Self::Int>, return_address: u64);
    /// Return to `target`, which the block has already fetched.
    fn ret(&mut self, target: Self::Int);
    /// The guest's system call instruction; the guest PC is then the next instruction.
    fn syscall(&mut self);
    /// Raise `trap` where `cond` holds. State is as before the instruction, except for what the block has
    /// already written: so check first, write after.
    fn trap_if(&mut self, cond: Self::Bool, trap: Trap);

    /// Raise [`Trap::GeneralProtection`] unless `address` is a multiple of `bytes`, a power of two. A machine
    /// that knows the address to be aligned, or whose own accesses trap alike, may do better than this.
    fn require_aligned(&mut self, address: Self::Int, bytes: u32) {
        let low = self.int(Width::W64, u64::from(bytes) - 1);
        let low = self.bin(BinOp::And, address, low);
        let zero = self.int(Width::W64, 0);
        let misaligned = self.cmp(CmpOp::Ne, low, zero);
        self.trap_if(misaligned, Trap::GeneralProtection);
    }

    /// The status flags, which the block has just set, are those of `rule` for these operands of one width: what a
    /// machine may keep instead of them.
    fn flags_follow(&mut self, _rule: OperandRule, _left: Self::Int, _right: Self::Int) {}

    /// Of the status flags, those that a result tells are those of `result`: what a machine may keep instead of them.
    fn flags_follow_result(&mut self, _result: Self::Int) {}

    /// Have the interpreter execute this instruction, unless this machine is the interpreter: if true, the block has no
    /// more to do. For what is long and rare.
    fn interpreted(&mut self) -> bool {
        false
    }

    // ---- everything that is a unit of its own ----

    /// Hand one operation to the guest's coprocessor: `operation` is the guest's own numbering (for
    /// x86-64 [`crate::x86_64::coprocessor`]), the operands and the result are 128 bits. A coprocessor
    /// reads and writes only its own part of the register file, never scalar registers or memory.
    fn coprocessor(&mut self, operation: u32, a: Self::Int, b: Self::Int) -> Self::Int;
}
