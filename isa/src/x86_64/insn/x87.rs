//! x87 values: loads, stores, arithmetic, comparison. SDM vol. 1, chapter 8; vol. 2A.

use crate::machine::{BinOp, Width};
use crate::x86_64::operand::{X86, memory_address, probe, width_of};
use crate::x86_64::x87::{Format, Operation, Request, WITHHELD};
use crate::x86_64::{Flag, Insn, mmx::trap_if_pending};
use iced_x86::{MemorySize, OpKind};
use Width::{W16, W64, W128};

extension! { "x87";
    /// Push a floating-point value.
    [Fld], exact (m, i) { on_operand(m, i, Operation::Load, 0) }
    "fld st,dword ptr [rdi]" = "d907", "fld st,qword ptr [rdi]" = "dd07", "fld st,tbyte ptr [rdi]" = "db2f", "fld st,st(3)" = "d9c3";
    /// Push an integer.
    [Fild], exact (m, i) { on_operand(m, i, Operation::Load, 0) }
    "fild st,word ptr [rdi]" = "df07", "fild st,dword ptr [rdi]" = "db07", "fild st,qword ptr [rdi]" = "df2f";
    /// Push a packed decimal.
    [Fbld], exact (m, i) { on_operand(m, i, Operation::Load, 0) }
    "fbld st,tbyte ptr [rdi]" = "df27";
    /// Push 1.
    [Fld1], exact (m, i) { constant(m, i, 0) }
    "fld1" = "d9e8";
    /// Push log2 10.
    [Fldl2t], exact (m, i) { constant(m, i, 1) }
    "fldl2t" = "d9e9";
    /// Push log2 e.
    [Fldl2e], exact (m, i) { constant(m, i, 2) }
    "fldl2e" = "d9ea";
    /// Push π.
    [Fldpi], exact (m, i) { constant(m, i, 3) }
    "fldpi" = "d9eb";
    /// Push log10 2.
    [Fldlg2], exact (m, i) { constant(m, i, 4) }
    "fldlg2" = "d9ec";
    /// Push ln 2.
    [Fldln2], exact (m, i) { constant(m, i, 5) }
    "fldln2" = "d9ed";
    /// Push 0.
    [Fldz], exact (m, i) { constant(m, i, 6) }
    "fldz" = "d9ee";

    /// Store as floating-point value.
    [Fst], exact (m, i) { store(m, i, ROUNDED, 0) }
    "fst dword ptr [rdi],st" = "d917", "fst qword ptr [rdi],st" = "dd17", "fst st(3),st" = "ddd3";
    /// Store as floating-point value and pop.
    [Fstp], exact (m, i) { store(m, i, ROUNDED, 1) }
    "fstp dword ptr [rdi],st" = "d91f", "fstp qword ptr [rdi],st" = "dd1f", "fstp tbyte ptr [rdi],st" = "db3f", "fstp st(2),st" = "ddda",
    "fstp st(0),st" = "ddd8";
    /// Store as integer.
    [Fist], exact (m, i) { store(m, i, ROUNDED, 0) }
    "fist word ptr [rdi],st" = "df17", "fist dword ptr [rdi],st" = "db17";
    /// Store as integer and pop.
    [Fistp], exact (m, i) { store(m, i, ROUNDED, 1) }
    "fistp word ptr [rdi],st" = "df1f", "fistp dword ptr [rdi],st" = "db1f", "fistp qword ptr [rdi],st" = "df3f";
    /// Store as integer, truncating, and pop.
    [Fisttp], exact (m, i) { store(m, i, TRUNCATED, 1) }
    "fisttp word ptr [rdi],st" = "df0f", "fisttp dword ptr [rdi],st" = "db0f", "fisttp qword ptr [rdi],st" = "dd0f";
    /// Store as packed decimal and pop.
    [Fbstp], exact (m, i) { store(m, i, ROUNDED, 1) }
    "fbstp tbyte ptr [rdi],st" = "df37";

    /// Exchange.
    [Fxch], exact (m, i) { on_register(m, i, Operation::Exchange, stack_number(i, 1)) }
    "fxch" = "d9c9", "fxch st,st(7)" = "d9cf";
    /// Move if below.
    [Fcmovb], exact (m, i) { let c = m.get(Flag::Cf); move_if(m, i, c) }
    "fcmovb st,st(1)" = "dac1";
    /// Move if equal.
    [Fcmove], exact (m, i) { let z = m.get(Flag::Zf); move_if(m, i, z) }
    "fcmove st,st(2)" = "daca";
    /// Move if below or equal.
    [Fcmovbe], exact (m, i) { let be = below_or_equal(m); move_if(m, i, be) }
    "fcmovbe st,st(3)" = "dad3";
    /// Move if unordered.
    [Fcmovu], exact (m, i) { let p = m.get(Flag::Pf); move_if(m, i, p) }
    "fcmovu st,st(4)" = "dadc";
    /// Move if not below.
    [Fcmovnb], exact (m, i) { let c = m.get(Flag::Cf); let nc = m.not(c); move_if(m, i, nc) }
    "fcmovnb st,st(1)" = "dbc1";
    /// Move if not equal.
    [Fcmovne], exact (m, i) { let z = m.get(Flag::Zf); let nz = m.not(z); move_if(m, i, nz) }
    "fcmovne st,st(2)" = "dbca";
    /// Move if above.
    [Fcmovnbe], exact (m, i) { let be = below_or_equal(m); let a = m.not(be); move_if(m, i, a) }
    "fcmovnbe st,st(3)" = "dbd3";
    /// Move if ordered.
    [Fcmovnu], exact (m, i) { let p = m.get(Flag::Pf); let np = m.not(p); move_if(m, i, np) }
    "fcmovnu st,st(4)" = "dbdc";

    /// Sum.
    [Fadd, Fiadd], exact (m, i) { on_operand(m, i, Operation::Add, 0) }
    "fadd st,dword ptr [rdi]" = "d807", "fadd st,qword ptr [rdi]" = "dc07", "fadd st,st(1)" = "d8c1", "fadd st(3),st" = "dcc3",
    "fiadd st,word ptr [rdi]" = "de07", "fiadd st,dword ptr [rdi]" = "da07";
    /// Sum, and pop.
    [Faddp], exact (m, i) { on_operand(m, i, Operation::Add, 1) }
    "faddp" = "dec1";
    /// Product.
    [Fmul, Fimul], exact (m, i) { on_operand(m, i, Operation::Mul, 0) }
    "fmul st,dword ptr [rdi]" = "d80f", "fmul st,qword ptr [rdi]" = "dc0f", "fmul st,st(1)" = "d8c9", "fmul st(3),st" = "dccb",
    "fimul st,word ptr [rdi]" = "de0f", "fimul st,dword ptr [rdi]" = "da0f";
    /// Product, and pop.
    [Fmulp], exact (m, i) { on_operand(m, i, Operation::Mul, 1) }
    "fmulp" = "dec9";
    /// Difference.
    [Fsub, Fisub], exact (m, i) { on_operand(m, i, Operation::Sub, 0) }
    "fsub st,dword ptr [rdi]" = "d827", "fsub st,qword ptr [rdi]" = "dc27", "fsub st,st(1)" = "d8e1", "fsub st(3),st" = "dceb",
    "fisub st,word ptr [rdi]" = "de27", "fisub st,dword ptr [rdi]" = "da27";
    /// Difference, and pop.
    [Fsubp], exact (m, i) { on_operand(m, i, Operation::Sub, 1) }
    "fsubp" = "dee9";
    /// Difference the other way round.
    [Fsubr, Fisubr], exact (m, i) { on_operand(m, i, Operation::SubReverse, 0) }
    "fsubr st,dword ptr [rdi]" = "d82f", "fsubr st,qword ptr [rdi]" = "dc2f", "fsubr st,st(1)" = "d8e9", "fsubr st(3),st" = "dce3",
    "fisubr st,word ptr [rdi]" = "de2f", "fisubr st,dword ptr [rdi]" = "da2f";
    /// Difference the other way round, and pop.
    [Fsubrp], exact (m, i) { on_operand(m, i, Operation::SubReverse, 1) }
    "fsubrp" = "dee1";
    /// Quotient.
    [Fdiv, Fidiv], exact (m, i) { on_operand(m, i, Operation::Div, 0) }
    "fdiv st,dword ptr [rdi]" = "d837", "fdiv st,qword ptr [rdi]" = "dc37", "fdiv st,st(1)" = "d8f1", "fdiv st(3),st" = "dcfb",
    "fidiv st,word ptr [rdi]" = "de37", "fidiv st,dword ptr [rdi]" = "da37";
    /// Quotient, and pop.
    [Fdivp], exact (m, i) { on_operand(m, i, Operation::Div, 1) }
    "fdivp" = "def9";
    /// Quotient the other way round.
    [Fdivr, Fidivr], exact (m, i) { on_operand(m, i, Operation::DivReverse, 0) }
    "fdivr st,dword ptr [rdi]" = "d83f", "fdivr st,qword ptr [rdi]" = "dc3f", "fdivr st,st(1)" = "d8f9", "fdivr st(3),st" = "dcf3",
    "fidivr st,word ptr [rdi]" = "de3f", "fidivr st,dword ptr [rdi]" = "da3f";
    /// Quotient the other way round, and pop.
    [Fdivrp], exact (m, i) { on_operand(m, i, Operation::DivReverse, 1) }
    "fdivrp" = "def1";

    /// Change sign.
    [Fchs], exact (m, i) { on_register(m, i, Operation::Negate, 0) }
    "fchs" = "d9e0";
    /// Clear sign.
    [Fabs], exact (m, i) { on_register(m, i, Operation::Absolute, 0) }
    "fabs" = "d9e1";
    /// Square root.
    [Fsqrt], exact (m, i) { on_register(m, i, Operation::SquareRoot, 0) }
    "fsqrt" = "d9fa";
    /// Round to integral.
    [Frndint], exact (m, i) { on_register(m, i, Operation::Round, 0) }
    "frndint" = "d9fc";
    /// Scale by a power of two.
    [Fscale], exact (m, i) { on_register(m, i, Operation::Scale, 0) }
    "fscale" = "d9fd";
    /// Exponent and significand.
    [Fxtract], exact (m, i) { on_register(m, i, Operation::Extract, 0) }
    "fxtract" = "d9f4";
    /// Truncating remainder, or a step towards it.
    [Fprem], exact (m, i) { on_register(m, i, Operation::Remainder, 0) }
    "fprem" = "d9f8";
    /// IEEE remainder, or a step towards it.
    [Fprem1], exact (m, i) { on_register(m, i, Operation::RemainderNearest, 0) }
    "fprem1" = "d9f5";

    /// Compare into condition codes.
    [Fcom, Ficom], exact (m, i) { on_operand(m, i, Operation::Compare, 0) }
    "fcom st,dword ptr [rdi]" = "d817", "fcom st,qword ptr [rdi]" = "dc17", "fcom" = "d8d1", "ficom st,word ptr [rdi]" = "de17",
    "ficom st,dword ptr [rdi]" = "da17";
    /// Compare into condition codes, and pop.
    [Fcomp, Ficomp], exact (m, i) { on_operand(m, i, Operation::Compare, 1) }
    "fcomp st,dword ptr [rdi]" = "d81f", "fcomp st,qword ptr [rdi]" = "dc1f", "fcomp" = "d8d9", "ficomp st,word ptr [rdi]" = "de1f",
    "ficomp st,dword ptr [rdi]" = "da1f";
    /// Compare into condition codes, and pop both.
    [Fcompp], exact (m, i) { compare_and_pop_both(m, i, Operation::Compare) }
    "fcompp" = "ded9";
    /// Compare into condition codes; quiet NaNs are not invalid.
    [Fucom], exact (m, i) { on_operand(m, i, Operation::CompareQuiet, 0) }
    "fucom" = "dde1";
    /// The same, and pop.
    [Fucomp], exact (m, i) { on_operand(m, i, Operation::CompareQuiet, 1) }
    "fucomp" = "dde9";
    /// The same, and pop both.
    [Fucompp], exact (m, i) { compare_and_pop_both(m, i, Operation::CompareQuiet) }
    "fucompp" = "dae9";
    /// Compare into flags.
    [Fcomi], exact (m, i) { compare_flags(m, i, Operation::CompareFlags, 0) }
    "fcomi st,st(1)" = "dbf1";
    /// Compare into flags, and pop.
    [Fcomip], exact (m, i) { compare_flags(m, i, Operation::CompareFlags, 1) }
    "fcomip st,st(1)" = "dff1";
    /// Compare into flags; quiet NaNs are not invalid.
    [Fucomi], exact (m, i) { compare_flags(m, i, Operation::CompareFlagsQuiet, 0) }
    "fucomi st,st(1)" = "dbe9";
    /// The same, and pop.
    [Fucomip], exact (m, i) { compare_flags(m, i, Operation::CompareFlagsQuiet, 1) }
    "fucomip st,st(1)" = "dfe9";
    /// Compare with zero.
    [Ftst], exact (m, i) { on_register(m, i, Operation::Test, 0) }
    "ftst" = "d9e4";
    /// Classify.
    [Fxam], exact (m, i) { on_register(m, i, Operation::Examine, 0) }
    "fxam" = "d9e5";

    /// Empty a register.
    [Ffree], exact (m, i) { on_register(m, i, Operation::Free, stack_number(i, 0)) }
    "ffree st(2)" = "ddc2";
    /// Empty a register, and pop.
    [Ffreep], exact (m, i) {
        let request = Request { pops: 1, ..register(stack_number(i, 0)) };
        let none = m.int(W128, 0);
        operate(m, i, Operation::Free, request, none);
    }
    "ffreep st(2)" = "dfc2";
    /// Turn the stack by one.
    [Fincstp], exact (m, i) { on_register(m, i, Operation::IncrementTop, 0) }
    "fincstp" = "d9f7";
    /// Turn the stack back by one.
    [Fdecstp], exact (m, i) { on_register(m, i, Operation::DecrementTop, 0) }
    "fdecstp" = "d9f6";
    /// Nothing but a look for pending exceptions.
    [Fnop], exact (m, i) { on_register(m, i, Operation::Nothing, 0) }
    "fnop" = "d9d0";
}

/// Conversion and completion of a store in the current rounding mode.
const ROUNDED: [Operation; 2] = [Operation::Store, Operation::Stored];
/// The same, truncating.
const TRUNCATED: [Operation; 2] = [Operation::StoreTruncated, Operation::StoredTruncated];

/// A request for an operation on stack registers; `number` is the operand.
pub(super) const fn register(number: u8) -> Request {
    Request { bits: number as u128, format: Format::Register, destination: 0, pops: 0, in_memory: false }
}

/// Number of the stack register that operand `op` is.
fn stack_number(i: &Insn, op: u32) -> u8 {
    i.op_register(op).number() as u8
}

/// Hand over `request`, with `value` for its low 80 bits where they are not known from the instruction.
pub(super) fn operate<M: X86>(
    m: &mut M,
    i: &Insn,
    operation: Operation,
    request: Request,
    value: M::Int,
) -> M::Int {
    let packed = request.pack();
    let (low, high) = (m.int(W64, packed as u64), m.int(W64, (packed >> 64) as u64));
    let fixed = join(m, low, high);
    let operand = m.bin(BinOp::Or, fixed, value);
    let here = m.address(i.ip());
    let data = if request.in_memory { memory_address(m, i) } else { m.int(W64, 0) };
    let addresses = join(m, here, data);
    let answer = m.coprocessor(operation as u32, operand, addresses);
    trap_if_pending(m, answer);
    answer
}

/// Two halves as 128 bits.
pub(super) fn join<M: X86>(m: &mut M, low: M::Int, high: M::Int) -> M::Int {
    let (low, high) = (m.zext(low, W128), m.zext(high, W128));
    let high = m.bin_const(BinOp::Shl, high, 64);
    m.bin(BinOp::Or, low, high)
}

/// An operation on stack registers.
pub(super) fn on_register<M: X86>(m: &mut M, i: &Insn, operation: Operation, number: u8) {
    let none = m.int(W128, 0);
    operate(m, i, operation, register(number), none);
}

fn constant<M: X86>(m: &mut M, i: &Insn, number: u8) {
    on_register(m, i, Operation::LoadConstant, number);
}

/// The format of the memory operand.
fn format(i: &Insn) -> Format {
    match i.memory_size() {
        MemorySize::Float32 => Format::F32,
        MemorySize::Float64 => Format::F64,
        MemorySize::Float80 => Format::F80,
        MemorySize::Int16 => Format::I16,
        MemorySize::Int32 => Format::I32,
        MemorySize::Int64 => Format::I64,
        _ => Format::Decimal,
    }
}

fn is_memory(i: &Insn) -> bool {
    (0..i.op_count()).any(|op| i.op_kind(op) == OpKind::Memory)
}

/// An operation on ST(0) and memory, or on the register that operand 0 is and the one that the last operand is.
fn on_operand<M: X86>(m: &mut M, i: &Insn, operation: Operation, pops: u8) {
    if is_memory(i) {
        let format = format(i);
        let value = load(m, i, format);
        let request = Request { bits: 0, format, destination: 0, pops, in_memory: true };
        operate(m, i, operation, request, value);
    } else {
        let last = i.op_count() - 1;
        let request = Request { destination: stack_number(i, 0), pops, ..register(stack_number(i, last)) };
        let none = m.int(W128, 0);
        operate(m, i, operation, request, none);
    }
}

/// The bits of the memory operand.
fn load<M: X86>(m: &mut M, i: &Insn, format: Format) -> M::Int {
    let address = memory_address(m, i);
    if matches!(format, Format::F80 | Format::Decimal) {
        return load_80(m, address);
    }
    let value = m.load(address, width_of(i.memory_size().size()));
    m.zext(value, W128)
}

/// Ten bytes.
pub(super) fn load_80<M: X86>(m: &mut M, address: M::Int) -> M::Int {
    let low = m.load(address, W64);
    let above = m.bin_const(BinOp::Add, address, 8);
    let high = m.load(above, W16);
    join(m, low, high)
}

/// Ten bytes.
pub(super) fn store_80<M: X86>(m: &mut M, address: M::Int, value: M::Int) {
    let low = m.trunc(value, W64);
    m.store(address, low);
    let high = m.bin_const(BinOp::LShr, value, 64);
    let high = m.trunc(high, W16);
    let above = m.bin_const(BinOp::Add, address, 8);
    m.store(above, high);
}

/// Stores, in three steps: what to store, storing it, and what follows from that in the unit; so that a
/// refused store leaves the unit alone.
fn store<M: X86>(m: &mut M, i: &Insn, [convert, finish]: [Operation; 2], pops: u8) {
    if !is_memory(i) {
        let request = Request { destination: stack_number(i, 0), pops, ..register(0) };
        let none = m.int(W128, 0);
        operate(m, i, Operation::StoreRegister, request, none);
        return;
    }
    let format = format(i);
    let request = Request { bits: 0, format, destination: 0, pops, in_memory: true };
    let none = m.int(W128, 0);
    let answer = operate(m, i, convert, request, none);
    let granted = is_granted(m, answer);
    let address = memory_address(m, i);
    probe(m, address, i.memory_size().size() as u64);
    m.when(granted, &mut |m| {
        if matches!(format, Format::F80 | Format::Decimal) {
            store_80(m, address, answer);
        } else {
            let value = m.trunc(answer, width_of(i.memory_size().size()));
            m.store(address, value);
        }
    });
    operate(m, i, finish, request, none);
}

/// No unmasked exception withholds the answer.
fn is_granted<M: X86>(m: &mut M, answer: M::Int) -> M::Bool {
    let withheld = m.bit(answer, WITHHELD.trailing_zeros());
    m.not(withheld)
}

fn compare_and_pop_both<M: X86>(m: &mut M, i: &Insn, operation: Operation) {
    let none = m.int(W128, 0);
    operate(m, i, operation, Request { pops: 2, ..register(1) }, none);
}

fn compare_flags<M: X86>(m: &mut M, i: &Insn, operation: Operation, pops: u8) {
    let none = m.int(W128, 0);
    let answer = operate(m, i, operation, Request { pops, ..register(stack_number(i, 1)) }, none);
    for (bit, flag) in [Flag::Cf, Flag::Pf, Flag::Zf].into_iter().enumerate() {
        let value = m.bit(answer, bit as u32);
        m.put(flag, value);
    }
    m.put_known(&[Flag::Of, Flag::Sf, Flag::Af], false);
}

fn below_or_equal<M: X86>(m: &mut M) -> M::Bool {
    let (c, z) = (m.get(Flag::Cf), m.get(Flag::Zf));
    m.or(c, z)
}

/// FCMOVcc: the condition is bit 8 of the operand.
fn move_if<M: X86>(m: &mut M, i: &Insn, condition: M::Bool) {
    let condition = m.bool_to_int(condition, W128);
    let condition = m.bin_const(BinOp::Shl, condition, 8);
    operate(m, i, Operation::MoveIf, register(stack_number(i, 1)), condition);
}
