//! The instructions, a module per extension, a block per instruction: which mnemonics, what they mean,
//! and examples that the differential tests run on a real CPU, in the interpreter and compiled.

use super::{Insn, Reg};
use crate::machine::Machine;
use iced_x86::Mnemonic;

mod evex;
mod undefined;

pub use evex::changes_modes;
pub use undefined::{from_decoder, undefined_flags};

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
    /// One sentence on what it does.
    pub summary: &'static str,
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
/// A block may be guarded (`[Movsd] if i.is_string_instruction(), exact …`) where a mnemonic is shared,
/// and may be `approximate("why")` instead of `exact`. The blocks become the arms of one `match` on the
/// mnemonic, so finding the block is one indexed jump.
macro_rules! extension {
    ($name:literal; $(
        $(#[doc = $doc:literal])+
        [$($mnemonic:ident),+ $(,)?] $(if $guard:expr)? , $level:ident $(($why:literal))? ($m:ident, $i:ident) $body:block
        $($text:literal = $hex:literal),+ ;
    )*) => {
        /// Execute `i` if a block of this extension covers it.
        pub(super) fn execute<M: $crate::x86_64::operand::X86>(
            m: &mut M,
            i: &$crate::x86_64::Insn,
        ) -> Result<(), $crate::x86_64::insn::Absent> {
            match i.mnemonic() {
                $(
                    $(iced_x86::Mnemonic::$mnemonic)|+ $(if { let $i = i; $guard })? => {
                        let ($m, $i) = (m, i);
                        $body
                    }
                )*
                _ => return Err($crate::x86_64::insn::Absent),
            }
            Ok(())
        }

        /// How faithful the block is that covers `i`.
        pub(super) fn level(i: &$crate::x86_64::Insn) -> Option<$crate::x86_64::insn::Level> {
            match i.mnemonic() {
                $(
                    $(iced_x86::Mnemonic::$mnemonic)|+ $(if { let $i = i; $guard })? => {
                        Some(extension!(@level $level $(($why))?))
                    }
                )*
                _ => None,
            }
        }

        /// This extension's blocks.
        pub(super) const BLOCKS: &[$crate::x86_64::insn::Block] = &[$(
            $crate::x86_64::insn::Block {
                extension: $name,
                summary: concat!($($doc),+),
                mnemonics: &[$(iced_x86::Mnemonic::$mnemonic),+],
                level: extension!(@level $level $(($why))?),
                examples: &[$($crate::x86_64::insn::Example { text: $text, hex: $hex }),+],
            },
        )*];
    };
    (@level exact) => { $crate::x86_64::insn::Level::Exact };
    (@level approximate ($why:literal)) => { $crate::x86_64::insn::Level::Approximate($why) };
}

/// The list of extensions: declares their modules and what is made of all of them.
macro_rules! extensions {
    ($($module:ident),+ $(,)?) => {
        $(mod $module;)+

        #[allow(non_camel_case_types, reason = "named after the modules")]
        #[derive(Clone, Copy)]
        enum Extension { $($module),+ }

        /// The extensions, as a bit set, that have blocks for each mnemonic. Seldom more than one:
        /// `movsd` is a string move and a scalar double move.
        static EXTENSIONS_OF: [u64; MNEMONICS] = {
            let mut table = [0; MNEMONICS];
            $(list_mnemonics($module::BLOCKS, Extension::$module, &mut table);)+
            table
        };

        /// Execute one instruction on (or record it into) `m`. The caller has set the machine's notion of
        /// the instruction's address; falling through is not a jump.
        pub fn execute<M: Machine<Reg = Reg>>(m: &mut M, i: &Insn) -> Result<(), Absent> {
            let Some(rounding) = evex::embedded(i) else { return execute_block(m, i) };
            let mut result = Ok(());
            m.quietly(rounding, &mut |m| result = execute_block(m, i));
            result
        }

        fn execute_block<M: Machine<Reg = Reg>>(m: &mut M, i: &Insn) -> Result<(), Absent> {
            let mut candidates = EXTENSIONS_OF.get(i.mnemonic() as usize).copied().unwrap_or(0);
            while candidates != 0 {
                let result = match candidates.trailing_zeros() {
                    $(n if n == Extension::$module as u32 => $module::execute(m, i),)+
                    _ => Err(Absent),
                };
                if result.is_ok() {
                    return result;
                }
                candidates &= candidates - 1;
            }
            Err(Absent)
        }

        /// How faithful the block is that covers `i`; `None` if it is absent.
        pub fn level(i: &Insn) -> Option<Level> {
            [$($module::level),+].into_iter().find_map(|level| level(i))
        }

        /// All blocks, extension by extension.
        pub fn blocks() -> impl Iterator<Item = &'static Block> {
            [$($module::BLOCKS),+].into_iter().flatten()
        }
    };
}

/// More than the decoder has mnemonics; [`EXTENSIONS_OF`] does not compile if that is no longer so.
const MNEMONICS: usize = 2048;

const fn list_mnemonics(blocks: &[Block], extension: Extension, table: &mut [u64; MNEMONICS]) {
    let mut b = 0;
    while b < blocks.len() {
        let mut n = 0;
        while n < blocks[b].mnemonics.len() {
            table[blocks[b].mnemonics[n] as usize] |= 1 << extension as u32;
            n += 1;
        }
        b += 1;
    }
}

extensions! {
    arithmetic,
    logic,
    shift,
    bit,
    multiply,
    exchange,
    data_transfer,
    stack,
    string,
    control,
    flag,
    system,
    bmi,
    sha,
    sse_convert,
    sse_estimate,
    sse_float,
    sse_integer,
    sse_move,
    sse_shuffle,
    sse_string,
    aes,
    gfni,
    avx,
    avx512,
    avx512_convert,
    avx512_float,
    avx512_integer,
    avx512_sparse,
    opmask,
    fma,
    x87,
    x87_function,
    float_state,
    xsave,
}
