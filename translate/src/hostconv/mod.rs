//! From host-neutral region functions to a host's convention.
//!
//! In neutral form all guest registers are in the thread block. Here each region function gets the host's
//! signature, registers become local variables (which LLVM then turns into values), and at every boundary
//! (entry, return, call of another region, call of the runtime) they are brought where the other side expects
//! them: *carried* slots in arguments and results, the others in the thread block, and there only those
//! that changed or will be read ([`dataflow`]).

mod dataflow;
mod rewrite;

use crate::layout::Slot;
use tranship_abi::block::machine_id;

/// Attribute of a call in neutral form that needs all registers in the thread block, and may change them there.
/// Calls without it (operations of the prelude, helpers) neither read nor write slots.
pub(crate) const EXACT: &str = "tranship-exact";

/// Attribute of a mark in neutral form: here the thread block has to be complete, carried registers
/// included, as the access behind it may fault.
pub(crate) const CHECKPOINT: &str = "tranship-checkpoint";

/// LLVM's attribute of x86-64 functions that preserve no register for their callers, and of calls of such functions.
pub(crate) const NOTHING_PRESERVED: &str = "no_callee_saved_registers";

/// How region functions are called on a host.
#[derive(Clone, Debug)]
pub(crate) struct HostConv {
    /// LLVM's number of the convention.
    pub(crate) number: u32,
    /// Integer arguments and, in the same order, results: the guest registers that are carried, and among
    /// them the thread block's address (as argument) or the guest PC (as result).
    pub(crate) integers: Vec<Carried>,
    /// The lowest 16 bytes of vector registers 0..`vectors` are carried.
    pub(crate) vectors: u32,
}

/// One integer argument and result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Carried {
    /// A guest register, by number.
    Gpr(u8),
    /// The thread block in, the guest PC out.
    ThreadOrPc,
}

/// LLVM's `x86_regcallcc`.
const X86_REGCALL: u32 = 92;
/// LLVM's `preserve_nonecc`.
const PRESERVE_NONE: u32 = 21;

impl HostConv {
    /// The convention for a host, by its ELF machine number.
    ///
    /// x86-64: `regcall` has RAX RCX RDX RDI RSI R8 R9 R12..R15 and XMM0..15 in and out. They go to what guests pass
    /// and keep across calls most. Vectors mostly do not survive calls, so what is carried of them is in the way:
    /// four measured best. The others are not preserved here ([`NOTHING_PRESERVED`]). aarch64: `preserve_none` has
    /// 24 in but only X0..X7 and Q0..Q7 out, and what is carried must fit both.
    pub(crate) fn of(machine: u32) -> Option<HostConv> {
        use Carried::{Gpr, ThreadOrPc};
        let (rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi) = (0, 1, 2, 3, 4, 5, 6, 7);
        match machine {
            machine_id::X86_64 => Some(HostConv {
                number: X86_REGCALL,
                integers: [rax, rcx, rdx, rdi, rsi, rbx, rbp, 12, 13, rsp]
                    .map(Gpr)
                    .into_iter()
                    .chain([ThreadOrPc])
                    .collect(),
                vectors: 4,
            }),
            machine_id::AARCH64 => Some(HostConv {
                number: PRESERVE_NONE,
                integers: [ThreadOrPc]
                    .into_iter()
                    .chain([rax, rdi, rsi, rdx, rcx, rbx, rsp].map(Gpr))
                    .collect(),
                vectors: 8,
            }),
            _ => None,
        }
    }

    /// The slots that are carried, in the order of arguments and results; `None` is the thread block or PC.
    pub(crate) fn positions(&self) -> impl Iterator<Item = Option<Slot>> {
        let integers = self.integers.iter().map(|c| match c {
            Carried::Gpr(number) => Some(Slot::gpr(*number)),
            Carried::ThreadOrPc => None,
        });
        integers.chain((0..self.vectors).map(|v| Some(Slot::vec(v, 0))))
    }
}

pub(crate) use rewrite::{Signature, rewrite, slot_type};
