//! `tranship migrate`: a unit or a container to another node.

use super::{history, interrupted};
use crate::error::{CliError, Result};
use crate::find::{self, Found, Place};
use crate::journal::Begun;
use crate::objects::{Supply, Uncompiled};
use crate::output::{Context, table};
use clap::{Args, ValueEnum};
use std::process::ExitCode;
use std::sync::Mutex;
use tranship_node::client::Node;
use tranship_node::container::migrate as container;
use tranship_node::container::preflight::{Finding, Verdict};
use tranship_node::migrate::{Crossing, Migration, migrate};
use tranship_node::protocol::Peer;
use tranship_node::{NodeError, UnitId};

/// Move a running container or unit to another node.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  tranship migrate cache --to arm64 --keep-address\n  tranship migrate cache --to arm64 --dry-run\n  \
tranship migrate sum --to x86 --json\n  tranship migrate cache --resume\n\nIf anything fails, it goes on where it was. So it does \
if this command is killed: then --resume brings a container's move to its end, and --rollback has it run where it was."
)]
pub(crate) struct Migrate {
    /// The container or unit.
    name: String,
    /// The node to move it to.
    #[arg(long, value_name = "NODE", required_unless_present_any = ["resume", "rollback"])]
    to: Option<String>,
    /// Bring a container's move to its end of which no command has seen the end, as it was begun.
    #[arg(long, conflicts_with_all = ["to", "rollback", "dry_run", "keep_address"])]
    resume: bool,
    /// Have a container run again where it was before such a move.
    #[arg(long, conflicts_with_all = ["to", "dry_run", "keep_address"])]
    rollback: bool,
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
        let Some(to) = self.to.as_deref() else {
            let end = if self.resume { interrupted::resume } else { interrupted::roll_back };
            return end(context, &self.name);
        };
        let nodes = context.nodes()?;
        // Named wrongly more often than what is to go there.
        nodes.node(to)?;
        let crossing = match find::anything(&nodes, &self.name)? {
            Found::Unit { id, node } => self.unit(context, &id, &node, to)?,
            Found::Container(place) if self.dry_run => return check(context, &place, to, self.how),
            Found::Container(place) => conduct(context, &self.name, &place, to, self.how.into())?,
        };
        finish(context, &self.name, &crossing)
    }

    fn unit(&self, context: &Context, id: &UnitId, node: &str, to_name: &str) -> Result<Crossing> {
        let nodes = context.nodes()?;
        let (from, to) = (nodes.node(node)?, nodes.node(to_name)?);
        let migration = Migration {
            unit: id,
            from: &from,
            to: &to,
            to_from_there: &nodes.peer(node, to_name)?,
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
}

/// The nodes of a container's move.
struct Ends {
    from: Node,
    to: Node,
    /// The new one, as the old one sees it.
    to_from_there: Peer,
}

impl Ends {
    fn of(context: &Context, from: &str, to: &str) -> Result<Ends> {
        let nodes = context.nodes()?;
        Ok(Ends { from: nodes.node(from)?, to: nodes.node(to)?, to_from_there: nodes.peer(from, to)? })
    }

    fn migration<'a>(&'a self, container: &'a str, how: container::How) -> container::Migration<'a> {
        let Ends { from, to, to_from_there } = self;
        container::Migration { container, from, to, to_from_there, how }
    }
}

/// Move a container, which is called `name`; the journal has it as long as it is not known where it runs.
pub(super) fn conduct(
    context: &Context,
    name: &str,
    Place { id, node }: &Place,
    to: &str,
    how: container::How,
) -> Result<Crossing> {
    let ends = Ends::of(context, node, to)?;
    let [name, own_id, from, to] = [name, id, node, to].map(str::to_owned);
    let begun = Begun { name, id: own_id, from, to, how };
    let journal = context.journal();
    journal.begin(&begun)?;
    let mut display = context.progress();
    let moved = container::migrate(&ends.migration(id, how), &mut |report| display.show(report));
    if !matches!(moved, Err(NodeError::MoveInDoubt { .. })) {
        journal.end(&begun)?;
    }
    Ok(moved.map_err(CliError::from)?.1)
}

/// Put a crossing into the history and say it.
pub(super) fn finish(context: &Context, name: &str, crossing: &Crossing) -> Result<ExitCode> {
    if let Err(error) = context.lab.history().add(crossing) {
        context.say(&format!("{name} has moved, but not into the history: {error}"));
    }
    context.print(crossing, || history::text(std::slice::from_ref(crossing)))?;
    Ok(ExitCode::SUCCESS)
}

/// Say what would be in the way of a container. The exit code says whether something is.
pub(super) fn check(context: &Context, Place { id, node }: &Place, to: &str, how: How) -> Result<ExitCode> {
    let (_, findings) = container::check(&Ends::of(context, node, to)?.migration(id, how.into()))?;
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
