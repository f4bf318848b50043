//! Loop headers.

use crate::region::Block;
use std::collections::{BTreeMap, BTreeSet};

/// The targets of back-edges of a depth-first search that starts at each of `roots`: every cycle, also of
/// an irreducible graph, has one of them.
pub(super) fn headers(blocks: &BTreeMap<u64, Block>, roots: impl Iterator<Item = u64>) -> BTreeSet<u64> {
    let mut headers = BTreeSet::new();
    let mut state: BTreeMap<u64, State> = BTreeMap::new();
    for root in roots {
        let mut stack = vec![(root, 0)];
        while let Some((block, nth)) = stack.last_mut() {
            let block = *block;
            if *nth == 0 && state.get(&block) == Some(&State::Done) {
                stack.pop();
                continue;
            }
            state.insert(block, State::Open);
            let next = blocks.get(&block).and_then(|b| b.exit.successor(*nth));
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
