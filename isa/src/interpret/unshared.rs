//! Memory that nobody but the interpreter sees meanwhile: there each access is atomic by itself.

use super::{Fault, Host};
use crate::machine::{AtomicOp, Width};

/// Guest memory that no other thread sees, and a clock.
pub trait Unshared {
    /// Fill `into` with what is at `address`, any alignment. All of it is there, or it is a [`Fault`].
    fn read_bytes(&mut self, address: u64, into: &mut [u8]) -> Result<(), Fault>;
    /// Write `bytes` at `address`, likewise.
    fn write_bytes(&mut self, address: u64, bytes: &[u8]) -> Result<(), Fault>;
    /// As [`Host::timestamp`].
    fn counter(&mut self) -> u64;
}

impl<M: Unshared> Host for M {
    fn load(&mut self, address: u64, width: Width) -> Result<u128, Fault> {
        let mut value = [0; 16];
        self.read_bytes(address, &mut value[..width.bytes() as usize])?;
        Ok(u128::from_le_bytes(value))
    }

    fn store(&mut self, address: u64, width: Width, value: u128) -> Result<(), Fault> {
        self.write_bytes(address, &value.to_le_bytes()[..width.bytes() as usize])
    }

    fn load_bytes(&mut self, address: u64, into: &mut [u8]) -> Result<(), Fault> {
        self.read_bytes(address, into)
    }

    fn store_bytes(&mut self, address: u64, bytes: &[u8]) -> Result<(), Fault> {
        self.write_bytes(address, bytes)
    }

    fn atomic(&mut self, op: AtomicOp, address: u64, width: Width, value: u128) -> Result<u128, Fault> {
        let old = self.load(address, width)?;
        self.store(address, width, op.apply(old, value))?;
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
        self.counter()
    }
}
