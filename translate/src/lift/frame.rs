//! Which accesses of a region are to its own frame, where no other thread looks. Their order is nobody's business, so
//! LLVM may keep what they hold in registers; every other access stays as and where the guest has it.
//!
//! A frame is at constant distances from rsp, and from rbp where that is a frame pointer. Where the region takes an
//! address in its frame others may have that, and only what `push`, `pop`, `call` and `ret` do by themselves is private.

use crate::elf::GuestElf;
use crate::region::Region;
use iced_x86::{OpKind, Register};
use tranship_isa::x86_64::{Insn, Mnemonic, decode};

/// What is known of a region's frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Frame {
    /// Whether rbp, too, points into it.
    pub(super) has_pointer: bool,
    /// Others may have an address in it.
    pub(super) is_shared: bool,
}

impl Frame {
    /// The frame of a region with these instructions.
    pub(super) fn of(insns: &[Insn]) -> Frame {
        let has_pointer = insns.iter().any(sets_frame_pointer) && !insns.iter().any(uses_rbp_otherwise);
        let is_shared = insns.iter().any(|i| takes_address(i, has_pointer));
        Frame { has_pointer, is_shared }
    }
}

/// All instructions of `region`.
pub(super) fn instructions<'a>(elf: &'a GuestElf, region: &'a Region) -> impl Iterator<Item = Insn> + 'a {
    region.blocks.values().flat_map(move |block| {
        let mut at = block.start;
        std::iter::from_fn(move || {
            let insn = (at < block.end).then(|| decode(elf.bytes_at(at), at).ok()).flatten()?;
            at = insn.next_ip();
            Some(insn)
        })
    })
}

fn register(i: &Insn, operand: u32) -> Option<Register> {
    (operand < i.op_count() && i.op_kind(operand) == OpKind::Register)
        .then(|| i.op_register(operand).full_register())
}

/// `mov rbp,rsp`.
fn sets_frame_pointer(i: &Insn) -> bool {
    i.mnemonic() == Mnemonic::Mov
        && (register(i, 0), register(i, 1)) == (Some(Register::RBP), Some(Register::RSP))
}

/// Whether it makes rbp anything but a frame pointer or what the caller had in it.
fn uses_rbp_otherwise(i: &Insn) -> bool {
    let reads_alone = matches!(i.mnemonic(), Mnemonic::Push | Mnemonic::Cmp | Mnemonic::Test);
    let written = register(i, 0) == Some(Register::RBP) && !reads_alone
        || i.mnemonic() == Mnemonic::Xchg && register(i, 1) == Some(Register::RBP);
    written && i.mnemonic() != Mnemonic::Pop && !sets_frame_pointer(i)
}

/// Whether an address in the frame goes into another register, or to memory.
fn takes_address(i: &Insn, has_pointer: bool) -> bool {
    let points = |r: Register| r == Register::RSP || has_pointer && r == Register::RBP;
    let kept = |r: Option<Register>| r.is_some_and(points);
    match i.mnemonic() {
        Mnemonic::Lea => points(i.memory_base().full_register()) && !kept(register(i, 0)),
        // What the caller had in it.
        Mnemonic::Push => register(i, 0) == Some(Register::RSP),
        Mnemonic::Cmp | Mnemonic::Test => false,
        Mnemonic::Xchg => kept(register(i, 0)) || kept(register(i, 1)),
        _ => (1..i.op_count()).any(|n| kept(register(i, n))) && !kept(register(i, 0)),
    }
}
