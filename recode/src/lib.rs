//! CRIU image sets as typed checkpoints, and their recoding between a guest's home and a foreign host.
//!
//! A *canonical* checkpoint is an image set as stock CRIU writes it on the guest's own machine. A *host* checkpoint is one
//! of a process in which our runtime executes that guest (`tranship_abi::block`). [`recode`] turns either into the other;
//! it reads and writes files and does nothing else, so it runs on any machine for any pair.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::panic))]

mod aarch64;
pub mod catalogue;
mod compare;
mod elf;
mod error;
mod files;
mod flatten;
pub mod image;
mod in_place;
mod in_vdso;
mod inspect;
mod layout;
mod memory;
mod mounts;
mod output;
mod process;
mod residue;
mod seccomp;
mod set;
mod state;
mod to_canonical;
mod to_host;
mod trailer;
mod vdso;
mod vma;
mod x86_64;

pub use compare::{Difference, compare};
pub use error::{RecodeError, Result};
pub use flatten::{FlatFile, Piece, flatten};
pub use in_place::{fresh_beside, recode_in_place};
pub use in_vdso::{Kernel, Left, leave_vdso};
pub use inspect::{MappingSummary, ProcessSummary, Summary, control_groups, inspect, machine};
pub use layout::{GuestObject, Home, HostLayout, KernelFiles, MappedFile, Target, link_base};
pub use memory::{Extent, Memory, PAGE};
pub use output::Report;
pub use set::{FileSource, ImageSet};

pub use tranship_recode_proto as proto;

use output::Output;
use process::Process;
use std::path::Path;

/// Recode the image set in `from` for `target` and write it to `to`, a new or empty directory on the same file system
/// (links do not reach across; what cannot be linked is copied). Page contents stay in `from`, which the new set names as
/// its parent: keep both, or [`flatten`] the new one.
pub fn recode(from: &Path, to: &Path, target: &Target) -> Result<Report> {
    let set = ImageSet::open(from)?;
    let (output, processes) = recoded(&set, target)?;
    let report = output.write(to)?;
    let threads = processes.iter().map(|process| process.threads.len()).sum();
    Ok(Report { processes: processes.len(), threads, ..report })
}

/// Whether the image set in `from` can be recoded for `target`: all of it but the writing.
pub fn check(from: &Path, target: &Target) -> Result<()> {
    recoded(&ImageSet::open(from)?, target).map(drop)
}

fn recoded<'s>(set: &'s ImageSet, target: &Target) -> Result<(Output<'s>, Vec<Process>)> {
    set.refuse()?;
    match target {
        Target::Canonical(home) => to_canonical::recode(set, home),
        Target::Host(layout) => to_host::recode(set, layout),
    }
}
