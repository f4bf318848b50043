//! The service's round: ask every process what it wants, find what lies there, order it, supply what has been made.

use crate::image;
use crate::program::Program;
use crate::workshop::{Bench, Customer, Made, Order, Work, Workshop};
use crate::{Result, ServiceError, Site};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};
use tranship_node::NodeError;
use tranship_node::protocol::{CodePlace, MappedFile, ProcessId, ProcessLook, WantedCode};
use tranship_node::unit::supply::Image;
use tranship_translate::elf::GuestElf;
use tranship_translate::region::Faults;

/// Between two rounds.
const ROUND: Duration = Duration::from_millis(5);

/// Supplies the processes of one site with code from a [`Workshop`].
pub struct Supplier {
    bench: Arc<Bench>,
    made: Receiver<Made>,
    customer: Sender<Made>,
    supplied: HashMap<Consumer, Supplied>,
    counts: Counts,
}

/// What has been done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Addresses that processes wanted.
    pub wanted: u64,
    /// Objects that were supplied.
    pub objects: u64,
    /// Entries that they have.
    pub entries: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Orders that nothing came of.
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
    /// Programs that it has mapped, with their load biases, and what was hot in them before it has.
    equipped: Vec<(Arc<Program>, u64)>,
    /// Entries that it has, by their address in the process.
    entries: BTreeSet<u64>,
}

/// A file as it lies in a process, and the addresses in it that are wanted, as linked.
struct WantedFile {
    program: Arc<Program>,
    bias: u64,
    addresses: BTreeSet<u64>,
}

impl Supplier {
    /// With what `workshop` makes.
    pub fn new(workshop: &Workshop) -> Supplier {
        let (customer, made) = channel();
        let (bench, supplied) = (workshop.bench().clone(), HashMap::new());
        Supplier { bench, made, customer, supplied, counts: Counts::default() }
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
    }

    /// One round; false once there are no processes any more.
    pub fn round(&mut self, site: &mut impl Site, hear: &mut impl FnMut(&ServiceError)) -> Result<bool> {
        let Some(looks) = site.look()? else { return Ok(false) };
        for look in looks {
            told(self.satisfy(site, &look), hear);
        }
        while let Ok(made) = self.made.try_recv() {
            told(self.deliver(site, made), hear);
        }
        Ok(true)
    }

    /// Order what a process wants, and if it is new, give it what was hot before in the files that it has mapped.
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
        let mut files = HashMap::new();
        for WantedCode { address, place } in &look.wanted {
            match place {
                CodePlace::File(file) => self.note(site, consumer, *address, file, &mut files)?,
                CodePlace::Memory { start, end } => {
                    let memory = site.read_memory(consumer.process, *start, *end)?;
                    let elf = Box::new(GuestElf::of_memory(*start, memory));
                    let process = consumer.process.pid;
                    self.order(faults, Work::Generated { elf, address: *address, process });
                }
                CodePlace::Nowhere => self.counts.failed += 1,
            }
        }
        for (_, file) in files {
            self.order_file(site, consumer, file)?;
        }
        Ok(())
    }

    fn order(&self, faults: Faults, work: Work) {
        self.bench.order(Order { work, faults, customer: self.customer.clone() });
    }

    /// The program in a file, and the load bias by which it is mapped.
    fn program(
        &mut self,
        site: &mut impl Site,
        process: ProcessId,
        file: &MappedFile,
    ) -> Result<Option<(Arc<Program>, u64)>> {
        let program = self.bench.programs().load(file, || site.read_file(process, file))?;
        Ok(program.and_then(|program| Some((program.clone(), program.bias(file)?))))
    }

    /// Add a wanted address to those of its file.
    fn note(
        &mut self,
        site: &mut impl Site,
        consumer: Consumer,
        address: u64,
        file: &MappedFile,
        files: &mut HashMap<([u64; 5], u64), WantedFile>,
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

    /// Give a process what was hot before in a file, once. What is not at hand is ordered.
    fn equip(
        &mut self,
        site: &mut impl Site,
        consumer: Consumer,
        program: &Arc<Program>,
        bias: u64,
    ) -> Result<()> {
        let equipped = &mut self.supplied.entry(consumer).or_default().equipped;
        if equipped.iter().any(|(had, at)| Arc::ptr_eq(had, program) && *at == bias) {
            return Ok(());
        }
        equipped.push((program.clone(), bias));
        for piece in program.pieces(consumer.faults) {
            match self.bench.kept(program, &piece, consumer.faults) {
                Some(object) => self.put(site, consumer, &object, bias)?,
                None => self.order(consumer.faults, Work::Piece { program: program.clone(), piece }),
            }
        }
        Ok(())
    }

    fn order_file(&mut self, site: &mut impl Site, consumer: Consumer, file: WantedFile) -> Result<()> {
        let WantedFile { program, bias, mut addresses } = file;
        self.equip(site, consumer, &program, bias)?;
        let supplied = self.supplied.entry(consumer).or_default();
        addresses.retain(|address| !supplied.entries.contains(&address.wrapping_add(bias)));
        if !addresses.is_empty() {
            self.order(consumer.faults, Work::Wanted { program, addresses, asked: Instant::now() });
        }
        Ok(())
    }

    /// Give what has been made to all processes that can use it.
    fn deliver(&mut self, site: &mut impl Site, made: Made) -> Result<()> {
        let Some(object) = made.object? else {
            self.counts.failed += 1;
            return Ok(());
        };
        let mut places = Vec::new();
        for (consumer, supplied) in self.supplied.iter().filter(|(c, _)| c.faults == made.faults) {
            match &made.for_whom {
                Customer::All(program) => {
                    let has = supplied.equipped.iter().filter(|(had, _)| Arc::ptr_eq(had, program));
                    places.extend(has.map(|(_, bias)| (*consumer, *bias)));
                }
                Customer::One(process) if *process == consumer.process.pid => places.push((*consumer, 0)),
                Customer::One(_) => {}
            }
        }
        for (consumer, bias) in places {
            match self.put(site, consumer, &object, bias) {
                Err(ServiceError::Process(NodeError::ProcessGone { .. })) => {
                    self.supplied.remove(&consumer);
                }
                put => put?,
            }
        }
        Ok(())
    }

    fn put(&mut self, site: &mut impl Site, consumer: Consumer, object: &[u8], bias: u64) -> Result<()> {
        let image: Image = image::of(object, bias)?;
        if site.supply(consumer.process, &image)? {
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

/// Tell `hear` what went wrong, unless it is only that a process has ended.
fn told(outcome: Result<()>, hear: &mut impl FnMut(&ServiceError)) {
    match outcome {
        Err(ServiceError::Process(NodeError::ProcessGone { .. })) | Ok(()) => {}
        Err(error) => hear(&error),
    }
}
