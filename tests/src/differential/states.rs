//! Random states for an instruction: interesting values everywhere, and registers such that its memory
//! operands mostly lie in the sandbox.

use super::{CODE, Random, SANDBOX, SANDBOX_BYTES, State};
use iced_x86::{Mnemonic, OpKind, Register};
use tranship_isa::x86_64::{Flag, Insn};

const RAX: usize = 0;
const RCX: usize = 1;
const RDX: usize = 2;
const RSP: usize = 4;
const RBP: usize = 5;
const RSI: usize = 6;
const RDI: usize = 7;

/// Replace `state` by a random one that suits `insns`.
pub fn random_state(random: &mut Random, insns: &[Insn], state: &mut State) {
    randomize_registers(random, state);
    if random.one_in(16) {
        randomize_memory(random, state);
    }
    // Sometimes addresses are left to chance, to see the fault.
    let aim = !random.one_in(32);
    for insn in insns {
        if aim {
            aim_addresses(random, insn, state);
        }
        suit_mnemonic(random, insn, state);
    }
}

fn randomize_registers(random: &mut Random, state: &mut State) {
    let cpu = &mut state.cpu;
    cpu.rip = CODE;
    cpu.gpr = std::array::from_fn(|_| random.integer());
    cpu.gpr[RSP] = address(random);
    for flag in Flag::ALL {
        cpu.flags[flag as usize] = random.below(2) as u8;
    }
    cpu.fs_base = segment_base(random);
    cpu.gs_base = segment_base(random);
    cpu.mxcsr = mxcsr(random);
    for block in cpu.vec.as_flattened_mut().chunks_exact_mut(16) {
        block.copy_from_slice(&vector(random));
    }
    cpu.opmask = std::array::from_fn(|_| if random.one_in(4) { random.integer() } else { random.bits() });
    randomize_x87(random, state);
}

/// All exceptions masked, mostly; any rounding, flushing and sticky flags.
fn mxcsr(random: &mut Random) -> u32 {
    let masks = if random.one_in(8) { random.bits() as u32 & 0x1f80 } else { 0x1f80 };
    let rounding = if random.one_in(2) { 0 } else { random.bits() as u32 & 0x6000 };
    let flushing = if random.one_in(8) { random.bits() as u32 & 0x8040 } else { 0 };
    masks | rounding | flushing | random.bits() as u32 & 0x3f
}

fn vector(random: &mut Random) -> [u8; 16] {
    let kind = random.below(4);
    let half = |random: &mut Random| match kind {
        0 => random.integer(),
        1 => random.float(true),
        2 => random.float(false) | random.float(false) << 32,
        _ => random.bits() & random.integer(),
    };
    (u128::from(half(random)) | u128::from(half(random)) << 64).to_le_bytes()
}

fn randomize_x87(random: &mut Random, state: &mut State) {
    let x87 = &mut state.cpu.x87;
    for n in 0..8 {
        let exponent = match random.below(6) {
            0 => 0,
            1 => 0x7fff,
            2 => random.bits() & 0x7fff,
            _ => 0x3fff - 40 + random.below(110),
        };
        x87.sign_exponent[n] = (exponent | random.below(2) << 15) as u16;
        let integer_bit = u64::from(exponent != 0) << 63;
        x87.significand[n] = match random.below(8) {
            0 => integer_bit,
            1 => random.bits(),
            2 => integer_bit | 1 << 62,
            3 => integer_bit | random.bits() << 11 & u64::MAX >> 1,
            _ => integer_bit | random.bits() >> 1,
        };
    }
    let precision = random.pick(&[0x000, 0x200, 0x300, 0x300, 0x300]);
    let rounding = random.pick(&[0, 0, 0x400, 0x800, 0xc00]);
    let masks = if random.one_in(8) { random.bits() as u16 & 0x3f } else { 0x3f };
    x87.control = 0x40 | precision | rounding | masks;
    // Condition codes and TOP; sticky exceptions only if masked, or every x87 instruction would trap.
    let sticky = random.bits() as u16 & 0x3f & masks;
    x87.status = random.bits() as u16 & 0x7f00 | sticky;
    x87.valid = if random.one_in(4) { random.bits() as u8 } else { 0xff };
    if random.one_in(16) {
        x87.valid = 0;
    }
}

fn randomize_memory(random: &mut Random, state: &mut State) {
    for chunk in state.memory.chunks_exact_mut(16) {
        chunk.copy_from_slice(&vector(random));
    }
}

/// An address in the sandbox, now and then so near the end that an access straddles it.
fn address(random: &mut Random) -> u64 {
    let size = SANDBOX_BYTES as u64;
    match random.below(40) {
        0 => SANDBOX + size - random.below(64),
        1 => SANDBOX + random.below(16),
        2..10 => SANDBOX + size / 4 + random.below(size / 2),
        _ => SANDBOX + size / 4 + (random.below(size / 2) & !63),
    }
}

fn segment_base(random: &mut Random) -> u64 {
    match random.below(3) {
        0 => 0,
        1 => random.below(1 << 20),
        _ => (random.below(1 << 30) as i64 - (1 << 29)) as u64,
    }
}

/// Set the registers that memory operands are made of so that they point into the sandbox.
fn aim_addresses(random: &mut Random, insn: &Insn, state: &mut State) {
    let target = address(random);
    let segment = match insn.memory_segment() {
        Register::FS => state.cpu.fs_base,
        Register::GS => state.cpu.gs_base,
        _ => 0,
    };
    for op in 0..insn.op_count() {
        match insn.op_kind(op) {
            OpKind::Memory => aim_memory_operand(random, insn, state, target.wrapping_sub(segment)),
            OpKind::MemorySegRSI | OpKind::MemorySegESI => state.cpu.gpr[RSI] = target.wrapping_sub(segment),
            OpKind::MemorySegRDI | OpKind::MemorySegEDI => state.cpu.gpr[RDI] = target.wrapping_sub(segment),
            OpKind::MemoryESRDI | OpKind::MemoryESEDI => state.cpu.gpr[RDI] = address(random),
            _ => {}
        }
    }
}

fn aim_memory_operand(random: &mut Random, insn: &Insn, state: &mut State, target: u64) {
    let (base, index) = (insn.memory_base(), insn.memory_index());
    let scale = u64::from(insn.memory_index_scale());
    let rest = target.wrapping_sub(insn.memory_displacement64());
    let gpr = &mut state.cpu.gpr;
    let number = |register: Register| register.full_register().number();
    match (base.is_gpr(), index.is_gpr()) {
        (true, true) if index == Register::AL => gpr[number(base)] = rest.wrapping_sub(gpr[RAX] & 0xff),
        (true, true) if base == index => gpr[number(base)] = rest / (scale + 1),
        (true, true) => {
            gpr[number(index)] = random.below(64);
            gpr[number(base)] = rest.wrapping_sub(gpr[number(index)].wrapping_mul(scale));
        }
        (true, false) => gpr[number(base)] = rest,
        (false, true) => gpr[number(index)] = rest / scale,
        (false, false) => {}
    }
}

/// What particular instructions need so that the interesting case is not rare.
fn suit_mnemonic(random: &mut Random, insn: &Insn, state: &mut State) {
    use Mnemonic as N;
    match insn.mnemonic() {
        N::Div | N::Idiv if !random.one_in(3) => {
            let sign = if insn.mnemonic() == N::Idiv { (state.cpu.gpr[RAX] as i64 >> 63) as u64 } else { 0 };
            state.cpu.gpr[RDX] = sign.wrapping_add(random.below(4)).wrapping_sub(random.below(2));
        }
        // More is undefined for 16 bits.
        N::Shld | N::Shrd if insn.op1_register().size() == 2 => state.cpu.gpr[RCX] &= !31 | 15,
        N::Bt | N::Bts | N::Btr | N::Btc if insn.op1_kind() == OpKind::Register => {
            // The index reaches out of the operand, but not out of the sandbox.
            let number = insn.op1_register().full_register().number();
            let used = [insn.memory_base(), insn.memory_index()];
            if !used.iter().any(|r| r.is_gpr() && r.full_register().number() == number) {
                state.cpu.gpr[number] = random.below(0x4000).wrapping_sub(0x2000);
            }
        }
        N::Cmpxchg | N::Cmpxchg8b | N::Cmpxchg16b if random.one_in(2) => match_expected(insn, state),
        N::Enter | N::Leave => state.cpu.gpr[RBP] = address(random),
        N::Pcmpistri | N::Pcmpistrm | N::Pcmpestri | N::Pcmpestri64 | N::Pcmpestrm | N::Pcmpestrm64 => {
            similar_strings(random, insn, state);
        }
        _ if insn.memory_index().is_vector_register() => small_indices(random, insn, state),
        // AMD's bit for misaligned operands, which we do not offer.
        N::Ldmxcsr | N::Vldmxcsr => clear_in_memory(state, memory_operand(insn, state).unwrap_or(0), 1 << 17),
        N::Fxrstor | N::Fxrstor64 => {
            let mxcsr = memory_operand(insn, state).unwrap_or(0).wrapping_add(24);
            clear_in_memory(state, mxcsr, 1 << 17);
        }
        N::Xsave | N::Xsave64 | N::Xsaveopt | N::Xsaveopt64 | N::Xsavec | N::Xsavec64 => {
            enabled_components(random, state);
        }
        N::Xrstor | N::Xrstor64 => {
            enabled_components(random, state);
            valid_header(random, memory_operand(insn, state).unwrap_or(0), state);
        }
        N::Popf | N::Popfq => clear_in_memory(state, state.cpu.gpr[RSP], TRAPPING_FLAGS),
        N::Jmp | N::Call => canonical_target(insn, state),
        N::Ret => {
            let rsp = state.cpu.gpr[RSP];
            canonical_in_memory(state, rsp);
        }
        N::Wrfsbase | N::Wrgsbase if !random.one_in(8) => {
            let number = insn.op0_register().full_register().number();
            state.cpu.gpr[number] = canonical(state.cpu.gpr[number]);
        }
        _ if insn.is_string_instruction() => {
            state.cpu.gpr[RCX] = random.below(12);
            if random.one_in(2) {
                repeat_memory(random, state);
            }
        }
        N::Jrcxz | N::Jecxz | N::Loop | N::Loope | N::Loopne => {
            state.cpu.gpr[RCX] = random.pick(&[0, 1, 2, 1 << 32, 1 << 32 | 1, u64::MAX]);
        }
        _ => {}
    }
}

/// Indices in a vector that lead into the sandbox, in lanes of 32 as of 64 bits, and a mask that chooses some lanes.
fn small_indices(random: &mut Random, insn: &Insn, state: &mut State) {
    for lane in state.cpu.vec[insn.memory_index().number()].chunks_exact_mut(4) {
        lane.copy_from_slice(&(random.below(64) as u32).to_le_bytes());
    }
    if random.one_in(2) {
        for lane in state.cpu.vec[insn.memory_index().number()].chunks_exact_mut(8) {
            lane.copy_from_slice(&random.below(64).to_le_bytes());
        }
    }
}

/// A mask in edx:eax of components that every CPU has enabled.
fn enabled_components(random: &mut Random, state: &mut State) {
    state.cpu.gpr[RAX] = random.below(8);
    state.cpu.gpr[RDX] = 0;
}

/// An XSAVE header that says something of those components, mostly.
fn valid_header(random: &mut Random, area: u64, state: &mut State) {
    clear_in_memory(state, area.wrapping_add(24), 0xffff_0000);
    if random.one_in(8) {
        return;
    }
    let listed = random.below(8);
    let (present, layout) = match random.below(2) {
        0 => (listed, 0),
        _ => (listed & random.bits(), 1 << 63 | listed),
    };
    if let Some(header) = state.bytes_at(area.wrapping_add(512), 64) {
        header.fill(0);
        header[..8].copy_from_slice(&present.to_le_bytes());
        header[8..16].copy_from_slice(&u64::to_le_bytes(layout));
    }
}

/// TF and AC: flags that would trap by themselves.
const TRAPPING_FLAGS: u64 = 1 << 8 | 1 << 18;

/// Linear address of the explicit memory operand, if its registers are what they will be.
pub(super) fn memory_operand(insn: &Insn, state: &State) -> Option<u64> {
    insn.virtual_address(0, 0, |register, _, _| match register {
        Register::FS => Some(state.cpu.fs_base),
        Register::GS => Some(state.cpu.gs_base),
        _ if register.is_gpr64() => Some(state.cpu.gpr[register.number()]),
        _ if register.is_gpr32() => Some(state.cpu.gpr[register.number()] & 0xffff_ffff),
        _ if register.is_segment_register() => Some(0),
        _ => None,
    })
}

/// Strings of few letters, with lengths about those of vectors.
fn similar_strings(random: &mut Random, insn: &Insn, state: &mut State) {
    let letters = random.pick(&[2, 3, 6]);
    let mut string = || -> [u8; 16] { std::array::from_fn(|_| random.below(letters) as u8) };
    let strings = [string(), string()];
    for (op, string) in strings.into_iter().enumerate() {
        if insn.op_kind(op as u32) == OpKind::Register {
            state.cpu.vec[insn.op_register(op as u32).number()][..16].copy_from_slice(&string);
        } else if let Some(bytes) = memory_operand(insn, state).and_then(|at| state.bytes_at(at, 16)) {
            bytes.copy_from_slice(&string);
        }
    }
    if !random.one_in(4) {
        for register in [RAX, RDX] {
            state.cpu.gpr[register] = random.below(40).wrapping_sub(20);
        }
    }
}

/// Make CMPXCHG's comparison succeed.
fn match_expected(insn: &Insn, state: &mut State) {
    let [rax, rdx] = [state.cpu.gpr[RAX], state.cpu.gpr[RDX]];
    if insn.op0_kind() == OpKind::Register {
        let number = insn.op0_register().full_register().number();
        state.cpu.gpr[number] = rax;
    } else if let Some(address) = memory_operand(insn, state) {
        let value = match insn.mnemonic() {
            Mnemonic::Cmpxchg8b => u128::from(rdx & 0xffff_ffff) << 32 | u128::from(rax & 0xffff_ffff),
            _ => u128::from(rdx) << 64 | u128::from(rax),
        };
        let len = insn.memory_size().size();
        if let Some(bytes) = state.bytes_at(address, len) {
            bytes.copy_from_slice(&value.to_le_bytes()[..len]);
        }
    }
}

/// Make some neighbouring elements of memory equal, for repeated comparisons to go on.
fn repeat_memory(random: &mut Random, state: &mut State) {
    let value = random.integer().to_le_bytes();
    for start in [state.cpu.gpr[RSI], state.cpu.gpr[RDI]] {
        if let Some(bytes) = state.bytes_at(start.wrapping_sub(40), 80) {
            bytes.chunks_exact_mut(8).for_each(|chunk| chunk.copy_from_slice(&value));
        }
    }
    if random.one_in(2) {
        state.cpu.gpr[RAX] = u64::from_le_bytes(value);
    }
}

/// What a jump to a non-canonical address does differs between vendors: it faults before or after.
fn canonical_target(insn: &Insn, state: &mut State) {
    match insn.op0_kind() {
        OpKind::Register => {
            let number = insn.op0_register().full_register().number();
            state.cpu.gpr[number] = canonical(state.cpu.gpr[number]);
        }
        OpKind::Memory => {
            if let Some(address) = memory_operand(insn, state) {
                canonical_in_memory(state, address);
            }
        }
        _ => {}
    }
}

fn canonical(address: u64) -> u64 {
    address & (u64::MAX >> 17)
}

fn canonical_in_memory(state: &mut State, address: u64) {
    clear_in_memory(state, address, !(u64::MAX >> 17));
}

fn clear_in_memory(state: &mut State, address: u64, bits: u64) {
    for (n, mask) in bits.to_le_bytes().into_iter().enumerate() {
        if let Some(byte) = state.bytes_at(address.wrapping_add(n as u64), 1) {
            byte[0] &= !mask;
        }
    }
}
