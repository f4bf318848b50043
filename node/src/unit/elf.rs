//! What exec finds out too late: a program that was cut is mapped, and killed when it reaches what is missing.

use crate::record::Isa;
use std::fs::File;
use std::os::unix::fs::FileExt;

const HEADER_BYTES: usize = 64;
const PROGRAM_HEADER_BYTES: usize = 56;
const ET_EXEC: u16 = 2;
const ET_DYN: u16 = 3;
const PT_LOAD: u32 = 1;

/// The machine of an ELF program, or why it is none that could run.
pub(super) fn machine(file: &File) -> Result<Isa, String> {
    let mut header = [0; HEADER_BYTES];
    let got = file.read_at(&mut header, 0).map_err(|why| why.to_string())?;
    let no_program = "it is no 64-bit ELF program of a machine that we know";
    let isa = Isa::of_elf(&header[..got]).ok_or(no_program)?;
    let [kind, count] = [16, 56].map(|at| u16::from_le_bytes([header[at], header[at + 1]]));
    if got < HEADER_BYTES {
        return Err(truncated("ELF header", HEADER_BYTES as u64, got as u64));
    }
    if ![ET_EXEC, ET_DYN].contains(&kind) {
        return Err("it is an ELF file, but no executable one".to_owned());
    }
    let bytes = file.metadata().map_err(|why| why.to_string())?.len();
    let table = word(&header, 32);
    for index in 0..u64::from(count) {
        let mut entry = [0; PROGRAM_HEADER_BYTES];
        let at = table.saturating_add(index * PROGRAM_HEADER_BYTES as u64);
        let end = at.saturating_add(PROGRAM_HEADER_BYTES as u64);
        file.read_exact_at(&mut entry, at).map_err(|_| truncated("program header table", end, bytes))?;
        let end = word(&entry, 8).saturating_add(word(&entry, 32));
        if entry.starts_with(&PT_LOAD.to_le_bytes()) && end > bytes {
            return Err(truncated("last segment", end, bytes));
        }
    }
    Ok(isa)
}

fn truncated(part: &str, end: u64, bytes: u64) -> String {
    format!("it is truncated: its {part} ends at byte {end}, the file at {bytes}; is the copy complete?")
}

fn word(from: &[u8], at: usize) -> u64 {
    from[at..].first_chunk().map_or(0, |word| u64::from_le_bytes(*word))
}
