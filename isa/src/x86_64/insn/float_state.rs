//! Control and state of the floating-point units: control words, environments, FXSAVE images. SDM vol. 1,
//! chapters 8 and 10; vol. 2.

use super::x87::{join, load_80, store_80};
use crate::machine::{BinOp, Trap, Width};
use crate::x86_64::mmx::trap_if_pending;
use crate::x86_64::operand::{X86, memory_address, probe, write};
use crate::x86_64::vector::BLOCK;
use crate::x86_64::x87::Operation;
use crate::x86_64::{Insn, Reg};
use iced_x86::{MemorySize, Mnemonic};
use Width::{W16, W32, W64, W128};

extension! { "float_state";
    /// Store MXCSR.
    [Stmxcsr, Vstmxcsr], exact (m, i) {
        let value = m.reg(Reg::Mxcsr);
        write(m, i, 0, value);
    }
    "stmxcsr [rdi]" = "0fae1f",
    "vstmxcsr [rdi]" = "c5f8ae1f";
    /// Load MXCSR.
    [Ldmxcsr, Vldmxcsr], exact (m, i) {
        let address = memory_address(m, i);
        let value = m.load(address, W32);
        set_mxcsr(m, value);
    }
    "ldmxcsr [rdi]" = "0fae17",
    "vldmxcsr [rdi]" = "c5f8ae17";

    /// Store the control word.
    [Fnstcw], exact (m, i) { store_word(m, i, Operation::ControlWord) }
    "fnstcw [rdi]" = "d93f";
    /// Load the control word.
    [Fldcw], exact (m, i) {
        let address = memory_address(m, i);
        let value = m.load(address, W16);
        let value = m.zext(value, W128);
        ask(m, Operation::SetControlWord, value);
    }
    "fldcw [rdi]" = "d92f";
    /// Store the status word.
    [Fnstsw], exact (m, i) { store_word(m, i, Operation::StatusWord) }
    "fnstsw ax" = "dfe0", "fnstsw [rdi]" = "dd3f";
    /// Clear exceptions.
    [Fnclex], exact (m, _i) { tell(m, Operation::ClearExceptions) }
    "fnclex" = "dbe2";
    /// Set the x87 unit to its initial state.
    [Fninit], exact (m, _i) { tell(m, Operation::Initialize) }
    "fninit" = "dbe3";
    /// Raise a pending x87 exception.
    [Wait], exact (m, _i) { tell(m, Operation::Wait) }
    "fwait" = "9b";
    /// Empty the registers, after MMX.
    [Emms], exact (m, _i) { tell(m, Operation::MmxEmpty) }
    "emms" = "0f77";

    /// Store the x87 environment and mask all exceptions.
    [Fnstenv], approximate("the last opcode and the segment selectors are not kept") (m, i) {
        let address = memory_address(m, i);
        probe(m, address, environment_bytes(i));
        store_environment(m, i, address);
        tell(m, Operation::MaskAll);
    }
    "fnstenv [rdi]" = "d937", "fnstenv fpuenv14 ptr [rdi]" = "66d937";
    /// Load the x87 environment.
    [Fldenv], approximate("the segment selectors are not kept") (m, i) {
        let address = memory_address(m, i);
        load_environment(m, i, address);
    }
    "fldenv [rdi]" = "d927", "fldenv fpuenv14 ptr [rdi]" = "66d927";
    /// Store the whole x87 unit and set it to its initial state.
    [Fnsave], approximate("the last opcode and the segment selectors are not kept") (m, i) {
        let address = memory_address(m, i);
        probe(m, address, environment_bytes(i) + 80);
        store_environment(m, i, address);
        for n in 0..8 {
            let number = m.int(W128, n);
            let value = ask(m, Operation::Register, number);
            let at = m.bin_const(BinOp::Add, address, environment_bytes(i) + 10 * n);
            store_80(m, at, value);
        }
        tell(m, Operation::Initialize);
    }
    "fnsave [rdi]" = "dd37", "fnsave fpustate94 ptr [rdi]" = "66dd37";
    /// Load the whole x87 unit.
    [Frstor], approximate("the segment selectors are not kept") (m, i) {
        let address = memory_address(m, i);
        let values: [M::Int; 8] = core::array::from_fn(|n| {
            let at = m.bin_const(BinOp::Add, address, environment_bytes(i) + 10 * n as u64);
            load_80(m, at)
        });
        load_environment(m, i, address);
        set_registers(m, values);
    }
    "frstor [rdi]" = "dd27", "frstor fpustate94 ptr [rdi]" = "66dd27";

    /// Store x87, MMX and SSE state.
    [Fxsave, Fxsave64], approximate("the last opcode is not kept; the pointers are those of an exception pending, else zero, as on AMD") (m, i) { store_image(m, i) }
    "fxsave [rdi]" = "0fae07", "fxsave64 [rdi]" = "480fae07";
    /// Load x87, MMX and SSE state.
    [Fxrstor, Fxrstor64], exact (m, i) { load_image(m, i) }
    "fxrstor [rdi]" = "0fae0f", "fxrstor64 [rdi]" = "480fae0f";
}

/// Bits of MXCSR that exist, with DAZ: FXSAVE's MXCSR_MASK. (AMD's misaligned-SSE bit is not offered.)
const MXCSR_MASK: u64 = 0xffff;

/// One operation that may find an exception pending.
fn ask<M: X86>(m: &mut M, operation: Operation, a: M::Int) -> M::Int {
    let none = m.int(W128, 0);
    let answer = m.coprocessor(operation as u32, a, none);
    trap_if_pending(m, answer);
    answer
}

fn tell<M: X86>(m: &mut M, operation: Operation) {
    let none = m.int(W128, 0);
    ask(m, operation, none);
}

fn store_word<M: X86>(m: &mut M, i: &Insn, operation: Operation) {
    let none = m.int(W128, 0);
    let value = m.coprocessor(operation as u32, none, none);
    let value = m.trunc(value, W16);
    write(m, i, 0, value);
}

/// Set MXCSR; a bit that does not exist is #GP.
fn set_mxcsr<M: X86>(m: &mut M, value: M::Int) {
    let unknown = m.bin_const(BinOp::And, value, !MXCSR_MASK & 0xffff_ffff);
    let unknown = m.is_nonzero(unknown);
    m.trap_if(unknown, Trap::GeneralProtection);
    m.set_reg(Reg::Mxcsr, value);
}

/// The instruction uses the 16-bit formats (operand-size prefix).
fn is_short(i: &Insn) -> bool {
    matches!(i.memory_size(), MemorySize::FpuEnv14 | MemorySize::FpuState94)
}

fn environment_bytes(i: &Insn) -> u64 {
    if is_short(i) { 14 } else { 28 }
}

/// Bit positions of an environment's seven words; the 16-bit format has the low half of each.
const WORDS: [u32; 7] = [0, 32, 64, 96, 128, 160, 192];

fn store_environment<M: X86>(m: &mut M, i: &Insn, address: M::Int) {
    let none = m.int(W128, 0);
    let low = m.coprocessor(Operation::EnvironmentLow as u32, none, none);
    let high = m.coprocessor(Operation::EnvironmentHigh as u32, none, none);
    let width = if is_short(i) { W16 } else { W32 };
    for (n, bit) in WORDS.into_iter().enumerate() {
        let half = if bit < 128 { low } else { high };
        let word = m.bin_const(BinOp::LShr, half, (bit % 128).into());
        let word = m.trunc(word, width);
        let at = m.bin_const(BinOp::Add, address, n as u64 * u64::from(width.bytes()));
        m.store(at, word);
    }
}

fn load_environment<M: X86>(m: &mut M, i: &Insn, address: M::Int) {
    let width = if is_short(i) { W16 } else { W32 };
    let zero = m.int(W128, 0);
    let mut halves = [zero, zero];
    for (n, bit) in WORDS.into_iter().enumerate() {
        let at = m.bin_const(BinOp::Add, address, n as u64 * u64::from(width.bytes()));
        let word = m.load(at, width);
        let word = m.zext(word, W128);
        let word = m.bin_const(BinOp::Shl, word, (bit % 128).into());
        let half = &mut halves[bit as usize / 128];
        *half = m.bin(BinOp::Or, *half, word);
    }
    let answer = m.coprocessor(Operation::SetEnvironment as u32, halves[0], halves[1]);
    trap_if_pending(m, answer);
}

fn set_registers<M: X86>(m: &mut M, values: [M::Int; 8]) {
    for (n, value) in values.into_iter().enumerate() {
        let number = m.int(W128, n as u64);
        m.coprocessor(Operation::SetRegister as u32, number, value);
    }
}

/// Where things are in an FXSAVE image; SDM vol. 1, table 10-2.
mod image {
    pub(super) const DATA_POINTER: u64 = 16;
    pub(super) const MXCSR: u64 = 24;
    pub(super) const MXCSR_MASK: u64 = 28;
    pub(super) const X87: u64 = 32;
    pub(super) const XMM: u64 = 160;
}

fn aligned_address<M: X86>(m: &mut M, i: &Insn) -> M::Int {
    let address = memory_address(m, i);
    m.require_aligned(address, 16);
    address
}

/// The pointers are 64 bits in FXSAVE64, XSAVE64 and the like and 32 bits, with selectors of zero, in FXSAVE.
fn is_wide(i: &Insn) -> bool {
    i.memory_size() == MemorySize::Fxsave64_512Byte
        || matches!(i.mnemonic(), Mnemonic::Xsave64 | Mnemonic::Xsaveopt64 | Mnemonic::Xsavec64 | Mnemonic::Xrstor64)
}

fn store_image<M: X86>(m: &mut M, i: &Insn) {
    let address = aligned_address(m, i);
    probe(m, address, 512);
    store_x87(m, i, address);
    store_mxcsr(m, address);
    store_xmm(m, address);
}

/// The x87 part of an image.
pub(super) fn store_x87<M: X86>(m: &mut M, i: &Insn, address: M::Int) {
    let none = m.int(W128, 0);
    let mut low = m.coprocessor(Operation::ImageLow as u32, none, none);
    let data = m.coprocessor(Operation::ImageHigh as u32, none, none);
    let mut data = m.trunc(data, W64);
    if !is_wide(i) {
        let narrow = m.int(W64, 0xffff_ffff);
        data = m.bin(BinOp::And, data, narrow);
        let ones = m.int(W64, u64::MAX);
        let mask = join(m, ones, narrow);
        low = m.bin(BinOp::And, low, mask);
    }
    m.store(address, low);
    store_at(m, address, image::DATA_POINTER, data);
    for n in 0..8 {
        let number = m.int(W128, n);
        let value = m.coprocessor(Operation::Register as u32, number, none);
        store_at(m, address, image::X87 + 16 * n, value);
    }
}

/// MXCSR and the mask of its bits in an image.
pub(super) fn store_mxcsr<M: X86>(m: &mut M, address: M::Int) {
    let mxcsr = m.reg(Reg::Mxcsr);
    store_at(m, address, image::MXCSR, mxcsr);
    let mask = m.int(W32, MXCSR_MASK);
    store_at(m, address, image::MXCSR_MASK, mask);
}

/// The XMM registers in an image.
pub(super) fn store_xmm<M: X86>(m: &mut M, address: M::Int) {
    for n in 0..16 {
        let value = m.vec_reg(n, BLOCK);
        let at = m.bin_const(BinOp::Add, address, image::XMM + 16 * u64::from(n));
        m.store_vec(at, value);
    }
}

fn store_at<M: X86>(m: &mut M, address: M::Int, offset: u64, value: M::Int) {
    let at = m.bin_const(BinOp::Add, address, offset);
    m.store(at, value);
}

fn load_at<M: X86>(m: &mut M, address: M::Int, offset: u64, width: Width) -> M::Int {
    let at = m.bin_const(BinOp::Add, address, offset);
    m.load(at, width)
}

/// Everything that can be refused is looked at before anything is set.
fn load_image<M: X86>(m: &mut M, i: &Insn) {
    let address = aligned_address(m, i);
    probe(m, address, 512);
    load_mxcsr(m, address);
    load_x87(m, i, address);
    load_xmm(m, address);
}

/// The x87 unit in its initial state.
pub(super) fn initialise<M: X86>(m: &mut M) {
    let none = m.int(W128, 0);
    m.coprocessor(Operation::Initialize as u32, none, none);
    let zeros = [none; 8];
    set_registers(m, zeros);
    // The registers are empty.
    let control = m.int(W128, 0x37f);
    m.coprocessor(Operation::SetImage as u32, control, none);
}

/// The x87 part of an image.
pub(super) fn load_x87<M: X86>(m: &mut M, i: &Insn, address: M::Int) {
    let mut low = m.load(address, W128);
    let data = load_at(m, address, image::DATA_POINTER, if is_wide(i) { W64 } else { W32 });
    let data = m.zext(data, W128);
    if !is_wide(i) {
        let (ones, narrow) = (m.int(W64, u64::MAX), m.int(W64, 0xffff_ffff));
        let mask = join(m, ones, narrow);
        low = m.bin(BinOp::And, low, mask);
    }
    let registers: [M::Int; 8] = core::array::from_fn(|n| {
        let at = m.bin_const(BinOp::Add, address, image::X87 + 16 * n as u64);
        load_80(m, at)
    });
    m.coprocessor(Operation::SetImage as u32, low, data);
    set_registers(m, registers);
}

/// MXCSR in an image.
pub(super) fn load_mxcsr<M: X86>(m: &mut M, address: M::Int) {
    let mxcsr = load_at(m, address, image::MXCSR, W32);
    set_mxcsr(m, mxcsr);
}

/// The XMM registers in an image.
pub(super) fn load_xmm<M: X86>(m: &mut M, address: M::Int) {
    for n in 0..16 {
        let at = m.bin_const(BinOp::Add, address, image::XMM + 16 * u64::from(n));
        let value = m.load_vec(at, BLOCK);
        m.set_vec_reg(n, value);
    }
}
