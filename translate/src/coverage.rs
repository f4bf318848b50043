//! How much of a guest file's code has blocks: its instructions, counted by how faithful each one's block is.

use crate::discover::discover;
use crate::elf::GuestElf;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use tranship_isa::x86_64::insn::{self, Level};
use tranship_isa::x86_64::{Insn, decode};

/// How the instructions of a file were found.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Found {
    /// As for translation: what control can reach.
    Discovered,
    /// One behind the other through the executable sections, data between them included: discovery found nothing.
    Swept,
}

/// Instructions in a file, each address counted once.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Coverage {
    /// How they were found.
    pub found: Found,
    /// Those that have exact blocks.
    pub exact: u64,
    /// Those whose blocks differ from the CPU as docs/instructions.md says, by mnemonic.
    pub approximate: BTreeMap<String, u64>,
    /// Those without a block, by mnemonic.
    pub absent: BTreeMap<String, u64>,
}

impl Coverage {
    /// Count the instructions of `elf`.
    pub fn of(elf: &GuestElf) -> Coverage {
        let discovery = discover(elf);
        let blocks = discovery.regions.iter().flat_map(|region| region.blocks.values());
        let mut addresses = BTreeSet::new();
        for block in blocks {
            each_instruction(elf, block.start..block.end, &mut |insn| {
                addresses.insert(insn.ip());
            });
        }
        let found = if addresses.is_empty() { Found::Swept } else { Found::Discovered };
        let mut coverage =
            Coverage { found, exact: 0, approximate: BTreeMap::new(), absent: BTreeMap::new() };
        match found {
            Found::Discovered => {
                for insn in addresses.into_iter().filter_map(|at| decode(elf.bytes_at(at), at).ok()) {
                    coverage.count(&insn);
                }
            }
            Found::Swept => {
                for section in elf.code_sections.clone() {
                    each_instruction(elf, section, &mut |insn| coverage.count(insn));
                }
            }
        }
        coverage
    }

    fn count(&mut self, insn: &Insn) {
        let list = match insn::level(insn) {
            Some(Level::Exact) => return self.exact += 1,
            Some(Level::Approximate(_)) => &mut self.approximate,
            None => &mut self.absent,
        };
        *list.entry(format!("{:?}", insn.mnemonic()).to_lowercase()).or_default() += 1;
    }
}

/// The instructions from the start of `range` to its end, bytes that are none left out.
fn each_instruction(elf: &GuestElf, range: Range<u64>, seen: &mut dyn FnMut(&Insn)) {
    let mut at = range.start;
    while at < range.end {
        match decode(elf.bytes_at(at), at) {
            Ok(insn) => {
                seen(&insn);
                at = insn.next_ip();
            }
            Err(_) => at += 1,
        }
    }
}
