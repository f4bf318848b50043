//! A guest program made of cases: an ELF file with a function symbol for each, between bytes that are no instruction,
//! so that control that leaves a case's code leaves the program. It is position-independent: with the right load bias
//! every case believes to be at [`CODE`](super::CODE).

/// Address of the first case, as linked.
const FIRST: u64 = 0x1000;
/// Distance of cases: more than twice what a short branch reaches.
const STRIDE: u64 = 0x200;
/// No instruction in 64-bit mode.
const INVALID: u8 = 0x06;

/// Address of the `n`th case, as linked.
pub(super) fn address(n: usize) -> u64 {
    FIRST + n as u64 * STRIDE
}

/// The file for `cases`, each the encoding of one or more instructions.
pub(super) fn elf(cases: &[&[u8]]) -> Vec<u8> {
    let (mut text, mut symbols) = (vec![], vec![0; SYMBOL_BYTES]);
    for (n, code) in cases.iter().enumerate() {
        assert!(code.len() < STRIDE as usize / 2);
        text.extend(*code);
        text.resize((n + 1) * STRIDE as usize, INVALID);
        symbols.extend(function_symbol(address(n), code.len() as u64));
    }
    let text_at = FIRST;
    let symbols_at = text_at + text.len() as u64;
    let strings_at = symbols_at + symbols.len() as u64;
    let sections_at = (strings_at + 1).next_multiple_of(8);

    let mut file = header(sections_at);
    file.extend(load_segment(text.len() as u64));
    file.resize(text_at as usize, 0);
    file.extend(&text);
    file.extend(&symbols);
    file.resize(sections_at as usize, 0);
    for section in [
        [0; 5],
        // SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR.
        [1, 2 | 4, text_at, text.len() as u64, 0],
        // SHT_SYMTAB, with the next section's names.
        [2, 0, symbols_at, symbols.len() as u64, 3],
        // SHT_STRTAB.
        [3, 0, strings_at, 1, 0],
    ] {
        file.extend(section_header(section));
    }
    file
}

/// Numbers of the given sizes in bytes, little-endian.
fn fields(fields: &[(u64, usize)]) -> Vec<u8> {
    fields.iter().flat_map(|&(value, bytes)| value.to_le_bytes().into_iter().take(bytes)).collect()
}

/// ELF64, little-endian, ET_DYN, x86-64, no entry point, one program header, four section headers.
fn header(sections_at: u64) -> Vec<u8> {
    let mut bytes = b"\x7fELF\x02\x01\x01".to_vec();
    bytes.resize(16, 0);
    bytes.extend(fields(&[(3, 2), (62, 2), (1, 4), (0, 8), (64, 8), (sections_at, 8), (0, 4)]));
    bytes.extend(fields(&[(64, 2), (56, 2), (1, 2), (64, 2), (4, 2), (3, 2)]));
    bytes
}

/// PT_LOAD, readable and executable, at [`FIRST`] in file and memory.
fn load_segment(size: u64) -> Vec<u8> {
    fields(&[(1, 4), (4 | 1, 4), (FIRST, 8), (FIRST, 8), (FIRST, 8), (size, 8), (size, 8), (0x1000, 8)])
}

const SYMBOL_BYTES: usize = 24;

/// STB_GLOBAL, STT_FUNC, in section 1.
fn function_symbol(address: u64, size: u64) -> Vec<u8> {
    fields(&[(0, 4), (1 << 4 | 2, 1), (0, 1), (1, 2), (address, 8), (size, 8)])
}

fn section_header([kind, flags, at, size, link]: [u64; 5]) -> Vec<u8> {
    let address = if flags == 0 { 0 } else { at };
    let record = if kind == 2 { SYMBOL_BYTES as u64 } else { 0 };
    fields(&[
        (0, 4),
        (kind, 4),
        (flags, 8),
        (address, 8),
        (at, 8),
        (size, 8),
        (link, 4),
        (0, 4),
        (1, 8),
        (record, 8),
    ])
}
