//! Basic blocks of the whole text.

use super::code::{Code, Flow};
use std::collections::BTreeMap;

/// A basic block before it is known which region it is in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    /// Address behind the last instruction.
    pub(super) end: u64,
    /// Address of the last instruction.
    pub(super) last: u64,
    /// How control leaves. `None`: the bytes at `end` are no instruction.
    pub(super) flow: Option<Flow>,
}

impl Line {
    /// The addresses of its instructions; it starts at `start`.
    pub(super) fn instructions(self, code: &Code, start: u64) -> impl DoubleEndedIterator<Item = u64> {
        let next = |&address: &u64| Some(address + code.length(address)?);
        let addresses: Vec<u64> =
            std::iter::successors(Some(start), next).take_while(|&a| a < self.end).collect();
        addresses.into_iter()
    }
}

/// All blocks by their starts.
pub(super) fn lines(code: &Code) -> BTreeMap<u64, Line> {
    code.leaders().map(|start| (start, line(code, start))).collect()
}

fn line(code: &Code, start: u64) -> Line {
    let mut last = start;
    let mut end = start;
    while let Some(length) = code.length(end) {
        last = end;
        end += length;
        let flow = code.flow(last);
        if flow != Flow::Next || code.is_leader(end) {
            return Line { end, last, flow: Some(flow) };
        }
    }
    Line { end, last, flow: None }
}
