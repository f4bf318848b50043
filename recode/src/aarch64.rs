//! arm64 threads, as far as a host needs them: the one that enters the runtime.

use crate::proto::core_aarch64::{
    Thread_info_aarch64, User_aarch64_fpsimd_context_entry, User_aarch64_regs_entry,
};
use protobuf::MessageField;

/// A thread about to call `function(argument)` on the stack that ends at `stack_top`; EL0, flags and FP state zero.
pub(crate) fn host_thread_info(
    function: u64,
    argument: u64,
    stack_top: u64,
    clear_tid: u64,
) -> Thread_info_aarch64 {
    let mut regs = vec![0; 31];
    regs[0] = argument;
    let gpregs = User_aarch64_regs_entry {
        regs,
        sp: Some(stack_top),
        pc: Some(function),
        pstate: Some(0),
        ..Default::default()
    };
    let fpsimd = User_aarch64_fpsimd_context_entry {
        vregs: vec![0; 64],
        fpsr: Some(0),
        fpcr: Some(0),
        ..Default::default()
    };
    Thread_info_aarch64 {
        clear_tid_addr: Some(clear_tid),
        tls: Some(0),
        gpregs: MessageField::some(gpregs),
        fpsimd: MessageField::some(fpsimd),
        ..Default::default()
    }
}
