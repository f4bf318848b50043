//! Seccomp filters. The first one of a container is its engine's: one for each machine, since it tests system calls by their numbers
//! there. On a host its place takes the one that the engine has for that host; the home's waits in the residue. Filters on top
//! of it are the program's own: the kernel has them at home, the runtime on a host, where they judge the guest's calls
//! (`tranship_abi::seccomp`).
//!
//! In the images a thread names its oldest filter, and each names the next newer one as the one before it: CRIU lists them as
//! PTRACE_SECCOMP_GET_FILTER counts, the newest first.

use crate::error::{RecodeError, Result};
use crate::output::Output;
use crate::process::{Process, core_name};
use crate::proto::criu_core::{Core_entry, Seccomp_mode};
use crate::proto::seccomp::{Seccomp_entry, Seccomp_filter};
use crate::set::ImageSet;
use protobuf::MessageDyn;
use std::collections::VecDeque;
use tranship_abi::seccomp::{Head, MAX_INSNS, MAX_WORDS, STRICT};

const IMAGE: &str = "seccomp.img";
/// Bytes of a `struct sock_filter`.
const INSN_BYTES: usize = 8;

/// The filters of an image set.
pub(crate) struct Filters(Vec<Seccomp_filter>);

/// What a thread is under.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Confinement {
    /// The engine's filter.
    pub(crate) engine: Option<Seccomp_filter>,
    /// The program's own.
    pub(crate) own: Own,
}

/// What a program has put a thread of its under.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Own {
    /// Strict mode.
    Strict,
    /// Filters, the oldest first. They name none that was there before.
    Filters(Vec<Seccomp_filter>),
}

impl Default for Own {
    fn default() -> Own {
        Own::Filters(Vec::new())
    }
}

impl Filters {
    /// Those of `set`.
    pub(crate) fn load(set: &ImageSet) -> Result<Filters> {
        let entries: Vec<Seccomp_entry> = if set.contains(IMAGE) { set.messages(IMAGE)? } else { Vec::new() };
        Ok(Filters(entries.into_iter().flat_map(|entry| entry.seccomp_filters).collect()))
    }

    /// What each thread of a process is under, in their order. `has_engine`: the first filter is an engine's, which is the same for
    /// all threads that are under any.
    pub(crate) fn of(&self, process: &Process, has_engine: bool) -> Result<Vec<Confinement>> {
        let threads = process.threads.iter();
        let all: Vec<_> =
            threads.map(|(tid, core)| self.of_thread(*tid, core, has_engine)).collect::<Result<_>>()?;
        let mut engines = all.iter().filter_map(|one| one.engine.as_ref());
        let first = engines.next();
        match engines.all(|other| Some(other) == first) {
            true => Ok(all),
            false => Err(RecodeError::refused(
                format!("process {}", process.pid),
                "has threads under different first seccomp filters, which cannot cross",
            )),
        }
    }

    fn of_thread(&self, tid: u32, core: &Core_entry, has_engine: bool) -> Result<Confinement> {
        let more = core.thread_core.get_or_default();
        match more.seccomp_mode() {
            Seccomp_mode::disabled => return Ok(Confinement::default()),
            Seccomp_mode::strict => return Ok(Confinement { engine: None, own: Own::Strict }),
            Seccomp_mode::filter => {}
        }
        let missing = |index: u32| {
            let what = format!("has no filter {index}, which a thread of {} is under", core_name(tid));
            RecodeError::damaged(IMAGE, 0, what)
        };
        let mut chain = VecDeque::new();
        let mut next = Some(more.seccomp_filter());
        while let Some(index) = next {
            let filter = self.0.get(index as usize).filter(|_| chain.len() < self.0.len());
            let filter = filter.ok_or_else(|| missing(index))?;
            next = filter.prev;
            chain.push_back(Seccomp_filter { prev: None, ..filter.clone() });
        }
        let engine = if has_engine { chain.pop_front() } else { None };
        Ok(Confinement { engine, own: Own::Filters(chain.into()) })
    }
}

/// The filters of a set to come.
#[derive(Default)]
pub(crate) struct NewFilters(Vec<Seccomp_filter>);

impl NewFilters {
    /// Put a thread under these. A process that has ended has no threads.
    pub(crate) fn confine(&mut self, core: &mut Core_entry, confinement: &Confinement) {
        let Some(more) = core.thread_core.as_mut() else { return };
        let own = match &confinement.own {
            Own::Strict => {
                more.seccomp_mode = Some(Seccomp_mode::strict.into());
                more.seccomp_filter = None;
                return;
            }
            Own::Filters(own) => own,
        };
        let mut newer = None;
        for filter in confinement.engine.iter().chain(own).rev() {
            newer = Some(self.number(Seccomp_filter { prev: newer, ..filter.clone() }));
        }
        more.seccomp_filter = newer;
        if newer.is_some() {
            more.seccomp_mode = Some(Seccomp_mode::filter.into());
        } else if more.seccomp_mode.is_some() {
            more.seccomp_mode = Some(Seccomp_mode::disabled.into());
        }
    }

    fn number(&mut self, filter: Seccomp_filter) -> u32 {
        let known = self.0.iter().position(|other| *other == filter);
        known.unwrap_or_else(|| {
            self.0.push(filter);
            self.0.len() - 1
        }) as u32
    }

    /// Write them.
    pub(crate) fn write(self, output: &mut Output) -> Result<()> {
        if self.0.is_empty() {
            return Ok(());
        }
        let entry = Seccomp_entry { seccomp_filters: self.0, ..Default::default() };
        output.messages(IMAGE, [&entry as &dyn MessageDyn])
    }
}

/// A state area's store of filters (`tranship_abi::seccomp::FilterStore`), the words that are in use.
#[derive(Default)]
pub(crate) struct Store(pub(crate) Vec<u64>);

impl Store {
    /// Put what a thread of process `pid` is under into the store. Returns what the thread is to have as its latest filter.
    pub(crate) fn add(&mut self, own: &Own, pid: u32) -> Result<u32> {
        let Own::Filters(own) = own else { return Ok(STRICT) };
        let mut before = 0;
        for filter in own {
            let wanted = words(before, filter, pid)?;
            before = match self.find(&wanted) {
                Some(known) => known,
                None => {
                    self.0.extend(wanted.iter());
                    (self.0.len() - wanted.len() + 1) as u32
                }
            };
        }
        match self.0.len() <= MAX_WORDS {
            true => Ok(before),
            false => Err(RecodeError::refused(format!("process {pid}"), "has too many seccomp filters")),
        }
    }

    /// The number of a filter with just these words, head included.
    fn find(&self, wanted: &[u64]) -> Option<u32> {
        let mut at = 0;
        while let Some(head) = self.0.get(at) {
            if self.0.get(at..at + wanted.len()) == Some(wanted) {
                return Some(at as u32 + 1);
            }
            at += 1 + usize::from(Head::decode(*head).len);
        }
        None
    }

    /// What a thread of process `pid` is under whose latest filter is `latest`.
    pub(crate) fn own(&self, latest: u32, pid: u32) -> Result<Own> {
        if latest == STRICT {
            return Ok(Own::Strict);
        }
        let mut chain = Vec::new();
        let mut next = latest as usize;
        while next != 0 {
            let wrong = || RecodeError::state(pid, format!("has no seccomp filter {next}"));
            let head = Head::decode(*self.0.get(next - 1).ok_or_else(wrong)?);
            let words = self.0.get(next..next + usize::from(head.len)).ok_or_else(wrong)?;
            // One is always behind those that were there before it.
            if head.before as usize >= next {
                return Err(wrong());
            }
            let bytes = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            let flags = u32::from(head.flags);
            chain.push(Seccomp_filter { filter: Some(bytes), flags: Some(flags), ..Default::default() });
            next = head.before as usize;
        }
        chain.reverse();
        Ok(Own::Filters(chain))
    }
}

/// A filter as the store has it, behind filter `before`.
fn words(before: u32, filter: &Seccomp_filter, pid: u32) -> Result<Vec<u64>> {
    let (insns, rest) = filter.filter().as_chunks::<INSN_BYTES>();
    if insns.is_empty() || insns.len() > MAX_INSNS || !rest.is_empty() {
        let what = format!("has a filter of {} bytes, of process {pid}", filter.filter().len());
        return Err(RecodeError::damaged(IMAGE, 0, what));
    }
    let head = Head { before, len: insns.len() as u16, flags: filter.flags() as u16 };
    Ok(std::iter::once(head.encode()).chain(insns.iter().map(|insn| u64::from_le_bytes(*insn))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(insns: &[u64], flags: u32) -> Seccomp_filter {
        let bytes = insns.iter().flat_map(|insn| insn.to_le_bytes()).collect();
        Seccomp_filter { filter: Some(bytes), flags: Some(flags), ..Default::default() }
    }

    #[test]
    fn a_store_gives_back_what_was_put_into_it() {
        let mut store = Store::default();
        let [a, b, c] = [filter(&[1, 2, 3], 0), filter(&[4], 2), filter(&[1, 2, 3], 2)];
        let all =
            [vec![], vec![a.clone()], vec![a.clone(), b.clone()], vec![c.clone(), a.clone()], vec![b, c, a]];
        let all = all.map(Own::Filters);
        let numbers: Vec<u32> = all.iter().map(|own| store.add(own, 1).unwrap()).collect();
        for (own, number) in all.iter().zip(&numbers) {
            assert_eq!(store.own(*number, 1).unwrap(), *own);
        }
        let used = store.0.len();
        assert_eq!(all.iter().map(|own| store.add(own, 1).unwrap()).collect::<Vec<_>>(), numbers);
        assert_eq!(store.0.len(), used, "a filter that is there is not put there again");
        let strict = store.add(&Own::Strict, 1).unwrap();
        assert_eq!(store.own(strict, 1).unwrap(), Own::Strict);
    }

    #[test]
    fn damaged_stores_are_noticed() {
        let circle = Head { before: 1, len: 1, flags: 0 }.encode();
        for (words, latest) in
            [(vec![], 1), (vec![circle, 0], 1), (vec![Head { before: 0, len: 9, flags: 0 }.encode()], 1)]
        {
            assert!(Store(words).own(latest, 1).is_err());
        }
        assert!(Store::default().add(&Own::Filters(vec![filter(&[], 0)]), 1).is_err());
    }
}
