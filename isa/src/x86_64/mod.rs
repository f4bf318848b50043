//! The x86-64 guest: registers, decoder, operands and instructions.
//!
//! Sources: Intel 64 and IA-32 Architectures Software Developer's Manual (SDM), volumes 1 and 2. Where
//! AMD and Intel differ, the block says which is followed and why.

pub mod coprocessor;
mod cpu;
pub mod cpuid;
mod decode;
mod flags;
pub mod insn;
mod lazy;
pub mod lazy_flags;
mod mmx;
mod operand;
mod vector;
pub mod x87;
pub mod xsave;

pub use cpu::{Cpu, Flag, Reg, VEC_BYTES, VEC_REGS, X87};
pub use decode::{DecodeError, Insn, decode};
pub use iced_x86::{Mnemonic, OpKind};
pub use lazy::{ClearedHalves, LazyState};
pub use lazy_flags::LazyFlags;
