//! A translated process in small, inside this one, for tests on an x86-64 host: the guest's segments and its
//! object are mapped here, system calls are made as they are, and the interpreter runs what is not compiled.
#![allow(dead_code, unreachable_pub)]

use tranship_abi::block::{BranchCacheEntry, RuntimeCalls, ThreadBlock, branch_cache_offset};
use tranship_isa::interpret::{self, Step};
use tranship_isa::x86_64::{Cpu, decode};
use tranship_tests_process::{Memory, Object, copy, map, new_thread, services};
use tranship_translate::elf::GuestElf;

/// A guest program with its object, ready to run; never unmapped.
pub struct Process {
    pub thread: *mut ThreadBlock,
    object: Object,
    bias: u64,
    brk: u64,
    brk_end: u64,
    /// Set when the guest exits.
    pub exited: Option<i32>,
    /// Instructions interpreted.
    pub interpreted: u64,
    /// Where compiled code was entered from outside.
    pub entered: u64,
    verbose: bool,
}

impl Process {
    /// Map the object and a thread block, no guest memory.
    pub fn new(object: &[u8], bias: u64) -> Box<Process> {
        let object = Object::load(object);
        object.set_bias(bias);
        let thread = new_thread(RuntimeCalls {
            syscall: syscall as *const () as u64,
            safepoint: safepoint as *const () as u64,
            interpret_call: interpret_call as *const () as u64,
            lookup: lookup as *const () as u64,
            interpret_one: interpret_one as *const () as u64,
            trap: trap as *const () as u64,
            ..services()
        });
        let mut process = Box::new(Process {
            thread,
            object,
            bias,
            brk: 0,
            brk_end: 0,
            exited: None,
            interpreted: 0,
            entered: 0,
            verbose: std::env::var_os("HARNESS_VERBOSE").is_some(),
        });
        process.block().process = &raw mut *process as u64;
        process
    }

    /// A whole static program: memory, heap, stack with arguments and auxiliary vector.
    pub fn load(elf: &GuestElf, object: &[u8], arguments: &[&str]) -> Box<Process> {
        let end = elf.segments.iter().map(|s| s.address + s.memory_size).max().unwrap();
        let fixed = elf.segments[0].address >= 0x10000;
        let start = elf.segments[0].address & !0xfff;
        const HEAP: u64 = 1 << 30;
        let top = end.next_multiple_of(4096);
        let bias = if fixed {
            map(start, top - start + HEAP, false);
            0
        } else {
            map(0, top - start + HEAP, false) - start
        };
        let mut process = Process::new(object, bias);
        for segment in &elf.segments {
            copy(segment.address + bias, &elf.file()[segment.file.clone()]);
        }
        process.brk = top + bias;
        process.brk_end = top + bias + HEAP;
        let stack = map(0, 8 << 20, false) + (8 << 20);
        let rsp = build_stack(elf, bias, stack, arguments);
        process.block().state.cpu = Cpu::at_exec(elf.entry.unwrap() + bias, rsp);
        process
    }

    pub fn block<'a>(&self) -> &'a mut ThreadBlock {
        // SAFETY: one thread, and compiled code runs only inside `run`.
        unsafe { &mut *self.thread }
    }

    fn cpu<'a>(&self) -> &'a mut Cpu {
        &mut self.block().state.cpu
    }

    /// Enter compiled code at host address `code`.
    pub fn enter(&mut self, code: u64) {
        self.entered += 1;
        self.object.enter(self.thread, code);
    }

    /// Host code of the entry at guest address `guest`.
    pub fn entry(&self, guest: u64) -> Option<u64> {
        self.object.entry(guest.wrapping_sub(self.bias))
    }

    /// Run until the guest exits; its exit code.
    pub fn run(&mut self) -> i32 {
        loop {
            if let Some(code) = self.exited {
                return code;
            }
            let rip = self.cpu().rip;
            match self.entry(rip) {
                Some(code) => {
                    if self.verbose {
                        eprintln!("enter {rip:#x}");
                    }
                    self.enter(code);
                }
                None => {
                    self.step();
                }
            }
        }
    }

    fn step(&mut self) -> Step {
        let rip = self.cpu().rip;
        // SAFETY: guest code is mapped, with something behind it.
        let code = unsafe { std::slice::from_raw_parts(rip as *const u8, 15) };
        let insn = decode(code, rip).unwrap();
        self.interpreted += 1;
        let step = interpret::step(self.cpu(), &mut Memory, &insn);
        if self.verbose {
            eprintln!("interpret {rip:#x} {:?} {step:?}", insn.mnemonic());
        }
        match step {
            Step::Syscall => {
                syscall(self.thread);
            }
            Step::Trapped(_) | Step::Faulted(_) | Step::Absent => {
                panic!("{rip:#x}: {:?}: {step:?}", insn.mnemonic())
            }
            _ => {}
        }
        step
    }
}

fn build_stack(elf: &GuestElf, bias: u64, top: u64, arguments: &[&str]) -> u64 {
    let mut at = top - 64;
    let mut strings = Vec::new();
    for argument in arguments {
        at -= argument.len() as u64 + 1;
        copy(at, argument.as_bytes());
        strings.push(at);
    }
    at &= !0xf;
    let headers = elf.file()[32..40].try_into().map(u64::from_le_bytes).unwrap();
    let count = u64::from(u16::from_le_bytes(elf.file()[56..58].try_into().unwrap()));
    let random = at - 16;
    let first = elf.segments[0].address + bias;
    let mut words = vec![arguments.len() as u64];
    words.extend(&strings);
    words.extend([0, 0]);
    let entry = elf.entry.unwrap() + bias;
    words.extend([3, first + headers, 4, 56, 5, count, 6, 4096, 9, entry, 25, random, 23, 0, 0, 0]);
    let rsp = (random - 8 * words.len() as u64) & !0xf;
    for (n, word) in words.iter().enumerate() {
        copy(rsp + 8 * n as u64, &word.to_le_bytes());
    }
    rsp
}

fn process<'a>(thread: *mut ThreadBlock) -> &'a mut Process {
    // SAFETY: `Process::new` has put it there, and there is one thread.
    unsafe { &mut *((*thread).process as *mut Process) }
}

extern "C" fn syscall(thread: *mut ThreadBlock) -> u64 {
    let process = process(thread);
    let cpu = process.cpu();
    let [rax, rdi, rsi, rdx, r10, r8, r9] = [0, 7, 6, 2, 10, 8, 9].map(|n| cpu.gpr[n]);
    if process.verbose {
        eprintln!("syscall {rax} {rdi:#x} {rsi:#x} {rdx:#x}");
    }
    let result: i64 = match rax {
        12 => {
            if rdi >= process.brk && rdi <= process.brk_end {
                process.brk = rdi;
            }
            process.brk as i64
        }
        13 | 131 | 273 | 11 => 0,
        158 => {
            assert_eq!(rdi, 0x1002, "arch_prctl");
            cpu.fs_base = rsi;
            0
        }
        334 | 9 if rax == 334 => -38,
        60 | 231 => {
            process.exited = Some(rdi as i32);
            return 1;
        }
        // SAFETY: the guest is a test program that does nothing to this process.
        _ => unsafe {
            let result = libc::syscall(rax as i64, rdi, rsi, rdx, r10, r8, r9);
            if result == -1 { -i64::from(*libc::__errno_location()) } else { result }
        },
    };
    cpu.gpr[0] = result as u64;
    0
}

extern "C" fn safepoint(_thread: *mut ThreadBlock) -> u64 {
    1
}

/// Interpret until the frame that was called has returned.
extern "C" fn interpret_call(thread: *mut ThreadBlock) -> u64 {
    let process = process(thread);
    let frame = process.cpu().gpr[4];
    loop {
        let step = process.step();
        if process.exited.is_some() {
            return 1;
        }
        if step == Step::Returned && process.cpu().gpr[4] > frame {
            return 0;
        }
        if let Some(code) = process.entry(process.cpu().rip).filter(|_| matches!(step, Step::Called { .. })) {
            let expected = process.cpu().gpr[4];
            process.enter(code);
            if process.exited.is_some() || process.cpu().gpr[4] <= expected {
                return 1;
            }
        }
    }
}

extern "C" fn lookup(thread: *mut ThreadBlock, guest: u64) -> u64 {
    let process = process(thread);
    let host = process.entry(guest).unwrap_or_else(|| process.object.interpret_call());
    let line = branch_cache_offset(guest) as usize / size_of::<BranchCacheEntry>();
    process.block().branch_cache[line] = BranchCacheEntry { guest, host };
    host
}

extern "C" fn interpret_one(thread: *mut ThreadBlock) -> u64 {
    process(thread).step();
    0
}

extern "C" fn trap(thread: *mut ThreadBlock, trap: u32) -> u64 {
    panic!("trap {trap} at {:#x}", process(thread).cpu().rip)
}
