//! The table of open files: what is in `files.img`.

use crate::error::Result;
use crate::proto::fdinfo::{Fd_types, File_entry};
use crate::proto::fown::Fown_entry;
use crate::proto::regfile::Reg_file_entry;
use crate::set::ImageSet;
use protobuf::MessageField;
use std::collections::BTreeSet;
use tranship_abi::host::Host;
use tranship_abi::open_flags::{GuestOpenFlags, HostOpenFlags};

/// The table.
pub(crate) struct Files {
    entries: Vec<File_entry>,
}

/// Which machine's open flags to write in place of which machine's.
#[derive(Clone, Copy)]
pub(crate) enum Renumbering {
    /// The guest's to a host's.
    ToHost(Host),
    /// A host's to the guest's.
    ToGuest(Host),
}

impl Renumbering {
    /// Renumber the flags in place, where there are any.
    pub(crate) fn apply(self, flags: &mut Option<u32>) {
        if let Some(flags) = flags {
            *flags = match self {
                Renumbering::ToHost(host) => GuestOpenFlags(*flags).to_host(host).0,
                Renumbering::ToGuest(host) => HostOpenFlags(*flags).to_guest(host).0,
            };
        }
    }
}

impl Files {
    /// The table of `set`.
    pub(crate) fn load(set: &ImageSet) -> Result<Files> {
        Ok(Files { entries: set.messages("files.img")? })
    }

    /// The entries.
    pub(crate) fn entries(&self) -> &[File_entry] {
        &self.entries
    }

    /// Add a regular file that is only mapped, and return its id. A restore checks its size in bytes.
    pub(crate) fn add(&mut self, path: &str, size: u64) -> u32 {
        let id = self.entries.iter().map(File_entry::id).max().unwrap_or(0) + 1;
        let owner = Fown_entry {
            uid: Some(0),
            euid: Some(0),
            signum: Some(0),
            pid_type: Some(0),
            pid: Some(0),
            ..Default::default()
        };
        let file = Reg_file_entry {
            id: Some(id),
            flags: Some(0),
            pos: Some(0),
            fown: MessageField::some(owner),
            name: Some(path.to_owned()),
            size: Some(size),
            ..Default::default()
        };
        self.entries.push(File_entry {
            type_: Some(Fd_types::REG.into()),
            id: Some(id),
            reg: MessageField::some(file),
            ..Default::default()
        });
        id
    }

    /// Remove the files with these ids.
    pub(crate) fn remove(&mut self, ids: &BTreeSet<u32>) {
        self.entries.retain(|entry| !ids.contains(&entry.id()));
    }

    /// Path of the regular file with this id.
    pub(crate) fn path(&self, id: u32) -> Option<&str> {
        let entry = self.entries.iter().find(|entry| entry.id() == id)?;
        entry.reg.as_ref().map(Reg_file_entry::name)
    }

    /// Whether this is a regular file that was dumped without its path, as somebody else's.
    pub(crate) fn is_external(&self, id: u32) -> bool {
        let entry = self.entries.iter().find(|entry| entry.id() == id);
        entry.and_then(|entry| entry.reg.as_ref()).is_some_and(Reg_file_entry::ext)
    }

    /// Renumber every file's open flags.
    pub(crate) fn renumber(&mut self, renumbering: Renumbering) {
        self.entries.iter_mut().flat_map(open_flags).for_each(|flags| renumbering.apply(flags));
    }
}

/// All open flags of a file: those that fcntl(F_GETFL) reports, and those that fanotify opens files with.
fn open_flags(entry: &mut File_entry) -> Vec<&mut Option<u32>> {
    let mut flags = Vec::new();
    flags.extend(entry.reg.as_mut().map(|file| &mut file.flags));
    flags.extend(entry.isk.as_mut().map(|file| &mut file.flags));
    flags.extend(entry.nsf.as_mut().map(|file| &mut file.flags));
    flags.extend(entry.psk.as_mut().map(|file| &mut file.flags));
    flags.extend(entry.nlsk.as_mut().map(|file| &mut file.flags));
    flags.extend(entry.efd.as_mut().map(|file| &mut file.flags));
    flags.extend(entry.epfd.as_mut().map(|file| &mut file.flags));
    flags.extend(entry.sgfd.as_mut().map(|file| &mut file.flags));
    flags.extend(entry.tfd.as_mut().map(|file| &mut file.flags));
    flags.extend(entry.ify.as_mut().map(|file| &mut file.flags));
    flags.extend(entry.ffy.as_mut().into_iter().flat_map(|file| [&mut file.flags, &mut file.evflags]));
    flags.extend(entry.usk.as_mut().map(|file| &mut file.flags));
    flags.extend(entry.pipe.as_mut().map(|file| &mut file.flags));
    flags.extend(entry.tty.as_mut().map(|file| &mut file.flags));
    flags.extend(entry.memfd.as_mut().map(|file| &mut file.flags));
    flags.extend(entry.bpf.as_mut().map(|file| &mut file.flags));
    flags.extend(entry.pidfd.as_mut().map(|file| &mut file.flags));
    flags
}
