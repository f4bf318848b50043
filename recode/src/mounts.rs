//! Mounts on files of /proc and /sys that one machine's kernel has and another's has not: engines hide such files from
//! containers. On a host that lacks the file its mount is left out; the entry waits in the residue of the processes that saw
//! it, and is back at home.

use crate::error::{RecodeError, Result};
use crate::layout::KernelFiles;
use crate::output::Output;
use crate::proto::criu_core::Task_kobj_ids_entry;
use crate::proto::mnt::{Fstype, Mnt_entry};
use crate::set::ImageSet;
use protobuf::{Enum, MessageDyn};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

/// A mount that waits for its home.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Waiting {
    /// As the dump at home had it.
    pub(crate) entry: Mnt_entry,
    /// Where a mount of the same file system is that has not been left out.
    pub(crate) beside: String,
}

/// The mounts of a set, by the number of the namespace.
pub(crate) struct Mounts {
    namespaces: BTreeMap<u32, Vec<Mnt_entry>>,
    /// Namespaces of processes, by process.
    of_processes: BTreeMap<u32, u32>,
    changed: BTreeSet<u32>,
}

impl Mounts {
    /// Those of `set`, for these processes.
    pub(crate) fn load(set: &ImageSet, pids: impl Iterator<Item = u32>) -> Result<Mounts> {
        let mut mounts =
            Mounts { namespaces: BTreeMap::new(), of_processes: BTreeMap::new(), changed: BTreeSet::new() };
        for pid in pids {
            let ids = format!("ids-{pid}.img");
            // Neither zombies nor processes of a set without namespaces have any.
            if !set.contains(&ids) {
                continue;
            }
            let ids: Task_kobj_ids_entry = set.message(&ids)?;
            let namespace = ids.mnt_ns_id();
            let image = image_name(namespace);
            if set.contains(&image) {
                mounts.of_processes.insert(pid, namespace);
                if let Entry::Vacant(place) = mounts.namespaces.entry(namespace) {
                    place.insert(set.messages(&image)?);
                }
            }
        }
        Ok(mounts)
    }

    /// Leave out what is on files that `kernel` does not have. Returns what each process does not see any more.
    pub(crate) fn leave_out(&mut self, kernel: &KernelFiles) -> Result<BTreeMap<u32, Vec<Waiting>>> {
        let mut waiting = BTreeMap::new();
        for (namespace, entries) in &mut self.namespaces {
            let absent = absent(entries, kernel);
            let (gone, kept): (Vec<_>, Vec<_>) =
                std::mem::take(entries).into_iter().partition(|entry| absent.contains(&entry.mnt_id()));
            *entries = kept;
            if !gone.is_empty() {
                self.changed.insert(*namespace);
                let gone: Result<Vec<_>> = gone.into_iter().map(|entry| wait(entry, entries)).collect();
                waiting.insert(*namespace, gone?);
            }
        }
        let of_process = |(pid, namespace): (&u32, &u32)| Some((*pid, waiting.get(namespace)?.clone()));
        Ok(self.of_processes.iter().filter_map(of_process).collect())
    }

    /// Put back what process `pid` saw at home.
    pub(crate) fn put_back(&mut self, pid: u32, waiting: &[Waiting]) {
        let Some(namespace) = self.of_processes.get(&pid) else { return };
        let Some(entries) = self.namespaces.get_mut(namespace) else { return };
        for Waiting { entry, beside } in waiting {
            // Another process has waited for it, too; or the program has taken away what it was on.
            let is_there = entries.iter().any(|other| other.mountpoint() == entry.mountpoint());
            let parent = entries.iter().filter(|other| is_below(entry.mountpoint(), other.mountpoint()));
            let parent = parent.max_by_key(|other| other.mountpoint().len()).map(Mnt_entry::mnt_id);
            let same = entries.iter().find(|other| other.mountpoint() == beside);
            if let (false, Some(parent), Some(same)) = (is_there, parent, same) {
                let mut entry = entry.clone();
                entry.mnt_id = Some(entries.iter().map(Mnt_entry::mnt_id).max().unwrap_or(0) + 1);
                entry.parent_mnt_id = Some(parent);
                // What is of the file system, not of the mount, is as it is now.
                entry.root_dev = same.root_dev;
                entry.options.clone_from(&same.options);
                entry.source.clone_from(&same.source);
                entry.sb_flags = same.sb_flags;
                entries.insert(0, entry);
                self.changed.insert(*namespace);
            }
        }
    }

    /// Write what has changed.
    pub(crate) fn write(self, output: &mut Output) -> Result<()> {
        for namespace in &self.changed {
            let entries = self.namespaces.get(namespace).into_iter().flatten();
            output.messages(&image_name(*namespace), entries.map(|entry| entry as &dyn MessageDyn))?;
        }
        Ok(())
    }
}

fn image_name(namespace: u32) -> String {
    format!("mountpoints-{namespace}.img")
}

/// Numbers of the mounts that are on, or of, files that `kernel` does not have, and of those on top of them.
fn absent(entries: &[Mnt_entry], kernel: &KernelFiles) -> BTreeSet<u32> {
    let by_id: BTreeMap<u32, &Mnt_entry> = entries.iter().map(|entry| (entry.mnt_id(), entry)).collect();
    let is_absent = |entry: &Mnt_entry| {
        let on = by_id.get(&entry.parent_mnt_id()).and_then(|parent| {
            let below = entry.mountpoint().strip_prefix(parent.mountpoint())?;
            Some((parent.fstype(), format!("{}/{below}", parent.root())))
        });
        let own = Some((entry.fstype(), entry.root().to_owned()));
        [on, own].into_iter().flatten().any(|(of, path)| match Fstype::from_i32(of as i32) {
            Some(Fstype::PROC) => !kernel.has_proc(&path),
            Some(Fstype::SYSFS) => !kernel.has_sys(&path),
            _ => false,
        })
    };
    let mut absent: BTreeSet<u32> =
        entries.iter().filter(|entry| is_absent(entry)).map(Mnt_entry::mnt_id).collect();
    loop {
        let above = entries.iter().filter(|entry| absent.contains(&entry.parent_mnt_id()));
        let above: Vec<u32> = above.map(Mnt_entry::mnt_id).filter(|id| !absent.contains(id)).collect();
        if above.is_empty() {
            return absent;
        }
        absent.extend(above);
    }
}

/// A mount that is left out, where `kept` are not.
fn wait(entry: Mnt_entry, kept: &[Mnt_entry]) -> Result<Waiting> {
    let beside = kept.iter().find(|other| other.root_dev() == entry.root_dev());
    match beside.map(|other| other.mountpoint().to_owned()) {
        Some(beside) => Ok(Waiting { entry, beside }),
        None => Err(RecodeError::refused(
            format!("the mount at {}", entry.mountpoint()),
            "is on a file that this machine's kernel does not have, and nothing else is of its file system",
        )),
    }
}

/// Whether `path` is in the directory that `above` is, somewhere.
fn is_below(path: &str, above: &str) -> bool {
    path.strip_prefix(above).is_some_and(|rest| above.ends_with('/') || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mount(id: u32, parent: u32, of: Fstype, device: u32, root: &str, at: &str) -> Mnt_entry {
        let mut entry = Mnt_entry::new();
        entry.set_fstype(of as u32);
        entry.set_mnt_id(id);
        entry.set_parent_mnt_id(parent);
        entry.set_root_dev(device);
        entry.set_root(root.to_owned());
        entry.set_mountpoint(at.to_owned());
        entry
    }

    fn container() -> Vec<Mnt_entry> {
        vec![
            mount(9, 4, Fstype::TMPFS, 7, "/", "/proc/acpi/more"),
            mount(8, 5, Fstype::TMPFS, 6, "/", "/sys/firmware"),
            mount(7, 3, Fstype::PROC, 2, "/bus", "/proc/bus"),
            mount(4, 3, Fstype::TMPFS, 6, "/", "/proc/acpi"),
            mount(5, 1, Fstype::SYSFS, 3, "/", "/sys"),
            mount(3, 1, Fstype::PROC, 2, "/", "/proc"),
            mount(1, 0, Fstype::OVERLAYFS, 1, "/", "/"),
        ]
    }

    fn mounts(entries: Vec<Mnt_entry>) -> Mounts {
        let namespaces = BTreeMap::from([(13, entries)]);
        Mounts { namespaces, of_processes: BTreeMap::from([(1, 13)]), changed: BTreeSet::new() }
    }

    #[test]
    fn what_the_kernel_has_not_is_left_out_and_put_back() {
        let directory = std::env::temp_dir().join(format!("tranship-mounts-{}", std::process::id()));
        for path in ["proc/bus", "sys/firmware"] {
            std::fs::create_dir_all(directory.join(path)).unwrap();
        }
        let kernel = KernelFiles { proc: directory.join("proc"), sys: directory.join("sys") };
        let mut abroad = mounts(container());
        // What is on top of it has a file system of its own.
        assert!(abroad.leave_out(&kernel).is_err());
        let home: Vec<_> = container().into_iter().filter(|entry| entry.mnt_id() != 9).collect();
        let mut abroad = mounts(home.clone());
        let waiting = abroad.leave_out(&kernel).unwrap();
        std::fs::remove_dir_all(&directory).unwrap();
        let at = |mounts: &Mounts| -> Vec<String> {
            mounts.namespaces[&13].iter().map(|entry| entry.mountpoint().to_owned()).collect()
        };
        assert_eq!(at(&abroad), ["/sys/firmware", "/proc/bus", "/sys", "/proc", "/"]);
        // The way back is from another dump: numbers differ.
        for entry in abroad.namespaces.get_mut(&13).unwrap() {
            entry.mnt_id = Some(entry.mnt_id() + 20);
            entry.parent_mnt_id = Some(entry.parent_mnt_id() + 20);
            entry.root_dev = Some(entry.root_dev() + 20);
        }
        for _ in 0..2 {
            abroad.put_back(1, &waiting[&1]);
        }
        assert_eq!(at(&abroad), ["/proc/acpi", "/sys/firmware", "/proc/bus", "/sys", "/proc", "/"]);
        let back = &abroad.namespaces[&13][0];
        assert_eq!((back.mnt_id(), back.parent_mnt_id(), back.root_dev()), (29, 23, 26));
    }
}
