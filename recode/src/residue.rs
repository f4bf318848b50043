//! What a canonical checkpoint has and a host checkpoint has no place for: kept in the state area, handed back on the
//! way home. Records of a kind, a key and CRIU's own encoding of the message, each length-prefixed.

use crate::error::{RecodeError, Result};
use crate::mounts::Waiting;
use crate::proto::core_x86::Thread_info_x86;
use crate::proto::mnt::Mnt_entry;
use crate::proto::seccomp::Seccomp_filter;
use crate::proto::vma::Vma_entry;
use protobuf::Message;
use std::collections::BTreeMap;
use tranship_abi::block::RESIDUE_BYTES;

/// The residue, decoded.
#[derive(Default)]
pub(crate) struct Residue {
    /// Each thread as the dump at home had it, by thread id.
    pub(crate) threads: BTreeMap<u32, Thread_info_x86>,
    /// The mappings that only the guest's own kernel makes: vDSO, vvar, vsyscall.
    pub(crate) vmas: Vec<Vma_entry>,
    /// The vDSO as it was, by address.
    pub(crate) pages: Vec<(u64, Vec<u8>)>,
    /// The seccomp filter of the process.
    pub(crate) filter: Option<Seccomp_filter>,
    /// Mounts that the host cannot have.
    pub(crate) mounts: Vec<Waiting>,
}

/// Kinds of records.
mod kind {
    pub(super) const THREAD: u32 = 1;
    pub(super) const VMA: u32 = 2;
    pub(super) const PAGES: u32 = 3;
    pub(super) const FILTER: u32 = 4;
    /// Its key is the length of the mount point that comes before the entry.
    pub(super) const MOUNT: u32 = 5;
}

/// Bytes before a record's contents: kind (u32), length (u32), key (u64).
const HEADER_BYTES: usize = 16;

impl Residue {
    /// As bytes, at most [`RESIDUE_BYTES`].
    pub(crate) fn encode(&self, pid: u32) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let lost = |e: protobuf::Error| RecodeError::state(pid, format!("residue: {e}"));
        for (tid, info) in &self.threads {
            record(&mut bytes, kind::THREAD, u64::from(*tid), &info.write_to_bytes().map_err(lost)?);
        }
        for vma in &self.vmas {
            record(&mut bytes, kind::VMA, vma.start(), &vma.write_to_bytes().map_err(lost)?);
        }
        for (address, contents) in &self.pages {
            record(&mut bytes, kind::PAGES, *address, contents);
        }
        if let Some(filter) = &self.filter {
            record(&mut bytes, kind::FILTER, 0, &filter.write_to_bytes().map_err(lost)?);
        }
        for Waiting { entry, beside } in &self.mounts {
            let contents = [beside.as_bytes(), &entry.write_to_bytes().map_err(lost)?].concat();
            record(&mut bytes, kind::MOUNT, beside.len() as u64, &contents);
        }
        if bytes.len() > RESIDUE_BYTES {
            let why = format!("{} bytes of residue, room for {RESIDUE_BYTES}", bytes.len());
            return Err(RecodeError::refused(format!("process {pid}"), why));
        }
        Ok(bytes)
    }

    /// From what [`Residue::encode`] made.
    pub(crate) fn decode(mut bytes: &[u8], pid: u32) -> Result<Residue> {
        let damaged = || RecodeError::state(pid, "the residue is damaged");
        let mut residue = Residue::default();
        while !bytes.is_empty() {
            let (header, rest) = bytes.split_first_chunk::<HEADER_BYTES>().ok_or_else(damaged)?;
            let word = |at: usize| header[at..at + 4].iter().rev().fold(0u32, |v, b| v << 8 | u32::from(*b));
            let key = u64::from(word(8)) | u64::from(word(12)) << 32;
            let (contents, rest) = rest.split_at_checked(word(4) as usize).ok_or_else(damaged)?;
            match word(0) {
                kind::THREAD => {
                    let info = Thread_info_x86::parse_from_bytes(contents).map_err(|_| damaged())?;
                    residue.threads.insert(key as u32, info);
                }
                kind::VMA => residue.vmas.push(Vma_entry::parse_from_bytes(contents).map_err(|_| damaged())?),
                kind::PAGES => residue.pages.push((key, contents.to_vec())),
                kind::FILTER => {
                    let filter = Seccomp_filter::parse_from_bytes(contents).map_err(|_| damaged())?;
                    residue.filter = Some(filter);
                }
                kind::MOUNT => {
                    let (beside, entry) = contents.split_at_checked(key as usize).ok_or_else(damaged)?;
                    let beside = String::from_utf8(beside.to_vec()).map_err(|_| damaged())?;
                    let entry = Mnt_entry::parse_from_bytes(entry).map_err(|_| damaged())?;
                    residue.mounts.push(Waiting { entry, beside });
                }
                _ => return Err(damaged()),
            }
            bytes = rest;
        }
        Ok(residue)
    }
}

fn record(bytes: &mut Vec<u8>, kind: u32, key: u64, contents: &[u8]) {
    bytes.extend(kind.to_le_bytes());
    bytes.extend((contents.len() as u32).to_le_bytes());
    bytes.extend(key.to_le_bytes());
    bytes.extend(contents);
}
