//! Guest memory as this process has it, for the interpreter.

use tranship_isa::interpret::{Fault, Host};
use tranship_isa::machine::{AtomicOp, Width};

/// Guest memory is this process's.
#[derive(Debug)]
pub struct Memory;

impl Host for Memory {
    fn load(&mut self, address: u64, width: Width) -> Result<u128, Fault> {
        let mut bytes = [0; 16];
        self.load_bytes(address, &mut bytes[..width.bytes() as usize])?;
        Ok(u128::from_le_bytes(bytes))
    }
    fn store(&mut self, address: u64, width: Width, value: u128) -> Result<(), Fault> {
        self.store_bytes(address, &value.to_le_bytes()[..width.bytes() as usize])
    }
    fn load_bytes(&mut self, address: u64, into: &mut [u8]) -> Result<(), Fault> {
        // SAFETY: test programs access what they have mapped, or see the fault.
        unsafe { libc::memcpy(into.as_mut_ptr().cast(), address as *const libc::c_void, into.len()) };
        Ok(())
    }
    fn store_bytes(&mut self, address: u64, bytes: &[u8]) -> Result<(), Fault> {
        // SAFETY: as above.
        unsafe { libc::memcpy(address as *mut libc::c_void, bytes.as_ptr().cast(), bytes.len()) };
        Ok(())
    }
    fn atomic(&mut self, op: AtomicOp, address: u64, width: Width, value: u128) -> Result<u128, Fault> {
        let old = self.load(address, width)?;
        let new = op.apply(old, value);
        self.store(address, width, new & width.mask())?;
        Ok(old)
    }
    fn compare_exchange(
        &mut self,
        address: u64,
        width: Width,
        expected: u128,
        new: u128,
    ) -> Result<u128, Fault> {
        let old = self.load(address, width)?;
        if old == expected {
            self.store(address, width, new)?;
        }
        Ok(old)
    }
    fn fence(&mut self) {}
    fn timestamp(&mut self) -> u64 {
        tranship_runtime::host::timestamp()
    }
}
