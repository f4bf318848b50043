//! What discovery must know about x86-64: how each instruction passes control, which addresses it
//! mentions, and the shapes that compilers give to jump tables.

pub(super) mod effects;
mod evaluate;
pub(super) mod jump_table;
mod path;

use super::code::{Flow, Reference, Step};
use iced_x86::{FlowControl, Mnemonic, OpKind, Register};
use tranship_isa::x86_64::{Insn, decode};

/// Bytes of the longest instruction.
pub(super) const MAX_LENGTH: usize = 15;

/// The instruction that `code` starts with.
pub(super) fn insn(code: &[u8], address: u64) -> Option<Insn> {
    decode(code.get(..MAX_LENGTH).unwrap_or(code), address).ok()
}

/// What discovery wants to know of the instruction that `code` starts with.
pub(super) fn step(code: &[u8], address: u64) -> Option<Step> {
    let i = insn(code, address)?;
    Some(Step { length: i.len() as u8, flow: flow(&i), reference: reference(&i) })
}

fn flow(i: &Insn) -> Flow {
    let direct = i.op0_kind() == OpKind::NearBranch64;
    match i.flow_control() {
        FlowControl::UnconditionalBranch if direct => Flow::Jump(i.near_branch_target()),
        FlowControl::ConditionalBranch if direct => Flow::Branch(i.near_branch_target()),
        FlowControl::Call if direct => Flow::Call(i.near_branch_target()),
        FlowControl::IndirectBranch if is_near(i) => Flow::IndirectJump,
        FlowControl::IndirectCall if is_near(i) => Flow::IndirectCall,
        // System calls are "calls" to the decoder.
        FlowControl::Call if matches!(i.mnemonic(), Mnemonic::Syscall) => Flow::Next,
        FlowControl::Return if i.mnemonic() == Mnemonic::Ret => Flow::Return,
        FlowControl::Next | FlowControl::XbeginXabortXend if i.mnemonic() != Mnemonic::Hlt => Flow::Next,
        FlowControl::Interrupt if i.mnemonic() == Mnemonic::Int => Flow::Next,
        _ => Flow::Trap,
    }
}

fn is_near(i: &Insn) -> bool {
    !(i.is_jmp_far() || i.is_jmp_far_indirect() || i.is_call_far() || i.is_call_far_indirect())
}

/// The address that the instruction computes, or the constant that it puts into a register or memory.
fn reference(i: &Insn) -> Option<Reference> {
    match i.mnemonic() {
        Mnemonic::Lea if i.memory_base() == Register::RIP => {
            Some(Reference::Relative(i.memory_displacement64()))
        }
        Mnemonic::Mov | Mnemonic::Push => (0..i.op_count()).find_map(|op| match i.op_kind(op) {
            OpKind::Immediate32 | OpKind::Immediate32to64 | OpKind::Immediate64 => {
                Some(Reference::Absolute(i.immediate(op)))
            }
            _ => None,
        }),
        _ => None,
    }
}

/// The word of memory through which the indirect jump or call at the start of `code` goes, if it is a fixed
/// one, as in PLT stubs.
pub(super) fn fixed_slot(code: &[u8], address: u64) -> Option<u64> {
    slot_of(&insn(code, address)?)
}

fn slot_of(i: &Insn) -> Option<u64> {
    let fixed = i.op0_kind() == OpKind::Memory && i.memory_base() == Register::RIP;
    fixed.then(|| i.memory_displacement64())
}

/// The word through which a stub of a procedure linkage table at `address` jumps, which `code` starts with.
pub(crate) fn linkage_slot(code: &[u8], address: u64) -> Option<u64> {
    let first = insn(code, address)?;
    let jump = match first.mnemonic() {
        Mnemonic::Endbr64 => insn(code.get(first.len()..)?, first.next_ip())?,
        _ => first,
    };
    slot_of(&jump).filter(|_| flow(&jump) == Flow::IndirectJump)
}

/// Whether compilers hardly ever emit the instruction at the start of `code`, so that it speaks against
/// these bytes being code.
pub(super) fn is_suspicious(code: &[u8], address: u64) -> bool {
    let Some(i) = insn(code, address) else { return true };
    let far_or_old = matches!(
        i.mnemonic(),
        Mnemonic::In
            | Mnemonic::Out
            | Mnemonic::Insb
            | Mnemonic::Insd
            | Mnemonic::Insw
            | Mnemonic::Outsb
            | Mnemonic::Outsd
            | Mnemonic::Outsw
            | Mnemonic::Iretd
            | Mnemonic::Iret
            | Mnemonic::Iretq
            | Mnemonic::Retf
            | Mnemonic::Enter
            | Mnemonic::Int1
            | Mnemonic::Xlatb
            | Mnemonic::Cmc
            | Mnemonic::Loop
            | Mnemonic::Loope
            | Mnemonic::Loopne
            | Mnemonic::Fbld
            | Mnemonic::Fbstp
    );
    let segment = matches!(i.segment_prefix(), Register::ES | Register::SS | Register::DS);
    far_or_old || segment || i.is_privileged() || code.starts_with(&[0, 0]) || !is_near(&i)
}

/// Bytes of padding that `code` starts with: no-ops of all lengths, `int3`, zeros.
pub(super) fn padding(code: &[u8], address: u64) -> usize {
    let mut length = 0;
    while let Some(rest @ [first, ..]) = code.get(length..) {
        length += match insn(rest, address + length as u64) {
            Some(i) if i.mnemonic() == Mnemonic::Nop => i.len(),
            Some(i) if i.mnemonic() == Mnemonic::Xchg && i.op0_register() == i.op1_register() => i.len(),
            _ if matches!(first, 0 | 0xcc) => 1,
            _ => break,
        };
    }
    length
}

/// Bits of operand 0: 8 to 64.
fn op0_bits(i: &Insn) -> u32 {
    let bytes = match i.op0_kind() {
        OpKind::Register => i.op0_register().size(),
        _ => i.memory_size().size(),
    };
    (bytes as u32 * 8).clamp(8, 64)
}
