//! `tranship serve`: compiled code for translated units and containers while they run.

use crate::error::Result;
use crate::find;
use crate::nodes::Nodes;
use crate::objects;
use crate::output::{Context, bytes};
use clap::Args;
use serde::Serialize;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt::Display;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};
use tranship_node::client::{Node, Tunnel};
use tranship_node::protocol::PidNamespace;
use tranship_node::{Cpu, Mode, UnitId, UnitState};
use tranship_service::{Counts, ServiceError, Supplier, Workshop};

/// Between two rounds over all that is served.
const ROUND: Duration = Duration::from_millis(10);
/// Between two looks for more.
const SEARCH: Duration = Duration::from_millis(500);

/// Compile what translated units and containers interpret often, and supply them with it while they run.
///
/// What was hot is kept, and compiled for the next time that the same programs run.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  tranship serve\n  tranship serve shop --json\n\n\
Without a unit, those of all nodes are served, and containers, until the command is interrupted; with units, until they have \
ended.")]
pub(crate) struct Serve {
    /// Only these units.
    units: Vec<UnitId>,
}

/// Translated processes of a node that are served together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Group {
    /// A unit's.
    Unit(UnitId),
    /// Those of the PID namespace with that number that are no unit's.
    Container(u64),
}

/// A group that is being served.
struct Served {
    tunnel: Tunnel,
    supplier: Supplier,
}

/// What `serve` ends with.
#[derive(Default, Serialize)]
struct Summary {
    /// Addresses that were wanted.
    wanted: u64,
    /// Objects supplied.
    objects: u64,
    /// Bytes of them.
    bytes: u64,
}

impl Summary {
    fn add(&mut self, counts: Counts) {
        self.wanted += counts.wanted;
        self.objects += counts.objects;
        self.bytes += counts.bytes;
    }
}

impl Serve {
    pub(crate) fn run(self, context: &Context) -> Result<ExitCode> {
        let nodes = context.nodes()?;
        let summary = Summary::default();
        let mut service =
            Service { context, nodes, served: BTreeMap::new(), workshops: BTreeMap::new(), summary };
        let mut searched: Option<Instant> = None;
        loop {
            if searched.is_none_or(|searched| searched.elapsed() > SEARCH) {
                service.search(&self.units)?;
                searched = Some(Instant::now());
                if !self.units.is_empty() && service.served.is_empty() && self.have_ended(&service.nodes)? {
                    break;
                }
            }
            service.round();
            thread::sleep(ROUND);
        }
        let summary = service.finish();
        let text = || format!("{} objects, {}", summary.objects, bytes(summary.bytes));
        context.print(&summary, text)?;
        Ok(ExitCode::SUCCESS)
    }

    fn have_ended(&self, nodes: &Nodes) -> Result<bool> {
        for unit in &self.units {
            let state = find::unit(nodes, unit)?.status.record.state;
            if !matches!(state, UnitState::Exited { .. } | UnitState::Lost) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

struct Service<'a> {
    context: &'a Context,
    nodes: Nodes,
    served: BTreeMap<(String, Group), Served>,
    workshops: BTreeMap<String, Workshop>,
    /// Of what is served no more.
    summary: Summary,
}

impl Service<'_> {
    /// Attach to what runs translated and is not served yet: the units `wanted` or, if there are none, everything.
    fn search(&mut self, wanted: &[UnitId]) -> Result<()> {
        for name in self.nodes.names().cloned().collect::<Vec<_>>() {
            let node = self.nodes.node(&name)?;
            // A node that does not answer has nothing that could be served just now.
            let Ok(statuses) = node.units() else { continue };
            for record in statuses.into_iter().map(|status| status.record) {
                let is_wanted = wanted.is_empty() || wanted.contains(&record.spec.id);
                if is_wanted && matches!(record.state, UnitState::Running { mode: Mode::Translated, .. }) {
                    let id = record.spec.id;
                    self.attach(&name, &node, Group::Unit(id.clone()), &id, || node.attach(&id))?;
                }
            }
            if !wanted.is_empty() {
                continue;
            }
            for PidNamespace { number, pid } in node.namespaces().unwrap_or_default() {
                let what = format!("the container of process {pid}");
                self.attach(&name, &node, Group::Container(number), &what, || node.attach_namespace(number))?;
            }
        }
        Ok(())
    }

    /// Serve `group`, which people call `what`, unless it is served already.
    fn attach(
        &mut self,
        name: &str,
        node: &Node,
        group: Group,
        what: &dyn Display,
        attach: impl FnOnce() -> tranship_node::Result<Tunnel>,
    ) -> Result<()> {
        let key = (name.to_owned(), group);
        if self.served.contains_key(&key) {
            return Ok(());
        }
        let cpu = node.info()?.cpu;
        if let Err(why) = self.prepare(cpu) {
            self.context.say(&why);
            return Ok(());
        }
        let Some(workshop) = self.workshops.get(&cpu.to_string()) else { return Ok(()) };
        if let Ok(tunnel) = attach() {
            self.context.say(&format!("serving {what} on {name}"));
            self.served.insert(key, Served { tunnel, supplier: Supplier::new(workshop) });
        }
        Ok(())
    }

    /// Have a workshop for nodes with such a `cpu`.
    fn prepare(&mut self, cpu: Cpu) -> std::result::Result<(), String> {
        if let Entry::Vacant(place) = self.workshops.entry(cpu.to_string()) {
            place.insert(Workshop::new(objects::host(cpu)?, &self.context.lab.objects()));
        }
        Ok(())
    }

    /// One round over all that is served; what has ended or moved is served no more.
    fn round(&mut self) {
        let mut over = Vec::new();
        let mut hear = |error: &ServiceError| self.context.say(&error.to_string());
        for (key, Served { tunnel, supplier }) in &mut self.served {
            if !supplier.round(tunnel, &mut hear).unwrap_or(false) {
                over.push(key.clone());
            }
        }
        if !over.is_empty() {
            self.workshops.values().for_each(|workshop| workshop.save(&mut hear));
        }
        for served in over.iter().filter_map(|key| self.served.remove(key)) {
            self.summary.add(served.supplier.counts());
        }
    }

    /// What has become of all of it, once everything is compiled that was asked for.
    fn finish(mut self) -> Summary {
        for workshop in self.workshops.values() {
            workshop.keep(|error| self.context.say(&error.to_string()));
        }
        for served in self.served.values() {
            self.summary.add(served.supplier.counts());
        }
        self.summary
    }
}
