//! The signal frame of an AMD64 kernel, as far as the runtime reads and changes it.

use super::super::PageFault;
use core::arch::naked_asm;
use tranship_abi::signal::{SigInfo, UContext};

/// What the kernel saved when it interrupted the thread; changes take effect when the handler returns.
/// On this host it has the guest's own form.
#[repr(transparent)]
pub struct SignalContext(UContext);

impl SignalContext {
    /// Where the thread was.
    pub fn pc(&self) -> u64 {
        self.0.mcontext.rip
    }

    /// Go on elsewhere.
    pub fn set_pc(&mut self, pc: u64) {
        self.0.mcontext.rip = pc;
    }

    /// Go on by calling `function` with this argument, on the stack that ends at `stack_top`.
    pub fn call(&mut self, function: u64, argument: u64, stack_top: u64) {
        let context = &mut self.0.mcontext;
        context.rip = function;
        context.rdi = argument;
        // As behind a call's push.
        context.rsp = (stack_top & !15) - 8;
    }

    /// The mask that is in force after the handler.
    pub fn mask(&mut self) -> &mut u64 {
        &mut self.0.sigmask
    }

    /// What a SIGSEGV or SIGBUS was about.
    pub fn page_fault(&self, info: &SigInfo) -> PageFault {
        PageFault {
            signal: info.signo as u32,
            code: info.code,
            address: info.address(),
            error: self.0.mcontext.err,
        }
    }
}

/// The restorer of the host's handlers.
///
/// # Safety
/// For the kernel's signal frames only.
#[unsafe(naked)]
pub unsafe extern "C" fn signal_return() -> ! {
    naked_asm!("mov eax, 15", "syscall", "ud2")
}
