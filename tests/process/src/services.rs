//! What compiled code calls ([`RuntimeCalls`]), as far as it needs no more than the thread block.

use crate::map;
use tranship_abi::block::{BRANCH_CACHE_ENTRIES, BranchCacheEntry, RuntimeCalls, ThreadBlock};
use tranship_isa::x86_64::coprocessor;

/// Coprocessor and floating-point control as the runtime has them. The others end the test: whoever expects them
/// brings them along.
pub fn services() -> RuntimeCalls {
    let unexpected = unexpected as *const () as u64;
    RuntimeCalls {
        syscall: unexpected,
        safepoint: unexpected,
        interpret_call: unexpected,
        lookup: unexpected,
        coprocessor: run_coprocessor as *const () as u64,
        interpret_one: unexpected,
        trap: unexpected,
        fp_collect: fp_collect as *const () as u64,
        fp_apply: fp_apply as *const () as u64,
        reserved: [0; 7],
    }
}

/// A thread block for good, with the functions that compiled code calls.
pub fn new_thread(calls: RuntimeCalls) -> *mut ThreadBlock {
    let thread = map(0, size_of::<ThreadBlock>() as u64, false) as *mut ThreadBlock;
    // SAFETY: zero bytes are a thread block; it is ours alone.
    unsafe {
        (*thread).calls = calls;
        (*thread).branch_cache = [BranchCacheEntry::EMPTY; BRANCH_CACHE_ENTRIES];
    }
    thread
}

extern "C" fn unexpected(_thread: *mut ThreadBlock) -> u64 {
    eprintln!("compiled code called a function of the runtime that this test does not have");
    std::process::abort()
}

extern "C" fn run_coprocessor(thread: *mut ThreadBlock, operation: u32, operands: *mut [u128; 2]) {
    // SAFETY: compiled code passes its own block and two operands on its stack.
    let (cpu, operands) = unsafe { (&mut (*thread).state.cpu, &mut *operands) };
    operands[0] = match operation {
        coprocessor::TIMESTAMP => tranship_runtime::host::timestamp().into(),
        _ => coprocessor::run(cpu, operation, operands[0], operands[1]),
    };
}

extern "C" fn fp_collect(thread: *mut ThreadBlock) {
    // SAFETY: compiled code passes its own block.
    tranship_runtime::host::fp_collect(unsafe { &mut (*thread).state.cpu.mxcsr });
}

extern "C" fn fp_apply(thread: *mut ThreadBlock) {
    // SAFETY: compiled code passes its own block.
    tranship_runtime::host::fp_apply(unsafe { (*thread).state.cpu.mxcsr });
}
