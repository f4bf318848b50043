//! `tranship migrate`: a unit or a container to another node.

use super::history;
use crate::error::Result;
use crate::find::{self, Found, Place};
use crate::objects::{Supply, Uncompiled};
use crate::output::{Context, table};
use clap::{Args, ValueEnum};
use std::process::ExitCode;
use std::sync::Mutex;
use tranship_node::UnitId;
use tranship_node::container::migrate as container;
use tranship_node::container::preflight::{Finding, Verdict};
use tranship_node::migrate::{Crossing, Migration, migrate};

/// Move a running container or unit to another node.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  tranship migrate cache --to arm64 --keep-address\n  tranship migrate cache --to arm64 --dry-run\n  \
tranship migrate sum --to x86 --json\n\nIf anything fails, it goes on where it was."
)]
pub(crate) struct Migrate {
    /// The container or unit.
    name: String,
    /// The node to move it to.
    #[arg(long, value_name = "NODE")]
    to: String,
    /// How a container is to move.
    #[command(flatten)]
    how: How,
    /// Only say what would be in the way, as `tranship check` does.
    #[arg(long)]
    dry_run: bool,
    /// Translate a unit even if that node could run it natively.
    #[arg(long)]
    translated: bool,
    /// Compile nothing of a unit first: what has no object yet is interpreted there, until `tranship serve` supplies it.
    #[arg(long)]
    at_once: bool,
}

/// How a container is to move.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct How {
    /// The container keeps its addresses, and established connections to them: both nodes are on one local network.
    #[arg(long)]
    keep_address: bool,
    /// Whether the contents of a container's volumes go with it, or are the same on both nodes.
    #[arg(long, value_enum, default_value = "copy", value_name = "HOW")]
    volumes: Volumes,
}

/// What becomes of volumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Volumes {
    /// Their contents go along.
    Copy,
    /// The new node has the same ones.
    Shared,
}

impl From<How> for container::How {
    fn from(how: How) -> container::How {
        container::How { keep_address: how.keep_address, copy_volumes: how.volumes == Volumes::Copy }
    }
}

impl Migrate {
    pub(crate) fn run(self, context: &Context) -> Result<ExitCode> {
        let nodes = context.nodes()?;
        // Named wrongly more often than what is to go there.
        nodes.node(&self.to)?;
        let crossing = match find::anything(&nodes, &self.name)? {
            Found::Unit { id, node } => self.unit(context, &id, &node)?,
            Found::Container(place) if self.dry_run => return check(context, &place, &self.to, self.how),
            Found::Container(place) => self.container(context, &place)?,
        };
        if let Err(error) = context.lab.history().add(&crossing) {
            context.say(&format!("{} has moved, but not into the history: {error}", self.name));
        }
        context.print(&crossing, || history::text(std::slice::from_ref(&crossing)))?;
        Ok(ExitCode::SUCCESS)
    }

    fn unit(&self, context: &Context, id: &UnitId, node: &str) -> Result<Crossing> {
        let nodes = context.nodes()?;
        let (from, to) = (nodes.node(node)?, nodes.node(&self.to)?);
        let migration = Migration {
            unit: id,
            from: &from,
            to: &to,
            to_from_there: &nodes.peer(node, &self.to)?,
            translated: self.translated,
        };
        let display = Mutex::new(context.progress());
        let mut supply = Supply {
            lab: &context.lab,
            unit: id,
            from: &from,
            to: &to,
            uncompiled: Uncompiled::unless(self.at_once),
            display,
        };
        Ok(migrate(&migration, &mut supply)?.1)
    }

    fn container(&self, context: &Context, Place { id, node }: &Place) -> Result<Crossing> {
        let nodes = context.nodes()?;
        let migration = container::Migration {
            container: id,
            from: &nodes.node(node)?,
            to: &nodes.node(&self.to)?,
            to_from_there: &nodes.peer(node, &self.to)?,
            how: self.how.into(),
        };
        let mut display = context.progress();
        Ok(container::migrate(&migration, &mut |report| display.show(report))?.1)
    }
}

/// Say what would be in the way of a container. The exit code says whether something is.
pub(super) fn check(context: &Context, Place { id, node }: &Place, to: &str, how: How) -> Result<ExitCode> {
    let nodes = context.nodes()?;
    let migration = container::Migration {
        container: id,
        from: &nodes.node(node)?,
        to: &nodes.node(to)?,
        to_from_there: &nodes.peer(node, to)?,
        how: how.into(),
    };
    let (_, findings) = container::check(&migration)?;
    context.print(&findings, || text(&findings))?;
    let is_blocked = findings.iter().any(|finding| finding.verdict == Verdict::Blocking);
    Ok(if is_blocked { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn text(findings: &[Finding]) -> String {
    let mut lines = vec![["CHECKED", "", "FOUND", "WHAT TO DO"].map(str::to_owned).to_vec()];
    lines.extend(findings.iter().map(|finding| {
        let verdict = match finding.verdict {
            Verdict::Fine => "fine",
            Verdict::Warning => "warning",
            Verdict::Blocking => "blocking",
        };
        vec![finding.subject.to_owned(), verdict.to_owned(), finding.what.clone(), finding.remedy.clone()]
    }));
    table(&lines)
}
