//! x86-64's extended state in memory: the FXSAVE image and the standard (uncompacted) XSAVE format, as signal
//! frames and checkpoints have it (SDM vol. 1, chapter 13).

use tranship_isa::x86_64::Cpu;
use tranship_isa::x86_64::xsave::{Component, HEADER};

pub use tranship_isa::x86_64::xsave::feature;

/// Offsets of the components.
const ST: usize = 32;
const XMM: usize = 160;
const SW_RESERVED: usize = 464;
const AVX: usize = Component::of(feature::AVX).offset;
const OPMASK: usize = Component::of(feature::OPMASK).offset;
const ZMM_HI256: usize = Component::of(feature::ZMM_HI256).offset;
const HI16_ZMM: usize = Component::of(feature::HI16_ZMM).offset;
const PKRU: usize = Component::of(feature::PKRU).offset;
/// Bytes with all components.
pub const MAX_BYTES: usize = Component::of(feature::PKRU).end();
/// Bytes behind the state of a signal frame for FP_XSTATE_MAGIC2.
pub const FRAME_MAGIC2_BYTES: usize = 4;
const FP_XSTATE_MAGIC1: u32 = 0x4650_5853;
const FP_XSTATE_MAGIC2: u32 = 0x4650_5845;
/// MXCSR bits that are not reserved.
const MXCSR_MASK: u32 = 0xffff;

/// Room for one XSAVE image and the magic behind it.
#[repr(C, align(64))]
#[derive(Clone)]
pub struct Area(pub [u8; MAX_BYTES + FRAME_MAGIC2_BYTES]);

impl Area {
    /// Zeros.
    pub const fn new() -> Area {
        Area([0; MAX_BYTES + FRAME_MAGIC2_BYTES])
    }

    fn put(&mut self, at: usize, bytes: &[u8]) {
        if let Some(room) = self.0.get_mut(at..at + bytes.len()) {
            room.copy_from_slice(bytes);
        }
    }

    fn get<const N: usize>(&self, at: usize) -> [u8; N] {
        self.0.get(at..at + N).and_then(|bytes| bytes.try_into().ok()).unwrap_or([0; N])
    }

    fn u64(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.get(at))
    }

    fn u32(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.get(at))
    }

    /// Mark the first `bytes` as a signal frame's state: `struct _fpx_sw_bytes` inside, MAGIC2 behind.
    pub(crate) fn set_frame_magic(&mut self, bytes: usize) {
        let features = feature::X87 | feature::SSE | self.u64(HEADER);
        self.put(SW_RESERVED, &FP_XSTATE_MAGIC1.to_le_bytes());
        self.put(SW_RESERVED + 4, &((bytes + FRAME_MAGIC2_BYTES) as u32).to_le_bytes());
        self.put(SW_RESERVED + 8, &features.to_le_bytes());
        self.put(SW_RESERVED + 16, &(bytes as u32).to_le_bytes());
        self.put(bytes, &FP_XSTATE_MAGIC2.to_le_bytes());
    }

    /// If a signal frame's legacy area announces more behind it: bytes of the whole state, its MAGIC2
    /// included.
    pub fn frame_bytes(&self) -> Option<usize> {
        let bytes = self.u32(SW_RESERVED + 16) as usize;
        let fits = (HEADER + 64..=MAX_BYTES).contains(&bytes);
        (self.u32(SW_RESERVED) == FP_XSTATE_MAGIC1 && fits).then_some(bytes + FRAME_MAGIC2_BYTES)
    }

    /// Is MAGIC2 behind the first `bytes - 4`, as [`Area::frame_bytes`] counts?
    pub fn frame_is_whole(&self, bytes: usize) -> bool {
        self.u32(bytes - FRAME_MAGIC2_BYTES) == FP_XSTATE_MAGIC2
    }
}

impl Default for Area {
    fn default() -> Self {
        Area::new()
    }
}

/// Legacy area (FXSAVE, 64-bit form): x87, MXCSR, xmm0..15. Bytes 464..512 stay.
pub fn save_legacy(cpu: &Cpu, area: &mut Area) {
    let x87 = &cpu.x87;
    area.put(0, &x87.control.to_le_bytes());
    area.put(2, &x87.status.to_le_bytes());
    area.put(4, &[x87.valid, 0]);
    area.put(6, &x87.opcode.to_le_bytes());
    area.put(8, &x87.instruction.to_le_bytes());
    area.put(16, &x87.data.to_le_bytes());
    area.put(24, &cpu.mxcsr.to_le_bytes());
    area.put(28, &MXCSR_MASK.to_le_bytes());
    for n in 0..8 {
        let physical = physical(x87.status, n);
        area.put(ST + 16 * n, &x87.significand[physical].to_le_bytes());
        area.put(ST + 16 * n + 8, &x87.sign_exponent[physical].to_le_bytes());
        area.put(ST + 16 * n + 10, &[0; 6]);
    }
    for (n, vector) in cpu.vec.iter().take(16).enumerate() {
        area.put(XMM + 16 * n, &vector[..16]);
    }
}

/// The inverse of [`save_legacy`].
pub fn restore_legacy(cpu: &mut Cpu, area: &Area) {
    let u16 = |at| u16::from_le_bytes(area.get(at));
    cpu.x87.control = u16(0);
    cpu.x87.status = u16(2);
    cpu.x87.valid = area.0[4];
    cpu.x87.opcode = u16(6) & 0x7ff;
    cpu.x87.instruction = area.u64(8);
    cpu.x87.data = area.u64(16);
    cpu.mxcsr = area.u32(24) & MXCSR_MASK;
    for n in 0..8 {
        let physical = physical(cpu.x87.status, n);
        cpu.x87.significand[physical] = area.u64(ST + 16 * n);
        cpu.x87.sign_exponent[physical] = u16(ST + 16 * n + 8);
    }
    for (n, vector) in cpu.vec.iter_mut().take(16).enumerate() {
        vector[..16].copy_from_slice(&area.get::<16>(XMM + 16 * n));
    }
}

/// Physical number of ST(n).
fn physical(status: u16, n: usize) -> usize {
    (usize::from(status >> 11 & 7) + n) & 7
}

/// Components of `cpu` that an image must have: those that every guest CPU has, and whatever else is in use.
fn features_in_use(cpu: &Cpu) -> u64 {
    let mut features = feature::X87 | feature::SSE | feature::AVX;
    let used = |bytes: &[u8]| bytes.iter().any(|&byte| byte != 0);
    if cpu.opmask != [0; 8]
        || cpu.vec.iter().enumerate().any(|(n, v)| used(&v[if n < 16 { 32 } else { 0 }..]))
    {
        features |= feature::AVX512;
    }
    if cpu.pkru != 0 {
        features |= feature::AVX512 | feature::PKRU;
    }
    features
}

/// Write `cpu`'s extended state with an XSAVE header; yields the bytes used.
pub fn save(cpu: &Cpu, area: &mut Area) -> usize {
    let features = features_in_use(cpu);
    area.0.fill(0);
    save_legacy(cpu, area);
    area.put(HEADER, &features.to_le_bytes());
    for (n, vector) in cpu.vec.iter().take(16).enumerate() {
        area.put(AVX + 16 * n, &vector[16..32]);
    }
    if features & feature::AVX512 == 0 {
        return AVX + 256;
    }
    for (n, mask) in cpu.opmask.iter().enumerate() {
        area.put(OPMASK + 8 * n, &mask.to_le_bytes());
    }
    for (n, vector) in cpu.vec.iter().enumerate() {
        match n.checked_sub(16) {
            None => area.put(ZMM_HI256 + 32 * n, &vector[32..]),
            Some(high) => area.put(HI16_ZMM + 64 * high, vector),
        }
    }
    if features & feature::PKRU == 0 {
        return PKRU;
    }
    area.put(PKRU, &cpu.pkru.to_le_bytes());
    MAX_BYTES
}

/// Read an XSAVE image; components that XSTATE_BV lacks become initial, as XRSTOR has it.
pub fn restore(cpu: &mut Cpu, area: &Area) {
    let features = area.u64(HEADER);
    if features & (feature::X87 | feature::SSE) == feature::X87 | feature::SSE {
        restore_legacy(cpu, area);
    } else {
        restore_part_of_legacy(cpu, area, features);
    }
    let has = |component| features & component != 0;
    for n in 0..32 {
        let ymm = if has(feature::AVX) && n < 16 { area.get(AVX + 16 * n) } else { [0; 16] };
        let zmm = if has(feature::ZMM_HI256) && n < 16 { area.get(ZMM_HI256 + 32 * n) } else { [0; 32] };
        if n < 16 {
            cpu.vec[n][16..32].copy_from_slice(&ymm);
            cpu.vec[n][32..].copy_from_slice(&zmm);
        } else {
            cpu.vec[n] = if has(feature::HI16_ZMM) { area.get(HI16_ZMM + 64 * (n - 16)) } else { [0; 64] };
        }
    }
    for (n, mask) in cpu.opmask.iter_mut().enumerate() {
        *mask = if has(feature::OPMASK) { area.u64(OPMASK + 8 * n) } else { 0 };
    }
    cpu.pkru = if has(feature::PKRU) { area.u32(PKRU) } else { cpu.pkru };
}

/// One of x87 and SSE is in its initial state; MXCSR is loaded with either SSE or AVX.
fn restore_part_of_legacy(cpu: &mut Cpu, area: &Area, features: u64) {
    let mut loaded = Cpu::at_exec(0, 0);
    restore_legacy(&mut loaded, area);
    let initial = Cpu::at_exec(0, 0);
    cpu.x87 = if features & feature::X87 != 0 { loaded.x87 } else { initial.x87 };
    for n in 0..16 {
        let from = if features & feature::SSE != 0 { &loaded } else { &initial };
        cpu.vec[n][..16].copy_from_slice(&from.vec[n][..16]);
    }
    if features & (feature::SSE | feature::AVX) != 0 {
        cpu.mxcsr = loaded.mxcsr;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn busy_cpu() -> Cpu {
        let mut cpu = Cpu::at_exec(0, 0);
        cpu.x87.status = 3 << 11;
        cpu.x87.valid = 0b1111_1000;
        cpu.mxcsr = 0x1fa0;
        for n in 0..8 {
            cpu.x87.significand[n] = 1 << 63 | n as u64;
            cpu.x87.sign_exponent[n] = 0x4000 + n as u16;
        }
        for (n, vector) in cpu.vec.iter_mut().enumerate() {
            for (i, byte) in vector.iter_mut().enumerate() {
                *byte = (n * 64 + i) as u8;
            }
        }
        cpu
    }

    #[test]
    fn everything_survives() {
        let mut cpu = busy_cpu();
        cpu.opmask = [7; 8];
        let mut area = Area::new();
        assert_eq!(save(&cpu, &mut area), PKRU);
        let mut other = Cpu::at_exec(0, 0);
        restore(&mut other, &area);
        assert_eq!(other, cpu);
    }

    #[test]
    fn without_avx512_the_image_is_short() {
        let mut cpu = busy_cpu();
        for (n, vector) in cpu.vec.iter_mut().enumerate() {
            vector[if n < 16 { 32 } else { 0 }..].fill(0);
        }
        let mut area = Area::new();
        assert_eq!(save(&cpu, &mut area), 832);
        let mut other = Cpu::at_exec(0, 0);
        restore(&mut other, &area);
        assert_eq!(other, cpu);
    }
}
