//! What the rest computes about x86-64, against the CPU itself.

use tranship_abi::xsave::{Area, save_legacy};
use tranship_isa::x86_64::Cpu;

/// FXRSTOR and FXSAVE read and write the legacy area as we do.
#[test]
fn the_cpu_agrees_on_the_legacy_area() {
    let mut cpu = Cpu::at_exec(0, 0);
    cpu.x87.status = 3 << 11;
    cpu.x87.valid = 0b1111_1000;
    cpu.mxcsr = 0x1fa0;
    for n in 0..8 {
        cpu.x87.significand[n] = 1 << 63 | n as u64;
        cpu.x87.sign_exponent[n] = 0x4000 + n as u16;
    }
    for (n, vector) in cpu.vec.iter_mut().enumerate() {
        vector.fill(n as u8);
    }
    let (mut ours, mut before, mut theirs) = (Area::new(), Area::new(), Area::new());
    save_legacy(&cpu, &mut ours);
    // SAFETY: the areas are large and aligned enough; the test's own state is put back.
    unsafe {
        core::arch::x86_64::_fxsave64(before.0.as_mut_ptr());
        core::arch::x86_64::_fxrstor64(ours.0.as_ptr());
        core::arch::x86_64::_fxsave64(theirs.0.as_mut_ptr());
        core::arch::x86_64::_fxrstor64(before.0.as_ptr());
    }
    assert_eq!(ours.0[..28], theirs.0[..28]);
    assert_eq!(ours.0[32..416], theirs.0[32..416]);
}
