//! The instructions, a module per extension, a block per instruction: which mnemonics, what they mean,
//! and examples that the differential tests run on a real CPU, in the interpreter and compiled.

use super::{Insn, Reg};
use crate::machine::Machine;
use iced_x86::Mnemonic;

mod arithmetic;

/// How faithfully a block follows the manual. What no block covers is Absent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Level {
    /// Every defined result bit, flag and exception.
    Exact,
    /// Differs as stated.
    Approximate(&'static str),
}

/// One line of assembly with its encoding.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Example {
    /// As the decoder's Intel-syntax formatter prints it.
    pub text: &'static str,
    /// The encoding, in hex.
    pub hex: &'static str,
}

/// What is known of a block besides its meaning.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    /// The extension's module name, e.g. `arithmetic`.
    pub extension: &'static str,
    /// The mnemonics it covers.
    pub mnemonics: &'static [Mnemonic],
    /// How faithful it is.
    pub level: Level,
    /// At least one.
    pub examples: &'static [Example],
}

/// The instruction has no block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Absent;

/// One extension: `name`, then a block per instruction or family:
///
/// ```text
/// /// Integer addition. SDM vol. 2A, ADD.
/// [Add] exact (m, i) { …statements over the machine… }
///     "add eax,ebx" = "01d8";
/// ```
///
/// A block may be guarded (`[Movsd] if i.is_string_instruction() exact …`) where a mnemonic is shared, and
/// may be `approximate("why")` instead of `exact`.
macro_rules! extension {
    ($name:literal; $(
        $(#[doc = $doc:literal])*
        [$($mnemonic:ident),+ $(,)?] $(if $guard:expr)? , $level:ident $(($why:literal))? ($m:ident, $i:ident) $body:block
        $($text:literal = $hex:literal),+ ;
    )*) => {
        /// Execute `i` if a block of this extension covers it.
        pub(super) fn execute<M: $crate::x86_64::operand::X86>(
            m: &mut M,
            i: &$crate::x86_64::Insn,
        ) -> Result<(), $crate::x86_64::insn::Absent> {
            $(
                if matches!(i.mnemonic(), $(iced_x86::Mnemonic::$mnemonic)|+) {
                    let $i = i;
                    if true $(&& $guard)? {
                        let $m = m;
                        $body
                        return Ok(());
                    }
                }
            )*
            Err($crate::x86_64::insn::Absent)
        }

        /// This extension's blocks.
        pub(super) const BLOCKS: &[$crate::x86_64::insn::Block] = &[$(
            $crate::x86_64::insn::Block {
                extension: $name,
                mnemonics: &[$(iced_x86::Mnemonic::$mnemonic),+],
                level: $crate::x86_64::insn::extension!(@level $level $(($why))?),
                examples: &[$($crate::x86_64::insn::Example { text: $text, hex: $hex }),+],
            },
        )*];
    };
    (@level exact) => { $crate::x86_64::insn::Level::Exact };
    (@level approximate ($why:literal)) => { $crate::x86_64::insn::Level::Approximate($why) };
}
pub(in crate::x86_64::insn) use extension;

/// Execute one instruction on (or record it into) `m`. The caller has set the machine's notion of the
/// instruction's address; falling through is not a jump.
pub fn execute<M: Machine<Reg = Reg>>(m: &mut M, i: &Insn) -> Result<(), Absent> {
    arithmetic::execute(m, i)
}

/// All blocks, extension by extension.
pub fn blocks() -> impl Iterator<Item = &'static Block> {
    [arithmetic::BLOCKS].into_iter().flatten()
}
