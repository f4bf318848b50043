//! Signals as an x86-64 guest sees them: numbers, `siginfo`, and the frame that the kernel builds on the
//! user's stack (`arch/x86/include/uapi/asm/{sigcontext,ucontext}.h`, `arch/x86/kernel/signal_64.c`).

use crate::xsave;
use tranship_isa::x86_64::Cpu;

/// Signal numbers that x86-64, arm64 and riscv64 share.
#[allow(missing_docs)]
pub mod number {
    pub const SIGILL: u32 = 4;
    pub const SIGTRAP: u32 = 5;
    pub const SIGABRT: u32 = 6;
    pub const SIGBUS: u32 = 7;
    pub const SIGFPE: u32 = 8;
    pub const SIGKILL: u32 = 9;
    pub const SIGSEGV: u32 = 11;
    pub const SIGALRM: u32 = 14;
    pub const SIGCHLD: u32 = 17;
    pub const SIGCONT: u32 = 18;
    pub const SIGSTOP: u32 = 19;
    pub const SIGURG: u32 = 23;
    pub const SIGWINCH: u32 = 28;
    pub const SIGSYS: u32 = 31;
    /// The one that the runtime keeps to interrupt system calls; a guest cannot send or catch it.
    pub const INTERRUPT: u32 = 64;
}

/// `sa_flags` bits.
#[allow(missing_docs)]
pub mod sa {
    pub const NOCLDSTOP: u64 = 1;
    pub const NOCLDWAIT: u64 = 2;
    pub const SIGINFO: u64 = 4;
    pub const RESTORER: u64 = 0x0400_0000;
    pub const ONSTACK: u64 = 0x0800_0000;
    pub const RESTART: u64 = 0x1000_0000;
    pub const NODEFER: u64 = 0x4000_0000;
    pub const RESETHAND: u64 = 0x8000_0000;
}

/// `sa_handler` for the default action.
pub const SIG_DFL: u64 = 0;
/// `sa_handler` for ignoring.
pub const SIG_IGN: u64 = 1;
/// `ss_flags`: the stack is in use.
pub const SS_ONSTACK: u32 = 1;
/// `ss_flags`: there is none.
pub const SS_DISABLE: u32 = 2;
/// `ss_flags`: entering a handler disables it.
pub const SS_AUTODISARM: u32 = 1 << 31;

/// Bit of `signal` in a signal set.
pub const fn bit(signal: u32) -> u64 {
    1 << (signal - 1)
}

/// `siginfo_t`; all 64-bit little-endian machines lay it out alike.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SigInfo {
    /// Signal number.
    pub signo: i32,
    /// errno, mostly 0.
    pub errno: i32,
    /// Why; positive when the kernel raised it.
    pub code: i32,
    /// Zero.
    pub pad: u32,
    /// Depends on the signal.
    pub fields: [u64; 14],
}

impl SigInfo {
    /// A fault of `signal` at `address`.
    pub const fn fault(signal: u32, code: i32, address: u64) -> SigInfo {
        let mut fields = [0; 14];
        fields[0] = address;
        SigInfo { signo: signal as i32, errno: 0, code, pad: 0, fields }
    }

    /// `si_addr`.
    pub const fn address(&self) -> u64 {
        self.fields[0]
    }
}

/// `stack_t`.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stack {
    /// Lowest address.
    pub sp: u64,
    /// SS_* flags.
    pub flags: u32,
    /// Zero.
    pub pad: u32,
    /// Bytes.
    pub size: u64,
}

/// `struct sigcontext` of x86-64.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[allow(missing_docs)]
pub struct SigContext {
    /// r8..r15.
    pub r8_to_r15: [u64; 8],
    pub rdi: u64,
    pub rsi: u64,
    pub rbp: u64,
    pub rbx: u64,
    pub rdx: u64,
    pub rax: u64,
    pub rcx: u64,
    pub rsp: u64,
    pub rip: u64,
    pub rflags: u64,
    /// cs, gs, fs, ss.
    pub segments: [u16; 4],
    pub err: u64,
    pub trapno: u64,
    pub oldmask: u64,
    pub cr2: u64,
    /// Address of the FXSAVE image.
    pub fpstate: u64,
    pub reserved: [u64; 8],
}

/// `struct ucontext` of x86-64.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[allow(missing_docs)]
pub struct UContext {
    pub flags: u64,
    pub link: u64,
    pub stack: Stack,
    pub mcontext: SigContext,
    pub sigmask: u64,
}

/// `struct rt_sigframe` of x86-64: what lies at the handler's stack pointer.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RtSigFrame {
    /// Where the handler returns to: the restorer.
    pub pretcode: u64,
    /// The interrupted context.
    pub uc: UContext,
    /// What happened.
    pub info: SigInfo,
}

/// UC_FP_XSTATE | UC_SIGCONTEXT_SS | UC_STRICT_RESTORE_SS.
const UC_FLAGS: u64 = 7;
/// __USER_CS and __USER_DS, as an x86-64 kernel has them.
const USER_CS: u16 = 0x33;
const USER_DS: u16 = 0x2b;
/// RFLAGS bits that a handler may change (FIX_EFLAGS).
const RESTORABLE_FLAGS: u64 = 0x0005_0dd5;
/// RFLAGS bits that a handler starts without: DF, RF, TF.
const HANDLER_CLEARS: u64 = 1 << 10 | 1 << 16 | 1 << 8;
/// Bytes below the stack pointer that a function may use (psABI).
const RED_ZONE: u64 = 128;

/// Why a synchronous signal was raised, as the frame tells it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TrapFrame {
    /// x86 exception number.
    pub trapno: u64,
    /// Its error code.
    pub err: u64,
    /// The faulting address of a page fault.
    pub cr2: u64,
}

/// Where a frame goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Placement {
    /// Address of the [`RtSigFrame`], the handler's stack pointer.
    pub frame: u64,
    /// Address of the extended state.
    pub fpstate: u64,
}

/// Place a frame with `fp_bytes` of extended state below the stack pointer `rsp`, or at the end of the
/// alternate stack if `alternate` is given and to be used.
pub const fn place(rsp: u64, alternate: Option<(u64, u64)>, fp_bytes: u64) -> Placement {
    let top = match alternate {
        Some((base, size)) => base.wrapping_add(size),
        None => rsp.wrapping_sub(RED_ZONE),
    };
    let fpstate = top.wrapping_sub(fp_bytes) & !63;
    let frame = (fpstate.wrapping_sub(size_of::<RtSigFrame>() as u64) & !15).wrapping_sub(8);
    Placement { frame, fpstate }
}

impl RtSigFrame {
    /// The frame that interrupts `cpu`, whose extended state goes to `fpstate`.
    pub fn new(
        cpu: &Cpu,
        info: SigInfo,
        trap: TrapFrame,
        mask: u64,
        stack: Stack,
        fpstate: u64,
        restorer: u64,
    ) -> Self {
        let [rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8_to_r15 @ ..] = cpu.gpr;
        let mcontext = SigContext {
            r8_to_r15,
            rdi,
            rsi,
            rbp,
            rbx,
            rdx,
            rax,
            rcx,
            rsp,
            rip: cpu.rip,
            rflags: cpu.rflags(),
            segments: [USER_CS, 0, 0, USER_DS],
            err: trap.err,
            trapno: trap.trapno,
            oldmask: mask,
            cr2: trap.cr2,
            fpstate,
            reserved: [0; 8],
        };
        let uc = UContext { flags: UC_FLAGS, link: 0, stack, mcontext, sigmask: mask };
        RtSigFrame { pretcode: restorer, uc, info }
    }

    /// Enter the handler of `signal` with this frame at `place`.
    pub fn enter(&self, cpu: &mut Cpu, handler: u64, place: Placement) {
        let uc_offset = core::mem::offset_of!(RtSigFrame, uc) as u64;
        let info_offset = core::mem::offset_of!(RtSigFrame, info) as u64;
        cpu.gpr[0] = 0;
        cpu.gpr[2] = place.frame + uc_offset;
        cpu.gpr[4] = place.frame;
        cpu.gpr[6] = place.frame + info_offset;
        cpu.gpr[7] = self.info.signo as u64;
        cpu.rip = handler;
        cpu.set_rflags(cpu.rflags() & !HANDLER_CLEARS);
    }
}

impl SigContext {
    /// Put the general registers back, as rt_sigreturn(2) does.
    pub fn restore(&self, cpu: &mut Cpu) {
        let [r8, r9, r10, r11, r12, r13, r14, r15] = self.r8_to_r15;
        cpu.gpr = [
            self.rax, self.rcx, self.rdx, self.rbx, self.rsp, self.rbp, self.rsi, self.rdi, r8, r9, r10, r11,
            r12, r13, r14, r15,
        ];
        cpu.rip = self.rip;
        cpu.set_rflags((cpu.rflags() & !RESTORABLE_FLAGS) | (self.rflags & RESTORABLE_FLAGS));
    }
}

/// The extended state of `cpu` as a frame has it: standard format, with the magic numbers around it. Yields
/// the bytes used of `area`.
pub fn save_fpstate(cpu: &Cpu, area: &mut xsave::Area) -> usize {
    let bytes = xsave::save(cpu, area);
    area.set_frame_magic(bytes);
    bytes + xsave::FRAME_MAGIC2_BYTES
}

const _: () = assert!(size_of::<SigContext>() == 256 && size_of::<UContext>() == 304);
const _: () = assert!(size_of::<SigInfo>() == 128 && size_of::<RtSigFrame>() == 440);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_aligned_as_a_call_leaves_the_stack() {
        for rsp in 0x7fff_0000_u64..0x7fff_0100 {
            let place = place(rsp, None, 836);
            assert_eq!(place.frame % 16, 8);
            assert_eq!(place.fpstate % 64, 0);
            assert!(place.fpstate + 836 <= rsp - 128 && place.frame + 440 <= place.fpstate);
        }
        assert_eq!(place(0, Some((0x1000, 0x2000)), 0).fpstate, 0x3000);
    }

    #[test]
    fn registers_survive_a_frame() {
        let mut cpu = Cpu::at_exec(0x40_1000, 0x7fff_0000);
        for (n, register) in cpu.gpr.iter_mut().enumerate() {
            *register = n as u64 * 0x0101_0101;
        }
        cpu.set_rflags(0x8d5);
        let info = SigInfo::fault(number::SIGSEGV, 1, 0x1234);
        let frame = RtSigFrame::new(&cpu, info, TrapFrame::default(), 0, Stack::default(), 0, 0);
        let mut other = Cpu::at_exec(0, 0);
        frame.uc.mcontext.restore(&mut other);
        assert_eq!(other, cpu);
    }
}
