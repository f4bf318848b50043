//! The x86-64 register file as it lies in memory: the guest state block's first part, read and written by
//! the interpreter, by compiled code and by recode. Layout is part of the checkpoint format: append only.

/// Vector registers (zmm0..zmm31).
pub const VEC_REGS: usize = 32;
/// Bytes in a vector register (512 bits).
pub const VEC_BYTES: usize = 64;

/// One-bit flags of RFLAGS that instructions read and write one by one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Flag {
    /// Carry, RFLAGS bit 0.
    Cf,
    /// Parity of the low byte, bit 2.
    Pf,
    /// Auxiliary carry, bit 4.
    Af,
    /// Zero, bit 6.
    Zf,
    /// Sign, bit 7.
    Sf,
    /// Overflow, bit 11.
    Of,
    /// Direction, bit 10.
    Df,
}

impl Flag {
    /// All of them, in the order of [`Cpu::flags`].
    pub const ALL: [Flag; 7] = [Flag::Cf, Flag::Pf, Flag::Af, Flag::Zf, Flag::Sf, Flag::Of, Flag::Df];

    /// Those that instructions set by their results.
    pub const STATUS: [Flag; 6] = [Flag::Cf, Flag::Pf, Flag::Af, Flag::Zf, Flag::Sf, Flag::Of];

    /// Bit number in RFLAGS.
    pub const fn bit(self) -> u32 {
        match self {
            Flag::Cf => 0,
            Flag::Pf => 2,
            Flag::Af => 4,
            Flag::Zf => 6,
            Flag::Sf => 7,
            Flag::Of => 11,
            Flag::Df => 10,
        }
    }
}

/// Scalar registers as instructions name them; this is [`crate::machine::Machine::Reg`] for x86-64.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub enum Reg {
    /// General purpose register by its encoding number: rax rcx rdx rbx rsp rbp rsi rdi r8..r15. 64 bits.
    Gpr(u8),
    /// A flag; read and written as one bit.
    Flag(Flag),
    /// The bits of RFLAGS that are no [`Flag`] (ID, AC, NT, …), in place; the rest zero. 64 bits.
    OtherFlags,
    /// FS segment base. 64 bits.
    FsBase,
    /// GS segment base. 64 bits.
    GsBase,
    /// AVX-512 mask register k0..k7. 64 bits.
    Opmask(u8),
    /// SSE control and status. 32 bits. Reading it collects the exception flags raised so far, writing it
    /// puts rounding and masks in force.
    Mxcsr,
}

/// The x87 unit. Registers are held by their physical number, as the tag word counts them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct X87 {
    /// 64-bit significands of the physical registers R0..R7.
    pub significand: [u64; 8],
    /// Sign and 15-bit exponent of R0..R7.
    pub sign_exponent: [u16; 8],
    /// FCW.
    pub control: u16,
    /// FSW, with TOP in bits 11..13.
    pub status: u16,
    /// Bit n set: physical register n holds a value (the abridged tag word of FXSAVE).
    pub valid: u8,
    /// Zero.
    pub reserved: u8,
    /// FOP, 11 bits.
    pub opcode: u16,
    /// FIP, 64 bits.
    pub instruction: u64,
    /// FDP, 64 bits.
    pub data: u64,
}

/// The guest's whole user-visible register file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C, align(64))]
pub struct Cpu {
    /// rax rcx rdx rbx rsp rbp rsi rdi r8..r15.
    pub gpr: [u64; 16],
    /// Address of the next instruction to execute.
    pub rip: u64,
    /// 0 or 1 for each of [`Flag::ALL`].
    pub flags: [u8; 7],
    /// Zero.
    pub reserved: u8,
    /// RFLAGS without the bits in `flags`; see [`Reg::OtherFlags`].
    pub other_flags: u64,
    /// FS base.
    pub fs_base: u64,
    /// GS base.
    pub gs_base: u64,
    /// MXCSR; inside compiled code the exception flags may still be in the host's FP status.
    pub mxcsr: u32,
    /// Protection keys register; carried, not used.
    pub pkru: u32,
    /// AVX-512 mask registers k0..k7.
    pub opmask: [u64; 8],
    /// The x87 unit.
    pub x87: X87,
    /// zmm0..zmm31, little-endian.
    pub vec: [[u8; VEC_BYTES]; VEC_REGS],
}

/// RFLAGS bit 1, always set; IF, which user space always sees set.
const ALWAYS_SET: u64 = 1 << 1 | 1 << 9;

impl Cpu {
    /// The state in which Linux starts a program (SysV psABI 3.4.1): everything zero but MXCSR, FCW, IF.
    pub const fn at_exec(rip: u64, rsp: u64) -> Cpu {
        let mut gpr = [0; 16];
        gpr[4] = rsp;
        Cpu {
            gpr,
            rip,
            flags: [0; 7],
            reserved: 0,
            other_flags: ALWAYS_SET,
            fs_base: 0,
            gs_base: 0,
            mxcsr: 0x1f80,
            pkru: 0,
            opmask: [0; 8],
            x87: X87 {
                significand: [0; 8],
                sign_exponent: [0; 8],
                control: 0x37f,
                status: 0,
                valid: 0,
                reserved: 0,
                opcode: 0,
                instruction: 0,
                data: 0,
            },
            vec: [[0; VEC_BYTES]; VEC_REGS],
        }
    }

    /// RFLAGS as PUSHF, a signal frame or a checkpoint has it.
    pub fn rflags(&self) -> u64 {
        Flag::ALL.iter().fold(self.other_flags | ALWAYS_SET, |bits, &f| {
            bits | u64::from(self.flags[f as usize]) << f.bit()
        })
    }

    /// Take RFLAGS apart.
    pub fn set_rflags(&mut self, rflags: u64) {
        self.other_flags = rflags | ALWAYS_SET;
        for f in Flag::ALL {
            self.flags[f as usize] = (rflags >> f.bit() & 1) as u8;
            self.other_flags &= !(1 << f.bit());
        }
    }
}
