//! What came out: a table of suites, and all differences with their reasons.

use crate::cases::{Cases, Difference};
use crate::engine::Engine;
use crate::expectations::Expectations;
use crate::suite::Suite;
use std::fmt::Write;

/// A suite by one engine, beside its native run.
pub(crate) struct Row {
    suite: &'static Suite,
    engine: Engine,
    cases: usize,
    /// With the reason, if it is expected.
    differences: Vec<(Difference, Option<String>)>,
    /// Expectations that nothing came of.
    idle: Vec<String>,
}

impl Row {
    pub(crate) fn new(
        suite: &'static Suite,
        engine: Engine,
        native: &Cases,
        ours: &Cases,
        expectations: &Expectations,
    ) -> Row {
        let differences = native.differences(ours);
        let idle = expectations.idle(suite, engine, &differences).iter().map(ToString::to_string).collect();
        let explain = |difference: Difference| {
            let reason = expectations.of(suite, engine, &difference).map(|it| it.reason.clone());
            (difference, reason)
        };
        let differences = differences.into_iter().map(explain).collect();
        Row { suite, engine, cases: native.count(ours), differences, idle }
    }

    /// What has to be looked at.
    pub(crate) fn complaints(&self) -> String {
        let mut text = String::new();
        let unexplained = self.differences.iter().filter(|(_, reason)| reason.is_none());
        for (Difference { case, native, ours }, _) in unexplained {
            let _ = writeln!(text, "  {case}: natively {native}, {} {ours}", self.engine.name());
        }
        for expectation in &self.idle {
            let _ = writeln!(text, "  {expectation}: is expected to differ, and does not any more");
        }
        text
    }

    fn line(&self) -> String {
        let Row { suite, engine, cases, differences, .. } = self;
        let differ = differences.len();
        let same = cases - differ;
        format!("| {} | {} | {cases} | {same} | {differ} |\n", suite.name, engine.name())
    }

    fn details(&self) -> String {
        let mut text = String::new();
        for (Difference { case, native, ours }, reason) in &self.differences {
            let reason = reason.as_deref().unwrap_or("**unexplained**");
            let engine = self.engine.name();
            let name = self.suite.name;
            let _ = writeln!(text, "| {name} | {engine} | {} | {native} | {ours} | {reason} |", cell(case));
        }
        text
    }
}

/// Text that is no table's border.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

/// All rows.
pub(crate) struct Report {
    rows: Vec<Row>,
}

const HEAD: &str = "| suite | run | cases | same | differ |\n|---|---|---|---|---|\n";

impl Report {
    pub(crate) fn new(rows: Vec<Row>) -> Report {
        Report { rows }
    }

    pub(crate) fn all_good(&self) -> bool {
        self.rows.iter().all(|row| row.complaints().is_empty())
    }

    pub(crate) fn table(&self) -> String {
        self.rows.iter().fold(HEAD.to_owned(), |text, row| text + &row.line())
    }

    pub(crate) fn page(&self) -> String {
        let mut suites: Vec<&Suite> = self.rows.iter().map(|row| row.suite).collect();
        suites.dedup_by_key(|suite| suite.name);
        let mut abouts = String::new();
        for Suite { name, about, .. } in suites {
            let _ = writeln!(abouts, "* **{name}**: {about}.");
        }
        let details = self.rows.iter().fold(String::new(), |text, row| text + &row.details());
        let differences = if details.is_empty() {
            "None.\n".to_owned()
        } else {
            format!(
                "| suite | run | case | natively | translated | reason |\n|---|---|---|---|---|---|\n{details}"
            )
        };
        format!(include_str!("page.md"), abouts = abouts, table = self.table(), differences = differences)
    }
}
