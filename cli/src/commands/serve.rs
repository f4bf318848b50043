//! `tranship serve`: compiled code for translated units while they run.

use crate::error::Result;
use crate::find;
use crate::nodes::Nodes;
use crate::objects;
use crate::output::{Context, bytes};
use clap::Args;
use serde::Serialize;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};
use tranship_node::client::Tunnel;
use tranship_node::{Cpu, Mode, UnitId, UnitState};
use tranship_service::{Counts, ServiceError, Supplier, Workshop};

/// Between two rounds over all units.
const ROUND: Duration = Duration::from_millis(10);
/// Between two looks for units.
const SEARCH: Duration = Duration::from_millis(500);

/// Compile what translated units interpret often, and supply them with it while they run.
///
/// What was hot is kept, and compiled for the next time that the same programs run.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  tranship serve\n  tranship serve shop --json\n\n\
Without a unit, those of all nodes are served until the command is interrupted; with units, until they have ended.")]
pub(crate) struct Serve {
    /// Only these units.
    units: Vec<UnitId>,
}

/// A unit that is being served.
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
            Service { context, nodes, units: BTreeMap::new(), workshops: BTreeMap::new(), summary };
        let mut searched: Option<Instant> = None;
        loop {
            if searched.is_none_or(|searched| searched.elapsed() > SEARCH) {
                service.search(&self.units)?;
                searched = Some(Instant::now());
                if !self.units.is_empty() && service.units.is_empty() && self.have_ended(&service.nodes)? {
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
    units: BTreeMap<(String, UnitId), Served>,
    workshops: BTreeMap<String, Workshop>,
    /// Of the units that are served no more.
    summary: Summary,
}

impl Service<'_> {
    /// Attach to translated units that run and are not served yet; `wanted` or, if there are none, all.
    fn search(&mut self, wanted: &[UnitId]) -> Result<()> {
        for name in self.nodes.names().cloned().collect::<Vec<_>>() {
            let node = self.nodes.node(&name)?;
            // A node that does not answer has nothing that could be served just now.
            let Ok(statuses) = node.units() else { continue };
            for record in statuses.into_iter().map(|status| status.record) {
                let is_wanted = wanted.is_empty() || wanted.contains(&record.spec.id);
                let is_translated = matches!(record.state, UnitState::Running { mode: Mode::Translated, .. });
                let key = (name.clone(), record.spec.id.clone());
                if !is_wanted || !is_translated || self.units.contains_key(&key) {
                    continue;
                }
                let cpu = node.info()?.cpu;
                if let Err(why) = self.prepare(cpu) {
                    self.context.say(&why);
                    continue;
                }
                let Some(workshop) = self.workshops.get(&cpu.to_string()) else { continue };
                if let Ok(tunnel) = node.attach(&record.spec.id) {
                    self.context.say(&format!("serving {} on {name}", record.spec.id));
                    self.units.insert(key, Served { tunnel, supplier: Supplier::new(workshop) });
                }
            }
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

    /// One round over the units; those that have ended or moved are served no more.
    fn round(&mut self) {
        let mut over = Vec::new();
        let mut hear = |error: &ServiceError| self.context.say(&error.to_string());
        for (key, Served { tunnel, supplier }) in &mut self.units {
            if !supplier.round(tunnel, &mut hear).unwrap_or(false) {
                over.push(key.clone());
            }
        }
        if !over.is_empty() {
            self.workshops.values().for_each(|workshop| workshop.save(&mut hear));
        }
        for served in over.iter().filter_map(|key| self.units.remove(key)) {
            self.summary.add(served.supplier.counts());
        }
    }

    /// What has become of all of it, once everything is compiled that was asked for.
    fn finish(mut self) -> Summary {
        for workshop in self.workshops.values() {
            workshop.keep(|error| self.context.say(&error.to_string()));
        }
        for served in self.units.values() {
            self.summary.add(served.supplier.counts());
        }
        self.summary
    }
}
