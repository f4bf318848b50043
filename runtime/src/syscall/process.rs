//! What is x86-64's own about a process: segment bases, prctl(2) options, the machine's name.

use super::{Call, Outcome, attempt};
use crate::linux::Errno;
use crate::memory::{GUEST_END, access};
use crate::seccomp;
use tranship_abi::syscall::nr;

pub(super) fn arch_prctl(call: &Call) -> Outcome {
    const SET_GS: u64 = 0x1001;
    const SET_FS: u64 = 0x1002;
    const GET_FS: u64 = 0x1003;
    const GET_GS: u64 = 0x1004;
    const GET_CPUID: u64 = 0x1011;
    let cpu = call.thread.cpu();
    let [operation, value, ..] = call.args;
    match operation {
        SET_FS | SET_GS if value >= GUEST_END => return Errno::EPERM.into(),
        SET_FS => cpu.fs_base = value,
        SET_GS => cpu.gs_base = value,
        GET_FS => attempt!(access::write(value, &cpu.fs_base)),
        GET_GS => attempt!(access::write(value, &cpu.gs_base)),
        GET_CPUID => return Outcome::Done(1),
        _ => return Errno::EINVAL.into(),
    }
    Outcome::Done(0)
}

/// Options that are about the process and no machine; all others are as if the kernel were too old for them.
pub(super) fn prctl(call: &Call) -> Outcome {
    const GET_SECCOMP: i32 = 21;
    const SET_SECCOMP: i32 = 22;
    const GET_TSC: i32 = 25;
    const TSC_ENABLED: u32 = 1;
    match call.int(0) {
        // Death signal, dumpable, keepcaps, timing, name.
        1..=4 | 7 | 8 | 13..=16 => {}
        GET_SECCOMP => return Outcome::Done(seccomp::mode(call.thread)),
        SET_SECCOMP => return set_seccomp(call),
        GET_TSC => return access::write(call.args[1], &TSC_ENABLED).map(|()| 0).into(),
        // Bounding set, securebits, timer slack, machine check policy.
        23 | 24 | 27..=30 | 33 | 34 => {}
        // Subreaper, no_new_privs, tid address, huge pages, ambient capabilities, speculation, core scheduling.
        36..=42 | 47 | 52 | 53 | 62 => {}
        // I/O flusher, merging of memory.
        57 | 58 | 67 | 68 => {}
        // Names of anonymous mappings, who may trace, the auxiliary vector.
        0x5356_4d41 | 0x5961_6d61 | 0x4155_5856 => {}
        _ => return Errno::EINVAL.into(),
    }
    call.make(nr::prctl, call.args)
}

/// prctl(PR_SET_SECCOMP), in terms of seccomp(2).
fn set_seccomp(call: &Call) -> Outcome {
    const STRICT: u64 = 1;
    const FILTER: u64 = 2;
    match call.args[1] {
        STRICT => seccomp::set_strict(call.thread),
        FILTER => seccomp::set_filter(call.thread, 0, call.args[2]),
        _ => Err(Errno::EINVAL),
    }
    .into()
}

pub(super) fn seccomp(call: &Call) -> Outcome {
    const STRICT: u32 = 0;
    const FILTER: u32 = 1;
    const ACTION_AVAILABLE: u32 = 2;
    let [_, flags, argument, ..] = call.args;
    match call.uint(0) {
        STRICT if flags == 0 && argument == 0 => seccomp::set_strict(call.thread),
        FILTER => seccomp::set_filter(call.thread, flags & u64::from(u32::MAX), argument),
        ACTION_AVAILABLE if flags == 0 => seccomp::is_available(argument),
        _ => Err(Errno::EINVAL),
    }
    .into()
}

/// PER_LINUX with any flags but READ_IMPLIES_EXEC, which would give the host rights that we keep.
pub(super) fn personality(call: &Call) -> Outcome {
    const QUERY: u32 = u32::MAX;
    const READ_IMPLIES_EXEC: u32 = 0x40_0000;
    let wanted = call.uint(0);
    if wanted != QUERY && (wanted & 0xff != 0 || wanted & READ_IMPLIES_EXEC != 0) {
        return Errno::EINVAL.into();
    }
    call.make(nr::personality, call.args)
}

/// `struct new_utsname` has six fields of 65 bytes; the fifth is the machine.
pub(super) fn uname(call: &Call) -> Outcome {
    const FIELD: usize = 65;
    const MACHINE: &[u8] = b"x86_64\0";
    let mut names = [0_u8; 6 * FIELD];
    let outcome = call.make(nr::uname, [names.as_mut_ptr() as u64, 0, 0, 0, 0, 0]);
    if outcome == Outcome::Done(0) {
        names[4 * FIELD..5 * FIELD].fill(0);
        names[4 * FIELD..][..MACHINE.len()].copy_from_slice(MACHINE);
        attempt!(access::write(call.args[0], &names));
    }
    outcome
}
