//! The service's round: ask every process what it wants, find what lies there, compile it, supply it.

use crate::image;
use crate::place::{Place, Places};
use crate::program::{Program, Programs};
use crate::{Result, ServiceError};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::Path;
use std::rc::Rc;
use std::thread;
use std::time::Duration;
use tranship_node::NodeError;
use tranship_node::unit::proc;
use tranship_node::unit::supply::{Consumer, Image};
use tranship_translate::bitcode::Bitcode;
use tranship_translate::cache::Cache;
use tranship_translate::compile::{Host, Options, compile};
use tranship_translate::discover::discover_at;
use tranship_translate::elf::GuestElf;
use tranship_translate::region::Discovery;

/// Between two rounds.
const ROUND: Duration = Duration::from_millis(5);
/// Rounds after which is looked for new processes.
const TREE_ROUNDS: u64 = 4;
/// Times that one region is compiled for one process: again where it turns out that it is entered elsewhere too.
const TRIES: u32 = 4;

/// Guest code that is compiled at a time: what comes sooner is used sooner.
const PIECE_BYTES: u64 = 4 << 10;

/// Supplies a tree of processes with code for `host`.
pub struct Supplier {
    host: Host,
    options: Options,
    cache: Cache,
    programs: Programs,
    tree: Vec<u32>,
    rounds: u64,
    consumers: HashMap<u32, Supplied>,
    counts: Counts,
}

/// What has been done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Addresses that processes wanted.
    pub wanted: u64,
    /// Objects that were compiled and supplied.
    pub objects: u64,
    /// Regions in them.
    pub regions: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Addresses that nothing could be compiled for.
    pub failed: u64,
}

/// A process, and what it has got.
struct Supplied {
    consumer: Consumer,
    /// Load biases of files of which it has what was hot before.
    equipped: BTreeSet<u64>,
    /// Entries that it has, by their address in the process.
    entries: BTreeSet<u64>,
    /// How often regions of files were compiled, by their address in the process.
    tries: HashMap<u64, u32>,
}

impl Supplier {
    /// For processes on a machine like `host`, with what is in `directory` from earlier times.
    pub fn new(host: Host, directory: &Path) -> Supplier {
        Supplier {
            host,
            options: Options { jobs: 1, ..Options::default() },
            cache: Cache::new(directory),
            programs: Programs::new(directory.to_owned()),
            tree: Vec::new(),
            rounds: 0,
            consumers: HashMap::new(),
            counts: Counts::default(),
        }
    }

    /// What has been done so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Supply process `root` and its descendants for as long as `root` lives. What goes wrong with one object or
    /// process is told to `hear`.
    pub fn serve(&mut self, root: u32, mut hear: impl FnMut(&ServiceError)) {
        while self.round(root, &mut hear) {
            thread::sleep(ROUND);
        }
        self.keep(hear);
    }

    /// Keep what has been hot for processes to come: one object for each file, in which calls go directly.
    pub fn keep(&mut self, mut hear: impl FnMut(&ServiceError)) {
        let programs: Vec<Rc<Program>> = self.programs.all().filter(|p| p.has_grown()).cloned().collect();
        for program in programs {
            let kept = program.save().map_err(|why| NodeError::io("writing down what is hot", why).into());
            if let Err(error) = kept.and_then(|()| self.object_of(&program)) {
                hear(&error);
            }
        }
    }

    /// The object of what is hot in `program`, if anything is.
    fn object_of(&self, program: &Program) -> Result<Option<Vec<u8>>> {
        let hot = program.hot();
        if hot.is_empty() {
            return Ok(None);
        }
        let part = || program.discovery().around(&hot);
        let object = self.cache.running(&program.elf, &hot, part, &self.host, &self.options)?;
        let read = fs::read(&object.path);
        read.map(Some).map_err(|why| NodeError::io(format!("reading {}", object.path.display()), why).into())
    }

    /// One round; false once `root` is gone.
    pub fn round(&mut self, root: u32, hear: &mut impl FnMut(&ServiceError)) -> bool {
        if !proc::is_alive(root) {
            return false;
        }
        if self.rounds.is_multiple_of(TREE_ROUNDS) {
            self.tree = proc::tree(root).unwrap_or_default();
            let tree = &self.tree;
            self.consumers.retain(|pid, _| tree.contains(pid));
        }
        self.rounds += 1;
        for pid in self.tree.clone() {
            // A process that ends while it is looked at is no error.
            match self.look_at(pid, hear) {
                Err(ServiceError::Process(_)) if !proc::is_alive(pid) => {}
                Err(error) => hear(&error),
                Ok(()) => {}
            }
        }
        true
    }

    fn look_at(&mut self, pid: u32, hear: &mut impl FnMut(&ServiceError)) -> Result<()> {
        if !self.consumers.get(&pid).is_some_and(|s| s.consumer.is_current()) {
            self.consumers.remove(&pid);
            let Some(consumer) = Consumer::open(pid)? else { return Ok(()) };
            let mut supplied = Supplied {
                consumer,
                equipped: BTreeSet::new(),
                entries: BTreeSet::new(),
                tries: HashMap::new(),
            };
            self.equip(pid, &mut supplied)?;
            self.consumers.insert(pid, supplied);
        }
        let Some(mut supplied) = self.consumers.remove(&pid) else { return Ok(()) };
        let wanted = supplied.consumer.wanted();
        if let Ok(wanted) = &wanted
            && !wanted.is_empty()
        {
            self.counts.wanted += wanted.len() as u64;
            self.satisfy(pid, &mut supplied, wanted, hear)?;
        }
        self.consumers.insert(pid, supplied);
        wanted.map(drop).map_err(ServiceError::from)
    }

    /// Give a process that has just started what was hot before in the files that it has mapped.
    fn equip(&mut self, pid: u32, supplied: &mut Supplied) -> Result<()> {
        for place in Places::of(pid)?.files() {
            let Place::File { path, name, start, offset } = place else { continue };
            match self.programs.load(&path, &name) {
                Ok(Some(program)) if program.is_code(offset) => {
                    if let Some(bias) = program.bias(start, offset) {
                        self.equip_with(supplied, &program, bias)?;
                    }
                }
                // Any file may be mapped, and be gone again by now; if it is executed, more is said then.
                _ => {}
            }
        }
        Ok(())
    }

    /// The same for one file.
    fn equip_with(&mut self, supplied: &mut Supplied, program: &Program, bias: u64) -> Result<()> {
        if supplied.equipped.insert(bias)
            && let Some(object) = self.object_of(program)?
        {
            let regions = program.hot().len() as u64;
            self.put(supplied, &image::of(&object, bias)?, bias, regions)?;
        }
        Ok(())
    }

    /// Compile what is at the `wanted` addresses.
    fn satisfy(
        &mut self,
        pid: u32,
        supplied: &mut Supplied,
        wanted: &[u64],
        hear: &mut impl FnMut(&ServiceError),
    ) -> Result<()> {
        let places = Places::of(pid)?;
        let mut files: BTreeMap<(String, u64), (Rc<Program>, BTreeSet<u64>)> = BTreeMap::new();
        for &address in wanted {
            match places.find(address) {
                Some(Place::File { path, name, start, offset }) => {
                    let program = self.programs.load(&path, &name).unwrap_or_else(|error| {
                        hear(&error);
                        None
                    });
                    let found = program.and_then(|p| Some((p.bias(start, offset)?, p)));
                    match found {
                        Some((bias, program)) => {
                            let (_, linked) = files.entry((name, bias)).or_insert((program, BTreeSet::new()));
                            linked.insert(address.wrapping_sub(bias));
                        }
                        None => self.counts.failed += 1,
                    }
                }
                Some(Place::Memory { start, end }) => self.compile_memory(supplied, address, start, end)?,
                None => self.counts.failed += 1,
            }
        }
        for ((_, bias), (program, addresses)) in files {
            self.compile_file(supplied, &program, bias, addresses)?;
        }
        Ok(())
    }

    fn compile_file(
        &mut self,
        supplied: &mut Supplied,
        program: &Program,
        bias: u64,
        mut addresses: BTreeSet<u64>,
    ) -> Result<()> {
        self.equip_with(supplied, program, bias)?;
        addresses.retain(|address| !supplied.entries.contains(&address.wrapping_add(bias)));
        program.heat(&addresses);
        let mut part = program.discovery().around(&addresses);
        part.regions.retain(|region| {
            let tries = supplied.tries.entry(region.entry.wrapping_add(bias)).or_default();
            *tries += 1;
            *tries <= TRIES
        });
        if part.regions.is_empty() {
            self.counts.failed += addresses.len() as u64;
        }
        for part in part.pieces(PIECE_BYTES) {
            self.supply(supplied, &program.elf, &part, bias)?;
        }
        Ok(())
    }

    /// Code that is in no file: what is there now, from `address` on.
    fn compile_memory(&mut self, supplied: &mut Supplied, address: u64, start: u64, end: u64) -> Result<()> {
        let mut bytes = vec![0; (end - start) as usize];
        supplied.consumer.memory().read(start, &mut bytes)?;
        let elf = GuestElf::of_memory(start, bytes);
        let found = discover_at(&elf, [address]);
        let part = found.around(&BTreeSet::from([address]));
        if part.regions.is_empty() {
            self.counts.failed += 1;
            return Ok(());
        }
        self.supply(supplied, &elf, &part, 0)
    }

    fn supply(&mut self, supplied: &mut Supplied, elf: &GuestElf, part: &Discovery, bias: u64) -> Result<()> {
        let object = compile(&Bitcode::lift_running(elf, part), &self.host, &self.options, &())?;
        self.put(supplied, &image::of(&object, bias)?, bias, part.regions.len() as u64)
    }

    fn put(&mut self, supplied: &mut Supplied, image: &Image, bias: u64, regions: u64) -> Result<()> {
        if supplied.consumer.supply(image)? {
            self.counts.objects += 1;
            self.counts.regions += regions;
            self.counts.bytes += image.bytes.len() as u64;
            supplied.entries.extend(image.entries().map(|entry| entry.wrapping_add(bias)));
        } else {
            self.counts.failed += 1;
        }
        Ok(())
    }
}
