//! Which functions can return. Code behind a call of one that cannot is not reached through the call: that
//! keeps liveness and regions free of ways that do not exist.

use super::blocks::Line;
use super::code::{Code, Flow};
use super::x86_64 as guest;
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
        Some(Flow::IndirectJump | Flow::IndirectCall) if never_returns(code, line.last) => {
            GoesOn::To(Vec::new())
        }
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

/// Functions of the C and C++ run-time libraries that do not return to their caller (their manuals, and
/// LSB core).
const NEVER_RETURN: [&str; 24] = [
    "_Exit",
    "_Unwind_Resume",
    "_ZSt9terminatev",
    "__assert",
    "__assert_fail",
    "__assert_perror_fail",
    "__chk_fail",
    "__cxa_bad_cast",
    "__cxa_rethrow",
    "__cxa_throw",
    "__fortify_fail",
    "__libc_start_main",
    "__longjmp_chk",
    "__stack_chk_fail",
    "_exit",
    "abort",
    "err",
    "errx",
    "exit",
    "longjmp",
    "pthread_exit",
    "siglongjmp",
    "verr",
    "verrx",
];

/// Whether the indirect jump or call at `address` goes to a function of another file that never returns.
fn never_returns(code: &Code, address: u64) -> bool {
    let slot = guest::fixed_slot(code.bytes(address), address);
    slot.and_then(|slot| code.elf.import_at(slot))
        .is_some_and(|name| NEVER_RETURN.binary_search(&name).is_ok())
}

/// Whether a block, one of whose ways on can return, can itself: a call needs both.
fn can_return(lines: &BTreeMap<u64, Line>, returning: &BTreeSet<u64>, start: u64) -> bool {
    let possible = |a: u64| !lines.contains_key(&a) || returning.contains(&a);
    match lines.get(&start) {
        Some(Line { flow: Some(Flow::Call(target)), end, .. }) => possible(*target) && possible(*end),
        _ => true,
    }
}
