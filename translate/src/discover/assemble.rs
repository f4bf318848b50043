//! Blocks to regions.

use super::blocks::Line;
use super::code::{Code, Flow};
use super::loops;
use super::zones::Zones;
use crate::region::{Block, Edge, Exit, FlagSet, Region, RegisterUse};
use std::collections::{BTreeMap, BTreeSet};

/// How many times each block may be repeated on average.
const MOST_COPIES: usize = 8;

/// Makes a region of every entry.
pub(super) struct Assembler<'a> {
    code: &'a Code<'a>,
    zones: &'a Zones,
    lines: &'a BTreeMap<u64, Line>,
    returning: &'a BTreeSet<u64>,
    /// Entries that get a region of their own.
    entries: BTreeSet<u64>,
    /// Labels of each zone that has a region to put them into.
    labels: BTreeMap<usize, BTreeSet<u64>>,
    /// Blocks that regions may still take.
    budget: usize,
    /// Entries that found the budget used up.
    pub(super) dropped: usize,
}

impl<'a> Assembler<'a> {
    pub(super) fn new(
        code: &'a Code<'a>,
        zones: &'a Zones,
        lines: &'a BTreeMap<u64, Line>,
        returning: &'a BTreeSet<u64>,
    ) -> Assembler<'a> {
        let budget = MOST_COPIES * lines.len() + 1024;
        let (entries, labels) = (BTreeSet::new(), BTreeMap::new());
        let mut assembler = Assembler { code, zones, lines, returning, entries, labels, budget, dropped: 0 };
        assembler.sort_entries();
        assembler
    }

    /// Functions get a region; other places whose address is taken become labels of the region around them.
    fn sort_entries(&mut self) {
        let decodable = |a: &&u64| self.lines.get(a).is_some_and(|l| l.end > **a);
        for &address in self.code.entries.keys().filter(decodable) {
            let zone = self.zones.of(address);
            let start = zone.and_then(|z| self.zones.start(z));
            let origin = self.code.entries.get(&address).copied().unwrap_or_default();
            let has_main = start.is_some_and(|s| self.code.entries.contains_key(&s));
            match zone {
                Some(zone) if has_main && start != Some(address) && !origin.called => {
                    if origin.address_taken || !origin.declared {
                        self.labels.entry(zone).or_default().insert(address);
                    }
                }
                _ => {
                    self.entries.insert(address);
                }
            }
        }
    }

    /// The regions by entry. Where one jumps into the middle of another function, that place becomes an entry
    /// too.
    pub(super) fn regions(&mut self) -> BTreeMap<u64, Region> {
        let mut regions = BTreeMap::new();
        let mut work: Vec<u64> = self.entries.iter().rev().copied().collect();
        while let Some(entry) = work.pop() {
            let Some(region) = self.region(entry) else {
                self.dropped += 1;
                continue;
            };
            for block in region.blocks.values() {
                for target in leaving(&block.exit) {
                    let is_code = self.lines.get(&target).is_some_and(|l| l.end > target);
                    if is_code && self.entries.insert(target) {
                        work.push(target);
                    }
                }
            }
            regions.insert(entry, region);
        }
        regions
    }

    fn region(&mut self, entry: u64) -> Option<Region> {
        let zone = self.zones.of(entry);
        let start = zone.and_then(|z| self.zones.start(z));
        let labels = zone.filter(|_| start == Some(entry)).and_then(|z| self.labels.get(&z));
        let mut labels = labels.cloned().unwrap_or_default();
        let mut blocks = BTreeMap::new();
        let mut work: Vec<u64> = labels.iter().copied().chain([entry]).collect();
        while let Some(start) = work.pop() {
            let Some(line) = self.lines.get(&start).filter(|_| !blocks.contains_key(&start)) else {
                continue;
            };
            self.budget = self.budget.checked_sub(1)?;
            let exit = self.exit(line, zone);
            work.extend(exit.successors());
            let (flags_live_in, flags_live_out) = (FlagSet::EMPTY, FlagSet::EMPTY);
            blocks.insert(start, Block { start, end: line.end, exit, flags_live_in, flags_live_out });
        }
        self.open_switches(entry, &mut labels, &mut blocks);
        let loop_headers = loops::headers(&blocks, entry, &labels);
        let entries = self.ways_in(entry, &labels, &loop_headers, &blocks);
        let registers = RegisterUse::default();
        Some(Region { entry, name: self.name(entry), blocks, loop_headers, labels, entries, registers })
    }

    /// Where a region can be entered: not at a loop header between the place where a table's index is known and its jump.
    fn ways_in(
        &self,
        entry: u64,
        labels: &BTreeSet<u64>,
        loop_headers: &BTreeSet<u64>,
        blocks: &BTreeMap<u64, Block>,
    ) -> BTreeSet<u64> {
        let switches = blocks.values().filter(|block| matches!(block.exit, Exit::Switch(_)));
        let lines = switches.filter_map(|block| self.lines.get(&block.start));
        let tables = lines.filter_map(|line| self.code.tables.get(&line.last));
        let closed: BTreeSet<u64> = tables.flat_map(|table| table.way.iter().copied()).collect();
        [entry]
            .into_iter()
            .chain(labels.union(loop_headers).copied().filter(|at| !closed.contains(at)))
            .collect()
    }

    /// Where a region is entered on the way from a table's index to its jump, the index is not known: the jump
    /// may go anywhere, and the table's targets are labels.
    fn open_switches(&self, entry: u64, labels: &mut BTreeSet<u64>, blocks: &mut BTreeMap<u64, Block>) {
        let is_in = |at: u64| blocks.range(..=at).next_back().is_some_and(|(_, block)| at < block.end);
        let is_open = |block: &&Block| {
            let table = self.lines.get(&block.start).and_then(|line| self.code.tables.get(&line.last));
            table.is_some_and(|t| {
                !is_in(t.jump.at) || t.way.iter().any(|way| *way == entry || labels.contains(way))
            })
        };
        let open: Vec<u64> = blocks.values().filter(is_open).map(|b| b.start).collect();
        for block in open {
            if let Some(block) = blocks.get_mut(&block) {
                labels.extend(block.exit.successors());
                block.exit = Exit::IndirectJump;
            }
        }
    }

    fn name(&self, entry: u64) -> Option<String> {
        let elf = self.code.elf;
        let first = elf.symbols.partition_point(|s| s.address < entry);
        let symbol = elf.symbols.get(first).filter(|s| s.address == entry)?;
        Some(symbol.name(elf).into_owned())
    }

    fn exit(&self, line: &Line, zone: Option<usize>) -> Exit {
        let edge = |target| match self.lines.contains_key(&target) && self.zones.of(target) == zone {
            true => Edge::Block(target),
            false => Edge::Region(target),
        };
        match line.flow {
            None => Exit::Undecodable,
            Some(Flow::Next) => Exit::Next(edge(line.end)),
            Some(Flow::Jump(target)) => Exit::Jump(edge(target)),
            Some(Flow::Branch(target)) => Exit::Branch { taken: edge(target), next: edge(line.end) },
            Some(Flow::Call(target)) => {
                let returns = self.returning.contains(&target) || !self.lines.contains_key(&target);
                let next = if returns { edge(line.end) } else { Edge::Region(line.end) };
                Exit::Call { target: Some(target), next }
            }
            Some(Flow::IndirectCall) => Exit::Call { target: None, next: edge(line.end) },
            Some(Flow::Return) => Exit::Return,
            Some(Flow::Trap) => Exit::Trap,
            Some(Flow::IndirectJump) => match self.code.tables.get(&line.last) {
                Some(table) => Exit::Switch(table.jump.clone()),
                None => Exit::IndirectJump,
            },
        }
    }
}

/// The addresses at which control leaves a region, calls and returns aside.
fn leaving(exit: &Exit) -> impl Iterator<Item = u64> {
    let edges = match exit {
        Exit::Next(edge) | Exit::Jump(edge) => [Some(*edge), None],
        Exit::Branch { taken, next } => [Some(*taken), Some(*next)],
        _ => [None, None],
    };
    edges.into_iter().flatten().filter_map(|edge| match edge {
        Edge::Region(target) => Some(target),
        Edge::Block(_) => None,
    })
}
