//! `tranship isa`: what is known of guest instructions.

use crate::error::{CliError, Result};
use crate::output::Context;
use clap::{Args, Subcommand};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tranship_translate::coverage::{Coverage, Found};
use tranship_translate::elf::GuestElf;

/// Look at the instructions in programs and libraries.
#[derive(Args, Debug)]
pub(crate) struct Isa {
    #[command(subcommand)]
    command: Question,
}

#[derive(Subcommand, Debug)]
enum Question {
    Coverage(Files),
}

/// Count the instructions in ELF files by how faithfully they are executed abroad.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  tranship isa coverage /bin/busybox\n  \
tranship isa coverage --json /usr/bin/* /lib/x86_64-linux-gnu/*.so.*\n  \
tranship isa coverage --skip-others $(find root -type f)")]
struct Files {
    /// Programs and shared libraries.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Skip files that are not x86-64 programs or libraries, instead of stopping at the first.
    #[arg(long)]
    skip_others: bool,
}

/// Sums over all files.
#[derive(Serialize, Default)]
struct Total {
    files: u64,
    /// Files whose code was not discovered but swept from start to end.
    swept: Vec<PathBuf>,
    instructions: u64,
    exact: u64,
    approximate: u64,
    absent: u64,
    /// Instructions by mnemonic.
    approximate_mnemonics: BTreeMap<String, u64>,
    absent_mnemonics: BTreeMap<String, u64>,
}

impl Isa {
    pub(crate) fn run(self, context: &Context) -> Result<ExitCode> {
        let Question::Coverage(files) = self.command;
        let mut total = Total::default();
        for file in &files.files {
            match elf(file) {
                Ok(elf) => total.add(file, Coverage::of(&elf)),
                Err(_) if files.skip_others => {}
                Err(why) => return Err(why),
            }
        }
        context.print(&total, || total.text())?;
        Ok(ExitCode::SUCCESS)
    }
}

fn elf(file: &Path) -> Result<GuestElf> {
    let bytes = fs::read(file).map_err(|why| CliError::io(format!("reading {}", file.display()), why))?;
    GuestElf::parse(bytes).map_err(|why| CliError::Translate { file: file.into(), why: why.to_string() })
}

impl Total {
    fn add(&mut self, file: &Path, coverage: Coverage) {
        let Coverage { found, exact, approximate, absent } = coverage;
        self.files += 1;
        if found == Found::Swept {
            self.swept.push(file.into());
        }
        self.exact += exact;
        self.approximate += merge(&mut self.approximate_mnemonics, approximate);
        self.absent += merge(&mut self.absent_mnemonics, absent);
        self.instructions = self.exact + self.approximate + self.absent;
    }

    fn text(&self) -> String {
        let share = |count: u64| 100.0 * count as f64 / self.instructions.max(1) as f64;
        let line = |name: &str, count: u64| format!("{name:<12} {count:>12}  {:>9.5} %\n", share(count));
        let mut text = format!("{} instructions in {} files\n", self.instructions, self.files);
        text += &line("exact", self.exact);
        text += &line("approximate", self.approximate);
        text += &line("absent", self.absent);
        for file in &self.swept {
            text += &format!("swept from start to end, data included: {}\n", file.display());
        }
        text += &listed("approximate", &self.approximate_mnemonics);
        text += &listed("absent", &self.absent_mnemonics);
        text
    }
}

/// Add counts to others; their sum.
fn merge(to: &mut BTreeMap<String, u64>, from: BTreeMap<String, u64>) -> u64 {
    let sum = from.values().sum();
    for (mnemonic, count) in from {
        *to.entry(mnemonic).or_default() += count;
    }
    sum
}

/// Counts by mnemonic, the most frequent first.
fn listed(title: &str, counts: &BTreeMap<String, u64>) -> String {
    let mut sorted: Vec<_> = counts.iter().collect();
    sorted.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let lines: String = sorted.iter().map(|(name, count)| format!("{name:<20} {count:>10}\n")).collect();
    if lines.is_empty() { lines } else { format!("\n{title}\n{lines}") }
}
