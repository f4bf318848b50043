//! Guest files that processes execute: what is in them, which of it has been hot, and what is to be compiled of that.

use crate::{Result, ServiceError};
use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use tranship_node::protocol::MappedFile;
use tranship_translate::cache::{hex, write_whole};
use tranship_translate::discover::discover;
use tranship_translate::elf::{GuestElf, Segment};
use tranship_translate::region::{Discovery, Faults, Region};

/// A page, as guest files are mapped.
const PAGE: u64 = 4096;
/// Guest code that is compiled at a time: what comes sooner is used sooner.
const PIECE_BYTES: u64 = 4 << 10;
/// Times that a region is compiled: again where it turns out that it is entered elsewhere too.
const TRIES: u32 = 4;
/// A file's pieces are joined when the largest has grown by this part of it.
const JOIN_AT: usize = 8;
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
    /// No address is in two of them.
    pieces: Vec<Piece>,
    /// More of them than are written down.
    has_grown: bool,
    /// By what processes that have it mapped may see of faults.
    kinds: HashMap<Faults, Kind>,
}

/// Objects of one kind that are made of a file.
#[derive(Default)]
struct Kind {
    /// All that they have been ordered for.
    ordered: Piece,
    /// What of that had been hot before, and is not in `compiled` yet.
    equipped: Vec<Piece>,
    /// Regions, by their start.
    compiled: HashMap<u64, Compiled>,
    /// When pieces were made, by their first addresses. The others are being made.
    made: HashMap<Option<u64>, Instant>,
}

/// What has become of a region.
#[derive(Default)]
struct Compiled {
    times: u32,
    /// The first address of the piece that it was in last.
    piece: Option<u64>,
}

impl Heat {
    /// Add what is not in the pieces yet.
    fn add(&mut self, pieces: &[Piece]) {
        let mut known: Piece = self.pieces.iter().flatten().copied().collect();
        for piece in pieces {
            let new: Piece = piece.difference(&known).copied().collect();
            known.extend(&new);
            if !new.is_empty() {
                self.pieces.push(new);
                self.has_grown = true;
            }
        }
    }
}

impl Kind {
    /// Processes get what had been hot before.
    fn equip(&mut self, pieces: &[Piece]) {
        for piece in pieces {
            if !self.ordered.is_superset(piece) {
                self.ordered.extend(piece);
                self.equipped.push(piece.clone());
            }
        }
    }

    /// `piece`, with these regions, is compiled.
    fn note<'a>(&mut self, piece: &Piece, regions: impl IntoIterator<Item = &'a Region>) {
        self.ordered.extend(piece);
        for region in regions {
            let compiled = self.compiled.entry(region.entry).or_default();
            *compiled = Compiled { times: compiled.times + 1, piece: piece.first().copied() };
        }
    }

    /// The starts of regions that a process that asked at the time `asked` may get, or have got, without.
    fn coming(&self, asked: Instant) -> Piece {
        let is_new = |piece| self.made.get(&piece).is_none_or(|made| *made + UPTAKE > asked);
        let coming = self.compiled.iter().filter(|(_, known)| is_new(known.piece));
        coming.map(|(start, _)| *start).collect()
    }

    fn is_worth_it(&self, region: &Region) -> bool {
        let times = self.compiled.get(&region.entry).map_or(0, |known| known.times);
        times < TRIES && !region.entries.is_empty()
    }
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
        let pieces = heat.pieces.clone();
        heat.kinds.entry(faults).or_default().equip(&pieces);
        pieces
    }

    /// The kinds of objects that processes take.
    pub(crate) fn kinds(&self) -> Vec<Faults> {
        self.heat().kinds.keys().copied().collect()
    }

    /// What is to be compiled for a process that wanted `addresses` at the time `asked`. What it wants may come already,
    /// or have come since. The pieces are known as hot from now on, whatever becomes of the process.
    pub(crate) fn choose(&self, faults: Faults, addresses: &BTreeSet<u64>, asked: Instant) -> Vec<Piece> {
        let found = self.discovery();
        let mut heat = self.heat();
        let kind = heat.kinds.entry(faults).or_default();
        for piece in std::mem::take(&mut kind.equipped) {
            kind.note(&piece, found.containing(&piece));
        }
        let coming = kind.coming(asked);
        // Where a region is entered at its start that may be enough; if not, it is asked for again.
        let mut addresses = found.starts(&addresses.union(&coming).copied().collect());
        addresses.retain(|address| !coming.contains(address));
        let mut part = found.around(&addresses);
        part.regions.retain(|region| kind.is_worth_it(region));
        let mut pieces = Vec::new();
        for Discovery { regions, .. } in part.pieces(PIECE_BYTES) {
            let is_entry = |address: &u64| regions.iter().any(|region| region.entries.contains(address));
            let piece = addresses.iter().copied().filter(is_entry).collect();
            kind.note(&piece, &regions);
            pieces.push(piece);
        }
        heat.add(&pieces);
        pieces
    }

    /// The object for `piece` has been made, or cannot be.
    pub(crate) fn note_made(&self, faults: Faults, piece: &Piece) {
        let mut heat = self.heat();
        heat.kinds.entry(faults).or_default().made.insert(piece.first().copied(), Instant::now());
    }

    /// Write down what has been hot, if there is more of it. Where much of it came in small pieces it becomes one, in which
    /// calls go directly; that is returned.
    pub(crate) fn save(&self) -> io::Result<Option<Piece>> {
        let mut heat = self.heat();
        if !std::mem::take(&mut heat.has_grown) {
            return Ok(None);
        }
        let all: Piece = heat.pieces.iter().flatten().copied().collect();
        let largest = heat.pieces.iter().map(Piece::len).max().unwrap_or(0);
        let has_outgrown = heat.pieces.len() > 1 && all.len() >= largest + largest / JOIN_AT;
        let joined = has_outgrown.then_some(all);
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
        let mut heat = Heat::default();
        heat.add(&lines.lines().map(addresses).collect::<Vec<_>>());
        heat.has_grown = false;
        let heat = Mutex::new(heat);
        Program { elf, discovery: OnceLock::new(), heat, profile }
    }
}
