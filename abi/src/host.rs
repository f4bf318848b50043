//! The machines that Linux runs on here, as values.

use crate::block::machine_id;

/// A host machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Host {
    /// AMD64.
    X86_64,
    /// arm64.
    Aarch64,
    /// RV64.
    Riscv64,
}

impl Host {
    /// By ELF `e_machine`.
    pub const fn from_machine_id(id: u32) -> Option<Host> {
        match id {
            machine_id::X86_64 => Some(Host::X86_64),
            machine_id::AARCH64 => Some(Host::Aarch64),
            machine_id::RISCV64 => Some(Host::Riscv64),
            _ => None,
        }
    }

    /// ELF `e_machine`.
    pub const fn machine_id(self) -> u32 {
        match self {
            Host::X86_64 => machine_id::X86_64,
            Host::Aarch64 => machine_id::AARCH64,
            Host::Riscv64 => machine_id::RISCV64,
        }
    }

    /// As people, files and compilers call it.
    pub const fn name(self) -> &'static str {
        match self {
            Host::X86_64 => "x86_64",
            Host::Aarch64 => "aarch64",
            Host::Riscv64 => "riscv64",
        }
    }

    /// By [`Host::name`].
    pub fn from_name(name: &str) -> Option<Host> {
        [Host::X86_64, Host::Aarch64, Host::Riscv64].into_iter().find(|host| host.name() == name)
    }
}
