//! Which flags and registers an instruction reads and writes.

use super::{Insn, op0_bits};
use crate::region::{FlagSet, RegisterSet, RegisterUse};
use iced_x86::{
    CpuidFeature, InstructionInfoFactory, InstructionInfoOptions, Mnemonic, OpAccess, OpKind, Register,
    RflagsBits,
};
use tranship_isa::x86_64::Flag;

/// The general registers that a call may change by the psABI: rax rcx rdx rsi rdi r8..r11.
pub(super) const VOLATILE: u16 = 0b0000_1111_1100_0111;

/// What [`registers`] needs; make one for many calls.
pub(in crate::discover) fn factory() -> InstructionInfoFactory {
    InstructionInfoFactory::new()
}

/// The general registers that the instruction may write.
pub(super) fn written_gprs(i: &Insn) -> u16 {
    registers(&mut InstructionInfoFactory::new(), i).writes.gpr
}

/// What the instruction does to flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::discover) struct FlagUse {
    /// May read.
    pub(in crate::discover) reads: FlagSet,
    /// Writes in any case, be it a value that the manual calls undefined: nobody can rely on the old one.
    pub(in crate::discover) writes: FlagSet,
}

/// The flags that the instruction itself reads and writes, [`CopyUse`] aside; callees are not looked into.
pub(in crate::discover) fn flags(i: &Insn) -> FlagUse {
    if makes_flags_copy(i) {
        return FlagUse { reads: FlagSet::EMPTY, writes: FlagSet::EMPTY };
    }
    let writes = if may_leave_flags(i) { FlagSet::EMPTY } else { set_of(i.rflags_modified()) };
    FlagUse { reads: set_of(i.rflags_read()), writes }
}

fn set_of(bits: u32) -> FlagSet {
    const OF_ICED: [(u32, Flag); 7] = [
        (RflagsBits::CF, Flag::Cf),
        (RflagsBits::PF, Flag::Pf),
        (RflagsBits::AF, Flag::Af),
        (RflagsBits::ZF, Flag::Zf),
        (RflagsBits::SF, Flag::Sf),
        (RflagsBits::OF, Flag::Of),
        (RflagsBits::DF, Flag::Df),
    ];
    OF_ICED.iter().filter(|(bit, _)| bits & bit != 0).fold(FlagSet::EMPTY, |set, &(_, flag)| set.with(flag))
}

/// Whether there are operands with which the instruction writes no flag: a shift or rotate by zero, a
/// repeated comparison of nothing.
fn may_leave_flags(i: &Insn) -> bool {
    let count = |op| match i.op_kind(op) {
        OpKind::Register => None,
        _ => Some(i.immediate(op) & if op0_bits(i) == 64 { 63 } else { 31 }),
    };
    match i.mnemonic() {
        Mnemonic::Shl
        | Mnemonic::Sal
        | Mnemonic::Shr
        | Mnemonic::Sar
        | Mnemonic::Rol
        | Mnemonic::Ror
        | Mnemonic::Rcl
        | Mnemonic::Rcr => count(1).is_none_or(|c| c == 0),
        Mnemonic::Shld | Mnemonic::Shrd => count(2).is_none_or(|c| c == 0),
        _ => i.has_rep_prefix() || i.has_repne_prefix(),
    }
}

/// What the instruction does to the copy of the flags that `syscall` leaves in r11.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::discover) struct CopyUse {
    /// It makes one.
    pub(in crate::discover) makes: bool,
    /// It may read r11. A push does not count: compilers push volatile registers to move the stack pointer.
    pub(in crate::discover) reads: bool,
    /// It overwrites r11, or enough of it that nobody can want the rest.
    pub(in crate::discover) overwrites: bool,
}

/// See [`CopyUse`].
pub(in crate::discover) fn flags_copy(factory: &mut InstructionInfoFactory, i: &Insn) -> CopyUse {
    if makes_flags_copy(i) {
        return CopyUse { makes: true, reads: false, overwrites: true };
    }
    let info = factory.info_options(i, InstructionInfoOptions::NO_MEMORY_USAGE);
    let mut copy = CopyUse::default();
    for used in info.used_registers().iter().filter(|u| u.register().full_register() == Register::R11) {
        match used.access() {
            OpAccess::Write => copy.overwrites = true,
            OpAccess::CondWrite | OpAccess::None | OpAccess::NoMemAccess => {}
            _ => copy.reads |= i.mnemonic() != Mnemonic::Push,
        }
    }
    copy
}

fn makes_flags_copy(i: &Insn) -> bool {
    i.mnemonic() == Mnemonic::Syscall
}

/// The registers that the instruction itself reads and writes; callees are not looked into.
pub(in crate::discover) fn registers(factory: &mut InstructionInfoFactory, i: &Insn) -> RegisterUse {
    const GPR: [u8; 7] = [0, 7, 6, 2, 10, 8, 9];
    let mut used = RegisterUse::default();
    if i.mnemonic() == Mnemonic::Syscall {
        // The number and six arguments; the result, and rcx and r11 by the instruction itself.
        used.reads.gpr = GPR.iter().fold(0, |set, r| set | 1 << r);
        used.writes.gpr = 1 | 1 << 1 | 1 << 11;
        return used;
    }
    if i.cpuid_features().contains(&CpuidFeature::FPU) || i.mnemonic() == Mnemonic::Emms {
        used = RegisterUse { reads: X87, writes: X87 };
    }
    if saves_or_restores(i) {
        used = RegisterUse { reads: STATE, writes: STATE };
    }
    let info = factory.info_options(i, InstructionInfoOptions::NO_MEMORY_USAGE);
    for register in info.used_registers() {
        let (set, whole) = set_of_register(register.register());
        let access = register.access();
        let writes = !matches!(access, OpAccess::None | OpAccess::Read | OpAccess::CondRead);
        if writes {
            used.writes = used.writes.union(set);
        }
        if access != OpAccess::Write || !whole {
            used.reads = used.reads.union(set);
        }
    }
    used
}

/// Whether the instruction moves whole parts of the register file to or from memory.
fn saves_or_restores(i: &Insn) -> bool {
    const FEATURES: [CpuidFeature; 5] = [
        CpuidFeature::FXSR,
        CpuidFeature::XSAVE,
        CpuidFeature::XSAVEOPT,
        CpuidFeature::XSAVEC,
        CpuidFeature::XSAVES,
    ];
    i.cpuid_features().iter().any(|f| FEATURES.contains(f))
}

/// What `fxsave`, `xsave` and their like move.
const STATE: RegisterSet = RegisterSet { gpr: 0, ..RegisterSet::ALL };
const X87: RegisterSet = RegisterSet { gpr: 0, vec: 0, x87: true, opmask: false };

/// The register as a set, and whether a write to it leaves nothing of its old value.
fn set_of_register(register: Register) -> (RegisterSet, bool) {
    let none = RegisterSet::default();
    // Of an 8-bit register, `number` counts ah to bh too.
    let number = register.full_register().number();
    if register.is_gpr() {
        (RegisterSet { gpr: 1 << number, ..none }, register.is_gpr64() || register.is_gpr32())
    } else if register.is_vector_register() {
        // The decoder reports the whole register where the upper part is cleared.
        (RegisterSet { vec: 1 << number, ..none }, register.is_zmm())
    } else if register.is_st() || register.is_mm() {
        (X87, false)
    } else if register.is_k() {
        (RegisterSet { opmask: true, ..none }, true)
    } else {
        (none, true)
    }
}
