//! Guest files that processes execute: what is in them, which of it has been hot, and what is to be compiled of that.

use crate::{Result, ServiceError};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use tranship_node::protocol::MappedFile;
use tranship_translate::cache::{hex, write_whole};
use tranship_translate::discover::discover;
use tranship_translate::elf::{GuestElf, Segment};
use tranship_translate::region::{Discovery, Faults};

/// A page, as guest files are mapped.
const PAGE: u64 = 4096;
/// Guest code that is compiled at a time: what comes sooner is used sooner.
const PIECE_BYTES: u64 = 4 << 10;
/// Times that a region is compiled: again where it turns out that it is entered elsewhere too.
const TRIES: u32 = 4;
/// How long it takes until a process uses what has been made.
const UPTAKE: Duration = Duration::from_millis(30);

/// Addresses, as linked, that are entries of one object.
pub(crate) type Piece = BTreeSet<u64>;

/// A guest file.
pub(crate) struct Program {
    pub(crate) elf: GuestElf,
    discovery: OnceLock<Discovery>,
    heat: Mutex<Heat>,
    profile: PathBuf,
}

/// What has been hot in a file.
#[derive(Default)]
struct Heat {
    pieces: Vec<Piece>,
    /// More of them than are written down.
    has_grown: bool,
    /// What processes that have it mapped may see of faults.
    kinds: HashSet<Faults>,
    /// Regions, by their start.
    compiled: HashMap<(Faults, u64), Compiled>,
}

/// What has become of a region.
#[derive(Default)]
struct Compiled {
    times: u32,
    /// When it was made last; `None` while it is being made.
    made: Option<Instant>,
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

    fn heat(&self) -> MutexGuard<'_, Heat> {
        self.heat.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What has been hot so far, in the pieces that it was compiled in, for a process that takes objects of that kind.
    pub(crate) fn pieces(&self, faults: Faults) -> Vec<Piece> {
        let mut heat = self.heat();
        heat.kinds.insert(faults);
        heat.pieces.clone()
    }

    /// The kinds of objects that processes take.
    pub(crate) fn kinds(&self) -> Vec<Faults> {
        self.heat().kinds.iter().copied().collect()
    }

    /// What is to be compiled for a process that wanted `addresses` at the time `asked`. What it wants may come already,
    /// or have come since. The pieces are known as hot from now on, whatever becomes of the process.
    pub(crate) fn choose(&self, faults: Faults, addresses: &BTreeSet<u64>, asked: Instant) -> Vec<Piece> {
        let found = self.discovery();
        let mut heat = self.heat();
        let is_new = |compiled: &Compiled| compiled.made.is_none_or(|made| made + UPTAKE > asked);
        let compiled = heat.compiled.iter().filter(|((of, _), compiled)| *of == faults && is_new(compiled));
        let coming: BTreeSet<u64> = compiled.map(|((_, start), _)| *start).collect();
        // Where a region is entered at its start that may be enough; if not, it is asked for again.
        let mut addresses = found.starts(&addresses.union(&coming).copied().collect());
        addresses.retain(|address| !coming.contains(address));
        let mut part = found.around(&addresses);
        part.regions.retain(|region| {
            let compiled = heat.compiled.entry((faults, region.entry)).or_default();
            let is_worth_it = compiled.times < TRIES && !region.entries.is_empty();
            if is_worth_it {
                *compiled = Compiled { times: compiled.times + 1, made: None };
            }
            is_worth_it
        });
        let piece = |part: Discovery| -> Piece {
            let is_entry = |address: &u64| part.regions.iter().any(|region| region.entries.contains(address));
            addresses.iter().copied().filter(is_entry).collect()
        };
        let pieces: Vec<Piece> = part.pieces(PIECE_BYTES).into_iter().map(piece).collect();
        heat.has_grown |= !pieces.is_empty();
        heat.pieces.extend(pieces.iter().cloned());
        pieces
    }

    /// The object for `piece` has been made, or cannot be.
    pub(crate) fn note_made(&self, faults: Faults, piece: &Piece) {
        let mut heat = self.heat();
        for region in self.discovery().containing(piece) {
            if let Some(compiled) = heat.compiled.get_mut(&(faults, region.entry)) {
                compiled.made = Some(Instant::now());
            }
        }
    }

    /// Write down what has been hot, if there is more of it. Where most of it came in small pieces it becomes one, in which
    /// calls go directly; that is returned.
    pub(crate) fn save(&self) -> io::Result<Option<Piece>> {
        let mut heat = self.heat();
        if !std::mem::take(&mut heat.has_grown) {
            return Ok(None);
        }
        let all: Piece = heat.pieces.iter().flatten().copied().collect();
        let largest = heat.pieces.iter().map(Piece::len).max().unwrap_or(0);
        let joined = (heat.pieces.len() > 1 && largest * 2 <= all.len()).then_some(all);
        if let Some(all) = &joined {
            heat.pieces = vec![all.clone()];
        }
        let word = |address: &u64| format!("{address:x}");
        let line = |piece: &Piece| piece.iter().map(word).collect::<Vec<_>>().join(" ") + "\n";
        let lines: String = heat.pieces.iter().map(line).collect();
        write_whole(&self.profile, lines.as_bytes())?;
        Ok(joined)
    }
}

/// Files that have been looked at, and the directory where it is written down what of them is hot.
pub(crate) struct Programs {
    directory: PathBuf,
    known: HashMap<[u64; 5], Option<Arc<Program>>>,
}

impl Programs {
    /// With what is written down in `directory`.
    pub(crate) fn new(directory: PathBuf) -> Programs {
        Programs { directory, known: HashMap::new() }
    }

    /// All that could be understood.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Program>> {
        self.known.values().flatten()
    }

    /// The program in a file, whose contents are asked for if they are not known; `None` if they could not be understood
    /// when they were seen first.
    pub(crate) fn load(
        &mut self,
        file: &MappedFile,
        read: impl FnOnce() -> Result<Vec<u8>>,
    ) -> Result<Option<Arc<Program>>> {
        if let Some(known) = self.known.get(&file.identity) {
            return Ok(known.clone());
        }
        let parsed = GuestElf::parse(read()?).map(|elf| Arc::new(self.program(elf)));
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
        let heat = Mutex::new(Heat { pieces, ..Heat::default() });
        Program { elf, discovery: OnceLock::new(), heat, profile }
    }
}
