//! Guest files that processes execute: what is in them, and which of it has been hot.

use crate::{Result, ServiceError};
use std::cell::{Cell, OnceCell, RefCell};
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
    pieces: RefCell<Vec<Piece>>,
    /// More pieces than are written down.
    has_grown: Cell<bool>,
    profile: PathBuf,
}

/// Addresses, as linked, that are entries of one object.
pub(crate) type Piece = BTreeSet<u64>;

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

    /// What has been hot so far, in the pieces that it was compiled in.
    pub(crate) fn pieces(&self) -> Vec<Piece> {
        self.pieces.borrow().clone()
    }

    /// More has been hot.
    pub(crate) fn add(&self, piece: Piece) {
        self.pieces.borrow_mut().push(piece);
        self.has_grown.set(true);
    }

    /// Write down what has been hot, if there is more of it. Where most of it came in small pieces it becomes one, in which
    /// calls go directly.
    pub(crate) fn save(&self) -> io::Result<()> {
        if !self.has_grown.take() {
            return Ok(());
        }
        let mut pieces = self.pieces.borrow_mut();
        let all: Piece = pieces.iter().flatten().copied().collect();
        let largest = pieces.iter().map(Piece::len).max().unwrap_or(0);
        if pieces.len() > 1 && largest * 2 <= all.len() {
            *pieces = vec![all];
        }
        let word = |address: &u64| format!("{address:x}");
        let line = |piece: &Piece| piece.iter().map(word).collect::<Vec<_>>().join(" ") + "\n";
        let lines: String = pieces.iter().map(line).collect();
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
        let addresses = |line: &str| -> Piece {
            line.split(' ').filter_map(|word| u64::from_str_radix(word, 16).ok()).collect()
        };
        let pieces = lines.lines().map(addresses).filter(|piece| !piece.is_empty()).collect();
        let (pieces, has_grown) = (RefCell::new(pieces), Cell::new(false));
        Program { elf, discovery: OnceCell::new(), pieces, has_grown, profile }
    }
}
