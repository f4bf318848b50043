//! Guest files that processes execute: what is in them, and which of it has been hot.

use crate::{Result, ServiceError};
use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use tranship_node::NodeError;
use tranship_translate::cache::write_whole;
use tranship_translate::discover::discover;
use tranship_translate::elf::GuestElf;
use tranship_translate::region::Discovery;

/// A guest file.
pub(crate) struct Program {
    pub(crate) elf: GuestElf,
    discovery: OnceCell<Discovery>,
    /// Addresses, as linked, that processes have wanted so far.
    hot: RefCell<BTreeSet<u64>>,
    /// How many of them the latest object of it was made for.
    served: RefCell<usize>,
    profile: PathBuf,
}

impl Program {
    /// Whether the file has code at `offset`.
    pub(crate) fn is_code(&self, offset: u64) -> bool {
        let page = |at: usize| at as u64 / 4096 * 4096;
        self.elf
            .segments
            .iter()
            .any(|s| s.executable && (page(s.file.start)..s.file.end as u64).contains(&offset))
    }

    /// The load bias by which what the file has at `offset` is mapped at `start`.
    pub(crate) fn bias(&self, start: u64, offset: u64) -> Option<u64> {
        let offset = usize::try_from(offset).ok()?;
        let page = |at: usize| at / 4096 * 4096;
        let segment =
            self.elf.segments.iter().find(|s| (page(s.file.start)..s.file.end.max(1)).contains(&offset))?;
        let linked = segment.address.wrapping_add(offset as u64).wrapping_sub(segment.file.start as u64);
        Some(start.wrapping_sub(linked))
    }

    /// The regions in it.
    pub(crate) fn discovery(&self) -> &Discovery {
        self.discovery.get_or_init(|| discover(&self.elf))
    }

    /// Note that `addresses` are hot.
    pub(crate) fn heat(&self, addresses: &BTreeSet<u64>) {
        self.hot.borrow_mut().extend(addresses);
    }

    /// What has been hot.
    pub(crate) fn hot(&self) -> BTreeSet<u64> {
        self.hot.borrow().clone()
    }

    /// Whether more has been hot since this was asked last.
    pub(crate) fn has_grown(&self) -> bool {
        let now = self.hot.borrow().len();
        self.served.replace(now) < now
    }

    /// Write down what has been hot.
    pub(crate) fn save(&self) -> io::Result<()> {
        let lines: String = self.hot.borrow().iter().map(|address| format!("{address:x}\n")).collect();
        write_whole(&self.profile, lines.as_bytes())
    }
}

/// A file, whatever its name: device, inode, size, time of its last modification.
type Identity = (u64, u64, u64, i64, i64);

/// Files that have been looked at, and the directory where it is written down what of them is hot.
pub(crate) struct Programs {
    directory: PathBuf,
    known: HashMap<Identity, Option<Rc<Program>>>,
}

impl Programs {
    /// With what is written down in `directory`.
    pub(crate) fn new(directory: PathBuf) -> Programs {
        Programs { directory, known: HashMap::new() }
    }

    /// All that could be understood.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Rc<Program>> {
        self.known.values().flatten()
    }

    /// The program in a file; `None` if it is none that could be understood when it was tried first.
    pub(crate) fn load(&mut self, path: &Path, name: &str) -> Result<Option<Rc<Program>>> {
        let unreadable = |why| ServiceError::Process(NodeError::io(format!("reading {name}"), why));
        let data = fs::metadata(path).map_err(unreadable)?;
        let identity = (data.dev(), data.ino(), data.size(), data.mtime(), data.mtime_nsec());
        if let Some(known) = self.known.get(&identity) {
            return Ok(known.clone());
        }
        let bytes = fs::read(path).map_err(unreadable)?;
        let parsed = GuestElf::parse(bytes).map(|elf| Rc::new(self.program(elf)));
        self.known.insert(identity, parsed.as_ref().ok().cloned());
        parsed.map(Some).map_err(|why| ServiceError::Guest { file: name.to_owned(), why })
    }

    fn program(&self, elf: GuestElf) -> Program {
        let digest: String = elf.digest.iter().map(|byte| format!("{byte:02x}")).collect();
        let profile = self.directory.join(digest).with_extension("hot");
        // Without it, or with one that was damaged, what is hot shows again.
        let lines = fs::read_to_string(&profile).unwrap_or_default();
        let hot: BTreeSet<u64> =
            lines.lines().filter_map(|line| u64::from_str_radix(line, 16).ok()).collect();
        let (served, hot) = (RefCell::new(hot.len()), RefCell::new(hot));
        Program { elf, discovery: OnceCell::new(), hot, served, profile }
    }
}
