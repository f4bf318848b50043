//! The system calls of an x86-64 guest: a row for each, saying what it takes, how a host performs it and
//! how faithfully.
//!
//! Numbers: `arch/x86/entry/syscalls/syscall_64.tbl` and `include/uapi/asm-generic/unistd.h` (which arm64
//! and riscv64 share). What a row does not say differs between no two machines.

mod table;

pub use table::{ROWS, nr};

use crate::host::Host;

/// An argument, as far as it matters across machines. Plain pointers are to data of one layout everywhere.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arg {
    /// A 32-bit number.
    Int,
    /// A 64-bit number: a length, an offset, an address that is not looked at.
    Long,
    /// A file descriptor, or AT_FDCWD where that makes sense.
    Fd,
    /// A NUL-terminated path.
    Path,
    /// A pointer that the kernel reads through.
    In,
    /// A pointer that the kernel writes through.
    Out,
    /// A pointer that the kernel reads and writes through.
    InOut,
    /// O_* flags, which are numbered differently: see [`crate::open_flags`].
    OpenFlags,
    /// A pointer to a `struct stat` to fill: see [`crate::stat`].
    StatOut,
}

/// An argument of the call that stands in for a legacy one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Slot {
    /// The legacy call's argument of this index.
    Arg(u8),
    /// A constant, in the guest's numbering.
    Const(i64),
}

/// How a host performs a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// The host's call of the same name, arguments converted by their types.
    Pass,
    /// Another call of this table (by x86-64 number) that covers it.
    As(u32, &'static [Slot]),
    /// A function of the runtime.
    Emulate,
    /// Not at all: ENOSYS, for this reason.
    Absent(&'static str),
}

/// One system call.
#[derive(Clone, Copy, Debug)]
pub struct Syscall {
    /// Name, as the kernel's table has it.
    pub name: &'static str,
    /// Number on x86-64.
    pub x86_64: u32,
    /// Number on arm64 and riscv64, which share theirs; legacy calls have none.
    pub generic: Option<u32>,
    /// Arguments in order.
    pub args: &'static [Arg],
    /// How it is performed.
    pub action: Action,
    /// How its result differs from the real thing, if it does.
    pub approximate: Option<&'static str>,
}

impl Syscall {
    /// The number of the call of this name on `host`.
    pub const fn number_on(&self, host: Host) -> Option<u32> {
        match host {
            Host::X86_64 => Some(self.x86_64),
            Host::Aarch64 | Host::Riscv64 => self.generic,
        }
    }
}

/// Numbers run from 0 to here, and on from [`AFTER_GAP`].
const BEFORE_GAP: u64 = nr::rseq as u64;
/// First number that all machines share.
const AFTER_GAP: u64 = nr::pidfd_send_signal as u64;

/// The row of x86-64 call `number`.
pub fn lookup(number: u64) -> Option<&'static Syscall> {
    let index = match number {
        0..=BEFORE_GAP => number,
        AFTER_GAP.. => number - AFTER_GAP + BEFORE_GAP + 1,
        _ => return None,
    };
    ROWS.get(usize::try_from(index).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_sorted_and_found() {
        for row in ROWS {
            assert_eq!(lookup(row.x86_64.into()).unwrap().name, row.name);
        }
        assert_eq!(lookup(257).unwrap().name, "openat");
        assert_eq!(lookup(257).unwrap().number_on(Host::Aarch64), Some(56));
        assert!(lookup(400).is_none() && lookup(u64::MAX).is_none());
    }

    #[test]
    fn passed_calls_exist_on_every_host() {
        for row in ROWS.iter().filter(|row| row.action == Action::Pass) {
            assert!(row.generic.is_some(), "{}: no generic number to pass to", row.name);
        }
    }

    #[test]
    fn stand_ins_are_performed_themselves_and_get_arguments_that_exist() {
        for row in ROWS {
            let Action::As(number, slots) = row.action else { continue };
            let target = lookup(number.into()).unwrap();
            assert!(matches!(target.action, Action::Pass | Action::Emulate), "{}", row.name);
            assert_eq!(target.args.len(), slots.len(), "{} as {}", row.name, target.name);
            for (slot, into) in slots.iter().zip(target.args) {
                if let Slot::Arg(n) = slot {
                    let from = row.args[usize::from(*n)];
                    assert_eq!(from, *into, "{} argument {n} as {}", row.name, target.name);
                }
            }
        }
    }
}
