//! An object whose entries are run one at a time, each on a state of its own, to see what it leaves.

use crate::guard::{self, Fault};
use crate::memory::Memory;
use crate::object::{Object, arrive};
use crate::services::{new_thread, services};
use tranship_abi::block::{RuntimeCalls, ThreadBlock};
use tranship_isa::interpret::{self, Step};
use tranship_isa::x86_64::{Cpu, decode};

/// An object, ready to run any of its entries. There is one thread, and guest memory is what its user maps.
#[derive(Debug)]
pub struct Chamber {
    object: Object,
    thread: *mut ThreadBlock,
}

/// How compiled code ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// It left for a guest address that the object has no code for; registers are exact.
    Left,
    /// It raised a trap, by its number in [`tranship_isa::machine::Trap`]; registers are exact.
    Trapped(u32),
    /// It touched memory that is not there; registers are exact if it can say the exact state.
    Faulted(Fault),
}

impl Chamber {
    /// Load the object whose file is `object`.
    pub fn new(object: &[u8]) -> Chamber {
        let calls = RuntimeCalls {
            lookup: look_up_nothing as *const () as u64,
            interpret_one: interpret_one as *const () as u64,
            trap: note_trap as *const () as u64,
            ..services()
        };
        Chamber { object: Object::load(object), thread: new_thread(calls) }
    }

    /// Whether the object has an entry at guest address `linked`.
    pub fn has(&self, linked: u64) -> bool {
        self.object.entry(linked).is_some()
    }

    /// Run the entry at guest address `linked` on `cpu`, which says where the guest believes it to be; its code is
    /// `code`.
    pub fn run(&mut self, linked: u64, code: &[u8], cpu: &mut Cpu) -> Ended {
        let entry = self.object.entry(linked).unwrap();
        self.object.set_bias(cpu.rip.wrapping_sub(linked));
        // SAFETY: ours alone.
        let block = unsafe { &mut *self.thread };
        block.state.cpu = *cpu;
        block.runtime_private[TRAP] = NO_TRAP;
        block.runtime_private[CODE..CODE + 3].copy_from_slice(&[
            cpu.rip,
            code.as_ptr() as u64,
            code.len() as u64,
        ]);
        let result = self.object.enter_guarded(self.thread, entry);
        *cpu = block.state.cpu;
        match (result, block.runtime_private[TRAP]) {
            (Err(fault), _) => Ended::Faulted(fault),
            (Ok(()), NO_TRAP) => Ended::Left,
            (Ok(()), trap) => Ended::Trapped(trap as u32),
        }
    }
}

/// Where in the block's private words [`note_trap`] leaves the trap.
const TRAP: usize = 0;
const NO_TRAP: u64 = u64::MAX;
/// Where the guest believes its code to be, where that is, and how many bytes it has.
const CODE: usize = 1;

extern "C" fn note_trap(thread: *mut ThreadBlock, trap: u32) -> u64 {
    // SAFETY: compiled code passes its own block.
    unsafe { (*thread).runtime_private[TRAP] = trap.into() };
    1
}

/// Interpret from the instruction at the guest PC to the end of the code, as there is no entry on the way; or nothing, where
/// that instruction has faulted.
extern "C" fn interpret_one(thread: *mut ThreadBlock) -> u64 {
    if guard::has_faulted() {
        return 1;
    }
    // SAFETY: compiled code passes its own block, in which `run` has left where the code is.
    let (block, code) = unsafe {
        let block = &mut *thread;
        let [_, at, len] = block.runtime_private[CODE..CODE + 3] else { unreachable!() };
        (block, std::slice::from_raw_parts(at as *const u8, len as usize))
    };
    arrive(block);
    let cpu = &mut block.state.cpu;
    let start = block.runtime_private[CODE];
    while let Some(rest) = code.get(cpu.rip.wrapping_sub(start) as usize..).filter(|rest| !rest.is_empty()) {
        let insn = decode(rest, cpu.rip).unwrap();
        match interpret::step(cpu, &mut Memory, &insn) {
            Step::Next | Step::Jumped => {}
            Step::Trapped(trap) => {
                block.runtime_private[TRAP] = trap as u64;
                return 1;
            }
            other => panic!("{insn:?} interpreted: {other:?}"),
        }
    }
    tranship_runtime::host::fp_apply(cpu.mxcsr);
    0
}

/// Nothing is compiled but what was entered: whatever goes elsewhere leaves.
extern "C" fn look_up_nothing(_thread: *mut ThreadBlock, _guest: u64) -> u64 {
    0
}
