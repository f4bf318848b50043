//! Which functions can return. Code behind a call of one that cannot is not reached through the call: that
//! keeps liveness and regions free of ways that do not exist.

use super::blocks::Line;
use super::code::{Code, Flow};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The blocks from which a return, or a jump to somewhere unknown, can be reached.
pub(super) fn solve(code: &Code, lines: &BTreeMap<u64, Line>) -> BTreeSet<u64> {
    // A block can return if the one can that control goes on to; behind a call, if the callee can too.
    let mut waiting: HashMap<u64, Vec<u64>> = HashMap::new();
    let mut work = Vec::new();
    for (&start, line) in lines {
        let on = match goes_on(code, line) {
            GoesOn::Returns => {
                work.push(start);
                continue;
            }
            GoesOn::To(on) => on,
        };
        for target in on {
            match lines.contains_key(&target) {
                true => waiting.entry(target).or_default().push(start),
                false => work.push(start),
            }
        }
    }
    let mut returning = BTreeSet::new();
    while let Some(start) = work.pop() {
        if !can_return(lines, &returning, start) || !returning.insert(start) {
            continue;
        }
        work.extend(waiting.get(&start).into_iter().flatten());
    }
    returning
}

/// Where control goes on within the file.
enum GoesOn {
    /// To the caller, or nobody knows where.
    Returns,
    To(Vec<u64>),
}

fn goes_on(code: &Code, line: &Line) -> GoesOn {
    match line.flow {
        Some(Flow::Return) => GoesOn::Returns,
        Some(Flow::IndirectJump) => match code.tables.get(&line.last) {
            Some(table) if table.jump.proven => GoesOn::To(table.jump.targets.clone()),
            _ => GoesOn::Returns,
        },
        Some(Flow::Next | Flow::IndirectCall) => GoesOn::To(vec![line.end]),
        Some(Flow::Jump(target)) => GoesOn::To(vec![target]),
        Some(Flow::Branch(target) | Flow::Call(target)) => GoesOn::To(vec![target, line.end]),
        Some(Flow::Trap) | None => GoesOn::To(Vec::new()),
    }
}

/// Whether a block, one of whose ways on can return, can itself: a call needs both.
fn can_return(lines: &BTreeMap<u64, Line>, returning: &BTreeSet<u64>, start: u64) -> bool {
    let possible = |a: u64| !lines.contains_key(&a) || returning.contains(&a);
    match lines.get(&start) {
        Some(Line { flow: Some(Flow::Call(target)), end, .. }) => possible(*target) && possible(*end),
        _ => true,
    }
}
