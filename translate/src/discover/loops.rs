//! Loop headers.

use crate::region::{Block, Exit};
use std::collections::{BTreeMap, BTreeSet};

/// The targets of back-edges of a depth-first search that starts at `entry` and at each of `labels`, where indirect jumps
/// may go: every cycle, also of an irreducible graph, has one of them.
pub(super) fn headers(blocks: &BTreeMap<u64, Block>, entry: u64, labels: &BTreeSet<u64>) -> BTreeSet<u64> {
    let by_number: Vec<u64> = labels.iter().copied().collect();
    let successor = |block: &Block, nth: usize| match block.exit {
        Exit::IndirectJump => by_number.get(nth).copied(),
        _ => block.exit.successor(nth),
    };
    let mut headers = BTreeSet::new();
    let mut state: BTreeMap<u64, State> = BTreeMap::new();
    for root in std::iter::once(entry).chain(by_number.iter().copied()) {
        let mut stack = vec![(root, 0)];
        while let Some((block, nth)) = stack.last_mut() {
            let block = *block;
            if *nth == 0 && state.get(&block) == Some(&State::Done) {
                stack.pop();
                continue;
            }
            state.insert(block, State::Open);
            let next = blocks.get(&block).and_then(|b| successor(b, *nth));
            *nth += 1;
            match next.map(|n| (n, state.get(&n))) {
                Some((n, None)) => stack.push((n, 0)),
                Some((n, Some(State::Open))) => {
                    headers.insert(n);
                }
                Some((_, Some(State::Done))) => {}
                None => {
                    state.insert(block, State::Done);
                    stack.pop();
                }
            }
        }
    }
    headers
}

#[derive(PartialEq, Eq)]
enum State {
    /// On the way from a root to where the search is.
    Open,
    Done,
}
