//! The seccomp filter that an engine puts a container under: one for each machine, since it tests system calls by their
//! numbers there. On a host its place takes the one that the engine has for that host; the home's waits in the residue.

use crate::error::{RecodeError, Result};
use crate::output::Output;
use crate::process::{Process, core_name};
use crate::proto::criu_core::Seccomp_mode;
use crate::proto::seccomp::{Seccomp_entry, Seccomp_filter};
use crate::set::ImageSet;
use protobuf::MessageDyn;

const IMAGE: &str = "seccomp.img";

/// The filters of an image set.
pub(crate) struct Filters(Vec<Seccomp_filter>);

impl Filters {
    /// Those of `set`.
    pub(crate) fn load(set: &ImageSet) -> Result<Filters> {
        let entries: Vec<Seccomp_entry> = if set.contains(IMAGE) { set.messages(IMAGE)? } else { Vec::new() };
        Ok(Filters(entries.into_iter().flat_map(|entry| entry.seccomp_filters).collect()))
    }

    /// The filter that a process is under: the same for all its threads that are under one. A second filter on top is the
    /// program's own.
    pub(crate) fn of(&self, process: &Process) -> Result<Option<Seccomp_filter>> {
        let mut found: Option<u32> = None;
        for (tid, core) in &process.threads {
            let refused = |why: &str| Err(RecodeError::refused(core_name(*tid), why));
            let more = core.thread_core.get_or_default();
            match more.seccomp_mode() {
                Seccomp_mode::disabled => continue,
                Seccomp_mode::strict => {
                    return refused("the thread is under strict seccomp, which cannot cross");
                }
                Seccomp_mode::filter => {}
            }
            if found.is_some_and(|found| found != more.seccomp_filter()) {
                return refused(
                    "the threads of its process are under different seccomp filters, which cannot cross",
                );
            }
            found = Some(more.seccomp_filter());
        }
        let Some(index) = found else { return Ok(None) };
        let filter = self.0.get(index as usize).ok_or_else(|| {
            RecodeError::damaged(
                IMAGE,
                0,
                format!("has no filter {index}, which process {} is under", process.pid),
            )
        })?;
        match filter.prev {
            None => Ok(Some(filter.clone())),
            Some(_) => Err(RecodeError::refused(
                format!("process {}", process.pid),
                "has seccomp filters of its own, which cannot cross; run it without them",
            )),
        }
    }
}

/// The filters of a set to come.
#[derive(Default)]
pub(crate) struct NewFilters(Vec<Seccomp_filter>);

impl NewFilters {
    /// Put the threads of `process` that are under a filter under this one.
    pub(crate) fn confine(&mut self, process: &mut Process, filter: Seccomp_filter) {
        let index = self.0.iter().position(|other| *other == filter).unwrap_or_else(|| {
            self.0.push(filter);
            self.0.len() - 1
        });
        for (_, core) in &mut process.threads {
            let more = core.thread_core.as_mut().filter(|more| more.seccomp_mode() == Seccomp_mode::filter);
            if let Some(more) = more {
                more.seccomp_filter = Some(index as u32);
            }
        }
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
