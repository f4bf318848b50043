//! Bytes to instructions: a thin wrapper of iced-x86 that makes its failures typed.

use alloc::string::String;
use core::fmt::Write;

/// A decoded instruction at its guest address.
pub type Insn = iced_x86::Instruction;

/// Why bytes are not an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// No x86-64 instruction starts with these bytes.
    Invalid {
        /// Guest address of the first byte.
        address: u64,
        /// The bytes that were looked at, in hex.
        bytes: String,
    },
    /// The bytes end inside an instruction.
    Truncated {
        /// Guest address of the first byte.
        address: u64,
    },
}

impl core::fmt::Display for DecodeError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            DecodeError::Invalid { address, bytes } => {
                write!(f, "{address:#x}: no x86-64 instruction starts with bytes {bytes}")
            }
            DecodeError::Truncated { address } => {
                write!(f, "{address:#x}: the code ends inside an instruction")
            }
        }
    }
}

impl core::error::Error for DecodeError {}

/// Decode the instruction at guest `address`, whose bytes `code` begins with (15 bytes are always enough).
pub fn decode(code: &[u8], address: u64) -> Result<Insn, DecodeError> {
    let mut decoder = iced_x86::Decoder::with_ip(64, code, address, iced_x86::DecoderOptions::NONE);
    let insn = decoder.decode();
    match decoder.last_error() {
        iced_x86::DecoderError::None => Ok(insn),
        iced_x86::DecoderError::NoMoreBytes => Err(DecodeError::Truncated { address }),
        _ => {
            let mut bytes = String::new();
            for byte in code.iter().take(insn.len().max(1)) {
                let _ = write!(bytes, "{byte:02x}");
            }
            Err(DecodeError::Invalid { address, bytes })
        }
    }
}
