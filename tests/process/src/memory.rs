//! Guest memory as this process has it, for the interpreter.

use crate::copy;
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
        // SAFETY: test programs access what they have mapped.
        unsafe { std::ptr::copy_nonoverlapping(address as *const u8, into.as_mut_ptr(), into.len()) };
        Ok(())
    }
    fn store_bytes(&mut self, address: u64, bytes: &[u8]) -> Result<(), Fault> {
        copy(address, bytes);
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
