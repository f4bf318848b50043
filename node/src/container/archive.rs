//! A checkpoint's archive, looked through before the engine unpacks it: it comes from another machine, and engines unpack as
//! root. What an exported checkpoint never has is refused, before anything of it is written anywhere.

use crate::error::{NodeError, Result};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::{Component, Path, PathBuf};
use tar::{Archive, Entry, EntryType};

/// What Podman puts at the top of an archive (`podman container checkpoint --export`, versions 4 to 5.8).
const KNOWN: &[&str] = &[
    "artifacts",
    "bind.mounts",
    "checkpoint",
    "config.dump",
    "ctr.log",
    "deleted.files",
    "devshm-checkpoint.tar",
    "dump.log",
    "network.status",
    "restore.log",
    "rootfs-diff.tar",
    "spec.dump",
    "stats-dump",
    "stats-restore",
    "volumes",
];
/// The list of paths that the container has removed from its image's tree, as JSON.
const DELETED: &str = "deleted.files";
/// Most bytes of that list.
const DELETED_BYTES: u64 = 16 << 20;
/// Most files in an archive, or in one inside.
const ENTRIES: usize = 1 << 20;

/// Refuse an archive that would have the engine write, link or remove anything outside of the container's own
/// directories, make a device, or unpack to more than itself.
pub(super) fn inspect(archive: &Path) -> Result<()> {
    let file = File::open(archive).map_err(NodeError::at("opening", archive))?;
    let length = file.metadata().map_err(NodeError::at("opening", archive))?.len();
    let mut archive = Archive::new(file);
    let mut left = length;
    for (number, entry) in archive.entries_with_seek().map_err(damaged)?.enumerate() {
        let mut entry = entry.map_err(damaged)?;
        let path = inside(&entry.path().map_err(damaged)?)?;
        let name = path.display().to_string();
        if number > ENTRIES {
            return Err(hostile(&name, format!("is one of more than {ENTRIES} files")));
        }
        left = left.checked_sub(entry.size()).ok_or_else(|| hostile(&name, "is larger than the archive"))?;
        no_holes(&mut entry, &name)?;
        let kind = entry.header().entry_type();
        if !matches!(kind, EntryType::Regular | EntryType::Directory) {
            return Err(hostile(&name, format!("is a {kind:?}, in a checkpoint are files and directories")));
        }
        let top = path.components().next().map(|first| first.as_os_str().to_owned());
        if top.is_some_and(|top| !KNOWN.iter().any(|known| top == *known)) {
            return Err(hostile(&name, "is nothing that belongs to a checkpoint"));
        }
        if kind == EntryType::Regular && path.extension().is_some_and(|extension| extension == "tar") {
            tree(&mut Archive::new(&mut entry), &name)?;
        }
        if path == Path::new(DELETED) {
            removals(&mut entry)?;
        }
    }
    Ok(())
}

/// An archive of a tree that is unpacked in the container's.
fn tree(archive: &mut Archive<impl Read>, of: &str) -> Result<()> {
    let mut links = BTreeSet::new();
    for (number, entry) in archive.entries().map_err(damaged)?.enumerate() {
        let mut entry = entry.map_err(damaged)?;
        let path = inside(&entry.path().map_err(damaged)?)?;
        let name = format!("{of}: {}", path.display());
        if number > ENTRIES {
            return Err(hostile(&name, format!("is one of more than {ENTRIES} files")));
        }
        behind_no_link(&path, &links, &name)?;
        no_holes(&mut entry, &name)?;
        match entry.header().entry_type() {
            EntryType::Regular | EntryType::Directory | EntryType::Fifo => {}
            // Where it leads is the container's affair, as long as nothing is unpacked through it.
            EntryType::Symlink => {
                links.insert(path);
            }
            EntryType::Link => {
                let target = entry.link_name().map_err(damaged)?;
                let target = inside(&target.ok_or_else(|| hostile(&name, "links to nothing"))?)?;
                behind_no_link(&target, &links, &name)?;
            }
            kind => return Err(hostile(&name, format!("is a {kind:?}"))),
        }
    }
    Ok(())
}

fn behind_no_link(path: &Path, links: &BTreeSet<PathBuf>, name: &str) -> Result<()> {
    match path.ancestors().skip(1).any(|above| links.contains(above)) {
        true => Err(hostile(name, "is behind a symbolic link of the same archive")),
        false => Ok(()),
    }
}

/// What is said to have holes could be unpacked to any size.
fn no_holes(entry: &mut Entry<'_, impl Read>, name: &str) -> Result<()> {
    for record in entry.pax_extensions().map_err(damaged)?.into_iter().flatten() {
        if record.map_err(damaged)?.key_bytes().starts_with(b"GNU.sparse.") {
            return Err(hostile(name, "has holes"));
        }
    }
    Ok(())
}

/// The list of removed files.
fn removals(entry: &mut Entry<'_, impl Read>) -> Result<()> {
    if entry.size() > DELETED_BYTES {
        return Err(hostile(DELETED, format!("has {} bytes", entry.size())));
    }
    let mut text = Vec::new();
    entry.read_to_end(&mut text).map_err(damaged)?;
    let paths: Vec<PathBuf> =
        serde_json::from_slice(&text).map_err(|why| hostile(DELETED, why.to_string()))?;
    // They begin at the container's root.
    paths.iter().try_for_each(|path| inside(path.strip_prefix("/").unwrap_or(path)).map(drop))
}

/// The path without its dots, if it stays in its directory.
fn inside(path: &Path) -> Result<PathBuf> {
    let mut clean = PathBuf::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => clean.push(name),
            Component::CurDir => {}
            _ => return Err(NodeError::BadPath { path: path.display().to_string() }),
        }
    }
    Ok(clean)
}

fn hostile(name: &str, why: impl Into<String>) -> NodeError {
    NodeError::Hostile { name: name.to_owned(), why: why.into() }
}

fn damaged(why: std::io::Error) -> NodeError {
    NodeError::io("reading the checkpoint's archive", why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tar::{Builder, Header};

    /// An archive of these: name, kind, what it links to, contents.
    fn archive(members: &[(&str, EntryType, &str, &[u8])]) -> Vec<u8> {
        let mut builder = Builder::new(Vec::new());
        for (name, kind, link, contents) in members {
            let mut header = Header::new_gnu();
            // Written as they are: the library would refuse some.
            let fields = header.as_gnu_mut().unwrap();
            fields.name[..name.len()].copy_from_slice(name.as_bytes());
            fields.linkname[..link.len()].copy_from_slice(link.as_bytes());
            header.set_entry_type(*kind);
            header.set_size(contents.len() as u64);
            header.set_cksum();
            builder.append(&header, *contents).unwrap();
        }
        builder.into_inner().unwrap()
    }

    fn verdict(bytes: &[u8]) -> std::result::Result<(), String> {
        let name = format!("tranship-archive-{}-{:?}", std::process::id(), std::thread::current().id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, bytes).unwrap();
        let verdict = inspect(&path).map_err(|error| error.to_string());
        std::fs::remove_file(&path).unwrap();
        verdict
    }

    fn refused(members: &[(&str, EntryType, &str, &[u8])], why: &str) {
        let said = verdict(&archive(members)).unwrap_err();
        assert!(said.contains(why), "{said}");
    }

    const FILE: EntryType = EntryType::Regular;

    #[test]
    fn what_podman_exports_is_taken() {
        let inner = archive(&[
            ("./etc", EntryType::Directory, "", b""),
            ("./etc/link", EntryType::Symlink, "/", b""),
            ("./etc/file", FILE, "", b"x"),
            ("./etc/same", EntryType::Link, "etc/file", b""),
        ]);
        let members: &[(&str, EntryType, &str, &[u8])] = &[
            ("artifacts/", EntryType::Directory, "", b""),
            ("config.dump", FILE, "", b"{}"),
            ("checkpoint/core-1.img", FILE, "", b"x"),
            ("deleted.files", FILE, "", br#"["/etc/motd"]"#),
            ("rootfs-diff.tar", FILE, "", &inner),
        ];
        assert_eq!(verdict(&archive(members)), Ok(()));
    }

    #[test]
    fn nothing_leaves_the_archives_directory() {
        for path in ["../escape", "checkpoint/../../escape", "/etc/passwd"] {
            refused(&[(path, FILE, "", b"x")], "leaves its directory");
        }
        refused(&[("escape", FILE, "", b"x")], "nothing that belongs");
        refused(&[("checkpoint", EntryType::Symlink, "/etc", b"")], "is a Symlink");
        refused(&[("deleted.files", FILE, "", br#"["/../etc/passwd"]"#)], "leaves its directory");
    }

    #[test]
    fn nothing_leaves_the_containers_tree() {
        let within = |members: &[(&str, EntryType, &str, &[u8])], why: &str| {
            let inner = archive(members);
            refused(&[("rootfs-diff.tar", FILE, "", &inner)], why);
            refused(&[("volumes/data.tar", FILE, "", &inner)], why);
        };
        within(&[("../escape", FILE, "", b"x")], "leaves its directory");
        within(
            &[("out", EntryType::Symlink, "/", b""), ("out/etc/passwd", FILE, "", b"x")],
            "behind a symbolic link",
        );
        within(&[("same", EntryType::Link, "../../etc/shadow", b"")], "leaves its directory");
        within(
            &[("out", EntryType::Symlink, "/", b""), ("same", EntryType::Link, "out/etc/shadow", b"")],
            "behind",
        );
        within(&[("disk", EntryType::Block, "", b"")], "is a Block");
        within(&[("memory", EntryType::Char, "", b"")], "is a Char");
    }

    #[test]
    fn sizes_are_those_of_the_archive() {
        let mut bytes = archive(&[("checkpoint/pages-1.img", FILE, "", b"x")]);
        let mut header = Header::new_gnu();
        header.set_path("checkpoint/pages-1.img").unwrap();
        header.set_entry_type(FILE);
        header.set_size(1 << 50);
        header.set_cksum();
        bytes[..512].copy_from_slice(header.as_bytes());
        assert!(verdict(&bytes).unwrap_err().contains("larger than the archive"));
        // A compressed one could be of any size; nodes send none.
        assert!(verdict(&[0x28, 0xb5, 0x2f, 0xfd, 1, 2, 3, 4].repeat(200)).is_err());
        assert!(verdict(&archive(&[("checkpoint/pages-1.img", EntryType::GNUSparse, "", b"")])).is_err());
        // The other way to say that a file is nearly all holes: records before it.
        let holes = b"31 GNU.sparse.realsize=1099511\n";
        let members: &[(&str, EntryType, &str, &[u8])] =
            &[("x", EntryType::XHeader, "", holes), ("checkpoint/pages-1.img", FILE, "", b"x")];
        refused(members, "has holes");
    }
}
