//! The signal frame of an arm64 kernel (`arch/arm64/include/uapi/asm/{ucontext,sigcontext}.h`), as far as the
//! runtime reads and changes it.

use super::super::PageFault;
use core::arch::naked_asm;
use tranship_abi::signal::SigInfo;

/// What the kernel saved when it interrupted the thread; changes take effect when the handler returns.
#[repr(C)]
pub struct SignalContext {
    flags: u64,
    link: u64,
    stack: [u64; 3],
    mask: u64,
    unused: [u64; 15],
    /// The machine context is aligned to 16.
    padding: u64,
    fault_address: u64,
    regs: [u64; 31],
    sp: u64,
    pc: u64,
    pstate: u64,
    padding2: u64,
    records: [u8; 4096],
}

/// Magic of the record that holds ESR_EL1.
const ESR_MAGIC: u32 = 0x4553_5201;

impl SignalContext {
    /// Where the thread was.
    pub fn pc(&self) -> u64 {
        self.pc
    }

    /// Go on elsewhere.
    pub fn set_pc(&mut self, pc: u64) {
        self.pc = pc;
    }

    /// Go on by calling `function` with this argument, on the stack that ends at `stack_top`.
    pub fn call(&mut self, function: u64, argument: u64, stack_top: u64) {
        self.pc = function;
        self.regs[0] = argument;
        self.sp = stack_top & !15;
    }

    /// The mask that is in force after the handler.
    pub fn mask(&mut self) -> &mut u64 {
        &mut self.mask
    }

    /// What a SIGSEGV or SIGBUS was about. Where the kernel gives no syndrome, the access counts as a read of
    /// a page that is not there.
    pub fn page_fault(&self, info: &SigInfo) -> PageFault {
        const USER: u64 = 4;
        const DATA_ABORT: u64 = 0x24;
        const WRITE: u64 = 1 << 6;
        // Fault status 0b0011xx: permission, at translation level xx.
        const PERMISSION: u64 = 0b1100;
        let esr = self.syndrome().filter(|esr| esr >> 26 == DATA_ABORT).unwrap_or(0);
        let present = u64::from(esr & 0x3c == PERMISSION);
        let write = esr & WRITE != 0;
        PageFault {
            signal: info.signo as u32,
            code: info.code,
            address: info.address(),
            error: USER | present | u64::from(write) << 1,
        }
    }

    fn syndrome(&self) -> Option<u64> {
        let mut at = 0;
        loop {
            let record = self.records.get(at..at + 16)?;
            let word =
                |n: usize| u32::from_le_bytes([record[n], record[n + 1], record[n + 2], record[n + 3]]);
            match (word(0), word(4)) {
                (0, _) | (_, 0) => return None,
                (ESR_MAGIC, _) => return Some(u64::from(word(8)) | u64::from(word(12)) << 32),
                (_, size) => at += size as usize,
            }
        }
    }
}

/// The restorer of the host's handlers.
///
/// # Safety
/// For the kernel's signal frames only.
#[unsafe(naked)]
pub unsafe extern "C" fn signal_return() -> ! {
    naked_asm!("mov x8, #139", "svc #0", "brk #1")
}
