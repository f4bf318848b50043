//! x86-64 threads: CRIU's register messages and the register file of a state block, either way.
//!
//! The fpregs message is FXSAVE's layout (SDM vol. 1, 10.5) followed by the XSAVE components that the dumping CPU
//! has (SDM vol. 1, 13.4); a component whose bit in `xstate_bv` is clear is in its initial state, all zeros.

use crate::error::{RecodeError, Result};
use crate::proto::core_x86::{
    Thread_info_x86, User_desc_t, User_x86_fpregs_entry, User_x86_regs_entry, User_x86_regs_mode,
    User_x86_xsave_entry,
};
use protobuf::MessageField;
use tranship_isa::x86_64::{Cpu, VEC_BYTES, X87};

/// Words of the auxiliary vector that CRIU keeps on this machine, however many the kernel has (`AT_VECTOR_SIZE` in its
/// `criu/arch/x86/include/asm/types.h`); it refuses to restore more.
pub(crate) const SAVED_AUXV_WORDS: usize = 44;
/// Selectors of 64-bit user code and data (`__USER_CS`, `__USER_DS`).
const USER_CS: u64 = 0x33;
const USER_SS: u64 = 0x2b;
/// General registers in CRIU's message for each register number; rax rcx rdx rbx rsp rbp rsi rdi r8..r15.
type Gprs = [u64; 16];

/// XSAVE state components: bits of XSTATE_BV.
mod component {
    pub(super) const YMM: u64 = 1 << 2;
    pub(super) const OPMASK: u64 = 1 << 5;
    pub(super) const ZMM_HI256: u64 = 1 << 6;
    pub(super) const HI16_ZMM: u64 = 1 << 7;
    pub(super) const PKRU: u64 = 1 << 9;
    /// x87 and SSE, which FXSAVE has too.
    pub(super) const LEGACY: u64 = 1 | 2;
}

/// The register file of a dumped thread. `file` is its core image.
pub(crate) fn cpu_of(info: &Thread_info_x86, file: &str) -> Result<Cpu> {
    let regs = info.gpregs.get_or_default();
    let fpregs = info.fpregs.get_or_default();
    if regs.mode() != User_x86_regs_mode::NATIVE || regs.cs() != USER_CS {
        return Err(RecodeError::refused(file, "the thread runs 32-bit code"));
    }
    if fpregs.xsave.get_or_default().cet.get_or_default().ssp() != 0 {
        return Err(RecodeError::refused(
            file,
            "the thread has a shadow stack; start the program without CET",
        ));
    }
    if fpregs.st_space.len() != 32 || fpregs.xmm_space.len() != 64 {
        return Err(RecodeError::damaged(file, 0, "x87 or SSE registers are not those of FXSAVE"));
    }
    let mut cpu = Cpu::at_exec(regs.ip(), 0);
    cpu.gpr = gprs(regs);
    cpu.set_rflags(regs.flags());
    cpu.fs_base = regs.fs_base();
    cpu.gs_base = regs.gs_base();
    cpu.mxcsr = fpregs.mxcsr();
    cpu.x87 = x87_of(fpregs);
    for (n, lanes) in fpregs.xmm_space.chunks_exact(4).enumerate() {
        put_u32s(&mut cpu.vec[n][..16], lanes);
    }
    if let Some(xsave) = fpregs.xsave.as_ref() {
        take_xsave(&mut cpu, xsave);
    }
    Ok(cpu)
}

fn gprs(r: &User_x86_regs_entry) -> Gprs {
    [
        r.ax(),
        r.cx(),
        r.dx(),
        r.bx(),
        r.sp(),
        r.bp(),
        r.si(),
        r.di(),
        r.r8(),
        r.r9(),
        r.r10(),
        r.r11(),
        r.r12(),
        r.r13(),
        r.r14(),
        r.r15(),
    ]
}

/// FXSAVE has the x87 registers by their distance from the top of stack, the register file by number.
fn physical(status: u16, n: usize) -> usize {
    (usize::from(status >> 11) + n) % 8
}

fn x87_of(fpregs: &User_x86_fpregs_entry) -> X87 {
    let status = fpregs.swd() as u16;
    let mut x87 = X87 {
        control: fpregs.cwd() as u16,
        status,
        valid: fpregs.twd() as u8,
        opcode: fpregs.fop() as u16,
        instruction: fpregs.rip(),
        data: fpregs.rdp(),
        ..Cpu::at_exec(0, 0).x87
    };
    for (n, words) in fpregs.st_space.chunks_exact(4).enumerate() {
        let register = physical(status, n);
        x87.significand[register] = u64::from(words[0]) | u64::from(words[1]) << 32;
        x87.sign_exponent[register] = words[2] as u16;
    }
    x87
}

fn take_xsave(cpu: &mut Cpu, xsave: &User_x86_xsave_entry) {
    let has = |component: u64| xsave.xstate_bv() & component != 0;
    if has(component::YMM) {
        for (n, lanes) in xsave.ymmh_space.chunks_exact(4).enumerate().take(16) {
            put_u32s(&mut cpu.vec[n][16..32], lanes);
        }
    }
    if has(component::OPMASK) {
        cpu.opmask.iter_mut().zip(&xsave.opmask_reg).for_each(|(to, from)| *to = *from);
    }
    if has(component::ZMM_HI256) {
        for (n, lanes) in xsave.zmm_upper.chunks_exact(4).enumerate().take(16) {
            put_u64s(&mut cpu.vec[n][32..], lanes);
        }
    }
    if has(component::HI16_ZMM) {
        for (n, lanes) in xsave.hi16_zmm.chunks_exact(8).enumerate().take(16) {
            put_u64s(&mut cpu.vec[16 + n], lanes);
        }
    }
    if has(component::PKRU) {
        cpu.pkru = xsave.pkru.first().copied().unwrap_or(0);
    }
}

fn put_u32s(bytes: &mut [u8], words: &[u32]) {
    bytes.chunks_exact_mut(4).zip(words).for_each(|(to, from)| to.copy_from_slice(&from.to_le_bytes()));
}

fn put_u64s(bytes: &mut [u8], words: &[u64]) {
    bytes.chunks_exact_mut(8).zip(words).for_each(|(to, from)| to.copy_from_slice(&from.to_le_bytes()));
}

fn u32s(bytes: &[u8]) -> impl Iterator<Item = u32> {
    bytes.chunks_exact(4).map(|b| b.iter().rev().fold(0, |value, byte| value << 8 | u32::from(*byte)))
}

fn u64s(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.chunks_exact(8).map(|b| b.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
}

/// A thread with the registers of `cpu`. What a register file does not have (selectors, the XSAVE components that
/// its home CPU has, GDT entries) is that of `template`.
pub(crate) fn thread_info_of(cpu: &Cpu, clear_tid: u64, template: Thread_info_x86) -> Thread_info_x86 {
    let mut info = template;
    info.clear_tid_addr = Some(clear_tid);
    let regs = info.gpregs.mut_or_insert_default();
    set_gprs(regs, &cpu.gpr);
    regs.ip = Some(cpu.rip);
    regs.flags = Some(cpu.rflags());
    regs.fs_base = Some(cpu.fs_base);
    regs.gs_base = Some(cpu.gs_base);
    let fpregs = info.fpregs.mut_or_insert_default();
    fpregs.mxcsr = Some(cpu.mxcsr);
    set_x87(fpregs, &cpu.x87);
    fpregs.xmm_space = cpu.vec[..16].iter().flat_map(|vec| u32s(&vec[..16])).collect();
    set_xsave(fpregs.xsave.mut_or_insert_default(), cpu);
    info
}

/// Have in `info`, which `from` was made of, what is in `to` instead.
pub(crate) fn go_on(info: &mut Thread_info_x86, from: &Cpu, to: &Cpu) {
    if (to.vec, to.mxcsr) != (from.vec, from.mxcsr) {
        let clear_tid = info.clear_tid_addr();
        *info = thread_info_of(to, clear_tid, std::mem::take(info));
        let xsave = info.fpregs.mut_or_insert_default().xsave.mut_or_insert_default();
        xsave.xstate_bv = Some(xsave.xstate_bv() | component::LEGACY);
    }
    let regs = info.gpregs.mut_or_insert_default();
    set_gprs(regs, &to.gpr);
    regs.ip = Some(to.rip);
    regs.flags = Some(to.rflags());
}

fn set_gprs(r: &mut User_x86_regs_entry, gpr: &Gprs) {
    let to = [
        &mut r.ax, &mut r.cx, &mut r.dx, &mut r.bx, &mut r.sp, &mut r.bp, &mut r.si, &mut r.di, &mut r.r8,
        &mut r.r9, &mut r.r10, &mut r.r11, &mut r.r12, &mut r.r13, &mut r.r14, &mut r.r15,
    ];
    to.into_iter().zip(gpr).for_each(|(to, from)| *to = Some(*from));
}

fn set_x87(fpregs: &mut User_x86_fpregs_entry, x87: &X87) {
    fpregs.cwd = Some(x87.control.into());
    fpregs.swd = Some(x87.status.into());
    fpregs.twd = Some(x87.valid.into());
    fpregs.fop = Some(x87.opcode.into());
    fpregs.rip = Some(x87.instruction);
    fpregs.rdp = Some(x87.data);
    let words = |n| {
        let register = physical(x87.status, n);
        let significand = x87.significand[register];
        [significand as u32, (significand >> 32) as u32, x87.sign_exponent[register].into(), 0]
    };
    fpregs.st_space = (0..8).flat_map(words).collect();
}

/// A component is written where the template's CPU has it or where it holds anything.
fn set_xsave(xsave: &mut User_x86_xsave_entry, cpu: &Cpu) {
    let (low, high) = cpu.vec.split_at(16);
    let ymmh: Vec<u32> = low.iter().flat_map(|vec| u32s(&vec[16..32])).collect();
    let zmm_upper: Vec<u64> = low.iter().flat_map(|vec| u64s(&vec[32..])).collect();
    let hi16: Vec<u64> = high.iter().flat_map(|vec: &[u8; VEC_BYTES]| u64s(vec)).collect();
    let mut used = xsave.xstate_bv.unwrap_or(component::LEGACY);
    set_component(&mut xsave.ymmh_space, ymmh, component::YMM, &mut used);
    set_component(&mut xsave.opmask_reg, cpu.opmask.to_vec(), component::OPMASK, &mut used);
    set_component(&mut xsave.zmm_upper, zmm_upper, component::ZMM_HI256, &mut used);
    set_component(&mut xsave.hi16_zmm, hi16, component::HI16_ZMM, &mut used);
    set_component(&mut xsave.pkru, vec![cpu.pkru, 0], component::PKRU, &mut used);
    xsave.xstate_bv = Some(used);
}

fn set_component<T: PartialEq + Default>(to: &mut Vec<T>, from: Vec<T>, bit: u64, used: &mut u64) {
    let holds_anything = from.iter().any(|word| *word != T::default());
    if holds_anything {
        *used |= bit;
    }
    if holds_anything || !to.is_empty() {
        *to = from;
    }
}

/// A thread as a kernel starts it, with no more than every x86-64 CPU has: what a thread that was created abroad is
/// built on, and, with other registers, what runs the runtime on an x86-64 host.
pub(crate) fn fresh_thread_info() -> Thread_info_x86 {
    let mut regs = User_x86_regs_entry {
        orig_ax: Some(u64::MAX),
        cs: Some(USER_CS),
        ss: Some(USER_SS),
        ds: Some(0),
        es: Some(0),
        fs: Some(0),
        gs: Some(0),
        ip: Some(0),
        fs_base: Some(0),
        gs_base: Some(0),
        flags: Some(Cpu::at_exec(0, 0).rflags()),
        mode: Some(User_x86_regs_mode::NATIVE.into()),
        ..Default::default()
    };
    set_gprs(&mut regs, &[0; 16]);
    let mut fpregs = User_x86_fpregs_entry {
        mxcsr: Some(Cpu::at_exec(0, 0).mxcsr),
        mxcsr_mask: Some(0xffff),
        xmm_space: vec![0; 64],
        ..Default::default()
    };
    set_x87(&mut fpregs, &Cpu::at_exec(0, 0).x87);
    Thread_info_x86 {
        clear_tid_addr: Some(0),
        gpregs: MessageField::some(regs),
        fpregs: MessageField::some(fpregs),
        tls: (12..15).map(unused_gdt_entry).collect(),
        ..Default::default()
    }
}

/// A thread about to call `function(argument)` on the stack that ends at `stack_top`.
pub(crate) fn host_thread_info(
    function: u64,
    argument: u64,
    stack_top: u64,
    clear_tid: u64,
) -> Thread_info_x86 {
    let mut info = fresh_thread_info();
    info.clear_tid_addr = Some(clear_tid);
    let regs = info.gpregs.mut_or_insert_default();
    regs.ip = Some(function);
    regs.di = Some(argument);
    regs.sp = Some(stack_top);
    info
}

/// GDT entries 12 to 14 are the thread's to set (`GDT_ENTRY_TLS_MIN`); 64-bit programs leave them alone.
fn unused_gdt_entry(number: u32) -> User_desc_t {
    User_desc_t {
        entry_number: Some(number),
        base_addr: Some(0),
        limit: Some(0),
        seg_32bit: Some(false),
        contents_h: Some(false),
        contents_l: Some(false),
        read_exec_only: Some(true),
        limit_in_pages: Some(false),
        seg_not_present: Some(true),
        usable: Some(false),
        ..Default::default()
    }
}

/// `info` with nothing in its registers.
pub(crate) fn blank(info: Thread_info_x86) -> Thread_info_x86 {
    let mut info = info;
    if let Some(xsave) = info.fpregs.mut_or_insert_default().xsave.as_mut() {
        xsave.xstate_bv = Some(component::LEGACY);
    }
    info.gpregs.mut_or_insert_default().orig_ax = Some(u64::MAX);
    thread_info_of(&Cpu::at_exec(0, 0), 0, info)
}
