//! What compiled code keeps otherwise than [`Cpu`] has it, until somebody looks.

use super::{Cpu, LazyFlags, VEC_BYTES, VEC_REGS};

/// State beside [`Cpu`]. All zeros: [`Cpu`] has everything.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LazyState {
    /// What the status flags follow from.
    pub flags: LazyFlags,
    /// Upper halves of vector registers.
    pub cleared: ClearedHalves,
}

/// Upper halves of vector registers that are zero, whatever [`Cpu::vec`] has; a bit for each register. Every instruction
/// with a VEX prefix clears one, `vzeroupper` clears sixteen, and only AVX-512 looks there.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ClearedHalves(pub u64);

impl ClearedHalves {
    /// Where upper halves begin, in bytes.
    pub const START: usize = VEC_BYTES / 2;

    /// The bit of register `index`.
    pub const fn bit(index: u32) -> u64 {
        1 << index
    }

    /// Clear them in `cpu`.
    pub fn settle(&mut self, cpu: &mut Cpu) {
        let cleared = core::mem::take(self).0;
        if cleared == 0 {
            return;
        }
        for (index, register) in (0..).zip(&mut cpu.vec) {
            if cleared & ClearedHalves::bit(index) != 0 {
                register[ClearedHalves::START..].fill(0);
            }
        }
    }
}

const _: () = assert!(VEC_REGS <= u64::BITS as usize);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_named_is_cleared() {
        let mut cpu = Cpu::at_exec(0, 0);
        cpu.vec = [[0xff; VEC_BYTES]; VEC_REGS];
        let mut cleared = ClearedHalves(ClearedHalves::bit(0) | ClearedHalves::bit(31));
        cleared.settle(&mut cpu);
        assert_eq!(cleared, ClearedHalves::default());
        for (index, register) in cpu.vec.iter().enumerate() {
            for (n, byte) in register.iter().enumerate() {
                let is_cleared = [0, 31].contains(&index) && n >= 32;
                assert_eq!(*byte == 0, is_cleared, "byte {n} of register {index}");
            }
        }
    }
}
