//! Where things are in the thread block, as compiled code addresses them, and the *slots*: the pieces of the
//! register file that live in values instead of memory between two boundaries of a region.

use std::mem::offset_of;
use tranship_abi::block::{BranchCacheEntry, RuntimeCalls, ThreadBlock, ThreadState};
use tranship_isa::x86_64::{Cpu, Flag, LazyFlags, LazyState, VEC_BYTES, VEC_REGS};

const CPU: usize = offset_of!(ThreadBlock, state) + offset_of!(ThreadState, cpu);
const CLEARED_HALVES: usize = offset_of!(ThreadBlock, lazy) + offset_of!(LazyState, cleared);
const LAZY_FLAGS: usize = offset_of!(ThreadBlock, lazy) + offset_of!(LazyState, flags);

/// Offset of the guest PC.
pub(crate) const RIP: usize = CPU + offset_of!(Cpu, rip);
/// Offset of the flags that are kept together.
pub(crate) const OTHER_FLAGS: usize = CPU + offset_of!(Cpu, other_flags);
/// Offset of the FS base.
pub(crate) const FS_BASE: usize = CPU + offset_of!(Cpu, fs_base);
/// Offset of the GS base.
pub(crate) const GS_BASE: usize = CPU + offset_of!(Cpu, gs_base);
/// Offset of mask register k0; the others follow.
pub(crate) const OPMASK: usize = CPU + offset_of!(Cpu, opmask);
/// Offset of MXCSR.
pub(crate) const MXCSR: usize = CPU + offset_of!(Cpu, mxcsr);
/// Offset of the safepoint request.
pub(crate) const PENDING: usize = offset_of!(ThreadBlock, pending);
/// Offset of the lowest host stack address allowed.
pub(crate) const HOST_STACK_LIMIT: usize = offset_of!(ThreadBlock, host_stack_limit);
/// Offsets of what the status flags follow from: the rule, the left operand and the right one.
pub(crate) const FLAGS_FOLLOW: [usize; 3] = [
    LAZY_FLAGS + offset_of!(LazyFlags, rule),
    LAZY_FLAGS + offset_of!(LazyFlags, left),
    LAZY_FLAGS + offset_of!(LazyFlags, right),
];
/// Offset of the branch cache.
pub(crate) const BRANCH_CACHE: usize = offset_of!(ThreadBlock, branch_cache);
/// Offset of the guest address in a line of the branch cache.
pub(crate) const LINE_GUEST: usize = offset_of!(BranchCacheEntry, guest);
/// Offset of the host address in a line of the branch cache.
pub(crate) const LINE_HOST: usize = offset_of!(BranchCacheEntry, host);

/// A function of the runtime that compiled code calls, by its offset in the thread block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RuntimeCall(usize);

macro_rules! runtime_calls {
    ($($name:ident = $field:ident),+) => {
        impl RuntimeCall {
            $(pub(crate) const $name: RuntimeCall =
                RuntimeCall(offset_of!(ThreadBlock, calls) + offset_of!(RuntimeCalls, $field));)+
        }
    };
}

runtime_calls! {
    SYSCALL = syscall, SAFEPOINT = safepoint, INTERPRET_CALL = interpret_call, LOOKUP = lookup,
    COPROCESSOR = coprocessor, INTERPRET_ONE = interpret_one, TRAP = trap, FP_COLLECT = fp_collect,
    FP_APPLY = fp_apply
}

impl RuntimeCall {
    /// Where in the thread block its address is.
    pub(crate) const fn offset(self) -> usize {
        self.0
    }
}

/// A piece of the register file: a general register, a flag, 16 bytes of a vector register, or
/// [`LazyState::cleared`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord, Hash)]
pub(crate) struct Slot(u8);

const GPRS: usize = 16;
const FLAGS: usize = Flag::ALL.len();
const VEC_PARTS: usize = VEC_BYTES / 16;
const FIRST_FLAG: usize = GPRS;
const FIRST_VEC: usize = GPRS + FLAGS;
const CLEARED: usize = FIRST_VEC + VEC_REGS * VEC_PARTS;

/// What a slot holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SlotKind {
    /// 64 bits.
    Gpr,
    /// One bit in a byte.
    Flag,
    /// 128 bits.
    Vec,
    /// 64 bits.
    ClearedHalves,
}

impl Slot {
    /// How many there are.
    pub(crate) const COUNT: usize = CLEARED + 1;

    /// General register `number`.
    pub(crate) const fn gpr(number: u8) -> Slot {
        Slot(number)
    }

    /// A flag.
    pub(crate) const fn flag(flag: Flag) -> Slot {
        Slot(FIRST_FLAG as u8 + flag as u8)
    }

    /// 16 bytes of vector register `index`, lowest first.
    pub(crate) const fn vec(index: u32, part: u32) -> Slot {
        Slot((FIRST_VEC as u32 + index * VEC_PARTS as u32 + part) as u8)
    }

    /// [`LazyState::cleared`].
    pub(crate) const CLEARED: Slot = Slot(CLEARED as u8);

    /// All of them.
    pub(crate) fn all() -> impl Iterator<Item = Slot> {
        (0..Slot::COUNT).map(|n| Slot(n as u8))
    }

    /// Position in [`Slot::all`].
    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }

    /// What it holds.
    pub(crate) const fn kind(self) -> SlotKind {
        match self.0 as usize {
            0..FIRST_FLAG => SlotKind::Gpr,
            FIRST_FLAG..FIRST_VEC => SlotKind::Flag,
            FIRST_VEC..CLEARED => SlotKind::Vec,
            _ => SlotKind::ClearedHalves,
        }
    }

    /// Its bytes.
    #[cfg(test)]
    const fn bytes(self) -> usize {
        match self.kind() {
            SlotKind::Gpr | SlotKind::ClearedHalves => 8,
            SlotKind::Flag => 1,
            SlotKind::Vec => 16,
        }
    }

    /// Where it is in the thread block.
    pub(crate) const fn offset(self) -> usize {
        let n = self.0 as usize;
        match self.kind() {
            SlotKind::Gpr => CPU + offset_of!(Cpu, gpr) + 8 * n,
            SlotKind::Flag => CPU + offset_of!(Cpu, flags) + (n - FIRST_FLAG),
            SlotKind::Vec => CPU + offset_of!(Cpu, vec) + 16 * (n - FIRST_VEC),
            SlotKind::ClearedHalves => CLEARED_HALVES,
        }
    }

    /// The slot that `offset` in the thread block is in.
    pub(crate) fn containing(offset: usize) -> Option<Slot> {
        let within = |start: usize, bytes: usize, count: usize| {
            offset.checked_sub(start).map(|o| o / bytes).filter(|&n| n < count)
        };
        let gpr = within(CPU + offset_of!(Cpu, gpr), 8, GPRS);
        let flag = within(CPU + offset_of!(Cpu, flags), 1, FLAGS).map(|n| n + FIRST_FLAG);
        let vec = within(CPU + offset_of!(Cpu, vec), 16, VEC_REGS * VEC_PARTS).map(|n| n + FIRST_VEC);
        let cleared = within(CLEARED_HALVES, 8, 1).map(|n| n + CLEARED);
        gpr.or(flag).or(vec).or(cleared).map(|n| Slot(n as u8))
    }
}

/// A set of slots.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct SlotSet([u64; Slot::COUNT.div_ceil(64)]);

impl SlotSet {
    pub(crate) fn insert(&mut self, slot: Slot) {
        self.0[slot.index() / 64] |= 1 << (slot.index() % 64);
    }

    pub(crate) fn remove(&mut self, slot: Slot) {
        self.0[slot.index() / 64] &= !(1 << (slot.index() % 64));
    }

    pub(crate) fn contains(self, slot: Slot) -> bool {
        self.0[slot.index() / 64] & 1 << (slot.index() % 64) != 0
    }

    fn zip(self, other: SlotSet, f: impl Fn(u64, u64) -> u64) -> SlotSet {
        SlotSet(std::array::from_fn(|i| f(self.0[i], other.0[i])))
    }

    pub(crate) fn union(self, other: SlotSet) -> SlotSet {
        self.zip(other, |a, b| a | b)
    }

    pub(crate) fn minus(self, other: SlotSet) -> SlotSet {
        self.zip(other, |a, b| a & !b)
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = Slot> {
        Slot::all().filter(move |&s| self.contains(s))
    }
}

impl FromIterator<Slot> for SlotSet {
    fn from_iter<I: IntoIterator<Item = Slot>>(slots: I) -> SlotSet {
        let mut set = SlotSet::default();
        slots.into_iter().for_each(|s| set.insert(s));
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_slot_is_found_at_its_offset() {
        for slot in Slot::all() {
            assert_eq!(Slot::containing(slot.offset()), Some(slot));
            assert_eq!(Slot::containing(slot.offset() + slot.bytes() - 1), Some(slot));
        }
        assert_eq!(Slot::containing(RIP), None);
        assert_eq!(Slot::containing(MXCSR), None);
    }
}
