//! What lifting yields and compiling takes: host-neutral LLVM bitcode of one guest file, in parts that compile
//! independently, with what the object's header needs. As bytes it is one file that any machine can read.

use crate::region::Discovery;
use crate::{Progress, elf::GuestElf, ir::Ir, lift, parallel};
use inkwell::context::Context;
use tranship_abi::block::{Source, SourceDigest, machine_id};

/// First bytes of the file form; the number is the version of the translator's names and layouts.
const MAGIC: [u8; 16] = *b"tranship bc 0005";

/// Guest instruction bytes that one part should have, roughly: enough to keep LLVM's fixed costs small, few
/// enough to spread over cores.
const PART_BYTES: u64 = 48 << 10;

/// Host-neutral bitcode of a guest file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bitcode {
    /// Guest machine, an ELF machine number.
    pub guest: u32,
    /// SHA-256 of the guest file.
    pub guest_digest: [u8; 32],
    /// Where in the guest its code was, if it holds only as long as that stays as it is.
    pub sources: Vec<Source>,
    /// LLVM modules.
    pub parts: Vec<Vec<u8>>,
}

/// Why bytes are not bitcode of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BitcodeError {
    /// They do not start as such a file does, or that of another version.
    Magic,
    /// They end too early.
    Truncated,
}

impl std::fmt::Display for BitcodeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            BitcodeError::Magic => "not a tranship bitcode file of this version; lift the program again",
            BitcodeError::Truncated => "the bitcode file ends too early; lift the program again",
        })
    }
}

impl std::error::Error for BitcodeError {}

impl Bitcode {
    /// Lift all regions of `elf`.
    pub fn lift(elf: &GuestElf, program: &Discovery, jobs: usize, progress: &dyn Progress) -> Bitcode {
        let ranges = partition(program);
        let parts = parallel::map(
            &ranges,
            jobs,
            |done| progress.advance("lift", done, ranges.len()),
            |range| {
                let context = Context::create();
                let ir = Ir::new(context.create_module("guest"));
                for region in &program.regions[range.clone()] {
                    lift::lift_region(&ir, elf, program, region);
                }
                ir.module.write_bitcode_to_memory().as_slice().to_vec()
            },
        );
        Bitcode { guest: machine_id::X86_64, guest_digest: elf.digest, sources: Vec::new(), parts }
    }

    /// Lift the regions of `program`, a part of what `elf` has, for a process that runs it: an object made of this is
    /// used as long as memory holds what it was made from.
    pub fn lift_running(elf: &GuestElf, program: &Discovery) -> Bitcode {
        let sources = sources(elf, program);
        Bitcode { sources, ..Bitcode::lift(elf, program, 1, &()) }
    }

    /// As a file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(self.guest.to_le_bytes());
        bytes.extend(self.guest_digest);
        bytes.extend((self.sources.len() as u32).to_le_bytes());
        for source in &self.sources {
            bytes.extend([source.start, source.end, source.digest].map(u64::to_le_bytes).as_flattened());
        }
        bytes.extend((self.parts.len() as u32).to_le_bytes());
        for part in &self.parts {
            bytes.extend((part.len() as u64).to_le_bytes());
            bytes.extend(part);
        }
        bytes
    }

    /// From a file.
    pub fn from_bytes(bytes: &[u8]) -> Result<Bitcode, BitcodeError> {
        let rest = bytes.strip_prefix(&MAGIC).ok_or(BitcodeError::Magic)?;
        let (guest, rest) = rest.split_first_chunk().ok_or(BitcodeError::Truncated)?;
        let (&guest_digest, rest) = rest.split_first_chunk().ok_or(BitcodeError::Truncated)?;
        let (count, mut rest) = rest.split_first_chunk().ok_or(BitcodeError::Truncated)?;
        let mut sources = Vec::new();
        for _ in 0..u32::from_le_bytes(*count) {
            let (words, after) = rest.split_first_chunk::<24>().ok_or(BitcodeError::Truncated)?;
            let word = |n: usize| words[8 * n..].first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
            sources.push(Source { start: word(0), end: word(1), digest: word(2) });
            rest = after;
        }
        let (count, mut rest) = rest.split_first_chunk().ok_or(BitcodeError::Truncated)?;
        let mut parts = Vec::new();
        for _ in 0..u32::from_le_bytes(*count) {
            let (len, after) = rest.split_first_chunk().ok_or(BitcodeError::Truncated)?;
            let len = usize::try_from(u64::from_le_bytes(*len)).map_err(|_| BitcodeError::Truncated)?;
            let (part, after) = after.split_at_checked(len).ok_or(BitcodeError::Truncated)?;
            parts.push(part.to_vec());
            rest = after;
        }
        Ok(Bitcode { guest: u32::from_le_bytes(*guest), guest_digest, sources, parts })
    }
}

/// Consecutive regions of about [`PART_BYTES`] each.
fn partition(program: &Discovery) -> Vec<std::ops::Range<usize>> {
    let mut ranges = Vec::new();
    let (mut start, mut bytes) = (0, 0);
    for (n, region) in program.regions.iter().enumerate() {
        bytes += region.blocks.values().map(|b| b.end - b.start).sum::<u64>();
        if bytes >= PART_BYTES || n + 1 == program.regions.len() {
            ranges.push(start..n + 1);
            (start, bytes) = (n + 1, 0);
        }
    }
    ranges
}

/// The code that the regions of `program` are made of, in pieces that lie apart.
fn sources(elf: &GuestElf, program: &Discovery) -> Vec<Source> {
    let blocks = program.regions.iter().flat_map(|region| region.blocks.values());
    let mut ranges: Vec<_> = blocks.map(|block| block.start..block.end).collect();
    ranges.sort_by_key(|range| range.start);
    ranges.dedup_by(|next, last| {
        let joins = next.start <= last.end;
        last.end = if joins { last.end.max(next.end) } else { last.end };
        joins
    });
    let source = |range: std::ops::Range<u64>| {
        let code = elf.code_at(range.start);
        let code = code.get(..(range.end - range.start) as usize).unwrap_or(code);
        Source { start: range.start, end: range.end, digest: SourceDigest::of(code).value() }
    };
    ranges.into_iter().filter(|range| range.start < range.end).map(source).collect()
}
