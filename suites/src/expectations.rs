//! Differences that are known, and why: `expectations.txt`.
//!
//! ```text
//! A reason, on one line or more.
//!   SUITE[/ENGINE] CASE
//!   SUITE[/ENGINE] CASE (sometimes)
//! ```
//!
//! Cases below one reason share it; a name that ends with `*` is all cases that begin so. What is expected has to
//! happen, unless it is only sometimes so.

use crate::cases::Difference;
use crate::engine::Engine;
use crate::error::Error;
use crate::suite::Suite;
use std::fs;
use std::path::Path;

/// All that are expected.
#[derive(Debug, Default)]
pub(crate) struct Expectations(Vec<Expectation>);

/// A case that is to differ.
#[derive(Debug)]
pub(crate) struct Expectation {
    suite: String,
    engine: Option<String>,
    case: String,
    pub(crate) reason: String,
    sometimes: bool,
}

impl Expectations {
    /// Read the file.
    pub(crate) fn read(path: &Path) -> Result<Expectations, Error> {
        let text = fs::read_to_string(path).map_err(Error::file(path))?;
        Expectations::parse(&text).map_err(|line| Error::Expectation { path: path.to_owned(), line })
    }

    /// Or the number of a line that is none.
    fn parse(text: &str) -> Result<Expectations, usize> {
        let mut all = Vec::new();
        let mut reason = String::new();
        let mut in_cases = false;
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.starts_with('#')) {
            match line.strip_prefix("  ") {
                Some(case) => {
                    let expectation = Expectation::parse(case, &reason).filter(|_| !reason.is_empty());
                    all.push(expectation.ok_or(number + 1)?);
                }
                None if in_cases || reason.is_empty() => reason = line.trim().to_owned(),
                None => reason = format!("{reason} {}", line.trim()).trim().to_owned(),
            }
            in_cases = line.starts_with("  ");
        }
        Ok(Expectations(all))
    }

    /// The one that explains a difference.
    pub(crate) fn of(&self, suite: &Suite, engine: Engine, difference: &Difference) -> Option<&Expectation> {
        self.about(suite, engine).find(|expectation| expectation.covers(&difference.case))
    }

    /// Those that should have explained one of `differences`, and did not.
    pub(crate) fn idle(
        &self,
        suite: &Suite,
        engine: Engine,
        differences: &[Difference],
    ) -> Vec<&Expectation> {
        let is_idle = |it: &&Expectation| !it.sometimes && !differences.iter().any(|d| it.covers(&d.case));
        self.about(suite, engine).filter(is_idle).collect()
    }

    fn about(&self, suite: &Suite, engine: Engine) -> impl Iterator<Item = &Expectation> {
        let of_engine =
            move |it: &&Expectation| it.engine.as_deref().is_none_or(|name| name == engine.name());
        self.0.iter().filter(|it| it.suite == suite.name).filter(of_engine)
    }
}

impl Expectation {
    fn parse(text: &str, reason: &str) -> Option<Expectation> {
        let (suite, case) = text.trim().split_once(' ')?;
        let (suite, engine) = match suite.split_once('/') {
            Some((suite, engine)) => (suite, Some(engine.to_owned())),
            None => (suite, None),
        };
        let (case, sometimes) = match case.strip_suffix(" (sometimes)") {
            Some(case) => (case, true),
            None => (case, false),
        };
        let (suite, case, reason) = (suite.to_owned(), case.trim().to_owned(), reason.to_owned());
        Some(Expectation { suite, engine, case, reason, sometimes })
    }

    fn covers(&self, case: &str) -> bool {
        match self.case.strip_suffix('*') {
            Some(start) => case.starts_with(start),
            None => case == self.case,
        }
    }
}

impl std::fmt::Display for Expectation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.suite, self.case)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::SUITES;

    #[test]
    fn reasons_are_found_and_missed() {
        let text = "# Comment.\nOne reason\non two lines.\n  c-torture a*\n  c-torture/compiled b\n\nOther.\n  \
                    c-torture c d (sometimes)\n";
        let all = Expectations::parse(text).unwrap();
        let torture = &SUITES[0];
        let difference =
            |case: &str| Difference { case: case.into(), native: "ok".into(), ours: "failed".into() };
        let reason =
            |suite, engine, case| all.of(suite, engine, &difference(case)).map(|it| it.reason.as_str());
        assert_eq!(reason(torture, Engine::Interpreted, "ab"), Some("One reason on two lines."));
        assert_eq!(reason(torture, Engine::Interpreted, "b"), None);
        assert_eq!(reason(torture, Engine::Compiled, "b"), Some("One reason on two lines."));
        assert_eq!(reason(torture, Engine::Served, "c d"), Some("Other."));
        assert_eq!(all.idle(torture, Engine::Compiled, &[difference("ab")]).len(), 1);
        assert!(all.idle(torture, Engine::Served, &[difference("a")]).is_empty());
        assert_eq!(Expectations::parse("  c-torture c\n").unwrap_err(), 1);
    }
}
