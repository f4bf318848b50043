//! Guest files that processes execute: what is in them, and which of it has been hot.

use crate::{Result, ServiceError};
use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::io;
use std::path::PathBuf;
use std::rc::Rc;
use tranship_node::protocol::MappedFile;
use tranship_translate::cache::{hex, write_whole};
use tranship_translate::discover::discover;
use tranship_translate::elf::{GuestElf, Segment};
use tranship_translate::region::Discovery;

/// A page, as guest files are mapped.
const PAGE: u64 = 4096;

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
    /// Whether what is mapped of the file is code.
    pub(crate) fn is_code(&self, file: &MappedFile) -> bool {
        self.segment(file.offset).is_some_and(|segment| segment.executable)
    }

    /// The load bias by which it is mapped.
    pub(crate) fn bias(&self, file: &MappedFile) -> Option<u64> {
        let segment = self.segment(file.offset)?;
        let linked = segment.address.wrapping_add(file.offset).wrapping_sub(segment.file.start as u64);
        Some(file.start.wrapping_sub(linked))
    }

    /// The segment that is mapped with what the file has at `offset`, the start of a page.
    fn segment(&self, offset: u64) -> Option<&Segment> {
        let page = |at: usize| at as u64 / PAGE * PAGE;
        self.elf.segments.iter().find(|s| (page(s.file.start)..s.file.end as u64).contains(&offset))
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

/// Files that have been looked at, and the directory where it is written down what of them is hot.
pub(crate) struct Programs {
    directory: PathBuf,
    known: HashMap<[u64; 5], Option<Rc<Program>>>,
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

    /// The program in a file, whose contents are asked for if they are not known; `None` if they could not be understood
    /// when they were seen first.
    pub(crate) fn load(
        &mut self,
        file: &MappedFile,
        read: impl FnOnce() -> Result<Vec<u8>>,
    ) -> Result<Option<Rc<Program>>> {
        if let Some(known) = self.known.get(&file.identity) {
            return Ok(known.clone());
        }
        let parsed = GuestElf::parse(read()?).map(|elf| Rc::new(self.program(elf)));
        self.known.insert(file.identity, parsed.as_ref().ok().cloned());
        parsed.map(Some).map_err(|why| ServiceError::Guest { file: file.name.clone(), why })
    }

    fn program(&self, elf: GuestElf) -> Program {
        let profile = self.directory.join(hex(&elf.digest)).with_extension("hot");
        // Without it, or with one that was damaged, what is hot shows again.
        let lines = fs::read_to_string(&profile).unwrap_or_default();
        let hot: BTreeSet<u64> =
            lines.lines().filter_map(|line| u64::from_str_radix(line, 16).ok()).collect();
        let (served, hot) = (RefCell::new(hot.len()), RefCell::new(hot));
        Program { elf, discovery: OnceCell::new(), hot, served, profile }
    }
}
