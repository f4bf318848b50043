//! The service's round: ask every process what it wants, find what lies there, compile it, supply it.

use crate::image;
use crate::program::{Piece, Program, Programs};
use crate::{Result, ServiceError, Site};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::Path;
use std::rc::Rc;
use std::thread;
use std::time::Duration;
use tranship_node::NodeError;
use tranship_node::protocol::{CodePlace, MappedFile, ProcessId, ProcessLook, WantedCode};
use tranship_node::unit::supply::Image;
use tranship_translate::bitcode::Bitcode;
use tranship_translate::cache::Cache;
use tranship_translate::compile::{Host, Options, compile};
use tranship_translate::discover::discover_at;
use tranship_translate::elf::GuestElf;
use tranship_translate::region::{Discovery, Faults};

/// Between two rounds.
const ROUND: Duration = Duration::from_millis(5);
/// Times that one region is compiled for one process: again where it turns out that it is entered elsewhere too.
const TRIES: u32 = 4;
/// Guest code that is compiled at a time: what comes sooner is used sooner.
const PIECE_BYTES: u64 = 4 << 10;

/// Supplies processes with code for `host`.
pub struct Supplier {
    host: Host,
    options: Options,
    cache: Cache,
    programs: Programs,
    supplied: HashMap<Consumer, Supplied>,
    counts: Counts,
}

/// What has been done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Addresses that processes wanted.
    pub wanted: u64,
    /// Objects that were compiled and supplied.
    pub objects: u64,
    /// Entries that they have.
    pub entries: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Addresses that nothing could be compiled for.
    pub failed: u64,
}

/// A process, as far as objects of one kind are concerned.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Consumer {
    process: ProcessId,
    faults: Faults,
}

/// What a process has got.
#[derive(Default)]
struct Supplied {
    /// Load biases of files of which it has what was hot before.
    equipped: BTreeSet<u64>,
    /// Entries that it has, by their address in the process.
    entries: BTreeSet<u64>,
    /// Starts of regions that were compiled for it in the last round, by their address in the process: what it wanted inside
    /// them it may have wanted before they came.
    latest: BTreeSet<u64>,
    /// How often regions of files were compiled, by their address in the process.
    tries: HashMap<u64, u32>,
}

/// A file as it lies in a process, and the addresses in it that are wanted, as linked.
struct WantedFile {
    program: Rc<Program>,
    bias: u64,
    addresses: BTreeSet<u64>,
}

impl Supplier {
    /// For processes on a machine like `host`, with what is in `directory` from earlier times.
    pub fn new(host: Host, directory: &Path) -> Supplier {
        Supplier {
            host,
            options: Options { jobs: 1, ..Options::default() },
            cache: Cache::new(directory),
            programs: Programs::new(directory.to_owned()),
            supplied: HashMap::new(),
            counts: Counts::default(),
        }
    }

    /// What has been done so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Supply the processes of `site` as long as there are any. What goes wrong with one object is told to `hear`.
    pub fn serve(&mut self, site: &mut impl Site, mut hear: impl FnMut(&ServiceError)) {
        loop {
            match self.round(site, &mut hear) {
                Ok(true) => thread::sleep(ROUND),
                Ok(false) => break,
                Err(error) => {
                    hear(&error);
                    break;
                }
            }
        }
        self.keep(hear);
    }

    /// Keep what has been hot for processes to come.
    pub fn keep(&mut self, mut hear: impl FnMut(&ServiceError)) {
        let programs: Vec<Rc<Program>> = self.programs.all().cloned().collect();
        for program in programs {
            let saved = program.save().map_err(|why| NodeError::io("writing down what is hot", why).into());
            let make = |piece: &Piece| self.object_of(&program, piece, Faults::Fatal).map(drop);
            if let Err(error) = saved.and_then(|()| program.pieces().iter().try_for_each(make)) {
                hear(&error);
            }
        }
    }

    /// The object with the entries in `piece`, as it is kept, or compiled now.
    fn object_of(&self, program: &Program, piece: &Piece, faults: Faults) -> Result<Vec<u8>> {
        let part = || Discovery { faults, ..program.discovery().around(piece) };
        let options = Options { faults, ..self.options.clone() };
        let object = self.cache.running(&program.elf, piece, part, &self.host, &options)?;
        let read = fs::read(&object.path);
        read.map_err(|why| NodeError::io(format!("reading {}", object.path.display()), why).into())
    }

    /// One round; false once there are no processes any more.
    pub fn round(&mut self, site: &mut impl Site, hear: &mut impl FnMut(&ServiceError)) -> Result<bool> {
        let Some(looks) = site.look()? else { return Ok(false) };
        for look in looks {
            match self.satisfy(site, &look) {
                Err(ServiceError::Process(NodeError::ProcessGone { .. })) | Ok(()) => {}
                Err(error) => hear(&error),
            }
        }
        Ok(true)
    }

    /// Give a process what it wants, and if it is new, what was hot before in the files that it has mapped.
    fn satisfy(&mut self, site: &mut impl Site, look: &ProcessLook) -> Result<()> {
        let faults = if look.exact { Faults::Exact } else { Faults::Fatal };
        let consumer = Consumer { process: look.process, faults };
        self.counts.wanted += look.wanted.len() as u64;
        for file in &look.files {
            // Any file may be mapped; if what is executed is none that we understand, more is said then.
            if let Ok(Some((program, bias))) = self.program(site, consumer.process, file)
                && program.is_code(file)
            {
                self.equip(site, consumer, &program, bias)?;
            }
        }
        let mut files = BTreeMap::new();
        for WantedCode { address, place } in &look.wanted {
            match place {
                CodePlace::File(file) => self.note(site, consumer, *address, file, &mut files)?,
                CodePlace::Memory { start, end } => {
                    self.compile_memory(site, consumer, *address, *start, *end)?;
                }
                CodePlace::Nowhere => self.counts.failed += 1,
            }
        }
        let before = std::mem::take(&mut self.supplied.entry(consumer).or_default().latest);
        // What is hot in any of them is known from now on, even if the process is gone.
        let compiled = files.into_values().map(|file| self.compile_file(site, consumer, file, &before));
        compiled.fold(Ok(()), Result::and)
    }

    /// The program in a file, and the load bias by which it is mapped.
    fn program(
        &mut self,
        site: &mut impl Site,
        process: ProcessId,
        file: &MappedFile,
    ) -> Result<Option<(Rc<Program>, u64)>> {
        let program = self.programs.load(file, || site.read_file(process, file))?;
        Ok(program.and_then(|program| Some((program.clone(), program.bias(file)?))))
    }

    /// Add a wanted address to those of its file.
    fn note(
        &mut self,
        site: &mut impl Site,
        consumer: Consumer,
        address: u64,
        file: &MappedFile,
        files: &mut BTreeMap<([u64; 5], u64), WantedFile>,
    ) -> Result<()> {
        match self.program(site, consumer.process, file)? {
            Some((program, bias)) => {
                let new = WantedFile { program, bias, addresses: BTreeSet::new() };
                let wanted = files.entry((file.identity, bias)).or_insert(new);
                wanted.addresses.insert(address.wrapping_sub(bias));
            }
            None => self.counts.failed += 1,
        }
        Ok(())
    }

    /// Give a process what was hot before in a file, once.
    fn equip(
        &mut self,
        site: &mut impl Site,
        consumer: Consumer,
        program: &Program,
        bias: u64,
    ) -> Result<()> {
        if self.supplied.entry(consumer).or_default().equipped.insert(bias) {
            for piece in program.pieces() {
                self.supply_piece(site, consumer, program, &piece, bias)?;
            }
        }
        Ok(())
    }

    fn supply_piece(
        &mut self,
        site: &mut impl Site,
        consumer: Consumer,
        program: &Program,
        piece: &Piece,
        bias: u64,
    ) -> Result<()> {
        let object = self.object_of(program, piece, consumer.faults)?;
        self.put(site, consumer, &image::of(&object, bias)?, bias)
    }

    fn compile_file(
        &mut self,
        site: &mut impl Site,
        consumer: Consumer,
        file: WantedFile,
        before: &BTreeSet<u64>,
    ) -> Result<()> {
        let WantedFile { program, bias, mut addresses } = file;
        self.equip(site, consumer, &program, bias)?;
        let supplied = self.supplied.entry(consumer).or_default();
        addresses.retain(|address| !supplied.entries.contains(&address.wrapping_add(bias)));
        if addresses.is_empty() {
            return Ok(());
        }
        // Where a region is entered at its start that may be enough; if not, it is asked for again.
        let latest: BTreeSet<u64> = before.iter().map(|start| start.wrapping_sub(bias)).collect();
        let mut addresses = program.discovery().starts(&addresses.union(&latest).copied().collect());
        addresses.retain(|address| !latest.contains(address));
        let mut part = program.discovery().around(&addresses);
        part.regions.retain(|region| {
            let tries = supplied.tries.entry(region.entry.wrapping_add(bias)).or_default();
            *tries += 1;
            *tries <= TRIES && !region.entries.is_empty()
        });
        supplied.latest.extend(part.regions.iter().map(|region| region.entry.wrapping_add(bias)));
        if part.regions.is_empty() {
            self.counts.failed += addresses.len() as u64;
        }
        let piece = |part: Discovery| -> Piece {
            let is_entry = |address: &u64| part.regions.iter().any(|region| region.entries.contains(address));
            addresses.iter().copied().filter(is_entry).collect()
        };
        let pieces: Vec<Piece> = part.pieces(PIECE_BYTES).into_iter().map(piece).collect();
        // Also what comes too late for this process is there for the next.
        pieces.iter().for_each(|piece| program.add(piece.clone()));
        pieces.iter().try_for_each(|piece| self.supply_piece(site, consumer, &program, piece, bias))
    }

    /// Code that is in no file: what is there now, from `address` on.
    fn compile_memory(
        &mut self,
        site: &mut impl Site,
        consumer: Consumer,
        address: u64,
        start: u64,
        end: u64,
    ) -> Result<()> {
        let elf = GuestElf::of_memory(start, site.read_memory(consumer.process, start, end)?);
        let found = discover_at(&elf, [address]).around(&BTreeSet::from([address]));
        let part = Discovery { faults: consumer.faults, ..found };
        if part.regions.is_empty() {
            self.counts.failed += 1;
            return Ok(());
        }
        let object = compile(&Bitcode::lift_running(&elf, &part), &self.host, &self.options, &())?;
        self.put(site, consumer, &image::of(&object, 0)?, 0)
    }

    fn put(&mut self, site: &mut impl Site, consumer: Consumer, image: &Image, bias: u64) -> Result<()> {
        if site.supply(consumer.process, image)? {
            self.counts.objects += 1;
            self.counts.entries += image.entries().count() as u64;
            self.counts.bytes += image.bytes.len() as u64;
            let supplied = self.supplied.entry(consumer).or_default();
            supplied.entries.extend(image.entries().map(|entry| entry.wrapping_add(bias)));
        } else {
            self.counts.failed += 1;
        }
        Ok(())
    }
}
