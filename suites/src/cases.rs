//! What a run of a suite says: a result for every case; and where two runs differ.

use std::collections::{BTreeMap, BTreeSet};

/// Results by the cases' names.
#[derive(Debug, Default)]
pub(crate) struct Cases(BTreeMap<String, String>);

/// A case whose results differ. A run that does not come to a case has none.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Difference {
    pub(crate) case: String,
    pub(crate) native: String,
    pub(crate) ours: String,
}

/// Instead of a result.
const NONE: &str = "nothing";

impl Cases {
    /// From a script's lines `CASE<tab>RESULT`. A name that comes again gets a number.
    pub(crate) fn parse(text: &str) -> Cases {
        let mut cases = BTreeMap::new();
        let mut seen: BTreeMap<&str, u32> = BTreeMap::new();
        for (name, result) in text.lines().filter_map(|line| line.split_once('\t')) {
            let times = seen.entry(name).or_default();
            *times += 1;
            let name = if *times == 1 { name.to_owned() } else { format!("{name} #{times}") };
            cases.insert(name, result.to_owned());
        }
        Cases(cases)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Cases that either run has.
    fn names<'a>(&'a self, other: &'a Cases) -> BTreeSet<&'a String> {
        self.0.keys().chain(other.0.keys()).collect()
    }

    /// How many cases either run has.
    pub(crate) fn count(&self, other: &Cases) -> usize {
        self.names(other).len()
    }

    /// Where `ours` differs from this native run.
    pub(crate) fn differences(&self, ours: &Cases) -> Vec<Difference> {
        let result = |cases: &Cases, name: &String| cases.0.get(name).map_or(NONE, String::as_str).to_owned();
        let pairs = self.names(ours).into_iter();
        let pairs = pairs.map(|name| (name, result(self, name), result(ours, name)));
        let differing = pairs.filter(|(_, native, ours)| native != ours);
        differing.map(|(name, native, ours)| Difference { case: name.clone(), native, ours }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_is_compared() {
        let native = Cases::parse("a\tok\nb\tok\nb\tok\nnoise\nc\tfailed\n");
        let ours = Cases::parse("a\tok\nb\tok\nb\tfailed\nd\tok\n");
        let difference = |case: &str, native: &str, ours: &str| Difference {
            case: case.into(),
            native: native.into(),
            ours: ours.into(),
        };
        let expected = [
            difference("b #2", "ok", "failed"),
            difference("c", "failed", "nothing"),
            difference("d", "nothing", "ok"),
        ];
        assert_eq!(native.differences(&ours), expected);
        assert_eq!(native.count(&ours), 5);
    }
}
