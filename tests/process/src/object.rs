//! A translated object, mapped.

use crate::guard::{self, Fault};
use crate::memory::Memory;
use crate::{copy, map};
use std::collections::HashMap;
use tranship_abi::block::{OBJECT_MAGIC, ObjectEntry, ObjectHeader, ThreadBlock};
use tranship_isa::interpret::settle;

/// A translated object; never unmapped.
#[derive(Debug)]
pub struct Object {
    header: u64,
    entries: HashMap<u64, u64>,
}

/// PT_LOAD.
const LOAD: u32 = 1;
/// Host stack that compiled code may use, in bytes.
const HOST_STACK: u64 = 512 << 10;

impl Object {
    /// Map the ELF file whose contents are `file`.
    pub fn load(file: &[u8]) -> Object {
        let u64_at = |at: usize| u64::from_le_bytes(file[at..at + 8].try_into().unwrap());
        let (entry, table) = (u64_at(24), u64_at(32) as usize);
        let count = usize::from(u16::from_le_bytes(file[56..58].try_into().unwrap()));
        let segments: Vec<[u64; 4]> = (0..count)
            .map(|n| table + 56 * n)
            .filter(|&at| u64_at(at) as u32 == LOAD)
            .map(|at| [u64_at(at + 8), u64_at(at + 16), u64_at(at + 32), u64_at(at + 40)])
            .collect();
        let end = segments.iter().map(|s| s[1] + s[3]).max().unwrap();
        let base = map(0, end, true);
        for [offset, address, bytes, _] in segments {
            copy(base + address, &file[offset as usize..][..bytes as usize]);
        }
        crate::host::code_was_written(base, end);
        let mut object = Object { header: base + entry, entries: HashMap::new() };
        assert_eq!(object.header().magic, OBJECT_MAGIC);
        object.entries = object.table().iter().map(|r| (r.guest, object.at(r.host))).collect();
        object
    }

    fn header(&self) -> &'static ObjectHeader {
        // SAFETY: mapped for good, laid out by the translator.
        unsafe { &*(self.header as *const ObjectHeader) }
    }

    fn at(&self, offset: i64) -> u64 {
        self.header.wrapping_add_signed(offset)
    }

    fn table(&self) -> &[ObjectEntry] {
        let table = self.at(self.header().entries) as *const ObjectEntry;
        // SAFETY: as the header says.
        let rows = unsafe { std::slice::from_raw_parts(table, self.header().entry_count as usize) };
        assert!(rows.is_sorted_by_key(|r| r.guest));
        rows
    }

    /// Host code of the entry at guest address `guest`, as linked.
    pub fn entry(&self, guest: u64) -> Option<u64> {
        self.entries.get(&guest).copied()
    }

    /// Host code that has a call interpreted.
    pub fn interpret_call(&self) -> u64 {
        self.at(self.header().interpret_call)
    }

    /// Tell the object the guest file's load bias.
    pub fn set_bias(&self, bias: u64) {
        // SAFETY: the object's own writable word.
        unsafe { *(self.at(self.header().bias_slot) as *mut u64) = bias };
    }

    /// Enter compiled code at host address `code`; it comes back when the guest returns or it unwinds.
    pub fn enter(&self, thread: *mut ThreadBlock, code: u64) {
        let enter = self.prepare(thread);
        // SAFETY: the object says that this is such a function.
        let enter: extern "C" fn(*mut ThreadBlock, u64) = unsafe { std::mem::transmute(enter) };
        enter(thread, code);
        leave(thread);
    }

    /// [`Object::enter`], but a memory fault of compiled code ends it. The thread block is then exact if the code can say
    /// the exact state, or as it happened to have it.
    pub fn enter_guarded(&self, thread: *mut ThreadBlock, code: u64) -> Result<(), Fault> {
        let result = guard::enter(self.header(), self.prepare(thread), thread, code);
        leave(thread);
        result
    }

    /// The function that enters, with everything ready for it.
    fn prepare(&self, thread: *mut ThreadBlock) -> u64 {
        // SAFETY: the caller's thread block, which compiled code does not use yet.
        let block = unsafe { &mut *thread };
        block.set_host_stack_limit(tranship_runtime::host::stack_pointer() - HOST_STACK);
        tranship_runtime::host::fp_apply(block.state.cpu.mxcsr);
        self.at(self.header().enter)
    }
}

/// MXCSR as compiled Rust wants it.
const NEUTRAL_MXCSR: u32 = 0x1f80;

fn leave(thread: *mut ThreadBlock) {
    // SAFETY: the caller's thread block, which compiled code does not use any more.
    arrive(unsafe { &mut *thread });
    tranship_runtime::host::fp_apply(NEUTRAL_MXCSR);
}

/// Compiled code keeps some of the state otherwise: have it in the thread block, as the runtime has.
pub(crate) fn arrive(block: &mut ThreadBlock) {
    let cpu = &mut block.state.cpu;
    tranship_runtime::host::fp_collect(&mut cpu.mxcsr);
    settle(cpu, &mut Memory, &mut block.lazy);
}
