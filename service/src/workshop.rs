//! Where objects are made: threads that compile what suppliers order, and the cache that keeps it.

use crate::program::{Piece, Program, Programs};
use crate::{Counts, Result, ServiceError, Supplier};
use std::collections::{BTreeSet, VecDeque};
use std::fs;
use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Instant;
use tranship_node::NodeError;
use tranship_node::unit::supply::Consumers;
use tranship_translate::bitcode::Bitcode;
use tranship_translate::cache::{Cache, Cached};
use tranship_translate::compile::{Host, Options, compile};
use tranship_translate::discover::discover_at;
use tranship_translate::elf::GuestElf;
use tranship_translate::region::{Discovery, Faults};

/// Makes objects for machines like one host; several [`crate::Supplier`]s can order from it.
pub struct Workshop {
    bench: Arc<Bench>,
    threads: Vec<JoinHandle<()>>,
}

/// What the threads share.
pub(crate) struct Bench {
    host: Host,
    options: Options,
    cache: Cache,
    programs: Mutex<Programs>,
    orders: Mutex<Orders>,
    changed: Condvar,
}

#[derive(Default)]
struct Orders {
    waiting: VecDeque<Order>,
    /// How many are being worked on.
    in_work: usize,
    is_closed: bool,
}

/// What is to be made, and who wants it.
pub(crate) struct Order {
    pub(crate) work: Work,
    pub(crate) faults: Faults,
    pub(crate) customer: Sender<Made>,
}

/// What is to be made.
pub(crate) enum Work {
    /// What a process wants of a file, in pieces.
    Wanted { program: Arc<Program>, addresses: BTreeSet<u64>, asked: Instant },
    /// A piece of a file.
    Piece { program: Arc<Program>, piece: Piece },
    /// Code that is in no file, from an address on, for the process of that number.
    Generated { elf: Box<GuestElf>, address: u64, process: u32 },
}

impl Work {
    /// The process and address that generated code is from.
    fn place(&self) -> Option<(u32, u64)> {
        match self {
            Work::Generated { address, process, .. } => Some((*process, *address)),
            _ => None,
        }
    }
}

/// What has become of an order.
pub(crate) struct Made {
    pub(crate) for_whom: Customer,
    pub(crate) faults: Faults,
    /// `None`: there is nothing that could be compiled.
    pub(crate) object: Result<Option<Vec<u8>>>,
}

/// Who can use an object.
pub(crate) enum Customer {
    /// Every process that has mapped the program.
    All(Arc<Program>),
    /// The process of that number.
    One(u32),
}

impl Workshop {
    /// For machines like `host`, with what is in `directory` from earlier times.
    pub fn new(host: Host, directory: &Path) -> Workshop {
        let bench = Arc::new(Bench {
            host,
            options: Options { jobs: 1, ..Options::default() },
            cache: Cache::new(directory),
            programs: Mutex::new(Programs::new(directory.to_owned())),
            orders: Mutex::default(),
            changed: Condvar::new(),
        });
        let work = |_| {
            let bench = bench.clone();
            thread::spawn(move || bench.work())
        };
        let threads = (0..thread::available_parallelism().map_or(1, usize::from)).map(work).collect();
        Workshop { bench, threads }
    }

    pub(crate) fn bench(&self) -> &Arc<Bench> {
        &self.bench
    }

    /// Supply the processes of the tree that starts with `root`, on this machine, as long as there are any. What goes wrong
    /// with one object is told to `hear`.
    pub fn serve(&self, root: u32, hear: impl FnMut(&ServiceError)) -> Counts {
        let mut supplier = Supplier::new(self);
        supplier.serve(&mut Consumers::of(root), hear);
        supplier.counts()
    }

    /// When all processes have ended: finish what is of use to others, and keep what has been hot for them.
    pub fn keep(&self, mut hear: impl FnMut(&ServiceError)) {
        self.bench.clear();
        self.bench.wait();
        let (customer, made) = channel();
        self.bench.save(&customer, &mut hear);
        self.bench.wait();
        drop(customer);
        made.iter().filter_map(|made| made.object.err()).for_each(|error| hear(&error));
    }

    /// Keep what has been hot, without waiting.
    pub fn save(&self, mut hear: impl FnMut(&ServiceError)) {
        self.bench.save(&channel().0, &mut hear);
    }
}

impl Drop for Workshop {
    /// What is being compiled is finished, what waits is not begun.
    fn drop(&mut self) {
        self.bench.orders().is_closed = true;
        self.bench.changed.notify_all();
        // A thread that has panicked has said so.
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

impl Bench {
    fn orders(&self) -> MutexGuard<'_, Orders> {
        self.orders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn programs(&self) -> MutexGuard<'_, Programs> {
        self.programs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Have something made. Of generated code only the latest is.
    pub(crate) fn order(&self, order: Order) {
        let mut orders = self.orders();
        if let Some(place) = order.work.place() {
            orders.waiting.retain(|other| other.work.place() != Some(place));
        }
        orders.waiting.push_back(order);
        drop(orders);
        self.changed.notify_all();
    }

    /// Forget orders that are of use only to processes that have ended.
    fn clear(&self) {
        self.orders().waiting.retain(|order| order.work.place().is_none());
    }

    fn wait(&self) {
        let busy = |orders: &mut Orders| orders.in_work > 0 || !orders.waiting.is_empty();
        drop(self.changed.wait_while(self.orders(), busy));
    }

    fn save(&self, customer: &Sender<Made>, hear: &mut impl FnMut(&ServiceError)) {
        let programs: Vec<Arc<Program>> = self.programs().all().cloned().collect();
        for program in programs {
            match program.save() {
                Ok(None) => {}
                Ok(Some(piece)) => {
                    for faults in program.kinds() {
                        let work = Work::Piece { program: program.clone(), piece: piece.clone() };
                        self.order(Order { work, faults, customer: customer.clone() });
                    }
                }
                Err(why) => hear(&NodeError::io("writing down what is hot", why).into()),
            }
        }
    }

    // ---- the threads ----

    fn work(&self) {
        while let Some(order) = self.next() {
            self.perform(order);
            self.orders().in_work -= 1;
            self.changed.notify_all();
        }
    }

    fn next(&self) -> Option<Order> {
        let idle = |orders: &mut Orders| !orders.is_closed && orders.waiting.is_empty();
        let orders = self.changed.wait_while(self.orders(), idle);
        let mut orders = orders.unwrap_or_else(PoisonError::into_inner);
        if orders.is_closed {
            return None;
        }
        orders.in_work += 1;
        orders.waiting.pop_front()
    }

    fn perform(&self, order: Order) {
        let Order { work, faults, customer } = order;
        let (for_whom, object) = match work {
            Work::Wanted { program, addresses, asked } => {
                let pieces = program.choose(faults, &addresses, asked);
                let work = |piece| Work::Piece { program: program.clone(), piece };
                let order = |piece| Order { work: work(piece), faults, customer: customer.clone() };
                pieces.into_iter().for_each(|piece| self.order(order(piece)));
                return;
            }
            Work::Piece { program, piece } => {
                let object = self.object_of(&program, &piece, faults);
                program.note_made(faults, &piece);
                (Customer::All(program), object.map(Some))
            }
            Work::Generated { elf, address, process } => {
                (Customer::One(process), self.generated(&elf, address, faults))
            }
        };
        // If nobody listens any more, it is in the cache.
        let _ = customer.send(Made { for_whom, faults, object });
    }

    /// The object with the entries in `piece`, as it is kept, or compiled now.
    fn object_of(&self, program: &Program, piece: &Piece, faults: Faults) -> Result<Vec<u8>> {
        let part = || program.discovery().around(piece);
        contents(&self.cache.running(&program.elf, piece, part, &self.host, &self.options_for(faults))?)
    }

    /// The same if it is kept.
    pub(crate) fn kept(&self, program: &Program, piece: &Piece, faults: Faults) -> Option<Vec<u8>> {
        let kept = self.cache.kept(&program.elf, piece, &self.host, &self.options_for(faults))?;
        let object = contents(&kept).ok()?;
        program.note_made(faults, piece);
        Some(object)
    }

    fn options_for(&self, faults: Faults) -> Options {
        Options { faults, ..self.options.clone() }
    }

    /// Code as it was in memory when it was ordered.
    fn generated(&self, elf: &GuestElf, address: u64, faults: Faults) -> Result<Option<Vec<u8>>> {
        let found = discover_at(elf, [address]).around(&BTreeSet::from([address]));
        if found.regions.is_empty() {
            return Ok(None);
        }
        let part = Discovery { faults, ..found };
        Ok(Some(compile(&Bitcode::lift_running(elf, &part), &self.host, &self.options, &())?))
    }
}

fn contents(object: &Cached) -> Result<Vec<u8>> {
    let read = fs::read(&object.path);
    read.map_err(|why| NodeError::io(format!("reading {}", object.path.display()), why).into())
}
