//! The host's vDSO, which Linux maps again for a process that has none (`prctl_map_vdso`, `arch/x86/kernel/process_64.c`).

use crate::hole;
use crate::linux::{self, PAGE};
use crate::memory::access;
use tranship_abi::block::{VDSO_BYTES, VDSO_OFFSET};
use tranship_abi::syscall::nr;

/// Have the kernel map its vDSO into the hole, behind its data; where it is now.
pub fn map_vdso() -> Option<u64> {
    /// `<asm/prctl.h>`
    const ARCH_MAP_VDSO_64: u64 = 0x2003;
    let room = hole::base() + VDSO_OFFSET;
    // SAFETY: maps where nothing is.
    unsafe { linux::call(nr::arch_prctl, [ARCH_MAP_VDSO_64, room, 0, 0, 0, 0]) }.ok()?;
    let is_elf = |&page: &u64| {
        let mut magic = [0; 4];
        access::read_bytes(page, &mut magic).is_ok() && magic == *b"\x7fELF"
    };
    (room..room + VDSO_BYTES).step_by(PAGE as usize).find(is_elf)
}
