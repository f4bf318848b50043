//! Which flags may be read before they are written, at the borders of every block.
//!
//! One least fixed point over the blocks of the whole file: flags flow into callees and out of them to
//! wherever calls continue. So flags are found dead at calls and returns although no calling convention
//! is assumed between the file's own functions. To code elsewhere (other files, what was not found)
//! only the direction flag is live, as the psABI has it; what a signal handler sees of flags that are dead is
//! not preserved.
//!
//! `syscall` copies the flags to r11, which hardly anybody reads. So r11 is tracked like a flag, and the copy
//! counts as a read only where r11 is live.

use super::blocks::Line;
use super::code::{Code, Flow};
use super::x86_64::{self as guest, effects};
use crate::region::FlagSet;
use iced_x86::InstructionInfoFactory;
use std::collections::BTreeMap;
use tranship_isa::x86_64::Flag;

/// A [`FlagSet`], and r11 as one more bit.
type Live = u8;
const R11: Live = 1 << 7;
const FLAGS: Live = R11 - 1;
/// Live at code that is not known.
const ELSEWHERE: Live = 1 << Flag::Df as u8;

/// What the analysis finds.
pub(super) struct Liveness {
    /// Live-in and live-out of every block, by start.
    pub(super) blocks: BTreeMap<u64, (FlagSet, FlagSet)>,
    /// Live at any address that is taken: what an indirect call finds live.
    pub(super) at_entries: FlagSet,
    /// Live after any call: what a return finds live.
    pub(super) after_calls: FlagSet,
}

/// Solve for all of `lines`.
pub(super) fn solve(code: &Code, lines: &BTreeMap<u64, Line>) -> Liveness {
    let mut solver = Solver::new(code, lines);
    solver.solve();
    let set = |live: Live| FlagSet::from_bits(live & FLAGS);
    let blocks = solver.nodes.iter().map(|n| (n.start, (set(n.live_in), set(solver.live_out(n))))).collect();
    Liveness { blocks, at_entries: set(solver.at_entries), after_calls: set(solver.after_calls) }
}

/// Where a block's live-out comes from: the live-ins of all of these.
#[derive(Default)]
struct Out {
    blocks: Vec<usize>,
    /// Whatever follows a call.
    after_calls: bool,
    /// Any address that is taken.
    entries: bool,
    /// Unknown code.
    elsewhere: bool,
}

struct Node {
    start: u64,
    /// Live-in for an empty live-out, and for each bit of it. (Live-in distributes over unions of live-out.)
    transfer: [Live; 9],
    out: Out,
    live_in: Live,
    /// Blocks whose live-out this one's live-in is part of.
    predecessors: Vec<usize>,
    is_entry: bool,
    continues_call: bool,
}

struct Solver {
    nodes: Vec<Node>,
    at_entries: Live,
    after_calls: Live,
}

impl Solver {
    fn new(code: &Code, lines: &BTreeMap<u64, Line>) -> Solver {
        let numbers: BTreeMap<u64, usize> = lines.keys().enumerate().map(|(i, &start)| (start, i)).collect();
        let mut factory = effects::factory();
        let node = |(&start, line): (&u64, &Line)| Node {
            start,
            transfer: transfer(&mut factory, code, start, line),
            out: out(code, line, &numbers),
            live_in: 0,
            predecessors: Vec::new(),
            is_entry: code.entries.get(&start).is_some_and(|o| o.address_taken),
            continues_call: false,
        };
        let mut nodes: Vec<Node> = lines.iter().map(node).collect();
        for i in 0..nodes.len() {
            for successor in nodes[i].out.blocks.clone() {
                nodes[successor].predecessors.push(i);
            }
        }
        for line in lines.values().filter(|l| l.flow.is_some_and(Flow::is_call)) {
            if let Some(&next) = numbers.get(&line.end) {
                nodes[next].continues_call = true;
            }
        }
        Solver { nodes, at_entries: ELSEWHERE, after_calls: ELSEWHERE }
    }

    fn solve(&mut self) {
        let mut work: Vec<usize> = (0..self.nodes.len()).collect();
        while let Some(i) = work.pop() {
            let node = &self.nodes[i];
            let live_in = apply(&node.transfer, self.live_out(node));
            if live_in == node.live_in {
                continue;
            }
            work.extend(&node.predecessors);
            let (is_entry, continues_call) = (node.is_entry, node.continues_call);
            self.nodes[i].live_in = live_in;
            // These can grow eight times each, so that going through all blocks is no matter.
            if is_entry && self.at_entries | live_in != self.at_entries {
                self.at_entries |= live_in;
                work.extend(self.numbers(|out| out.entries));
            }
            if continues_call && self.after_calls | live_in != self.after_calls {
                self.after_calls |= live_in;
                work.extend(self.numbers(|out| out.after_calls));
            }
        }
    }

    fn numbers(&self, wanted: impl Fn(&Out) -> bool) -> Vec<usize> {
        (0..self.nodes.len()).filter(|&i| wanted(&self.nodes[i].out)).collect()
    }

    fn live_out(&self, node: &Node) -> Live {
        let part = |wanted: bool, live: Live| if wanted { live } else { 0 };
        let out = &node.out;
        let unknown = part(out.elsewhere, ELSEWHERE)
            | part(out.entries, self.at_entries)
            | part(out.after_calls, self.after_calls);
        out.blocks.iter().fold(unknown, |live, &b| live | self.nodes[b].live_in)
    }
}

fn apply(transfer: &[Live; 9], live_out: Live) -> Live {
    (0..8).filter(|bit| live_out >> bit & 1 != 0).fold(transfer[8], |live, bit| live | transfer[bit])
}

fn out(code: &Code, line: &Line, numbers: &BTreeMap<u64, usize>) -> Out {
    let mut out = Out::default();
    let targets: Vec<u64> = match line.flow {
        Some(Flow::Next) => vec![line.end],
        Some(Flow::Jump(target) | Flow::Call(target)) => vec![target],
        Some(Flow::Branch(target)) => vec![target, line.end],
        Some(Flow::IndirectJump) => {
            let table = code.tables.get(&line.last).map(|t| &t.jump);
            let proven = table.is_some_and(|t| t.proven);
            // Else it may be a tail call, or a jump back to a `setjmp`.
            (out.entries, out.after_calls) = (!proven, !proven);
            table.map_or(Vec::new(), |t| t.targets.clone())
        }
        Some(Flow::IndirectCall) => {
            out.entries = true;
            Vec::new()
        }
        Some(Flow::Return) => {
            out.after_calls = true;
            Vec::new()
        }
        Some(Flow::Trap) | None => {
            out.elsewhere = true;
            Vec::new()
        }
    };
    out.blocks = targets.iter().filter_map(|t| numbers.get(t)).copied().collect();
    out.elsewhere |= out.blocks.len() < targets.len();
    out.blocks.sort_unstable();
    out.blocks.dedup();
    out
}

/// The block's instructions backwards: what each possible member of live-out makes of live-in.
fn transfer(factory: &mut InstructionInfoFactory, code: &Code, start: u64, line: &Line) -> [Live; 9] {
    let mut transfer = [0; 9];
    for (bit, live) in transfer.iter_mut().enumerate().take(8) {
        *live = 1 << bit;
    }
    for address in line.instructions(code, start).rev() {
        let Some(effect) = Effect::of(factory, code, address) else { continue };
        for live in &mut transfer {
            *live = effect.before(*live);
        }
    }
    transfer
}

/// What one instruction does to flags and r11.
struct Effect {
    reads: Live,
    writes: Live,
    saves_flags: bool,
}

impl Effect {
    fn of(factory: &mut InstructionInfoFactory, code: &Code, address: u64) -> Option<Effect> {
        let i = guest::insn(code.bytes(address), address)?;
        let flags = effects::flags(&i);
        let (reads_r11, overwrites_r11) = effects::use_of(factory, &i, 11);
        let bit = |set: bool| if set { R11 } else { 0 };
        Some(Effect {
            reads: flags.reads.bits() | bit(reads_r11),
            writes: flags.writes.bits() | bit(overwrites_r11),
            saves_flags: effects::flags_saved_in(&i) == Some(11),
        })
    }

    fn before(&self, after: Live) -> Live {
        let saved = if self.saves_flags && after & R11 != 0 { FLAGS } else { 0 };
        after & !self.writes | self.reads | saved
    }
}
