//! Keeping a copy of a directory tree up to date on another node: the sender lists entries, the receiver asks for
//! the files whose size or modification time differ. Run once while the unit runs and once more while it is
//! frozen, the second time moves little.
//!
//! Units are not trusted: no path is ever resolved through a symbolic link or out of the root.

use crate::error::{NodeError, Result};
use crate::progress::Progress;
use crate::protocol::{Channel, Entry, EntryKind, Received, Reply, TreeMessage, Wanted};
use crate::serve::report_during;
use rustix::fs::{
    self, AtFlags, CWD, Dir, FileType, Gid, Mode, OFlags, ResolveFlags, Timespec, Timestamps, Uid,
};
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Entries listed at a time.
const PART: usize = 2000;
/// Deepest nesting of directories.
const MAX_DEPTH: usize = 200;
/// A file modified this recently may change again without its modification time telling.
const FRESH: Duration = Duration::from_millis(50);
/// A modification time that no file has: its contents are sent again next time.
const NEVER: (i64, u32) = (0, 0);

/// Open the root of a tree.
fn open_root(root: &Path) -> Result<OwnedFd> {
    fs::openat(CWD, root, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
        .map_err(NodeError::at("opening", root))
}

/// Open `path` below `root`, through no symbolic link.
fn open_below(root: BorrowedFd, path: &str, flags: OFlags) -> std::result::Result<OwnedFd, Errno> {
    let path = if path.is_empty() { "." } else { path };
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    fs::openat2(root, path, flags | OFlags::CLOEXEC | OFlags::NOFOLLOW, Mode::empty(), resolve)
}

// ---- sending ----

/// All entries below `root`, parents first.
pub fn list(root: &Path) -> Result<Vec<Entry>> {
    let mut entries = Vec::new();
    list_directory(&open_root(root)?, "", 0, &mut entries)?;
    Ok(entries)
}

fn list_directory(directory: &OwnedFd, path: &str, depth: usize, entries: &mut Vec<Entry>) -> Result<()> {
    let failed = |why: Errno| NodeError::io(format!("listing /{path}"), why);
    if depth > MAX_DEPTH {
        return Err(NodeError::BadPath { path: path.to_owned() });
    }
    for item in Dir::read_from(directory).map_err(failed)? {
        let item = item.map_err(failed)?;
        let name = item.file_name();
        if name == c"." || name == c".." {
            continue;
        }
        let text = name.to_str().map_err(|_| NodeError::BadPath {
            path: format!("{path}/{} (not UTF-8)", name.to_string_lossy()),
        })?;
        let below = if path.is_empty() { text.to_owned() } else { format!("{path}/{text}") };
        let stat = match fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => continue,
            stat => stat.map_err(failed)?,
        };
        let Some(kind) = kind_of(directory, name, &stat, &below)? else { continue };
        let is_directory = kind == EntryKind::Directory;
        entries.push(Entry {
            path: below.clone(),
            kind,
            mode: stat.st_mode & 0o7777,
            uid: stat.st_uid,
            gid: stat.st_gid,
            modified: (stat.st_mtime, stat.st_mtime_nsec as u32),
        });
        if is_directory {
            let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let child = fs::openat(directory, name, flags, Mode::empty()).map_err(failed)?;
            list_directory(&child, &below, depth + 1, entries)?;
        }
    }
    Ok(())
}

/// `None` for a socket: its name says nothing once its owner is elsewhere, CRIU makes it anew.
fn kind_of(
    directory: &OwnedFd,
    name: &std::ffi::CStr,
    stat: &fs::Stat,
    path: &str,
) -> Result<Option<EntryKind>> {
    let kind = match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => EntryKind::Directory,
        FileType::RegularFile => EntryKind::File(stat.st_size as u64),
        FileType::Fifo => EntryKind::Fifo,
        FileType::Symlink => {
            let target = fs::readlinkat(directory, name, Vec::new())
                .map_err(|why| NodeError::io(format!("reading the link /{path}"), why))?;
            EntryKind::Link(target.into_string().map_err(|_| NodeError::BadPath { path: path.to_owned() })?)
        }
        FileType::Socket => return Ok(None),
        other => {
            return Err(NodeError::io(
                format!("sending /{path}"),
                format!("a {other:?} in a unit's root cannot be moved; remove it"),
            ));
        }
    };
    Ok(Some(kind))
}

/// What may happen to a root while it is sent.
#[derive(Clone, Debug)]
pub struct Writers {
    /// Somebody may write: what was just modified is sent again next time, since it may change without its
    /// modification time telling.
    pub present: bool,
    /// Files (paths in the root) that are sent every time: they are mapped writable, so their modification time says
    /// nothing.
    pub through_memory: BTreeSet<String>,
}

impl Writers {
    /// Nobody writes: what arrives is final.
    pub fn none() -> Writers {
        Writers { present: false, through_memory: BTreeSet::new() }
    }
}

/// Bring the receiver at the other end of `channel` up to date with `root`, which has `entries`. Listing them may take
/// longer than a receiver waits, so it comes before the connection.
pub fn send(
    channel: &mut Channel,
    root: &Path,
    mut entries: Vec<Entry>,
    writers: &Writers,
    progress: &Progress,
) -> Result<()> {
    for entry in &mut entries {
        if writers.through_memory.contains(&entry.path) {
            entry.modified = NEVER;
        }
    }
    let directory = open_root(root)?;
    let bytes = |entry: &Entry| if let EntryKind::File(size) = entry.kind { size } else { 0 };
    progress.enter("root", entries.iter().map(bytes).sum());
    for part in entries.chunks(PART) {
        channel.send(&TreeMessage::Entries(part.to_vec()))?;
        let Wanted(indices) = channel.answer(&mut |_| ())?;
        let wanted: BTreeSet<u32> = indices.into_iter().collect();
        for (index, entry) in (0..).zip(part) {
            if wanted.contains(&index) {
                send_file(channel, &directory, index, entry, writers, progress)?;
            } else {
                progress.add(bytes(entry));
            }
        }
    }
    channel.send(&TreeMessage::End)
}

fn send_file(
    channel: &mut Channel,
    root: &OwnedFd,
    index: u32,
    entry: &Entry,
    writers: &Writers,
    progress: &Progress,
) -> Result<()> {
    let failed = |why: Errno| NodeError::io(format!("reading /{}", entry.path), why);
    let flags = OFlags::RDONLY | OFlags::NONBLOCK;
    let mut file = match open_below(root.as_fd(), &entry.path, flags) {
        Ok(file) => File::from(file),
        // Removed meanwhile: the next pass tells the receiver.
        Err(Errno::NOENT) => {
            let message = TreeMessage::File { index, modified: NEVER };
            return channel.send(&message);
        }
        Err(why) => return Err(failed(why)),
    };
    let stat = fs::fstat(&file).map_err(failed)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return channel.send(&TreeMessage::File { index, modified: NEVER });
    }
    let modified = (stat.st_mtime, stat.st_mtime_nsec as u32);
    let settled = !writers.present || !(writers.through_memory.contains(&entry.path) || is_fresh(modified));
    let message = TreeMessage::File { index, modified: if settled { modified } else { NEVER } };
    channel.send_with_stream(&message, stat.st_size as u64, &mut file, progress)?;
    Ok(())
}

fn is_fresh((seconds, nanoseconds): (i64, u32)) -> bool {
    let modified = UNIX_EPOCH + Duration::new(seconds.max(0) as u64, nanoseconds);
    SystemTime::now().duration_since(modified).is_ok_and(|age| age < FRESH)
}

// ---- receiving ----

/// Receive a tree into `root`, which exists.
pub fn receive(channel: &mut Channel, root: &Path) -> Result<Received> {
    let mut receiver = Receiver {
        root: open_root(root)?,
        listed: BTreeSet::new(),
        directories: vec![],
        received: Received::default(),
    };
    loop {
        match channel.receive::<TreeMessage>()?.message {
            TreeMessage::Entries(part) => receiver.part(channel, part)?,
            TreeMessage::End => return report_during(channel, |_| receiver.end())?,
            TreeMessage::File { .. } => return Err(NodeError::protocol("a file that was not asked for")),
        }
    }
}

struct Receiver {
    root: OwnedFd,
    listed: BTreeSet<String>,
    /// Their modification times come last: filling a directory changes it.
    directories: Vec<Entry>,
    received: Received,
}

impl Receiver {
    fn part(&mut self, channel: &mut Channel, part: Vec<Entry>) -> Result<()> {
        let wanted = report_during(channel, |_| self.place_all(&part))??;
        channel.send(&Reply::done(&Wanted(wanted.clone()))?)?;
        for expected in wanted {
            let frame = channel.receive::<TreeMessage>()?;
            match frame.message {
                TreeMessage::File { index, modified } if index == expected => {
                    self.contents(channel, &part[index as usize], frame.body, modified)?;
                }
                _ => return Err(NodeError::protocol("another file than the one asked for")),
            }
        }
        for entry in part {
            self.listed.insert(entry.path.clone());
            if entry.kind == EntryKind::Directory {
                self.directories.push(entry);
            }
        }
        Ok(())
    }

    /// Make all of `part` exist; the indices of those whose contents are wanted.
    fn place_all(&mut self, part: &[Entry]) -> Result<Vec<u32>> {
        let mut wanted = Vec::new();
        for (index, entry) in (0..).zip(part) {
            if self.place(entry)? {
                wanted.push(index);
            }
        }
        Ok(wanted)
    }

    /// Make `entry` exist with its owner and mode; true if its contents are wanted.
    fn place(&mut self, entry: &Entry) -> Result<bool> {
        let (parent, name) = self.parent_of(&entry.path)?;
        let failed = |why: Errno| NodeError::io(format!("writing /{}", entry.path), why);
        let present = match fs::statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) if is_kind(&stat, entry, &parent, name) => Some(stat),
            Ok(stat) => {
                remove(&parent, name, FileType::from_raw_mode(stat.st_mode)).map_err(failed)?;
                None
            }
            Err(Errno::NOENT) => None,
            Err(why) => return Err(failed(why)),
        };
        if present.is_none() {
            make(&parent, name, &entry.kind).map_err(failed)?;
            self.received.entries += 1;
        }
        fs::chownat(
            &parent,
            name,
            Some(Uid::from_raw(entry.uid)),
            Some(Gid::from_raw(entry.gid)),
            AtFlags::SYMLINK_NOFOLLOW,
        )
        .map_err(failed)?;
        if !matches!(entry.kind, EntryKind::Link(_)) {
            fs::chmodat(&parent, name, Mode::from_raw_mode(entry.mode), AtFlags::empty()).map_err(failed)?;
        }
        let EntryKind::File(size) = entry.kind else { return Ok(false) };
        let same = |stat: &fs::Stat| {
            stat.st_size as u64 == size
                && (stat.st_mtime, stat.st_mtime_nsec as u32) == entry.modified
                && entry.modified != NEVER
        };
        Ok(!present.as_ref().is_some_and(same))
    }

    fn contents(
        &mut self,
        channel: &mut Channel,
        entry: &Entry,
        length: u64,
        modified: (i64, u32),
    ) -> Result<()> {
        let failed = |why: Errno| NodeError::io(format!("writing /{}", entry.path), why);
        // NONBLOCK: should it be a FIFO after all, do not wait for a reader.
        let flags = OFlags::WRONLY | OFlags::TRUNC | OFlags::NONBLOCK;
        let mut file = File::from(open_below(self.root.as_fd(), &entry.path, flags).map_err(failed)?);
        channel.copy_body(length, &mut file, &Progress::default())?;
        fs::futimens(&file, &timestamps(modified)).map_err(failed)?;
        self.received.entries += 1;
        self.received.bytes += length;
        Ok(())
    }

    fn end(self) -> Result<Received> {
        self.remove_unlisted(&self.root, "", 0)?;
        for entry in self.directories.iter().rev() {
            let (parent, name) = self.parent_of(&entry.path)?;
            fs::utimensat(&parent, name, &timestamps(entry.modified), AtFlags::SYMLINK_NOFOLLOW)
                .map_err(|why| NodeError::io(format!("dating /{}", entry.path), why))?;
        }
        Ok(self.received)
    }

    fn remove_unlisted(&self, directory: &OwnedFd, path: &str, depth: usize) -> Result<()> {
        let failed = |why: Errno| NodeError::io(format!("cleaning /{path}"), why);
        for item in Dir::read_from(directory).map_err(failed)? {
            let item = item.map_err(failed)?;
            let name = item.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            let text = name.to_string_lossy();
            let below = if path.is_empty() { text.into_owned() } else { format!("{path}/{text}") };
            if !self.listed.contains(&below) {
                let stat = fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).map_err(failed)?;
                remove(directory, name, FileType::from_raw_mode(stat.st_mode)).map_err(failed)?;
            } else if item.file_type() == FileType::Directory && depth < MAX_DEPTH {
                let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let child = fs::openat(directory, name, flags, Mode::empty()).map_err(failed)?;
                self.remove_unlisted(&child, &below, depth + 1)?;
            }
        }
        Ok(())
    }

    /// The directory that `path` is in, and its name there.
    fn parent_of<'a>(&self, path: &'a str) -> Result<(OwnedFd, &'a str)> {
        let bad = || NodeError::BadPath { path: path.to_owned() };
        let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
        if name.is_empty() || name == "." || name == ".." {
            return Err(bad());
        }
        let directory = open_below(self.root.as_fd(), parent, OFlags::DIRECTORY | OFlags::PATH);
        Ok((directory.map_err(|_| bad())?, name))
    }
}

fn timestamps((seconds, nanoseconds): (i64, u32)) -> Timestamps {
    let modified = Timespec { tv_sec: seconds, tv_nsec: nanoseconds.into() };
    Timestamps { last_access: modified, last_modification: modified }
}

fn is_kind(stat: &fs::Stat, entry: &Entry, parent: &OwnedFd, name: &str) -> bool {
    match (&entry.kind, FileType::from_raw_mode(stat.st_mode)) {
        (EntryKind::Directory, FileType::Directory)
        | (EntryKind::File(_), FileType::RegularFile)
        | (EntryKind::Fifo, FileType::Fifo) => true,
        (EntryKind::Link(target), FileType::Symlink) => {
            fs::readlinkat(parent, name, Vec::new()).is_ok_and(|found| found.as_bytes() == target.as_bytes())
        }
        _ => false,
    }
}

fn make(parent: &OwnedFd, name: &str, kind: &EntryKind) -> std::result::Result<(), Errno> {
    match kind {
        EntryKind::Directory => fs::mkdirat(parent, name, Mode::RWXU),
        EntryKind::Link(target) => fs::symlinkat(target.as_str(), parent, name),
        EntryKind::File(_) => {
            let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
            fs::openat(parent, name, flags, Mode::RUSR | Mode::WUSR).map(drop)
        }
        EntryKind::Fifo => fs::mknodat(parent, name, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0),
    }
}

/// Remove `name` in `parent` with everything below it.
fn remove<N: rustix::path::Arg + Copy>(
    parent: &OwnedFd,
    name: N,
    kind: FileType,
) -> std::result::Result<(), Errno> {
    if kind != FileType::Directory {
        return fs::unlinkat(parent, name, AtFlags::empty());
    }
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = fs::openat(parent, name, flags, Mode::empty())?;
    for item in Dir::read_from(&directory)? {
        let item = item?;
        let below = item.file_name();
        if below != c"." && below != c".." {
            let stat = fs::statat(&directory, below, AtFlags::SYMLINK_NOFOLLOW)?;
            remove(&directory, below, FileType::from_raw_mode(stat.st_mode))?;
        }
    }
    fs::unlinkat(parent, name, AtFlags::REMOVEDIR)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixStream;
    use std::path::PathBuf;
    use std::thread;

    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Scratch {
            let path = std::env::temp_dir().join(format!("tranship-tree-{}-{name}", std::process::id()));
            let _ = std::fs::remove_dir_all(&path);
            std::fs::create_dir_all(path.join("from")).unwrap();
            std::fs::create_dir_all(path.join("to")).unwrap();
            Scratch(path)
        }
        fn from(&self) -> PathBuf {
            self.0.join("from")
        }
        fn to(&self) -> PathBuf {
            self.0.join("to")
        }
        fn sync(&self) -> Received {
            self.sync_beside(Writers { present: true, through_memory: BTreeSet::new() })
        }
        fn sync_beside(&self, writers: Writers) -> Received {
            let (a, b) = UnixStream::pair().unwrap();
            let from = self.from();
            let sender = thread::spawn(move || {
                let mut channel = Channel::over(a.into(), "the receiver").unwrap();
                send(&mut channel, &from, list(&from).unwrap(), &writers, &Progress::default()).unwrap();
            });
            let received = receive(&mut Channel::over(b.into(), "the sender").unwrap(), &self.to()).unwrap();
            sender.join().unwrap();
            received
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_second_pass_moves_only_what_changed() {
        let scratch = Scratch::new("passes");
        let from = scratch.from();
        std::fs::create_dir_all(from.join("a/b")).unwrap();
        std::fs::write(from.join("a/b/file"), "contents").unwrap();
        std::fs::write(from.join("gone"), "x").unwrap();
        symlink("b/file", from.join("a/link")).unwrap();
        thread::sleep(2 * FRESH);
        assert_eq!(scratch.sync().bytes, 9);
        assert_eq!(scratch.sync(), Received::default());
        std::fs::write(from.join("a/b/file"), "changed!").unwrap();
        std::fs::remove_file(from.join("gone")).unwrap();
        assert_eq!(scratch.sync().bytes, 8);
        assert_eq!(list(&scratch.to()).unwrap().len(), list(&from).unwrap().len());
        assert_eq!(std::fs::read_to_string(scratch.to().join("a/link")).unwrap(), "changed!");
    }

    #[test]
    fn modification_times_arrive() {
        let scratch = Scratch::new("times");
        let time = |root: PathBuf| std::fs::metadata(root.join("file")).unwrap().modified().unwrap();
        std::fs::write(scratch.from().join("file"), "just written").unwrap();
        scratch.sync();
        assert_eq!(time(scratch.to()), UNIX_EPOCH, "may still change");
        assert_eq!(scratch.sync_beside(Writers::none()).bytes, 12);
        assert_eq!(time(scratch.to()), time(scratch.from()));
        assert_eq!(scratch.sync_beside(Writers::none()).bytes, 0);
        let mapped = Writers { present: false, through_memory: BTreeSet::from(["file".to_owned()]) };
        assert_eq!(scratch.sync_beside(mapped).bytes, 12);
        assert_eq!(time(scratch.to()), time(scratch.from()));
    }

    #[test]
    fn a_kind_that_changed_is_replaced() {
        let scratch = Scratch::new("kinds");
        std::fs::create_dir_all(scratch.to().join("x/y/z")).unwrap();
        std::fs::write(scratch.from().join("x"), "file now").unwrap();
        scratch.sync();
        assert_eq!(std::fs::read_to_string(scratch.to().join("x")).unwrap(), "file now");
    }

    #[test]
    fn no_path_leaves_the_root() {
        let scratch = Scratch::new("escape");
        symlink("/tmp", scratch.to().join("out")).unwrap();
        let receiver = Receiver {
            root: open_root(&scratch.to()).unwrap(),
            listed: BTreeSet::new(),
            directories: vec![],
            received: Received::default(),
        };
        for path in ["../x", "/etc/x", "out/x", "a/../../x", "", "..", "x/.."] {
            assert!(matches!(receiver.parent_of(path), Err(NodeError::BadPath { .. })), "{path}");
        }
    }
}
