//! All instructions that were reached so far, whatever function they are in, and how control passes between
//! them. Overlapping decodings are kept side by side, so a wrong seed cannot damage what others found.

use super::x86_64 as guest;
use crate::elf::{GuestElf, Placement};
use crate::region::JumpTable;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

/// How an instruction passes control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    /// To the next one. System calls too.
    Next,
    /// To a known address.
    Jump(u64),
    /// To a known address or the next instruction.
    Branch(u64),
    /// To a computed address.
    IndirectJump,
    /// To a known function and then to the next instruction.
    Call(u64),
    /// To a computed function and then to the next instruction.
    IndirectCall,
    /// To the caller.
    Return,
    /// Nowhere.
    Trap,
}

impl Flow {
    fn falls_through(self) -> bool {
        matches!(self, Flow::Next | Flow::Branch(_) | Flow::Call(_) | Flow::IndirectCall)
    }

    pub(super) fn is_call(self) -> bool {
        matches!(self, Flow::Call(_) | Flow::IndirectCall)
    }
}

/// One decoded instruction.
pub(super) struct Step {
    pub(super) length: u8,
    pub(super) flow: Flow,
    pub(super) reference: Option<Reference>,
}

/// What may be an address that an instruction mentions as a value.
pub(super) enum Reference {
    /// Relative to the instruction: an address for certain.
    Relative(u64),
    /// A number that is an address only where the program is at a fixed place.
    Absolute(u64),
}

/// A jump table and where it lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Table {
    pub(super) jump: JumpTable,
    pub(super) place: Range<u64>,
    /// The instructions from where the index is known, that one not counted, to the jump.
    pub(super) way: Vec<u64>,
}

/// Why an address is taken for a place where code is entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct Origin {
    /// The unwind table, a symbol, the ELF header, an initialiser: the file says that a function starts here.
    pub(super) declared: bool,
    /// Other code calls it, or it is declared in a way that says so.
    pub(super) called: bool,
    /// Data or code holds the address.
    pub(super) address_taken: bool,
}

impl Origin {
    fn merge(&mut self, other: Origin) {
        self.declared |= other.declared;
        self.called |= other.called;
        self.address_taken |= other.address_taken;
    }
}

/// What is known of the bytes of one executable range.
struct Span {
    range: Range<u64>,
    /// Length of the instruction that starts at each byte, 0 where none is known.
    length: Vec<u8>,
    /// Length of the instruction from which control falls through to each byte, 0 where none.
    before: Vec<u8>,
    /// [`INSIDE`], [`LEADER`].
    marks: Vec<u8>,
}

/// In an instruction but not its first byte.
const INSIDE: u8 = 1;
/// A block starts here.
const LEADER: u8 = 2;

/// See the module.
pub(super) struct Code<'a> {
    pub(super) elf: &'a GuestElf,
    /// Executable sections or, without section headers, segments; by address.
    spans: Vec<Span>,
    /// Every instruction that does not simply go on.
    flows: HashMap<u64, Flow>,
    /// Jumps, branches and switches to an address.
    sources: HashMap<u64, BTreeSet<u64>>,
    /// Where code is entered, and why.
    pub(super) entries: BTreeMap<u64, Origin>,
    /// Addresses that code mentions; where tables end is told by where others start.
    pub(super) references: BTreeSet<u64>,
    /// Indirect jumps.
    pub(super) indirect_jumps: BTreeSet<u64>,
    /// Those of them whose tables were recognised.
    pub(super) tables: BTreeMap<u64, Table>,
    /// Reached addresses that are no instruction.
    pub(super) undecodable: BTreeSet<u64>,
    /// Table entries that may still be read: bounds the work on hostile files.
    table_budget: usize,
}

impl<'a> Code<'a> {
    pub(super) fn new(elf: &'a GuestElf) -> Code<'a> {
        let segments = elf.segments.iter().filter(|s| s.executable).map(|s| s.file_backed());
        let ranges: Vec<Range<u64>> = if elf.code_sections.is_empty() {
            segments.collect()
        } else {
            let clip = |r: &Range<u64>| r.start..r.end.min(r.start + elf.code_at(r.start).len() as u64);
            elf.code_sections.iter().map(clip).collect()
        };
        let span = |range: Range<u64>| {
            let bytes = vec![0; (range.end - range.start) as usize];
            Span { range, length: bytes.clone(), before: bytes.clone(), marks: bytes }
        };
        let spans: Vec<Span> = ranges.into_iter().filter(|r| r.start < r.end).map(span).collect();
        let text_bytes: usize = spans.iter().map(|s| s.length.len()).sum();
        Code {
            elf,
            spans,
            flows: HashMap::new(),
            sources: HashMap::new(),
            entries: BTreeMap::new(),
            references: BTreeSet::new(),
            indirect_jumps: BTreeSet::new(),
            tables: BTreeMap::new(),
            undecodable: BTreeSet::new(),
            table_budget: 8 * text_bytes + (1 << 16),
        }
    }

    /// The executable ranges by address.
    pub(super) fn ranges(&self) -> impl Iterator<Item = Range<u64>> {
        self.spans.iter().map(|s| s.range.clone())
    }

    fn span(&self, address: u64) -> Option<(&Span, usize)> {
        let after = self.spans.partition_point(|s| s.range.start <= address);
        let span = self.spans.get(after.checked_sub(1)?)?;
        span.range.contains(&address).then(|| (span, (address - span.range.start) as usize))
    }

    fn span_mut(&mut self, address: u64) -> Option<(&mut Span, usize)> {
        let after = self.spans.partition_point(|s| s.range.start <= address);
        let span = self.spans.get_mut(after.checked_sub(1)?)?;
        let offset = address.wrapping_sub(span.range.start) as usize;
        span.range.contains(&address).then_some((span, offset))
    }

    /// The bytes from `address` to the end of its executable range.
    pub(super) fn bytes(&self, address: u64) -> &'a [u8] {
        let Some((span, offset)) = self.span(address) else { return &[] };
        let bytes = self.elf.code_at(address);
        bytes.get(..span.length.len() - offset).unwrap_or(bytes)
    }

    /// Whether `address` is in an executable range.
    pub(super) fn contains(&self, address: u64) -> bool {
        self.span(address).is_some()
    }

    /// Length of the instruction that was found at `address`.
    pub(super) fn length(&self, address: u64) -> Option<u64> {
        let (span, offset) = self.span(address)?;
        span.length.get(offset).filter(|&&l| l > 0).map(|&l| l.into())
    }

    /// How the instruction at `address` passes control.
    pub(super) fn flow(&self, address: u64) -> Flow {
        self.flows.get(&address).copied().unwrap_or(Flow::Next)
    }

    /// Whether `address` is inside of an instruction that was found.
    pub(super) fn is_inside(&self, address: u64) -> bool {
        self.marked(address, INSIDE)
    }

    /// Whether a block starts at `address`.
    pub(super) fn is_leader(&self, address: u64) -> bool {
        self.marked(address, LEADER)
    }

    fn marked(&self, address: u64, mark: u8) -> bool {
        self.span(address).is_some_and(|(s, o)| s.marks.get(o).is_some_and(|m| m & mark != 0))
    }

    fn mark_leader(&mut self, address: u64) {
        if let Some((span, offset)) = self.span_mut(address)
            && let Some(mark) = span.marks.get_mut(offset)
        {
            *mark |= LEADER;
        }
    }

    /// The addresses of leaders, ascending.
    pub(super) fn leaders(&self) -> impl Iterator<Item = u64> {
        self.spans.iter().flat_map(|s| {
            let leaders = s.marks.iter().enumerate().filter(|(_, m)| **m & LEADER != 0);
            leaders.map(|(offset, _)| s.range.start + offset as u64)
        })
    }

    /// The instruction from which control falls through to `address`.
    pub(super) fn before(&self, address: u64) -> Option<u64> {
        let (span, offset) = self.span(address)?;
        span.before.get(offset).filter(|&&l| l > 0).map(|&l| address - u64::from(l))
    }

    /// The jumps to `address`.
    pub(super) fn sources(&self, address: u64) -> impl Iterator<Item = u64> {
        self.sources.get(&address).into_iter().flatten().copied()
    }

    /// All jumps, branches and switches: source and target.
    pub(super) fn jumps(&self) -> impl Iterator<Item = (u64, u64)> {
        self.sources.iter().flat_map(|(&target, sources)| sources.iter().map(move |&s| (s, target)))
    }

    /// Note that code is entered at `address` and follow it, unless it is no executable address.
    pub(super) fn enter(&mut self, address: u64, origin: Origin) {
        if self.contains(address) {
            self.entries.entry(address).or_default().merge(origin);
            self.follow(address);
        }
    }

    /// Decode everything that is reachable from `start` by direct transfers.
    fn follow(&mut self, start: u64) {
        let mut work = vec![start];
        while let Some(address) = work.pop() {
            self.mark_leader(address);
            self.follow_line(address, &mut work);
        }
    }

    /// Decode from `address` to the next instruction that ends a block or is known.
    fn follow_line(&mut self, mut address: u64, work: &mut Vec<u64>) {
        while self.length(address).is_none() {
            let Some(step) = guest::step(self.bytes(address), address) else {
                self.undecodable.insert(address);
                return;
            };
            let next = address + u64::from(step.length);
            self.record(address, &step);
            match step.reference {
                Some(Reference::Relative(address)) => {
                    self.references.insert(address);
                }
                Some(Reference::Absolute(number)) if self.elf.placement == Placement::Fixed => {
                    self.references.insert(number);
                }
                _ => {}
            }
            if step.flow == Flow::Next {
                address = next;
                continue;
            }
            self.flows.insert(address, step.flow);
            match step.flow {
                Flow::Jump(target) | Flow::Branch(target) => {
                    self.sources.entry(target).or_default().insert(address);
                    work.push(target);
                }
                Flow::Call(target) if self.contains(target) => {
                    let origin = Origin { called: true, ..Origin::default() };
                    self.entries.entry(target).or_default().merge(origin);
                    work.push(target);
                }
                Flow::IndirectJump => {
                    self.indirect_jumps.insert(address);
                }
                _ => {}
            }
            // Behind the last call of a function whose end is known is another function: the call does not return.
            if step.flow.falls_through() && !(step.flow.is_call() && self.ends_function(next)) {
                work.push(next);
            }
            return;
        }
    }

    fn ends_function(&self, address: u64) -> bool {
        let frames = &self.elf.frames;
        let after = frames.partition_point(|f| f.start < address);
        after.checked_sub(1).and_then(|i| frames.get(i)).is_some_and(|f| f.end == address)
    }

    fn record(&mut self, address: u64, step: &Step) {
        let Some((span, offset)) = self.span_mut(address) else { return };
        let end = offset + usize::from(step.length);
        if let Some(length) = span.length.get_mut(offset) {
            *length = step.length;
        }
        for mark in span.marks.get_mut(offset + 1..end).into_iter().flatten() {
            *mark |= INSIDE;
        }
        if step.flow.falls_through()
            && let Some(before) = span.before.get_mut(end).filter(|b| **b == 0)
        {
            *before = step.length;
        }
    }

    /// Recognise the tables of indirect jumps and follow their targets, until nothing new turns up. Tables
    /// are looked at again as long as new ways to their jumps may be found.
    pub(super) fn resolve_tables(&mut self) {
        let mut changed = true;
        while changed {
            changed = false;
            for jump in self.indirect_jumps.iter().copied().collect::<Vec<_>>() {
                let table = guest::jump_table::resolve(self, jump);
                let work = 64 + table.as_ref().map_or(0, |t| t.jump.targets.len());
                let Some(left) = self.table_budget.checked_sub(work) else { return };
                self.table_budget = left;
                if let Some(table) = table.filter(|t| self.tables.get(&jump) != Some(t)) {
                    changed = true;
                    self.set_table(jump, table);
                }
            }
        }
    }

    fn set_table(&mut self, jump: u64, table: Table) {
        let targets: BTreeSet<u64> = table.jump.targets.iter().copied().collect();
        self.tables.insert(jump, table);
        for target in targets {
            self.sources.entry(target).or_default().insert(jump);
            self.follow(target);
        }
    }

    /// Bytes in instructions, and bytes of padding between them.
    pub(super) fn coverage(&self) -> (u64, u64) {
        let (mut covered, mut padding) = (0, 0);
        for span in &self.spans {
            let mut offset = 0;
            let known = |o: usize| {
                span.length.get(o).is_some_and(|&l| l > 0)
                    || span.marks.get(o).is_some_and(|m| m & INSIDE != 0)
            };
            while offset < span.length.len() {
                let gap = (offset..span.length.len()).take_while(|&o| !known(o)).count();
                let address = span.range.start + offset as u64;
                let bytes = self.bytes(address);
                padding += guest::padding(bytes.get(..gap).unwrap_or(bytes), address).min(gap) as u64;
                offset += gap;
                let run = (offset..span.length.len()).take_while(|&o| known(o)).count();
                covered += run as u64;
                offset += run;
            }
        }
        (covered, padding)
    }
}
