//! Guest memory as this process has it, for the interpreter.

use tranship_isa::interpret::{Fault, Unshared};

/// Guest memory is this process's.
#[derive(Debug)]
pub struct Memory;

impl Unshared for Memory {
    fn read_bytes(&mut self, address: u64, into: &mut [u8]) -> Result<(), Fault> {
        // SAFETY: test programs access what they have mapped, or see the fault.
        unsafe { libc::memcpy(into.as_mut_ptr().cast(), address as *const libc::c_void, into.len()) };
        Ok(())
    }

    fn write_bytes(&mut self, address: u64, bytes: &[u8]) -> Result<(), Fault> {
        // SAFETY: as above.
        unsafe { libc::memcpy(address as *mut libc::c_void, bytes.as_ptr().cast(), bytes.len()) };
        Ok(())
    }

    fn counter(&mut self) -> u64 {
        tranship_runtime::host::timestamp()
    }
}
