//! A unit's checkpoint between its canonical form and this node's: what `tranship_recode` needs is where the unit's
//! directory and the node's store have it.

use super::paths::UnitDir;
use super::process::{present_objects, present_runtime};
use crate::error::{NodeError, Result};
use crate::protocol::{GuestProgram, Translation};
use crate::record::Isa;
use std::path::{Path, PathBuf};
use tranship_recode::{
    FileSource, GuestObject, Home, HostLayout, KernelFiles, MappedFile, RecodeError, Target, link_base,
    recode,
};

/// From `images/dump` to `images/canonical`.
pub fn to_canonical(unit: &UnitDir) -> Result<()> {
    let canonical = unit.fresh_images("canonical")?;
    recode(&unit.images("dump"), &canonical, &Target::Canonical(Home::default())).map(drop).map_err(failure)
}

/// From `images/received` to what this node can restore; returns where that is.
pub fn from_canonical(unit: &UnitDir, how: &Translation) -> Result<PathBuf> {
    let received = unit.images("received");
    let Translation::Objects(programs) = how else { return Ok(received) };
    let host = unit.fresh_images("host")?;
    let layout = layout(unit, programs)?;
    recode(&received, &host, &Target::Host(layout)).map_err(failure)?;
    Ok(host)
}

fn layout(unit: &UnitDir, programs: &[GuestProgram]) -> Result<HostLayout> {
    let objects = programs.iter().map(|program| guest_object(unit, program)).collect::<Result<_>>()?;
    Ok(HostLayout {
        machine: Isa::here()?.0,
        runtime: mapped(&present_runtime()?)?,
        objects,
        filter: None,
        kernel: Some(KernelFiles::here()),
    })
}

fn guest_object(unit: &UnitDir, program: &GuestProgram) -> Result<GuestObject> {
    let guest_path = unit.root().join(program.path.trim_start_matches('/'));
    let elf = FileSource::open(&guest_path).map_err(failure)?;
    let guest_path = guest_path.display().to_string();
    let guest_base = link_base(&guest_path, &elf).map_err(failure)?;
    let paths = present_objects(std::slice::from_ref(&program.object))?;
    let path = paths.first().ok_or_else(|| NodeError::protocol("no object"))?;
    Ok(GuestObject { guest_path, guest_base, object: mapped(path)? })
}

fn mapped(path: &Path) -> Result<MappedFile> {
    MappedFile::open(path, path.display().to_string()).map_err(failure)
}

pub(super) fn failure(error: RecodeError) -> NodeError {
    let why = error.to_string();
    match error {
        RecodeError::Passing { .. } => NodeError::DumpAgain { why },
        _ => NodeError::Recode { why },
    }
}
