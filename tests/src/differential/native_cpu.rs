//! The real CPU as an executor.
//!
//! The kernel's own signal frames carry states in and out, so that every register, flag and fault comes from
//! the hardware and nothing has to be emulated around the instruction: a breakpoint in [`NativeCpu::run`]
//! raises SIGTRAP, whose handler puts the guest's registers into its frame and returns to the instruction;
//! the instruction's own fault, or the breakpoint or single step after it, raises the next signal, whose
//! handler takes the registers from its frame and returns to where the first one came from.

use super::{CODE, Executor, Outcome, SANDBOX, SANDBOX_BYTES, State};
use iced_x86::{CpuidFeature, EncodingKind, FlowControl, OpKind};
use libc::{c_int, c_void, siginfo_t, ucontext_t};
use std::ptr::{self, addr_of_mut};
use std::sync::{Mutex, MutexGuard};
use tranship_isa::machine::Trap;
use tranship_isa::x86_64::xsave::feature;
use tranship_isa::x86_64::{Cpu, Insn, Mnemonic, decode};

/// The CPU that the tests run on. There can be one at a time, used by the thread that made it.
pub struct NativeCpu {
    /// What it has of the state that XSAVE manages: bits of XCR0.
    features: u64,
    _only: MutexGuard<'static, ()>,
}

static ONLY: Mutex<()> = Mutex::new(());

/// What the handler works on. Guarded by [`ONLY`].
static mut EXCHANGE: Exchange = Exchange {
    phase: Phase::Idle,
    features: 0,
    guest: ptr::null_mut(),
    single_step: false,
    trap_number: 0,
    gregs: [0; 23],
    fs_base: 0,
    gs_base: 0,
    xstate: [0; MAX_XSTATE],
};

struct Exchange {
    phase: Phase,
    /// [`NativeCpu::features`].
    features: u64,
    /// The guest's registers, in and out.
    guest: *mut Cpu,
    /// Stop by TF rather than by a breakpoint behind the instruction.
    single_step: bool,
    /// Exception number that ended it.
    trap_number: i64,
    /// The harness's registers meanwhile.
    gregs: [i64; 23],
    fs_base: u64,
    gs_base: u64,
    xstate: [u8; MAX_XSTATE],
}

#[derive(Clone, Copy, PartialEq)]
enum Phase {
    Idle,
    /// The next signal is the harness's own breakpoint.
    Entering,
    /// The next signal ends the instruction.
    Inside,
}

/// More than any CPU's XSAVE area in a signal frame.
const MAX_XSTATE: usize = 16 << 10;
const SIGNALS: [c_int; 5] = [libc::SIGTRAP, libc::SIGSEGV, libc::SIGILL, libc::SIGFPE, libc::SIGBUS];
const CODE_PAGE: u64 = CODE & !0xfff;
const BREAKPOINT: u8 = 0xcc;
/// Exception numbers.
const DIVIDE: i64 = 0;
const DEBUG: i64 = 1;
const BREAK: i64 = 3;
const UNDEFINED: i64 = 6;
const STACK_FAULT: i64 = 12;
const GENERAL_PROTECTION: i64 = 13;
const PAGE_FAULT: i64 = 14;
const X87_EXCEPTION: i64 = 16;
const SSE_EXCEPTION: i64 = 19;
/// RFLAGS bits that the frame has and a guest does not: TF is ours, RF the hardware's.
const HIDDEN_FLAGS: u64 = 1 << 8 | 1 << 16;
const TF: u64 = 1 << 8;

impl NativeCpu {
    /// Maps sandbox and code page and installs the signal handlers.
    pub fn new() -> NativeCpu {
        NativeCpu::with(own_features())
    }

    /// The CPU as far as it goes without AVX-512, whose registers are left alone: what runs where a CPU has none.
    pub fn without_avx512() -> NativeCpu {
        NativeCpu::with(own_features() & !feature::AVX512)
    }

    fn with(features: u64) -> NativeCpu {
        let only = ONLY.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        map(SANDBOX, SANDBOX_BYTES, libc::PROT_READ | libc::PROT_WRITE);
        map(CODE_PAGE, 0x1000, libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC);
        set_alternate_stack();
        for signal in SIGNALS {
            install(signal);
        }
        NativeCpu { features, _only: only }
    }

    /// Whether it has the instruction.
    pub fn has(&self, insn: &Insn) -> bool {
        let registers = self.has_avx512() || !is_avx512(insn);
        registers && insn.cpuid_features().iter().all(|feature| has_feature(*feature))
    }

    /// Whether it has 32 vector registers of 64 bytes, and masks.
    pub fn has_avx512(&self) -> bool {
        self.features & feature::AVX512 == feature::AVX512
    }
}

/// Whether the instruction works on masks or has AVX-512's encoding.
fn is_avx512(insn: &Insn) -> bool {
    let is_mask = |op| insn.op_kind(op) == OpKind::Register && insn.op_register(op).is_k();
    insn.encoding() == EncodingKind::EVEX || (0..insn.op_count()).any(is_mask)
}

/// Those of XCR0 that carry what the guest has in vectors and masks, if they are enabled here.
fn own_features() -> u64 {
    let avx = if is_x86_feature_detected!("avx") { feature::AVX } else { 0 };
    avx | if is_x86_feature_detected!("avx512f") { feature::AVX512 } else { 0 }
}

impl Default for NativeCpu {
    fn default() -> NativeCpu {
        NativeCpu::new()
    }
}

impl Executor for NativeCpu {
    fn name(&self) -> &'static str {
        "native CPU"
    }

    fn run(&mut self, state: &mut State, code: &[u8]) -> Outcome {
        let insn = decode(code, CODE).unwrap();
        let sequence = insn.len() < code.len();
        let branches = !matches!(insn.flow_control(), FlowControl::Next | FlowControl::Interrupt);
        let single_step = branches && !insn.is_string_instruction() && !sequence;
        // SAFETY: both regions are mapped for as long as the process runs and only used under the lock.
        unsafe {
            let page = CODE as *mut u8;
            ptr::write_bytes(page, BREAKPOINT, code.len() + 32);
            ptr::copy_nonoverlapping(code.as_ptr(), page, code.len());
            ptr::copy_nonoverlapping(state.memory.as_ptr(), SANDBOX as *mut u8, SANDBOX_BYTES);
        }
        // SAFETY: the handler runs on this thread, between the two accesses; it preserves all registers.
        let trap_number = unsafe {
            let exchange = addr_of_mut!(EXCHANGE);
            (*exchange).features = self.features;
            (*exchange).guest = &raw mut state.cpu;
            (*exchange).single_step = single_step;
            (*exchange).phase = Phase::Entering;
            std::arch::asm!("int3");
            clear_flags_that_stick();
            (*exchange).trap_number
        };
        // SAFETY: as above.
        unsafe { ptr::copy_nonoverlapping(SANDBOX as *const u8, state.memory.as_mut_ptr(), SANDBOX_BYTES) };
        outcome(state, &insn, CODE + code.len() as u64, trap_number, single_step)
    }

    /// What it has no room for is zero before, as it is after an instruction that clears the rest of a register.
    fn adapt(&self, state: &mut State) {
        if self.features & feature::AVX == 0 {
            state.cpu.vec.iter_mut().for_each(|vec| vec[16..32].fill(0));
        }
        if !self.has_avx512() {
            state.cpu.vec.iter_mut().for_each(|vec| vec[32..].fill(0));
            state.cpu.vec[16..].fill([0; 64]);
            state.cpu.opmask = [0; 8];
        }
    }
}

fn has_feature(feature: CpuidFeature) -> bool {
    use CpuidFeature as F;
    let structured = std::arch::x86_64::__cpuid_count(7, 0);
    match feature {
        F::ADX => is_x86_feature_detected!("adx"),
        F::AES => is_x86_feature_detected!("aes"),
        F::BMI1 => is_x86_feature_detected!("bmi1"),
        F::BMI2 => is_x86_feature_detected!("bmi2"),
        F::CMPXCHG16B => is_x86_feature_detected!("cmpxchg16b"),
        F::LZCNT => is_x86_feature_detected!("lzcnt"),
        F::MOVBE => is_x86_feature_detected!("movbe"),
        F::PCLMULQDQ => is_x86_feature_detected!("pclmulqdq"),
        F::POPCNT => is_x86_feature_detected!("popcnt"),
        F::SHA => is_x86_feature_detected!("sha"),
        F::AVX => is_x86_feature_detected!("avx"),
        F::AVX2 => is_x86_feature_detected!("avx2"),
        F::FMA => is_x86_feature_detected!("fma"),
        F::F16C => is_x86_feature_detected!("f16c"),
        F::VAES => is_x86_feature_detected!("vaes"),
        F::VPCLMULQDQ => is_x86_feature_detected!("vpclmulqdq"),
        F::GFNI => is_x86_feature_detected!("gfni"),
        F::AVX512F => is_x86_feature_detected!("avx512f"),
        F::AVX512BW => is_x86_feature_detected!("avx512bw"),
        F::AVX512CD => is_x86_feature_detected!("avx512cd"),
        F::AVX512DQ => is_x86_feature_detected!("avx512dq"),
        F::AVX512VL => is_x86_feature_detected!("avx512vl"),
        F::AVX512_IFMA => is_x86_feature_detected!("avx512ifma"),
        F::AVX512_VBMI => is_x86_feature_detected!("avx512vbmi"),
        F::AVX512_VBMI2 => is_x86_feature_detected!("avx512vbmi2"),
        F::AVX512_VNNI => is_x86_feature_detected!("avx512vnni"),
        F::AVX512_BITALG => is_x86_feature_detected!("avx512bitalg"),
        F::AVX512_VPOPCNTDQ => is_x86_feature_detected!("avx512vpopcntdq"),
        F::AVX_VNNI | F::AVX_IFMA | F::AVX_VNNI_INT8 | F::AVX_VNNI_INT16 => false,
        F::XSAVE => is_x86_feature_detected!("xsave"),
        F::XSAVEC => is_x86_feature_detected!("xsavec"),
        F::XSAVEOPT => is_x86_feature_detected!("xsaveopt"),
        F::XSAVES => is_x86_feature_detected!("xsaves"),
        F::SSE3 => is_x86_feature_detected!("sse3"),
        F::SSSE3 => is_x86_feature_detected!("ssse3"),
        F::SSE4_1 => is_x86_feature_detected!("sse4.1"),
        F::SSE4_2 => is_x86_feature_detected!("sse4.2"),
        F::FSGSBASE => structured.ebx & 1 != 0,
        F::CLFLUSHOPT => structured.ebx >> 23 & 1 != 0,
        F::RTM => structured.ebx >> 11 & 1 != 0,
        F::CLWB => structured.ebx >> 24 & 1 != 0,
        _ => true,
    }
}

/// What the exception that ended the instruction says about it.
fn outcome(state: &mut State, insn: &Insn, behind: u64, trap_number: i64, single_step: bool) -> Outcome {
    match trap_number {
        BREAK if insn.mnemonic() == Mnemonic::Int3 => Outcome::Trapped(Trap::Breakpoint),
        BREAK if state.cpu.rip == behind + 1 => {
            state.cpu.rip = behind;
            Outcome::Completed
        }
        DEBUG if single_step => Outcome::Completed,
        DEBUG => Outcome::Trapped(Trap::Debug),
        DIVIDE => Outcome::Trapped(Trap::Divide),
        UNDEFINED => Outcome::Trapped(Trap::Undefined),
        GENERAL_PROTECTION | STACK_FAULT => Outcome::Trapped(Trap::GeneralProtection),
        PAGE_FAULT => Outcome::MemoryFault,
        X87_EXCEPTION | SSE_EXCEPTION => Outcome::Trapped(Trap::FloatingPoint),
        other => panic!("exception {other} at {:#x} after {insn:?}", state.cpu.rip),
    }
}

fn map(address: u64, len: usize, protection: c_int) {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
    // SAFETY: nothing else is ever mapped at these addresses: the process is position-independent and
    // the kernel places mappings near the top of the address space.
    let at = unsafe { libc::mmap(address as *mut c_void, len, protection, flags, -1, 0) };
    assert_eq!(at as u64, address, "mmap: {}", std::io::Error::last_os_error());
}

/// The handlers need a stack of their own: rsp is the guest's.
fn set_alternate_stack() {
    let stack = Box::leak(vec![0_u8; 256 << 10].into_boxed_slice());
    let stack = libc::stack_t { ss_sp: stack.as_mut_ptr().cast(), ss_flags: 0, ss_size: stack.len() };
    // SAFETY: the stack lives for ever.
    let result = unsafe { libc::sigaltstack(&stack, ptr::null_mut()) };
    assert_eq!(result, 0, "sigaltstack: {}", std::io::Error::last_os_error());
}

fn install(signal: c_int) {
    // SAFETY: `sigaction` is plain data; the handler touches nothing but its frame and `EXCHANGE`.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handle as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        let result = libc::sigaction(signal, &action, ptr::null_mut());
        assert_eq!(result, 0, "sigaction: {}", std::io::Error::last_os_error());
    }
}

/// FS may be the guest's on entry: no thread-local variable may be used before it is put back.
unsafe extern "C" fn handle(signal: c_int, _info: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel passes a valid frame; `EXCHANGE` belongs to the thread that holds the lock, which
    // is the one that gets here in any phase but `Idle`.
    unsafe {
        let context = &mut *context.cast::<ucontext_t>();
        let exchange = &mut *addr_of_mut!(EXCHANGE);
        match exchange.phase {
            Phase::Entering => {
                exchange.phase = Phase::Inside;
                save_harness(exchange, context);
                load_guest(exchange, context);
            }
            Phase::Inside => {
                exchange.phase = Phase::Idle;
                exchange.trap_number = context.uc_mcontext.gregs[libc::REG_TRAPNO as usize];
                store_guest(exchange, context);
                restore_harness(exchange, context);
            }
            // A fault of the test program itself: let it be reported as ever.
            Phase::Idle => {
                libc::signal(signal, libc::SIG_DFL);
            }
        }
    }
}

/// Registers of [`Cpu::gpr`] as the frame numbers them.
const GREGS: [c_int; 16] = [
    libc::REG_RAX,
    libc::REG_RCX,
    libc::REG_RDX,
    libc::REG_RBX,
    libc::REG_RSP,
    libc::REG_RBP,
    libc::REG_RSI,
    libc::REG_RDI,
    libc::REG_R8,
    libc::REG_R9,
    libc::REG_R10,
    libc::REG_R11,
    libc::REG_R12,
    libc::REG_R13,
    libc::REG_R14,
    libc::REG_R15,
];

/// The frame's XSAVE area: the FXSAVE image, then the header at [`XSTATE_HEADER`].
///
/// # Safety
/// `context` is a frame that the kernel made.
unsafe fn xstate(context: &ucontext_t) -> &'static mut [u8] {
    let area = context.uc_mcontext.fpregs.cast::<u8>();
    // SAFETY: the kernel says how long the area is (struct _fpx_sw_bytes, in the reserved end of the FXSAVE
    // image: magic, extended size, features, size).
    unsafe {
        let len = ptr::read_unaligned(area.add(464 + 16).cast::<u32>()) as usize;
        std::slice::from_raw_parts_mut(area, len.clamp(512, MAX_XSTATE))
    }
}

/// XSTATE_BV: which parts are not in their initial state.
const XSTATE_HEADER: usize = 512;

/// Where this CPU has what FXSAVE's image has no room for: nowhere if it lacks it. The kernel's frames are in the
/// standard format, whose offsets CPUID says (SDM vol. 1, 13.2).
struct Extended {
    ymm_high: Option<usize>,
    opmask: Option<usize>,
    zmm_high: Option<usize>,
    zmm16: Option<usize>,
}

impl Extended {
    /// Those that `features` names, bits of XCR0.
    fn find(features: u64, area: &[u8]) -> Extended {
        let offset = |component: u32, bytes: usize| {
            let leaf = std::arch::x86_64::__cpuid_count(0xd, component);
            let end = leaf.ebx as usize + bytes;
            let is_there = features >> component & 1 != 0 && leaf.eax as usize == bytes && end <= area.len();
            is_there.then_some(leaf.ebx as usize)
        };
        Extended {
            ymm_high: offset(2, 256),
            opmask: offset(5, 64),
            zmm_high: offset(6, 512),
            zmm16: offset(7, 1024),
        }
    }

    /// All parts, wherever they are.
    fn load(&self, cpu: &Cpu, area: &mut [u8]) {
        let Extended { ymm_high, opmask, zmm_high, zmm16 } = *self;
        let mut present = 3;
        for (component, at) in [(2, ymm_high), (5, opmask), (6, zmm_high), (7, zmm16)] {
            present |= u8::from(at.is_some()) << component;
        }
        if area.len() > XSTATE_HEADER {
            area[XSTATE_HEADER] |= present;
        }
        let mut put = |at: Option<usize>, n: usize, from: &[u8]| {
            if let Some(at) = at {
                area[at + n * from.len()..][..from.len()].copy_from_slice(from);
            }
        };
        for n in 0..16 {
            put(ymm_high, n, &cpu.vec[n][16..32]);
            put(zmm_high, n, &cpu.vec[n][32..]);
            put(zmm16, n, &cpu.vec[16 + n]);
        }
        for n in 0..8 {
            put(opmask, n, &cpu.opmask[n].to_le_bytes());
        }
    }

    /// A part that XSTATE_BV lacks is zero.
    fn store(&self, cpu: &mut Cpu, area: &[u8]) {
        let present = area.get(XSTATE_HEADER).copied().unwrap_or(0);
        let part = |component: u32, at: Option<usize>, to: &mut [u8], n: usize| {
            if let Some(at) = at {
                let len = to.len();
                let saved = &area[at + n * len..][..len];
                if present >> component & 1 != 0 { to.copy_from_slice(saved) } else { to.fill(0) }
            }
        };
        for n in 0..16 {
            part(2, self.ymm_high, &mut cpu.vec[n][16..32], n);
            part(6, self.zmm_high, &mut cpu.vec[n][32..], n);
            part(7, self.zmm16, &mut cpu.vec[16 + n], n);
        }
        for n in 0..8 {
            let mut mask = cpu.opmask[n].to_le_bytes();
            part(5, self.opmask, &mut mask, n);
            cpu.opmask[n] = u64::from_le_bytes(mask);
        }
    }
}

unsafe fn save_harness(exchange: &mut Exchange, context: &ucontext_t) {
    exchange.gregs = context.uc_mcontext.gregs;
    // SAFETY: the caller passes the kernel's frame; FSGSBASE is enabled on every kernel since 5.9.
    unsafe {
        exchange.fs_base = read_fs_base();
        exchange.gs_base = read_gs_base();
        let area = xstate(context);
        exchange.xstate[..area.len()].copy_from_slice(area);
    }
}

unsafe fn restore_harness(exchange: &Exchange, context: &mut ucontext_t) {
    context.uc_mcontext.gregs = exchange.gregs;
    // SAFETY: as in `save_harness`.
    unsafe {
        let area = xstate(context);
        area.copy_from_slice(&exchange.xstate[..area.len()]);
        write_segment_bases(exchange.fs_base, exchange.gs_base);
    }
}

unsafe fn load_guest(exchange: &Exchange, context: &mut ucontext_t) {
    // SAFETY: [`NativeCpu::run`] waits for this, with a state that it alone has.
    let cpu = unsafe { &*exchange.guest };
    for (value, reg) in cpu.gpr.iter().zip(GREGS) {
        context.uc_mcontext.gregs[reg as usize] = *value as i64;
    }
    let step = if exchange.single_step { TF } else { 0 };
    context.uc_mcontext.gregs[libc::REG_EFL as usize] = (cpu.rflags() | step) as i64;
    context.uc_mcontext.gregs[libc::REG_RIP as usize] = cpu.rip as i64;
    // SAFETY: the caller passes the kernel's frame. Nothing uses FS until the guest has run.
    unsafe {
        let area = xstate(context);
        load_fxsave(cpu, area);
        Extended::find(exchange.features, area).load(cpu, area);
        write_segment_bases(cpu.fs_base, cpu.gs_base);
    }
}

unsafe fn store_guest(exchange: &Exchange, context: &ucontext_t) {
    // SAFETY: as in `load_guest`.
    let cpu = unsafe { &mut *exchange.guest };
    for (value, reg) in cpu.gpr.iter_mut().zip(GREGS) {
        *value = context.uc_mcontext.gregs[reg as usize] as u64;
    }
    cpu.set_rflags(context.uc_mcontext.gregs[libc::REG_EFL as usize] as u64 & !HIDDEN_FLAGS);
    cpu.rip = context.uc_mcontext.gregs[libc::REG_RIP as usize] as u64;
    // SAFETY: the caller passes the kernel's frame.
    unsafe {
        let area = xstate(context);
        store_fxsave(cpu, area);
        Extended::find(exchange.features, area).store(cpu, area);
        cpu.fs_base = read_fs_base();
        cpu.gs_base = read_gs_base();
    }
}

/// Offsets in the FXSAVE image (SDM vol. 1, 10.5.1).
mod fxsave {
    pub(super) const FCW: usize = 0;
    pub(super) const FSW: usize = 2;
    pub(super) const FTW: usize = 4;
    pub(super) const MXCSR: usize = 24;
    /// ST(0) to ST(7), 16 bytes each.
    pub(super) const ST: usize = 32;
    pub(super) const XMM: usize = 160;
}

fn load_fxsave(cpu: &Cpu, area: &mut [u8]) {
    let x87 = &cpu.x87;
    area[fxsave::FCW..][..2].copy_from_slice(&x87.control.to_le_bytes());
    area[fxsave::FSW..][..2].copy_from_slice(&x87.status.to_le_bytes());
    area[fxsave::FTW] = x87.valid;
    area[fxsave::MXCSR..][..4].copy_from_slice(&cpu.mxcsr.to_le_bytes());
    for n in 0..8 {
        let physical = physical(n, x87.status);
        let st = &mut area[fxsave::ST + 16 * n..][..10];
        st[..8].copy_from_slice(&x87.significand[physical].to_le_bytes());
        st[8..].copy_from_slice(&x87.sign_exponent[physical].to_le_bytes());
    }
    for n in 0..16 {
        area[fxsave::XMM + 16 * n..][..16].copy_from_slice(&cpu.vec[n][..16]);
    }
}

fn store_fxsave(cpu: &mut Cpu, area: &[u8]) {
    let x87 = &mut cpu.x87;
    let half = |at: usize| u16::from_le_bytes([area[at], area[at + 1]]);
    x87.control = half(fxsave::FCW);
    x87.status = half(fxsave::FSW);
    x87.valid = area[fxsave::FTW];
    cpu.mxcsr = u32::from(half(fxsave::MXCSR)) | u32::from(half(fxsave::MXCSR + 2)) << 16;
    for n in 0..8 {
        let physical = physical(n, x87.status);
        let st = fxsave::ST + 16 * n;
        x87.significand[physical] = (0..4).fold(0, |bits, k| bits | u64::from(half(st + 2 * k)) << (16 * k));
        x87.sign_exponent[physical] = half(st + 8);
    }
    for n in 0..16 {
        cpu.vec[n][..16].copy_from_slice(&area[fxsave::XMM + 16 * n..][..16]);
    }
}

/// The physical register behind ST(`n`).
fn physical(n: usize, status: u16) -> usize {
    (n + usize::from(status >> 11 & 7)) % 8
}

/// Clear NT and ID, which POPF may have set and a return from a signal does not clear.
fn clear_flags_that_stick() {
    // SAFETY: changes flags that compiled code does not know of.
    unsafe { std::arch::asm!("pushfq", "and qword ptr [rsp], {}", "popfq", const !(1 << 14 | 1 << 21)) };
}

unsafe fn read_fs_base() -> u64 {
    let base;
    // SAFETY: reads a register.
    unsafe { std::arch::asm!("rdfsbase {}", out(reg) base, options(nomem, nostack, preserves_flags)) };
    base
}

unsafe fn read_gs_base() -> u64 {
    let base;
    // SAFETY: reads a register.
    unsafe { std::arch::asm!("rdgsbase {}", out(reg) base, options(nomem, nostack, preserves_flags)) };
    base
}

/// # Safety
/// No thread-local variable may be used while FS is not the harness's.
unsafe fn write_segment_bases(fs: u64, gs: u64) {
    // SAFETY: the caller sees to it that FS is not used.
    unsafe { std::arch::asm!("wrfsbase {}", "wrgsbase {}", in(reg) fs, in(reg) gs, options(nostack)) };
}
