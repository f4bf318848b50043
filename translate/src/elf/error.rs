//! Why a file cannot be taken as a guest program.

/// What is wrong with a guest ELF file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ElfError {
    /// It does not start with the ELF magic number.
    NotElf,
    /// A part lies outside of the file: it was cut, or its header is corrupt.
    Truncated {
        /// Which part.
        part: &'static str,
        /// Where the part ends by its header, in bytes from the start of the file.
        end: u64,
        /// Bytes in the file.
        file_size: u64,
    },
    /// Not ELFCLASS64.
    WrongClass {
        /// EI_CLASS.
        class: u8,
    },
    /// Not ELFDATA2LSB.
    WrongByteOrder {
        /// EI_DATA.
        data: u8,
    },
    /// Not for a guest machine that we know.
    WrongMachine {
        /// e_machine.
        machine: u16,
    },
    /// Not an executable or shared object.
    NotExecutable {
        /// e_type.
        kind: u16,
    },
    /// A header says something that cannot be.
    Malformed {
        /// Which part.
        part: &'static str,
        /// What it says.
        value: u64,
    },
    /// No PT_LOAD segment.
    NothingToLoad,
    /// Two PT_LOAD segments have an address in common.
    Overlap {
        /// The address.
        address: u64,
    },
    /// The entry point is in no executable segment.
    EntryOutside {
        /// e_entry.
        entry: u64,
    },
}

impl std::fmt::Display for ElfError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            ElfError::NotElf => write!(f, "not an ELF file; a guest program is an ELF executable"),
            ElfError::Truncated { part, end, file_size } => write!(
                f,
                "truncated: the {part} ends at byte {end:#x} but the file has {file_size:#x}; is the copy complete?"
            ),
            ElfError::WrongClass { class } => {
                let name = if class == 1 { "32-bit" } else { "unknown" };
                write!(f, "wrong ELF class {class} ({name}); only 64-bit guests are supported")
            }
            ElfError::WrongByteOrder { data } => {
                write!(f, "wrong ELF byte order {data}; only little-endian guests are supported")
            }
            ElfError::WrongMachine { machine } => {
                let name = match machine {
                    3 => " (i386)",
                    40 => " (arm)",
                    183 => " (aarch64)",
                    243 => " (riscv)",
                    _ => "",
                };
                write!(f, "wrong machine {machine}{name}; the supported guest is x86-64 (62)")
            }
            ElfError::NotExecutable { kind } => {
                let name = match kind {
                    1 => "a relocatable object; link it first",
                    4 => "a core dump",
                    _ => "an unknown ELF type",
                };
                write!(f, "ELF type {kind} is {name}, not an executable or shared object")
            }
            ElfError::Malformed { part, value } => write!(f, "malformed: {part} is {value:#x}"),
            ElfError::NothingToLoad => write!(f, "no loadable segment: there is nothing to run"),
            ElfError::Overlap { address } => write!(f, "two loadable segments overlap at {address:#x}"),
            ElfError::EntryOutside { entry } => {
                write!(f, "the entry point {entry:#x} is in no executable segment of the file")
            }
        }
    }
}

impl std::error::Error for ElfError {}
