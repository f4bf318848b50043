//! Which flags may be read before they are written, at the borders of every block.
//!
//! Two least fixed points over the blocks of the whole file. The first, backwards: what is live at a block as a
//! function of what is live where its function returns to, through callees by their own such function. The
//! second, forwards: what is live where each function's callers go on. So flags are found dead at calls and
//! returns although no convention is assumed between the functions of a file. Of code elsewhere (other
//! files, what was not found) the psABI's is: only the direction flag is live. What a signal handler sees of
//! dead flags is not preserved.
//!
//! `syscall` copies the flags to r11, which hardly anybody reads. So r11 is tracked like a flag, and the copy
//! counts as a read only where r11 is live. Here the psABI is relied on: r11 is dead where a function
//! returns or goes on after a call.

use super::blocks::Line;
use super::code::{Code, Flow};
use super::x86_64::{self as guest, effects};
use crate::region::FlagSet;
use iced_x86::InstructionInfoFactory;
use std::collections::{BTreeMap, BTreeSet};
use tranship_isa::x86_64::Flag;

/// A [`FlagSet`], and r11 as one more bit.
type Live = u8;
const R11: Live = 1 << 7;
const FLAGS: Live = R11 - 1;
/// Live in code that is not known, if it keeps to the psABI.
const PSABI: Live = 1 << Flag::Df as u8;

/// What the analysis finds.
pub(super) struct Liveness {
    /// Live-in and live-out of every block, by start.
    pub(super) blocks: BTreeMap<u64, (FlagSet, FlagSet)>,
    /// Live at any address that is taken: what an indirect call finds live.
    pub(super) at_entries: FlagSet,
    /// Live after any call.
    pub(super) after_calls: FlagSet,
}

/// Solve for all of `lines`, of which those in `returning` can return.
pub(super) fn solve(code: &Code, lines: &BTreeMap<u64, Line>, returning: &BTreeSet<u64>) -> Liveness {
    let elsewhere = if code.elf.keeps_to_psabi { PSABI } else { FLAGS };
    let mut solver = Solver::new(nodes(code, lines, returning), elsewhere);
    // A `longjmp` goes to where some call went on, which only the whole solution tells.
    while solver.after_calls != solver.at_long_jumps {
        solver.at_long_jumps = solver.after_calls;
        solver.solve_functions();
        solver.solve_callers();
    }
    let set = |live: Live| FlagSet::from_bits(live & FLAGS);
    let border = |n: &Node| (set(n.live.apply(n.callers)), set(solver.live_out(n).apply(n.callers)));
    let blocks = solver.nodes.iter().map(|n| (n.start, border(n))).collect();
    let entries = solver.nodes.iter().filter(|n| n.is_entry);
    let at_entries = entries.fold(elsewhere, |live, n| live | n.live.apply(n.callers));
    Liveness { blocks, at_entries: set(at_entries), after_calls: set(solver.after_calls) }
}

/// A function from sets to sets that distributes over unions: its values for the sets of one member each, and
/// for the empty set.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Map([Live; 9]);

impl Map {
    /// To the empty set.
    const NOTHING: Map = Map([0; 9]);
    /// To itself.
    const IDENTITY: Map = Map([1, 2, 4, 8, 16, 32, 64, 128, 0]);
    /// To what of it survives a call or a return.
    const FLAGS: Map = Map([1, 2, 4, 8, 16, 32, 64, 0, 0]);

    fn constant(live: Live) -> Map {
        Map([live; 9])
    }

    fn apply(self, live: Live) -> Live {
        let members = (0..8).filter(|bit| live >> bit & 1 != 0);
        members.fold(self.0[8], |image, bit| image | self.0[bit])
    }

    /// `self` after `first`.
    fn after(self, first: Map) -> Map {
        Map(first.0.map(|live| self.apply(live)))
    }

    fn union(self, other: Map) -> Map {
        Map(std::array::from_fn(|i| self.0[i] | other.0[i]))
    }
}

/// A block, and where control goes from it.
struct Node {
    start: u64,
    /// Live-out to live-in.
    transfer: Map,
    /// Its address is taken.
    is_entry: bool,
    exit: Leave,
    /// What is live where its function returns to, to live-in.
    live: Map,
    /// What is live where its function, or any that shares it, returns to.
    callers: Live,
    /// Blocks whose live-out depends on this one's live-in.
    dependents: Vec<usize>,
}

/// How control leaves a block, as far as it matters here.
#[derive(Default)]
struct Leave {
    /// To these blocks of the same function, or tail calls.
    to: Vec<usize>,
    /// To the caller.
    returns: bool,
    /// To unknown code.
    elsewhere: bool,
    /// To nowhere that is known to anybody.
    ends: bool,
    /// A jump to any address that is taken, or back to where a function was called (`longjmp`).
    indirect_jump: bool,
    call: Option<Call>,
}

struct Call {
    /// `None`: any address that is taken, or elsewhere.
    callee: Option<usize>,
    /// Where it continues, if the callee can return.
    next: Option<usize>,
}

struct Solver {
    nodes: Vec<Node>,
    /// Live in code that is not known.
    elsewhere: Live,
    /// What is live where it returns to, to live-in, for any function whose address is taken.
    entries: Map,
    /// What functions whose address is taken return to.
    entry_callers: Live,
    after_calls: Live,
    /// What [`Solver::after_calls`] is taken to be.
    at_long_jumps: Live,
}

impl Solver {
    fn new(mut nodes: Vec<Node>, elsewhere: Live) -> Solver {
        for i in 0..nodes.len() {
            let exit = &nodes[i].exit;
            let call = exit.call.iter().flat_map(|c| [c.callee, c.next]).flatten();
            for on in exit.to.iter().copied().chain(call).collect::<Vec<_>>() {
                nodes[on].dependents.push(i);
            }
        }
        let entries = Map::FLAGS.union(Map::constant(elsewhere));
        Solver {
            nodes,
            elsewhere,
            entries,
            entry_callers: elsewhere,
            after_calls: elsewhere,
            at_long_jumps: 0,
        }
    }

    /// Find every block's `live`.
    fn solve_functions(&mut self) {
        let mut work: Vec<usize> = (0..self.nodes.len()).collect();
        while let Some(i) = work.pop() {
            let node = &self.nodes[i];
            let live = node.transfer.after(self.live_out(node));
            if live == node.live {
                continue;
            }
            work.extend(&node.dependents);
            let is_entry = node.is_entry;
            self.nodes[i].live = live;
            if is_entry && self.entries.union(live) != self.entries {
                self.entries = self.entries.union(live);
                let unknown = |n: &Node| {
                    n.exit.indirect_jump || n.exit.call.as_ref().is_some_and(|c| c.callee.is_none())
                };
                work.extend((0..self.nodes.len()).filter(|&i| unknown(&self.nodes[i])));
            }
        }
    }

    /// What is live where a block's function returns to, to its live-out.
    fn live_out(&self, node: &Node) -> Map {
        let exit = &node.exit;
        let mut out = exit.to.iter().fold(Map::NOTHING, |out, &b| out.union(self.nodes[b].live));
        if exit.returns {
            out = out.union(Map::FLAGS);
        }
        if exit.elsewhere {
            out = out.union(Map::FLAGS).union(Map::constant(self.elsewhere));
        }
        if exit.ends {
            out = out.union(Map::constant(self.elsewhere));
        }
        if exit.indirect_jump {
            out = out.union(self.entries).union(Map::constant(self.at_long_jumps));
        }
        if let Some(call) = &exit.call {
            let next = call.next.map_or(Map::NOTHING, |next| Map::FLAGS.after(self.nodes[next].live));
            out = out.union(call.callee.map_or(self.entries, |callee| self.nodes[callee].live).after(next));
        }
        out
    }

    /// Find every block's `callers`.
    fn solve_callers(&mut self) {
        let mut work: Vec<usize> = (0..self.nodes.len()).collect();
        for node in self.nodes.iter_mut().filter(|n| n.is_entry) {
            node.callers |= self.entry_callers;
        }
        while let Some(i) = work.pop() {
            let node = &self.nodes[i];
            let callers = node.callers;
            let mut entry_callers = if node.exit.indirect_jump { callers } else { 0 };
            let mut on: Vec<(usize, Live)> = node.exit.to.iter().map(|&b| (b, callers)).collect();
            if let Some(Call { callee, next }) = node.exit.call {
                let live = next.map_or(0, |next| self.nodes[next].live.apply(callers) & FLAGS);
                self.after_calls |= live;
                on.extend(next.map(|next| (next, callers)));
                match callee {
                    Some(callee) => on.push((callee, live)),
                    None => entry_callers |= live,
                }
            }
            if self.entry_callers | entry_callers != self.entry_callers {
                self.entry_callers |= entry_callers;
                let entries = (0..self.nodes.len()).filter(|&i| self.nodes[i].is_entry);
                on.extend(entries.map(|i| (i, self.entry_callers)));
            }
            for (block, live) in on {
                let node = &mut self.nodes[block];
                if node.callers | live != node.callers {
                    node.callers |= live;
                    work.push(block);
                }
            }
        }
    }
}

fn nodes(code: &Code, lines: &BTreeMap<u64, Line>, returning: &BTreeSet<u64>) -> Vec<Node> {
    let numbers: BTreeMap<u64, usize> = lines.keys().enumerate().map(|(i, &start)| (start, i)).collect();
    let mut factory = effects::factory();
    let node = |(&start, line): (&u64, &Line)| Node {
        start,
        transfer: transfer(&mut factory, code, start, line),
        is_entry: code.entries.get(&start).is_some_and(|o| o.address_taken),
        exit: leave(code, line, &numbers, returning),
        live: Map::NOTHING,
        callers: 0,
        dependents: Vec::new(),
    };
    lines.iter().map(node).collect()
}

fn leave(code: &Code, line: &Line, numbers: &BTreeMap<u64, usize>, returning: &BTreeSet<u64>) -> Leave {
    let mut exit = Leave::default();
    let number = |address: u64| numbers.get(&address).copied();
    let targets: Vec<u64> = match line.flow {
        Some(Flow::Next) => vec![line.end],
        Some(Flow::Jump(target)) => vec![target],
        Some(Flow::Branch(target)) => vec![target, line.end],
        Some(Flow::IndirectJump) => {
            let table = code.tables.get(&line.last).map(|t| &t.jump);
            exit.indirect_jump = table.is_none_or(|t| !t.proven);
            table.map_or(Vec::new(), |t| t.targets.clone())
        }
        Some(Flow::Call(target)) => {
            let callee = number(target);
            let next = number(line.end).filter(|_| callee.is_none() || returning.contains(&target));
            exit.call = Some(Call { callee, next });
            Vec::new()
        }
        Some(Flow::IndirectCall) => {
            exit.call = Some(Call { callee: None, next: number(line.end) });
            Vec::new()
        }
        Some(Flow::Return) => {
            exit.returns = true;
            Vec::new()
        }
        Some(Flow::Trap) | None => {
            exit.ends = true;
            Vec::new()
        }
    };
    exit.to = targets.iter().filter_map(|&t| number(t)).collect();
    exit.elsewhere |= exit.to.len() < targets.len();
    exit.to.sort_unstable();
    exit.to.dedup();
    exit
}

/// The block's live-out to its live-in.
fn transfer(factory: &mut InstructionInfoFactory, code: &Code, start: u64, line: &Line) -> Map {
    let instructions = line.instructions(code, start).rev();
    let effects = instructions.filter_map(|address| Effect::of(factory, code, address));
    effects.fold(Map::IDENTITY, |after, effect| Map(after.0.map(|live| effect.before(live))))
}

/// What one instruction does to flags and r11.
struct Effect {
    reads: Live,
    writes: Live,
    copies_flags: bool,
}

impl Effect {
    fn of(factory: &mut InstructionInfoFactory, code: &Code, address: u64) -> Option<Effect> {
        let i = guest::insn(code.bytes(address), address)?;
        let flags = effects::flags(&i);
        let copy = effects::flags_copy(factory, &i);
        let r11 = |set: bool| if set { R11 } else { 0 };
        Some(Effect {
            reads: flags.reads.bits() | r11(copy.reads),
            writes: flags.writes.bits() | r11(copy.overwrites),
            copies_flags: copy.makes,
        })
    }

    fn before(&self, after: Live) -> Live {
        let copied = if self.copies_flags && after & R11 != 0 { FLAGS } else { 0 };
        after & !self.writes | self.reads | copied
    }
}
