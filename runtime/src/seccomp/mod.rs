//! The guest's own seccomp(2): its filters judge the guest's calls, in the guest's numbers, before the runtime looks at
//! them. The host's kernel knows nothing of them: what the runtime does for the guest is not for the guest to judge.

mod program;

use crate::hole;
use crate::linux::{self, Errno};
use crate::memory::{access, lock};
use crate::signal::fault;
use crate::thread::{self, Thread};
use core::sync::atomic::{AtomicU64, Ordering};
use program::Data;
use tranship_abi::seccomp::{Head, MAX_INSNS, MAX_WORDS, STRICT};
use tranship_abi::signal::SigInfo;
use tranship_abi::signal::number::{SIGKILL, SIGSYS};
use tranship_abi::syscall::nr;

/// What each filter of a thread counts more than it has instructions, towards [`MAX_WORDS`].
const EXTRA: usize = 4;
/// SECCOMP_FILTER_FLAG_LOG.
const LOG: u64 = 2;
/// AUDIT_ARCH_X86_64.
const MACHINE: u32 = 0xc000_003e;

/// How many words of the store are in use: those are not written any more, those above only under the lock of mappings.
fn used() -> &'static AtomicU64 {
    // SAFETY: mapped for the process's life.
    unsafe { &(*hole::filters()).used }
}

/// The first word of the store.
fn words() -> *mut u64 {
    // SAFETY: as above; no reference is made.
    unsafe { &raw mut (*hole::filters()).words }.cast()
}

/// Filter `id` and its head.
fn filter(id: u32) -> Option<(&'static [u64], Head)> {
    let used = (used().load(Ordering::Acquire) as usize).min(MAX_WORDS);
    // SAFETY: words in use are not written any more.
    let words = unsafe { core::slice::from_raw_parts(words(), used) };
    let head = Head::decode(*words.get((id as usize).checked_sub(1)?)?);
    Some((words.get(id as usize..id as usize + usize::from(head.len))?, head))
}

/// A thread's filters, the latest first.
fn filters(latest: u32) -> impl Iterator<Item = (u32, &'static [u64])> {
    let mut next = latest;
    core::iter::from_fn(move || {
        let id = next;
        let (program, head) = filter(id)?;
        next = head.before;
        Some((id, program))
    })
}

/// Put a filter into the store; `program` writes its instructions. Yields its number.
fn add(
    before: u32,
    flags: u64,
    len: usize,
    program: impl FnOnce(&mut [u64]) -> Result<(), Errno>,
) -> Result<u32, Errno> {
    let _held = lock();
    let start = used().load(Ordering::Relaxed) as usize;
    let total: usize = filters(before).map(|(_, program)| program.len() + EXTRA).sum();
    if total + len + EXTRA > MAX_WORDS || start + 1 + len > MAX_WORDS {
        return Err(Errno::ENOMEM);
    }
    // SAFETY: nobody reads what is not yet used, and nobody else writes under the lock.
    let words = unsafe { core::slice::from_raw_parts_mut(words().add(start), 1 + len) };
    words[0] = Head { before, len: len as u16, flags: flags as u16 }.encode();
    program(&mut words[1..])?;
    if !program::is_valid(&words[1..]) {
        return Err(Errno::EINVAL);
    }
    used().store((start + 1 + len) as u64, Ordering::Release);
    Ok(start as u32 + 1)
}

/// What happens to a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It is made.
    Allowed,
    /// It is not, and this is its result.
    Refused(Errno),
    /// It is not: a handler has been entered.
    Trapped,
}

/// SECCOMP_RET_*, by rank: the smallest as a signed number wins.
mod action {
    pub(super) const KILL_PROCESS: u32 = 0x8000_0000;
    pub(super) const KILL_THREAD: u32 = 0;
    pub(super) const TRAP: u32 = 0x3_0000;
    pub(super) const ERRNO: u32 = 0x5_0000;
    pub(super) const USER_NOTIF: u32 = 0x7fc0_0000;
    pub(super) const TRACE: u32 = 0x7ff0_0000;
    pub(super) const LOG: u32 = 0x7ffc_0000;
    pub(super) const ALLOW: u32 = 0x7fff_0000;
    pub(super) const MASK: u32 = 0xffff_0000;
}

/// Judge call `number`, whose instruction the guest PC is behind.
#[inline]
pub fn judge(thread: Thread, number: u64, args: &[u64; 6]) -> Verdict {
    match thread.state().seccomp {
        0 => Verdict::Allowed,
        STRICT => judge_strictly(thread, number),
        latest => {
            set_no_new_privs_if_due(thread);
            carry_out(thread, number, decide(thread, latest, number, args))
        }
    }
}

fn judge_strictly(thread: Thread, number: u64) -> Verdict {
    if matches!(number as u32, nr::read | nr::write | nr::exit | nr::rt_sigreturn) {
        return Verdict::Allowed;
    }
    fault::die_by(thread, SIGKILL)
}

fn decide(thread: Thread, latest: u32, number: u64, args: &[u64; 6]) -> u32 {
    let instruction_pointer = thread.cpu().rip;
    let data = Data { number: number as u32, machine: MACHINE, instruction_pointer, args: *args };
    let rank = |verdict: u32| (verdict & action::MASK) as i32;
    let verdicts = filters(latest).map(|(_, program)| program::run(program, &data));
    verdicts.fold(action::ALLOW, |all, one| if rank(one) < rank(all) { one } else { all })
}

fn carry_out(thread: Thread, number: u64, verdict: u32) -> Verdict {
    const MAX_ERRNO: u32 = 4095;
    let value = (verdict & !action::MASK) as i32;
    match verdict & action::MASK {
        action::ALLOW | action::LOG => Verdict::Allowed,
        action::ERRNO => Verdict::Refused(Errno(value.min(MAX_ERRNO as i32))),
        action::TRAP => {
            trap(thread, number, value);
            Verdict::Trapped
        }
        action::KILL_THREAD if !is_only(thread) => crate::syscall::leave(thread, SIGSYS.into()),
        action::KILL_THREAD | action::KILL_PROCESS => fault::die_by(thread, SIGSYS),
        // Nobody traces, nobody listens: the kernel refuses as well.
        action::TRACE | action::USER_NOTIF => Verdict::Refused(Errno::ENOSYS),
        // What it does not know ends the process, too.
        _ => fault::die_by(thread, SIGSYS),
    }
}

/// Send SIGSYS with what the call was (`_sigsys` of siginfo).
fn trap(thread: Thread, number: u64, value: i32) {
    const SYS_SECCOMP: i32 = 1;
    let cpu = thread.cpu();
    (cpu.gpr[1], cpu.gpr[11]) = (cpu.rip, cpu.rflags());
    let mut info = SigInfo::fault(SIGSYS, SYS_SECCOMP, cpu.rip);
    info.errno = value;
    info.fields[1] = u64::from(number as u32) | u64::from(MACHINE) << 32;
    fault::raise_seccomp(thread, info);
}

/// Threads of the calling thread's process.
fn siblings(thread: Thread) -> impl Iterator<Item = Thread> {
    let same = move |other: &Thread| other.private().dispositions == thread.private().dispositions;
    thread::used().filter(move |other| other.slot() != thread.slot()).filter(same)
}

fn is_only(thread: Thread) -> bool {
    siblings(thread).next().is_none()
}

/// The mode, as prctl(PR_GET_SECCOMP) tells it.
pub fn mode(thread: Thread) -> i64 {
    match thread.state().seccomp {
        0 => 0,
        STRICT => 1,
        _ => 2,
    }
}

/// SECCOMP_SET_MODE_STRICT.
pub fn set_strict(thread: Thread) -> Result<u64, Errno> {
    if !matches!(thread.state().seccomp, 0 | STRICT) {
        return Err(Errno::EINVAL);
    }
    put(thread, STRICT);
    Ok(0)
}

fn put(thread: Thread, seccomp: u32) {
    thread.state().seccomp = seccomp;
}

/// SECCOMP_SET_MODE_FILTER: `flags` of seccomp(2), `address` of a `struct sock_fprog`. A listener is not to be had.
pub fn set_filter(thread: Thread, flags: u64, address: u64) -> Result<u64, Errno> {
    const TSYNC: u64 = 1;
    const SPEC_ALLOW: u64 = 4;
    const TSYNC_ESRCH: u64 = 16;
    let latest = thread.state().seccomp;
    if flags & !(TSYNC | LOG | SPEC_ALLOW | TSYNC_ESRCH) != 0 || latest == STRICT {
        return Err(Errno::EINVAL);
    }
    let [len, from]: [u64; 2] = access::read(address)?;
    let len = usize::from(len as u16);
    if !(1..=MAX_INSNS).contains(&len) {
        return Err(Errno::EINVAL);
    }
    if !may_filter() {
        return Err(Errno::EACCES);
    }
    let new = add(latest, flags & LOG, len, |words| {
        words.iter_mut().enumerate().try_for_each(|(n, word)| {
            *word = access::read(from.wrapping_add(8 * n as u64))?;
            Ok(())
        })
    })?;
    if flags & TSYNC != 0 {
        let apart = |other: &Thread| {
            let theirs = other.state().seccomp;
            theirs != 0 && !filters(latest).any(|(id, _)| id == theirs)
        };
        if let Some(other) = siblings(thread).find(apart) {
            return if flags & TSYNC_ESRCH != 0 { Err(Errno::ESRCH) } else { Ok(other.state().tid.into()) };
        }
        let due = u32::from(no_new_privs());
        siblings(thread).for_each(|other| {
            other.private().no_new_privs_due |= due;
            put(other, new);
        });
    }
    put(thread, new);
    Ok(0)
}

/// With SECCOMP_FILTER_FLAG_TSYNC a thread gets the caller's no_new_privs, which nobody but itself can set.
fn set_no_new_privs_if_due(thread: Thread) {
    const PR_SET_NO_NEW_PRIVS: u64 = 38;
    if core::mem::take(&mut thread.private().no_new_privs_due) != 0 {
        // SAFETY: no memory is involved.
        let _ = unsafe { linux::call(nr::prctl, [PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0]) };
    }
}

fn no_new_privs() -> bool {
    const PR_GET_NO_NEW_PRIVS: u64 = 39;
    // SAFETY: no memory is involved.
    unsafe { linux::call(nr::prctl, [PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0, 0]) == Ok(1) }
}

/// no_new_privs is set, or the right to administer the system is there.
fn may_filter() -> bool {
    const CAP_SYS_ADMIN: u32 = 21;
    const VERSION_3: u32 = 0x2008_0522;
    let header = [VERSION_3, 0];
    let mut sets = [0_u32; 6];
    // SAFETY: the kernel reads one local and fills the other.
    let capable =
        unsafe { linux::call(nr::capget, [header.as_ptr() as u64, sets.as_mut_ptr() as u64, 0, 0, 0, 0]) };
    no_new_privs() || (capable.is_ok() && sets[0] >> CAP_SYS_ADMIN & 1 != 0)
}

/// SECCOMP_GET_ACTION_AVAIL for the action at `address`.
pub fn is_available(address: u64) -> Result<u64, Errno> {
    const KNOWN: [u32; 7] = [
        action::KILL_PROCESS,
        action::KILL_THREAD,
        action::TRAP,
        action::ERRNO,
        action::TRACE,
        action::LOG,
        action::ALLOW,
    ];
    let wanted: u32 = access::read(address)?;
    if KNOWN.contains(&wanted) { Ok(0) } else { Err(Errno::EOPNOTSUPP) }
}

/// Write a thread's filters into a file, the earliest first, each its head and its words: for the runtime that an
/// exec starts. Yields the descriptor, which stays open in that; `None` if there are none.
pub fn hand_over(thread: Thread) -> Result<Option<i32>, Errno> {
    let latest = thread.state().seccomp;
    if latest == 0 {
        return Ok(None);
    }
    // SAFETY: the kernel reads the name.
    let fd = unsafe { linux::call(nr::memfd_create, [c"seccomp".as_ptr() as u64, 0, 0, 0, 0, 0]) }? as i32;
    let count = filters(latest).count();
    let written = (0..count).rev().try_for_each(|n| match filters(latest).nth(n) {
        Some((id, words)) => linux::write(fd, &filter(id).map_or(0, |(_, head)| head.encode()).to_le_bytes())
            .and_then(|()| words.iter().try_for_each(|word| linux::write(fd, &word.to_le_bytes()))),
        None => Ok(()),
    });
    written.inspect_err(|_| linux::close(fd))?;
    Ok(Some(fd))
}

/// Take the filters over that [`hand_over`] wrote into `fd`.
pub fn take_over(thread: Thread, fd: i32) -> Result<(), Errno> {
    let mut offset = 0;
    let mut next = || -> Result<Option<u64>, Errno> {
        let mut word = [0; 8];
        let got = linux::pread(fd, &mut word, offset)?;
        offset += 8;
        Ok((got == word.len()).then_some(u64::from_le_bytes(word)))
    };
    let mut latest = 0;
    while let Some(head) = next()? {
        let Head { len, flags, .. } = Head::decode(head);
        let (len, flags) = (usize::from(len), u64::from(flags));
        if len > MAX_INSNS {
            return Err(Errno::EINVAL);
        }
        latest = add(latest, flags, len, |words| {
            words.iter_mut().try_for_each(|word| next().map(|got| *word = got.unwrap_or(0)))
        })?;
    }
    linux::close(fd);
    put(thread, latest);
    Ok(())
}
