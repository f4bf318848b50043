//! Regions as text, for `--dump=cfg` and for people: a line per block.

use super::{Block, Edge, Exit, FlagSet, Region, RegisterSet};
use std::fmt::{Display, Formatter, Result};

impl Display for Region {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        writeln!(f, "region {:#x} {}", self.entry, self.name.as_deref().unwrap_or("-"))?;
        writeln!(f, "  reads {}", self.registers.reads)?;
        writeln!(f, "  writes {}", self.registers.writes)?;
        for block in self.blocks.values() {
            let mark = |marked: bool, name: &'static str| if marked { name } else { "" };
            let entry = mark(block.start == self.entry, " entry");
            let label = mark(self.labels.contains(&block.start), " label");
            let header = mark(self.loop_headers.contains(&block.start), " loop");
            writeln!(f, "  {block}{entry}{label}{header}")?;
        }
        Ok(())
    }
}

impl Display for Block {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let Block { start, end, exit, flags_live_in, flags_live_out } = self;
        write!(f, "{start:#x}..{end:#x} [{flags_live_in}] -> [{flags_live_out}] {exit}")
    }
}

/// Blocks of the region as addresses, others as `region ADDRESS`.
impl Display for Edge {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Edge::Block(address) => write!(f, "{address:#x}"),
            Edge::Region(address) => write!(f, "region {address:#x}"),
        }
    }
}

impl Display for Exit {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Exit::Next(edge) => write!(f, "next {edge}"),
            Exit::Jump(edge) => write!(f, "jump {edge}"),
            Exit::Branch { taken, next } => write!(f, "branch {taken} else {next}"),
            Exit::Switch(table) => {
                let proven = if table.proven { "" } else { " unproven" };
                write!(f, "switch{proven} {} at {:#x}", RegisterSet::gpr(table.index), table.at)?;
                table.targets.iter().try_for_each(|target| write!(f, " {target:#x}"))
            }
            Exit::IndirectJump => write!(f, "jump anywhere"),
            Exit::Call { target: Some(target), next } => write!(f, "call {target:#x} then {next}"),
            Exit::Call { target: None, next } => write!(f, "call anywhere then {next}"),
            Exit::Return => write!(f, "return"),
            Exit::Trap => write!(f, "trap"),
            Exit::Undecodable => write!(f, "undecodable"),
        }
    }
}

impl Display for FlagSet {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let names: Vec<String> = self.iter().map(|flag| format!("{flag:?}").to_uppercase()).collect();
        f.write_str(&names.join(" "))
    }
}

/// x86-64 names; `all` for everything.
impl Display for RegisterSet {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        const GPR: [&str; 16] = [
            "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13",
            "r14", "r15",
        ];
        if *self == RegisterSet::ALL {
            return f.write_str("all");
        }
        let gpr = (0..16).filter(|r| self.gpr >> r & 1 != 0).map(|r| GPR[r].to_owned());
        let vec = (0..32).filter(|r| self.vec >> r & 1 != 0).map(|r| format!("v{r}"));
        let rest = [(self.x87, "x87"), (self.opmask, "opmask")];
        let rest = rest.into_iter().filter(|(is, _)| *is).map(|(_, name)| name.to_owned());
        f.write_str(&gpr.chain(vec).chain(rest).collect::<Vec<_>>().join(" "))
    }
}
