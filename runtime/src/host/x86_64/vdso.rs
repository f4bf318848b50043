//! The host's vDSO, which Linux maps again for a process that has none (`prctl_map_vdso`, `arch/x86/kernel/process_64.c`).

use crate::hole;
use crate::linux::{self, PAGE};
use tranship_abi::block::{VDSO_BYTES, VDSO_OFFSET};
use tranship_abi::syscall::nr;

/// Have the kernel map its vDSO into the hole, behind its data; where it is now.
pub fn map_vdso() -> Option<u64> {
    /// `<asm/prctl.h>`
    const ARCH_MAP_VDSO_64: u64 = 0x2003;
    let room = hole::base() + VDSO_OFFSET;
    // SAFETY: maps where nothing is.
    unsafe { linux::call(nr::arch_prctl, [ARCH_MAP_VDSO_64, room, 0, 0, 0, 0]) }.ok()?;
    (room..room + VDSO_BYTES).step_by(PAGE as usize).find(|&page| is_elf(page))
}

/// Whether an ELF file starts at `page`. The kernel is asked: its data there may be of kinds that this machine does not have,
/// and a look at those is SIGBUS.
fn is_elf(page: u64) -> bool {
    let mut magic = [0_u8; 4];
    let (from, to) = ([page, 4], [magic.as_mut_ptr() as u64, 4]);
    let args = [linux::getpid().into(), to.as_ptr() as u64, 1, from.as_ptr() as u64, 1, 0];
    // SAFETY: the kernel fills the local.
    let read = unsafe { linux::call(nr::process_vm_readv, args) };
    read == Ok(4) && magic == *b"\x7fELF"
}
