//! What /proc says of a unit's processes.

use super::paths::UnitDir;
use crate::error::{NodeError, Result};
use crate::protocol::OpenFile;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A line of /proc/PID/maps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// First address.
    pub start: u64,
    /// First address after.
    pub end: u64,
    /// As in `r-xp`.
    pub rights: String,
    /// Where in its file it starts.
    pub offset: u64,
    /// File path or `[name]`; empty for anonymous memory.
    pub name: String,
}

/// `/proc/PID/what`.
fn entry(pid: u32, what: &str) -> PathBuf {
    Path::new("/proc").join(pid.to_string()).join(what)
}

fn read(pid: u32, what: &str) -> Result<String> {
    let path = entry(pid, what);
    fs::read_to_string(&path).map_err(NodeError::at("reading", &path))
}

/// Processes of the tree that starts with `pid`, itself first.
pub fn tree(pid: u32) -> Result<Vec<u32>> {
    let mut found = vec![pid];
    let mut next = 0;
    while let Some(&parent) = found.get(next) {
        next += 1;
        // A descendant may have ended meanwhile.
        for thread in threads(parent).or_else(|why| if parent == pid { Err(why) } else { Ok(vec![]) })? {
            let children = read(parent, &format!("task/{thread}/children")).unwrap_or_default();
            found.extend(children.split_whitespace().filter_map(|child| child.parse::<u32>().ok()));
        }
    }
    Ok(found)
}

/// All processes, in order.
pub fn all() -> Result<Vec<u32>> {
    let entries = fs::read_dir("/proc").map_err(NodeError::at("reading", Path::new("/proc")))?;
    let mut pids: Vec<u32> =
        entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
    pids.sort_unstable();
    Ok(pids)
}

/// Whether there is such a process and it has not ended.
pub fn is_alive(pid: u32) -> bool {
    stat(pid, 3).is_some_and(|state| !matches!(state.as_str(), "Z" | "X"))
}

/// The parent of a process, if it has one here.
pub fn parent(pid: u32) -> Option<u32> {
    stat(pid, 4)?.parse().ok().filter(|parent| *parent != 0)
}

/// A field of /proc/PID/stat behind the second one, which is the program's name in parentheses and may hold anything.
fn stat(pid: u32, field: usize) -> Option<String> {
    let stat = read(pid, "stat").ok()?;
    stat.rsplit_once(") ")?.1.split_whitespace().nth(field.checked_sub(3)?).map(str::to_owned)
}

/// The words that a process was started with.
pub fn command_line(pid: u32) -> Vec<String> {
    let words = read(pid, "cmdline").unwrap_or_default();
    words.split_terminator('\0').map(str::to_owned).collect()
}

/// Bytes of address space that a process has mapped; none of one that has ended.
pub fn mapped_bytes(pid: u32) -> u64 {
    let pages = read(pid, "statm").ok().and_then(|text| text.split(' ').next()?.parse().ok());
    pages.unwrap_or(0_u64).saturating_mul(rustix::param::page_size() as u64)
}

/// The inode number of a process's PID namespace.
pub fn pid_namespace(pid: u32) -> Option<u64> {
    Some(fs::metadata(entry(pid, "ns/pid")).ok()?.ino())
}

/// Whether the process has memory that can be looked at: one that is about to end has none any more.
pub fn has_memory(pid: u32) -> bool {
    maps(pid).is_ok_and(|maps| !maps.is_empty())
}

/// Threads of a process.
pub fn threads(pid: u32) -> Result<Vec<u32>> {
    let path = entry(pid, "task");
    let entries = fs::read_dir(&path).map_err(NodeError::at("reading", &path))?;
    Ok(entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect())
}

/// The id by which the thread `tid` of process `pid` knows itself, if it sleeps in the kernel.
pub fn own_id_if_asleep(pid: u32, tid: u32) -> Option<u32> {
    let status = read(pid, &format!("task/{tid}/status")).ok()?;
    let field = |name| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let asleep = field("State:")?.starts_with(['S', 'D']);
    let own = field("NSpid:")?.split_whitespace().last()?.parse().ok()?;
    asleep.then_some(own)
}

/// Memory mappings of a process.
pub fn maps(pid: u32) -> Result<Vec<Mapping>> {
    Ok(read(pid, "maps")?.lines().filter_map(parse_mapping).collect())
}

fn parse_mapping(line: &str) -> Option<Mapping> {
    let mut fields = line.splitn(6, ' ');
    let (start, end) = fields.next()?.split_once('-')?;
    let rights = fields.next()?.to_owned();
    let number = |text| u64::from_str_radix(text, 16).ok();
    let offset = number(fields.next()?)?;
    let name = fields.nth(2).unwrap_or("").trim_start().to_owned();
    Some(Mapping { start: number(start)?, end: number(end)?, rights, offset, name })
}

/// Files that the unit maps executable, as paths in its root.
pub fn programs(unit: &UnitDir, pid: u32) -> Result<BTreeSet<String>> {
    mapped(unit, pid, |rights| rights.contains('x'))
}

/// Files that the unit maps shared and writable, as paths in its root.
pub fn written_through_memory(unit: &UnitDir, pid: u32) -> Result<BTreeSet<String>> {
    mapped(unit, pid, |rights| rights.contains('w') && rights.contains('s'))
}

fn mapped(unit: &UnitDir, pid: u32, wanted: impl Fn(&str) -> bool) -> Result<BTreeSet<String>> {
    let root = unit.root();
    let mut paths = BTreeSet::new();
    for process in tree(pid)? {
        for mapping in maps(process)?.iter().filter(|mapping| wanted(&mapping.rights)) {
            if let Ok(inside) = Path::new(&mapping.name).strip_prefix(&root) {
                paths.insert(inside.to_string_lossy().into_owned());
            }
        }
    }
    Ok(paths)
}

/// CPU time in milliseconds and resident memory in bytes.
pub fn usage(pid: u32) -> Result<(u64, u64)> {
    let stat = read(pid, "stat")?;
    let rest = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
    let field = |n: usize| rest.split(' ').nth(n - 3).and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
    let ticks = rustix::param::clock_ticks_per_second().max(1);
    let cpu_ms = (field(14) + field(15)) * 1000 / ticks;
    Ok((cpu_ms, field(24) * rustix::param::page_size() as u64))
}

/// Regular files in the unit's root that the process has open.
pub fn open_files(unit: &UnitDir, pid: u32) -> Result<Vec<OpenFile>> {
    let path = entry(pid, "fd");
    let entries = fs::read_dir(&path).map_err(NodeError::at("reading", &path))?;
    Ok(entries.filter_map(|entry| open_file(unit, pid, &entry.ok()?.path())).collect())
}

fn open_file(unit: &UnitDir, pid: u32, link: &Path) -> Option<OpenFile> {
    let target = fs::read_link(link).ok()?;
    let inside = target.strip_prefix(unit.root()).ok()?;
    let metadata = fs::metadata(link).ok()?;
    let info = read(pid, &format!("fdinfo/{}", link.file_name()?.to_str()?)).ok()?;
    let offset = info.lines().find_map(|line| line.strip_prefix("pos:"))?.trim().parse().ok()?;
    let path = inside.to_string_lossy().into_owned();
    metadata.is_file().then_some(OpenFile { path, offset, size: metadata.len() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapping_line_is_taken_apart() {
        let line = "7f00-7f80 r-xp 00001000 fe:00 1234                               /a b/c";
        let (rights, name) = ("r-xp".to_owned(), "/a b/c".to_owned());
        let expected = Mapping { start: 0x7f00, end: 0x7f80, rights, offset: 0x1000, name };
        assert_eq!(parse_mapping(line), Some(expected));
        assert_eq!(parse_mapping("10-20 rw-p 00000000 00:00 0").unwrap().name, "");
    }

    #[test]
    fn this_process_has_itself_and_its_children() {
        let mut child = std::process::Command::new("sleep").arg("5").spawn().unwrap();
        assert!(tree(std::process::id()).unwrap().contains(&child.id()));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
