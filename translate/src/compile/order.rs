//! The guest's order of memory accesses on hosts that have a weaker one. x86-64 is *total store order*: only a store and
//! a later load of another address are seen the other way round. So a load is ordered before everything behind it and a
//! store behind everything before it, by barriers, which any alignment and width can have; atomic operations are the
//! host's own. Accesses that are private to the thread ([`Memory::Frame`](crate::ir::Memory)) are left alone.

use crate::ir::{Ir, Memory};
use inkwell::values::{CallSiteValue, InstructionOpcode, InstructionValue};

/// `dmb ishld`: loads before it are ordered before all accesses behind it.
const LOADS_FIRST: u64 = 0b1001;
/// `dmb ishst`: stores before it are ordered before stores behind it.
const STORES_FIRST: u64 = 0b1010;
/// `dmb ish`: all accesses before it are ordered before all behind it.
const ALL_FIRST: u64 = 0b1011;

/// Add arm64's barriers to the module, which is as it goes to the code generator. An atomic operation of x86-64's has
/// one on both sides, even where it changes nothing: what LLVM makes of it is ordered among atomic operations only.
pub(super) fn enforce_on_aarch64(ir: &Ir<'_>) {
    for access in ir.instructions() {
        match access.get_opcode() {
            InstructionOpcode::Load if is_shared(ir, access) => barrier_behind(ir, access, LOADS_FIRST),
            InstructionOpcode::Store if is_shared(ir, access) => barrier_before(ir, access, STORES_FIRST),
            InstructionOpcode::Load | InstructionOpcode::Store => {}
            InstructionOpcode::AtomicRMW | InstructionOpcode::AtomicCmpXchg => barriers_around(ir, access),
            _ if is_masked(access) => barriers_around(ir, access),
            _ => {}
        }
    }
}

fn is_shared<'c>(ir: &Ir<'c>, access: InstructionValue<'c>) -> bool {
    access.get_volatile() == Ok(true) && ir.is_tagged(access, Memory::Guest)
}

/// A vector load or store of some lanes.
fn is_masked(access: InstructionValue<'_>) -> bool {
    let Ok(call) = CallSiteValue::try_from(access) else { return false };
    let function = call.get_called_fn_value();
    function.is_some_and(|function| function.get_name().to_bytes().starts_with(b"llvm.masked."))
}

fn barriers_around<'c>(ir: &Ir<'c>, access: InstructionValue<'c>) {
    barrier_before(ir, access, ALL_FIRST);
    barrier_behind(ir, access, ALL_FIRST);
}

fn barrier_before<'c>(ir: &Ir<'c>, access: InstructionValue<'c>, kind: u64) {
    ir.builder.position_before(&access);
    ir.intrinsic("llvm.aarch64.dmb", &[], &[ir.context.i32_type().const_int(kind, false).into()]);
}

fn barrier_behind<'c>(ir: &Ir<'c>, access: InstructionValue<'c>, kind: u64) {
    barrier_before(ir, access.get_next_instruction().expect("an access ends no block"), kind);
}
