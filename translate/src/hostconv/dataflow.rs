//! Which slots that are not carried differ from memory, and which will be read, at each boundary inside a
//! function.

use crate::layout::{Slot, SlotSet};
use std::collections::HashMap;

/// Something that happens in a block, in order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Event {
    Read(Slot),
    Write(Slot),
    /// Nobody needs what is in it.
    Discard(Slot),
    /// Control crosses a boundary and comes back: memory has to be exact before, and may be different
    /// after.
    Boundary,
    /// Memory has to be exact here; values stay.
    Checkpoint,
    /// Control leaves for good.
    Leave,
}

/// What happens in a block, and where control goes.
#[derive(Default, Debug)]
pub(super) struct BlockEvents {
    pub(super) events: Vec<Event>,
    pub(super) successors: Vec<usize>,
}

/// The slots to store before a boundary and to load after it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Transfer {
    pub(super) store: SlotSet,
    pub(super) load: SlotSet,
}

/// The result: what to load at the function's entry, and the transfers of each block's boundaries and leaves in
/// their order.
#[derive(Default, Debug)]
pub(super) struct Transfers {
    pub(super) at_entry: SlotSet,
    pub(super) at: HashMap<(usize, usize), Transfer>,
}

impl Transfers {
    /// Slots that are better left in memory, as the neutral code has them: those that are moved to and fro far more often
    /// than `blocks` use them. Where much control flow meets, as in an interpreter's loop, whatever is written in one place
    /// may differ from memory everywhere.
    pub(super) fn not_worth_it(&self, blocks: &[BlockEvents], considered: SlotSet) -> SlotSet {
        const MOVES_PER_USE: usize = 3;
        let count = |sets: &mut dyn Iterator<Item = SlotSet>| {
            let mut counts: HashMap<Slot, usize> = HashMap::new();
            sets.flat_map(|set| set.iter().collect::<Vec<_>>())
                .for_each(|slot| *counts.entry(slot).or_default() += 1);
            counts
        };
        let moves = count(&mut self.at.values().flat_map(|transfer| [transfer.store, transfer.load]));
        let events = blocks.iter().flat_map(|block| &block.events);
        let uses = count(&mut events.filter_map(|event| match event {
            Event::Read(slot) | Event::Write(slot) => Some([*slot].into_iter().collect()),
            _ => None,
        }));
        let number = |of: &HashMap<Slot, usize>, slot| of.get(&slot).copied().unwrap_or(0);
        considered
            .iter()
            .filter(|slot| number(&moves, *slot) > MOVES_PER_USE * number(&uses, *slot))
            .collect()
    }
}

/// Solve for `blocks`, the first of which is the entry, and slots in `considered`.
pub(super) fn solve(blocks: &[BlockEvents], considered: SlotSet) -> Transfers {
    let dirty = dirty_at_starts(blocks, considered);
    let mut live = vec![SlotSet::default(); blocks.len()];
    let mut changed = true;
    while changed {
        changed = false;
        for (n, block) in blocks.iter().enumerate().rev() {
            let out = live_out(block, &live);
            let (now, _) = backward(block, dirty[n], out, considered);
            changed |= now != live[n];
            live[n] = now;
        }
    }
    let mut transfers =
        Transfers { at_entry: live.first().copied().unwrap_or_default(), ..Transfers::default() };
    for (n, block) in blocks.iter().enumerate() {
        let (_, found) = backward(block, dirty[n], live_out(block, &live), considered);
        transfers.at.extend(found.into_iter().map(|(event, transfer)| ((n, event), transfer)));
    }
    transfers
}

fn live_out(block: &BlockEvents, live: &[SlotSet]) -> SlotSet {
    block.successors.iter().fold(SlotSet::default(), |set, &s| set.union(live[s]))
}

/// Forward: which slots may differ from memory at the start of each block.
fn dirty_at_starts(blocks: &[BlockEvents], considered: SlotSet) -> Vec<SlotSet> {
    let mut dirty = vec![SlotSet::default(); blocks.len()];
    let mut work: Vec<usize> = (0..blocks.len()).rev().collect();
    while let Some(n) = work.pop() {
        let out = dirty_before_events(&blocks[n], dirty[n], considered).1;
        for &successor in &blocks[n].successors {
            let joined = dirty[successor].union(out);
            if joined != dirty[successor] {
                dirty[successor] = joined;
                work.push(successor);
            }
        }
    }
    dirty
}

/// The dirty set before each boundary or leave of a block (by event number), and at its end.
fn dirty_before_events(
    block: &BlockEvents,
    at_start: SlotSet,
    considered: SlotSet,
) -> (HashMap<usize, SlotSet>, SlotSet) {
    let mut dirty = at_start;
    let mut before = HashMap::new();
    for (n, &event) in block.events.iter().enumerate() {
        match event {
            Event::Read(_) => {}
            Event::Write(slot) if considered.contains(slot) => dirty.insert(slot),
            Event::Write(_) => {}
            Event::Discard(slot) => dirty.remove(slot),
            Event::Boundary | Event::Checkpoint | Event::Leave => {
                before.insert(n, dirty);
                dirty = SlotSet::default();
            }
        }
    }
    (before, dirty)
}

/// The live set at a block's start, and the transfers at its boundaries by event number. A boundary reads what
/// is dirty, and makes everything else worthless.
fn backward(
    block: &BlockEvents,
    dirty_at_start: SlotSet,
    live_out: SlotSet,
    considered: SlotSet,
) -> (SlotSet, Vec<(usize, Transfer)>) {
    let (dirty, _) = dirty_before_events(block, dirty_at_start, considered);
    let mut live = live_out;
    let mut transfers = Vec::new();
    for (n, &event) in block.events.iter().enumerate().rev() {
        match event {
            Event::Read(slot) if considered.contains(slot) => live.insert(slot),
            Event::Read(_) => {}
            Event::Write(slot) | Event::Discard(slot) => live.remove(slot),
            Event::Boundary => {
                transfers.push((n, Transfer { store: dirty[&n], load: live }));
                live = dirty[&n];
            }
            Event::Checkpoint => {
                transfers.push((n, Transfer { store: dirty[&n], load: SlotSet::default() }));
                live = live.union(dirty[&n]);
            }
            Event::Leave => {
                transfers.push((n, Transfer { store: dirty[&n], load: SlotSet::default() }));
                live = dirty[&n];
            }
        }
    }
    (live, transfers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(slots: &[Slot]) -> SlotSet {
        slots.iter().copied().collect()
    }

    #[test]
    fn a_register_written_on_one_way_only_is_loaded_for_the_other() {
        let r = Slot::gpr(12);
        let block = |events: Vec<Event>, successors: Vec<usize>| BlockEvents { events, successors };
        let blocks = [
            block(vec![], vec![1, 2]),
            block(vec![Event::Write(r)], vec![2]),
            block(vec![Event::Boundary, Event::Leave], vec![]),
        ];
        let transfers = solve(&blocks, set(&[r]));
        assert_eq!(transfers.at_entry, set(&[r]));
        assert_eq!(transfers.at[&(2, 0)], Transfer { store: set(&[r]), load: set(&[]) });
        assert_eq!(transfers.at[&(2, 1)], Transfer::default());
    }

    #[test]
    fn what_is_discarded_is_neither_stored_nor_loaded_for_another_way() {
        let r = Slot::gpr(12);
        let blocks = [
            BlockEvents { events: vec![Event::Write(r)], successors: vec![1, 2] },
            BlockEvents { events: vec![Event::Discard(r), Event::Boundary], successors: vec![0] },
            BlockEvents { events: vec![Event::Leave], successors: vec![] },
        ];
        let transfers = solve(&blocks, set(&[r]));
        assert_eq!(transfers.at_entry, set(&[]));
        assert_eq!(transfers.at[&(1, 1)], Transfer::default());
        assert_eq!(transfers.at[&(2, 0)], Transfer { store: set(&[r]), load: set(&[]) });
    }

    #[test]
    fn a_register_that_is_hardly_used_among_many_calls_stays_in_memory() {
        let (rare, usual) = (Slot::gpr(8), Slot::gpr(9));
        let calls = [Event::Write(usual), Event::Boundary].repeat(8);
        let blocks = [
            BlockEvents { events: vec![Event::Write(rare)], successors: vec![1] },
            BlockEvents { events: calls, successors: vec![0, 1, 2] },
            BlockEvents {
                events: vec![Event::Boundary, Event::Write(rare), Event::Boundary],
                successors: vec![1],
            },
        ];
        let both = set(&[rare, usual]);
        assert_eq!(solve(&blocks, both).not_worth_it(&blocks, both), set(&[]));
        let calls = [Event::Boundary].repeat(8);
        let ways = (1..9).map(|_| BlockEvents { events: calls.clone(), successors: vec![0] });
        let first = BlockEvents { events: vec![Event::Write(rare)], successors: (1..9).collect() };
        let blocks: Vec<_> = [first].into_iter().chain(ways).collect();
        assert_eq!(solve(&blocks, both).not_worth_it(&blocks, both), set(&[rare]));
    }

    #[test]
    fn a_loop_with_a_call_keeps_its_register_in_memory_across_it() {
        let r = Slot::gpr(13);
        let blocks = [
            BlockEvents { events: vec![], successors: vec![1] },
            BlockEvents {
                events: vec![Event::Read(r), Event::Write(r), Event::Boundary],
                successors: vec![1, 2],
            },
            BlockEvents { events: vec![Event::Leave], successors: vec![] },
        ];
        let transfers = solve(&blocks, set(&[r]));
        assert_eq!(transfers.at_entry, set(&[r]));
        assert_eq!(transfers.at[&(1, 2)], Transfer { store: set(&[r]), load: set(&[r]) });
        assert_eq!(transfers.at[&(2, 0)], Transfer::default());
    }
}
