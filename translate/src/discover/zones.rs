//! Zones: which part of the text belongs to which function. Zones only decide what a region may take in;
//! a wrong border costs speed, never correctness.

use super::code::{Code, Flow, Origin};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// A disjoint cover of the text by functions.
pub(super) struct Zones {
    /// By address.
    ranges: Vec<Range<u64>>,
    /// For each range the one that it is part of, itself for a whole function.
    whole: Vec<usize>,
}

impl Zones {
    /// Cut the text at the borders of frames and, where there are none, at the starts of functions; then give
    /// the parts that compilers split off back to their functions.
    pub(super) fn new(code: &Code) -> Zones {
        let ranges = cut(code);
        let mut zones = Zones { whole: (0..ranges.len()).collect(), ranges };
        zones.join_parts(code);
        for zone in 0..zones.whole.len() {
            zones.whole[zone] = zones.root(zone);
        }
        zones
    }

    /// The function that `address` belongs to.
    pub(super) fn of(&self, address: u64) -> Option<usize> {
        self.whole.get(self.index(address)?).copied()
    }

    /// Where the function starts that `zone` is the number of.
    pub(super) fn start(&self, zone: usize) -> Option<u64> {
        self.ranges.get(zone).map(|r| r.start)
    }

    fn index(&self, address: u64) -> Option<usize> {
        let i = self.ranges.partition_point(|r| r.start <= address).checked_sub(1)?;
        self.ranges.get(i).filter(|r| r.contains(&address)).map(|_| i)
    }

    /// The whole that `zone` is part of; shortens the way for the next search.
    fn root(&mut self, mut zone: usize) -> usize {
        while self.whole[zone] != zone {
            self.whole[zone] = self.whole[self.whole[zone]];
            zone = self.whole[zone];
        }
        zone
    }

    /// A zone that is only ever jumped to, and only from one function, is part of that function.
    fn join_parts(&mut self, code: &Code) {
        let mut jumpers: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
        for (source, target) in code.jumps() {
            if let (Some(from), Some(to)) = (self.index(source), self.index(target))
                && from != to
                && !self.is_function(code, to)
            {
                jumpers.entry(to).or_default().insert(from);
            }
        }
        // Parts of parts take another round each; there are few.
        for _ in 0..4 {
            for (&part, from) in &jumpers {
                let from: BTreeSet<usize> =
                    from.iter().map(|&f| self.root(f)).filter(|&f| f != part).collect();
                if self.whole[part] == part
                    && let (Some(&whole), 1) = (from.first(), from.len())
                {
                    self.whole[part] = whole;
                }
            }
        }
    }

    /// Whether something other than a jump leads into the zone.
    fn is_function(&self, code: &Code, zone: usize) -> bool {
        let Some(range) = self.ranges.get(zone) else { return false };
        code.entries.range(range.clone()).any(|(_, o)| o.called || o.address_taken)
    }
}

fn cut(code: &Code) -> Vec<Range<u64>> {
    let mut ranges = Vec::new();
    for span in code.ranges() {
        let mut start = span.start;
        let after = code.elf.frames.partition_point(|f| f.start < span.start);
        for frame in code.elf.frames.iter().skip(after).take_while(|f| f.start < span.end) {
            if frame.start >= start {
                cut_at_entries(code, start..frame.start, &mut ranges);
                ranges.push(frame.start..frame.end.min(span.end));
                start = frame.end.min(span.end);
            }
        }
        cut_at_entries(code, start..span.end, &mut ranges);
    }
    ranges
}

fn cut_at_entries(code: &Code, range: Range<u64>, ranges: &mut Vec<Range<u64>>) {
    let mut start = range.start;
    let entries = code.entries.range(range.clone());
    for (&border, _) in entries.filter(|(a, o)| starts_function(code, **a, **o)) {
        if start < border {
            ranges.push(start..border);
        }
        start = border;
    }
    if start < range.end {
        ranges.push(start..range.end);
    }
}

/// Whether an entry outside of any frame is the start of a function, not a label in one.
fn starts_function(code: &Code, address: u64, origin: Origin) -> bool {
    let flows_in = code.before(address).is_some_and(|b| !code.flow(b).is_call());
    let jumped_to = code.sources(address).any(|s| !matches!(code.flow(s), Flow::Jump(_)));
    origin.declared || origin.called || !(flows_in || jumped_to)
}
