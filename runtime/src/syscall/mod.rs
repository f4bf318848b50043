//! The guest's system calls, performed as the table in `abi` says.

mod aio;
mod epoll;
mod exec;
mod files;
mod ipc;
mod mappings;
mod poll;
mod process;
mod signals;
mod threads;
mod time;

use crate::host::{self, HOST, NOT_MADE, PageFault};
use crate::linux::{self, Errno, PAGE};
use crate::memory::access;
use crate::report;
use crate::seccomp::{self, Verdict};
use crate::signal;
use crate::supply;
use crate::thread::Thread;
use core::sync::atomic::{AtomicU64, Ordering};
use tranship_abi::host::Host;
use tranship_abi::open_flags::GuestOpenFlags;
use tranship_abi::stat::{GenericStat, X86Stat};
use tranship_abi::syscall::{Action, Arg, Slot, Syscall, lookup, nr};
use tranship_isa::x86_64::Cpu;

/// Bytes of the instruction `syscall`.
const SYSCALL_BYTES: u64 = 2;

/// A system call that a thread makes.
pub(crate) struct Call {
    thread: Thread,
    args: [u64; 6],
}

/// How it went.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    /// Over: what the guest gets in rax.
    Done(i64),
    /// Not made, or to be made again, after a look at what is pending.
    Again,
    /// The guest's registers have been replaced.
    Moved,
}

impl From<Result<u64, Errno>> for Outcome {
    fn from(result: Result<u64, Errno>) -> Outcome {
        Outcome::Done(result.map_or_else(|error| -i64::from(error.0), |value| value as i64))
    }
}

impl From<Errno> for Outcome {
    fn from(error: Errno) -> Outcome {
        Err(error).into()
    }
}

impl From<PageFault> for Outcome {
    fn from(_: PageFault) -> Outcome {
        Errno::EFAULT.into()
    }
}

/// `value?` in a function that yields an [`Outcome`].
macro_rules! attempt {
    ($result:expr) => {
        match $result {
            Ok(value) => value,
            Err(error) => return $crate::syscall::Outcome::from(error),
        }
    };
}
pub(crate) use attempt;
pub(crate) use threads::{forget_cpu, leave};

/// A structure of words at `address` that grows with the kernel, of which the guest knows `size` bytes: at least the
/// first version's. What it knows beyond ours must be zero.
fn read_extensible<const N: usize>(address: u64, size: u64, first_version: u64) -> Result<[u64; N], Errno> {
    if size < first_version {
        return Err(Errno::EINVAL);
    }
    if size > PAGE {
        return Err(Errno::E2BIG);
    }
    let mut words = [0_u64; N];
    for at in 0..size {
        let byte: u8 = access::read(address.wrapping_add(at))?;
        match words.get_mut(at as usize / 8) {
            Some(word) => *word |= u64::from(byte) << (at % 8 * 8),
            None if byte != 0 => return Err(Errno::E2BIG),
            None => {}
        }
    }
    Ok(words)
}

/// The call that the guest makes, by number.
fn asked_for(thread: Thread) -> (u64, Call) {
    let cpu = thread.cpu();
    let args = [cpu.gpr[7], cpu.gpr[6], cpu.gpr[2], cpu.gpr[10], cpu.gpr[8], cpu.gpr[9]];
    // Of its number the kernel looks at 32 bits.
    (u64::from(cpu.gpr[0] as u32), Call { thread, args })
}

fn answer(cpu: &mut Cpu, result: i64) {
    cpu.gpr[0] = result as u64;
    (cpu.gpr[1], cpu.gpr[11]) = (cpu.rip, cpu.rflags());
}

/// Perform the guest's call if it reads a clock, which programs do all the time: that needs no more of the thread's state
/// than its general registers. False: [`perform`] is to do it.
pub fn read_clock(thread: Thread) -> bool {
    let (number, call) = asked_for(thread);
    let read = match number as u32 {
        nr::clock_gettime => time::clock_gettime,
        nr::gettimeofday => time::gettimeofday,
        nr::time => time::time,
        _ => return false,
    };
    if thread.is_pending() || thread.state().seccomp != 0 {
        return false;
    }
    let Outcome::Done(result) = read(&call) else { return false };
    report::count(&report::COUNTERS.syscalls);
    answer(thread.cpu(), result);
    true
}

/// Make the system call whose instruction ends at the guest PC. True if the guest is somewhere else now.
pub fn perform(thread: Thread) -> bool {
    report::count(&report::COUNTERS.syscalls);
    loop {
        let cpu = thread.cpu();
        let (number, call) = asked_for(thread);
        // A signal that came before the call is delivered before it.
        let outcome = if thread.is_pending() { Outcome::Again } else { call.judge_and_dispatch(number) };
        match outcome {
            Outcome::Done(result) => {
                answer(cpu, result);
                thread.private().sleep_until = 0;
                return thread.is_pending() && signal::safepoint(thread);
            }
            Outcome::Again => {
                cpu.rip -= SYSCALL_BYTES;
                if signal::safepoint(thread) {
                    thread.private().sleep_until = 0;
                    return true;
                }
                cpu.rip += SYSCALL_BYTES;
            }
            Outcome::Moved => return true,
        }
    }
}

impl Call {
    /// Argument `n` as the kernel takes an `int`.
    fn int(&self, n: usize) -> i32 {
        self.args[n] as i32
    }

    /// Argument `n` as the kernel takes an `unsigned int`.
    fn uint(&self, n: usize) -> u32 {
        self.args[n] as u32
    }

    /// Perform call `number` if the guest's own filters let it.
    fn judge_and_dispatch(&self, number: u64) -> Outcome {
        match seccomp::judge(self.thread, number, &self.args) {
            Verdict::Allowed => self.dispatch(number),
            Verdict::Refused(error) => error.into(),
            Verdict::Trapped => Outcome::Moved,
        }
    }

    /// Perform the x86-64 call `number` with these arguments.
    fn dispatch(&self, number: u64) -> Outcome {
        let Some(row) = lookup(number) else {
            report_once(number, "unknown", "newer than this runtime");
            return Errno::ENOSYS.into();
        };
        match row.action {
            Action::Pass => self.pass(row),
            Action::As(target, slots) => self.with(slots).dispatch(target.into()),
            Action::Emulate => match emulator(row.x86_64) {
                Some(function) => function(self),
                None => Errno::ENOSYS.into(),
            },
            Action::Absent(why) => {
                report_once(number, row.name, why);
                Errno::ENOSYS.into()
            }
        }
    }

    /// These arguments, put where another call takes them.
    fn with(&self, slots: &[Slot]) -> Call {
        let mut args = [0; 6];
        for (arg, slot) in args.iter_mut().zip(slots) {
            *arg = match *slot {
                Slot::Arg(n) => self.args[usize::from(n)],
                Slot::Const(value) => value as u64,
            };
        }
        Call { thread: self.thread, args }
    }

    /// The host's call of the name that x86-64's `number` has.
    fn pass_number(&self, number: u32) -> Outcome {
        lookup(number.into()).map_or(Errno::ENOSYS.into(), |row| self.pass(row))
    }

    /// The host's call of the same name, arguments converted by their types.
    fn pass(&self, row: &Syscall) -> Outcome {
        if HOST == Host::X86_64 {
            return self.make(row.x86_64, self.args);
        }
        let mut args = self.args;
        let mut stat = None;
        for (arg, kind) in args.iter_mut().zip(row.args) {
            match kind {
                Arg::OpenFlags => *arg = GuestOpenFlags(*arg as u32).to_host(HOST).0.into(),
                Arg::StatOut => {
                    let buffer = stat.insert((*arg, GenericStat::default()));
                    *arg = (&raw mut buffer.1) as u64;
                }
                _ => {}
            }
        }
        let outcome = self.make(row.x86_64, args);
        match (outcome, stat) {
            (Outcome::Done(0), Some((guest, stat))) => {
                access::write(guest, &X86Stat::from(stat)).map(|()| 0).into()
            }
            _ => outcome,
        }
    }

    /// Make the host's equivalent of x86-64 call `number`, unless something is pending.
    fn make(&self, number: u32, args: [u64; 6]) -> Outcome {
        // SAFETY: the guest's own call, with the guest's own pointers or with ours where they are converted.
        let result =
            unsafe { host::syscall_unless(linux::number(number).into(), &args, self.thread.pending()) };
        match result {
            NOT_MADE => Outcome::Again,
            // It may have been to write where the guest can and the host, for the time being, cannot.
            result if result == -i64::from(Errno::EFAULT.0) && supply::all_written() => Outcome::Again,
            // Interrupted for the runtime's sake only: the guest is not to know.
            result if result == -i64::from(Errno::EINTR.0) && !signal::is_queued(self.thread) => {
                Outcome::Again
            }
            result => Outcome::Done(result),
        }
    }
}

/// Numbers that have been reported, as bits; beyond the table they share one.
static REPORTED: [AtomicU64; 8] = [const { AtomicU64::new(0) }; 8];

fn report_once(number: u64, name: &str, why: &str) {
    let number_bit = number.min(511);
    let bit = 1 << (number_bit % 64);
    if REPORTED[number_bit as usize / 64].fetch_or(bit, Ordering::Relaxed) & bit == 0 {
        report::note(format_args!("absent_syscall {number} {name}: {why}"));
    }
}

type Emulator = fn(&Call) -> Outcome;

/// The function that performs a call of action [`Action::Emulate`].
fn emulator(number: u32) -> Option<Emulator> {
    Some(match number {
        nr::openat => files::openat,
        nr::openat2 => files::openat2,
        nr::newfstatat => files::newfstatat,
        nr::statx => files::statx,
        nr::readlinkat => files::readlinkat,
        nr::fcntl => files::fcntl,
        nr::dup2 => files::dup2,
        nr::getdents => files::getdents,
        nr::utime => files::utime,
        nr::utimes => files::utimes,
        nr::futimesat => files::futimesat,

        nr::poll => poll::poll,
        nr::ppoll => poll::ppoll,
        nr::select => poll::select,
        nr::pselect6 => poll::pselect6,
        nr::epoll_create => epoll::create,
        nr::epoll_ctl => epoll::ctl,
        nr::epoll_wait => epoll::wait,
        nr::epoll_pwait => epoll::pwait,
        nr::epoll_pwait2 => epoll::pwait2,

        nr::time => time::time,
        nr::clock_gettime => time::clock_gettime,
        nr::gettimeofday => time::gettimeofday,
        nr::alarm => time::alarm,
        nr::nanosleep => time::nanosleep,
        nr::clock_nanosleep => time::clock_nanosleep,

        nr::mmap => mappings::mmap,
        nr::mprotect => mappings::mprotect,
        nr::munmap => mappings::munmap,
        nr::mremap => mappings::mremap,
        nr::brk => mappings::brk,
        nr::pkey_mprotect => mappings::pkey_mprotect,
        nr::pkey_alloc => mappings::pkey_alloc,
        nr::pkey_free => mappings::pkey_free,
        nr::map_shadow_stack => mappings::map_shadow_stack,
        nr::io_setup => aio::setup,
        nr::io_pgetevents => aio::pgetevents,
        nr::shmat => ipc::shmat,
        nr::shmdt => ipc::shmdt,
        nr::semctl => ipc::semctl,

        nr::rt_sigaction => signals::sigaction,
        nr::rt_sigprocmask => signals::sigprocmask,
        nr::rt_sigreturn => signals::sigreturn,
        nr::rt_sigsuspend => signals::sigsuspend,
        nr::rt_sigtimedwait => signals::sigtimedwait,
        nr::sigaltstack => signals::sigaltstack,
        nr::kill => signals::kill,
        nr::tkill => signals::tkill,
        nr::tgkill => signals::tgkill,
        nr::rt_sigqueueinfo => signals::sigqueueinfo,
        nr::rt_tgsigqueueinfo => signals::tgsigqueueinfo,

        nr::clone => threads::clone,
        nr::clone3 => threads::clone3,
        nr::fork => threads::fork,
        nr::vfork => threads::vfork,
        nr::exit => threads::exit,
        nr::exit_group => threads::exit_group,
        nr::set_tid_address => threads::set_tid_address,
        nr::set_robust_list => threads::set_robust_list,
        nr::rseq => threads::rseq,

        nr::execve => exec::execve,
        nr::execveat => exec::execveat,
        nr::arch_prctl => process::arch_prctl,
        nr::prctl => process::prctl,
        nr::personality => process::personality,
        nr::seccomp => process::seccomp,
        nr::uname => process::uname,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tranship_abi::syscall::ROWS;

    #[test]
    fn every_emulated_call_has_its_function() {
        for row in ROWS {
            let expected = row.action == Action::Emulate;
            assert_eq!(emulator(row.x86_64).is_some(), expected, "{}", row.name);
        }
    }
}
