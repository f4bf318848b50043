//! Regions, the units of translation: what discovery hands to the lifter. All addresses are guest
//! addresses as linked, without load bias.

mod text;

use std::collections::{BTreeMap, BTreeSet};
use tranship_isa::x86_64::Flag;

/// Guest code reachable from `entry` by branches within its function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// Where it is entered; the start of a block.
    pub entry: u64,
    /// The symbol at `entry`, where there is one.
    pub name: Option<String>,
    /// Its basic blocks by start address. Blocks of one region may overlap in bytes where the guest jumps
    /// into the middle of an instruction; blocks of different regions may be the same (a shared tail is
    /// lifted twice).
    pub blocks: BTreeMap<u64, Block>,
    /// Blocks such that every cycle of the region goes through at least one: the targets of back-edges.
    pub loop_headers: BTreeSet<u64>,
    /// Blocks besides `entry` whose address the program takes (labels as values, landing pads): an indirect jump may go
    /// there.
    pub labels: BTreeSet<u64>,
    /// Blocks at which it can be entered from outside: `entry`, loop headers and labels, or some of them.
    pub entries: BTreeSet<u64>,
    /// Registers that it and its known callees may read and write.
    pub registers: RegisterUse,
}

impl Region {
    /// Whether the block at `address` can become a label: no table's jump can be reached from there past the place
    /// where its index is known.
    fn may_enter(&self, address: u64) -> bool {
        let holds =
            |start: &u64, at: u64| self.blocks.get(start).is_some_and(|b| (b.start..b.end).contains(&at));
        let is_open = |jump: &Block, at: u64| {
            let (mut seen, mut work) = (BTreeSet::new(), vec![address]);
            while let Some(start) = work.pop() {
                if holds(&start, at) || !seen.insert(start) {
                    continue;
                }
                if start == jump.start {
                    return true;
                }
                work.extend(self.blocks.get(&start).into_iter().flat_map(|block| block.exit.successors()));
            }
            false
        };
        let mut switches = self.blocks.values().filter_map(|block| match &block.exit {
            Exit::Switch(table) => Some((block, table.at)),
            _ => None,
        });
        self.blocks.contains_key(&address) && !switches.any(|(block, at)| is_open(block, at))
    }

    /// The same region, to be entered at those of `addresses` that are in it; if there are any but the start, then wherever
    /// it can, as that costs nothing more.
    fn entered_at(&self, addresses: &BTreeSet<u64>) -> Region {
        let inside = |at: &u64| *at != self.entry;
        let wanted = addresses.iter().copied().filter(|address| self.may_enter(*address));
        let mut entries: BTreeSet<u64> = wanted.collect();
        if entries.iter().any(inside) {
            entries.extend(self.entries.iter().copied().filter(inside));
        }
        Region { entries, ..self.clone() }
    }
}

/// Instructions that are executed one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Address of the first instruction.
    pub start: u64,
    /// Address behind the last instruction; the control transfer that `exit` describes, if it is an
    /// instruction, is the last one. Equal to `start` for an undecodable spot.
    pub end: u64,
    /// Where control goes from `end`.
    pub exit: Exit,
    /// Flags that may be read before they are written, from `start` on.
    pub flags_live_in: FlagSet,
    /// The same from the end of the block on: what the block must leave exact. For a call these are the flags that
    /// the callee may read, or that may be read after it if it does not write them.
    pub flags_live_out: FlagSet,
}

/// Where a control transfer goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// To a block of this region.
    Block(u64),
    /// Out of the region, normally to the entry of another one: a tail jump. A target that has no region
    /// (code that does not decode, an address in no segment) is looked up at run time.
    Region(u64),
}

impl Edge {
    /// Whether it goes out of the region.
    pub const fn leaves(self) -> bool {
        matches!(self, Edge::Region(_))
    }
}

/// How a block ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exit {
    /// No transfer: goes on at the next address, where another block starts.
    Next(Edge),
    /// Direct jump.
    Jump(Edge),
    /// Conditional direct jump (`jcc`, `loop`, `jrcxz`).
    Branch {
        /// When the condition holds.
        taken: Edge,
        /// When it does not.
        next: Edge,
    },
    /// Indirect jump through a table that was recognised; all targets are blocks of this region.
    Switch(JumpTable),
    /// Indirect jump to anywhere.
    IndirectJump,
    /// Call.
    Call {
        /// The callee where it is known; a region's entry, or looked up at run time.
        target: Option<u64>,
        /// Where the callee returns to. [`Edge::Region`] where it does not return as far as discovery can
        /// tell; what is there need not be code.
        next: Edge,
    },
    /// Return to the address popped.
    Return,
    /// The last instruction does not go on: `ud2`, `hlt`, `int3`, a far transfer. Its own meaning says what happens.
    Trap,
    /// Control would reach bytes at `end` that are no instruction or not executable.
    Undecodable,
}

impl Exit {
    /// The blocks of this region that control can go on to, a call's continuation among them; targets of a
    /// table as often as they are in it.
    pub fn successors(&self) -> impl Iterator<Item = u64> {
        (0..).map_while(|n| self.successor(n))
    }

    /// The `n`th of [`Exit::successors`].
    pub fn successor(&self, n: usize) -> Option<u64> {
        let edges = match self {
            Exit::Switch(table) => return table.targets.get(n).copied(),
            Exit::Next(edge) | Exit::Jump(edge) | Exit::Call { next: edge, .. } => [Some(*edge), None],
            Exit::Branch { taken, next } => [Some(*taken), Some(*next)],
            _ => [None, None],
        };
        let mut blocks = edges.into_iter().flatten().filter_map(|edge| match edge {
            Edge::Block(block) => Some(block),
            Edge::Region(_) => None,
        });
        blocks.nth(n)
    }
}

/// A jump table as one indirect jump uses it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JumpTable {
    /// The instruction at whose start `index` holds the index. It is executed on every way to the jump, and
    /// last before it: often the load of the table's entry, or the jump itself.
    pub at: u64,
    /// Number of the general register whose 64 bits are the index into `targets`, unscaled.
    pub index: u8,
    /// Where each index goes.
    pub targets: Vec<u64>,
    /// On every way through the region `index < targets.len()`, and the entry read is that of this table, which
    /// is constant: `switch` may be trusted. Otherwise the targets are likely but the lifter must compare the
    /// target that the guest computed with the one expected, and jump indirectly where they differ.
    pub proven: bool,
}

/// A set of [`Flag`]s.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Hash)]
pub struct FlagSet(u8);

impl FlagSet {
    /// None.
    pub const EMPTY: FlagSet = FlagSet(0);
    /// All of [`Flag::ALL`].
    pub const ALL: FlagSet = FlagSet((1 << Flag::ALL.len()) - 1);

    /// Bit `n` for the `n`th of [`Flag::ALL`].
    pub(crate) const fn bits(self) -> u8 {
        self.0
    }

    pub(crate) const fn from_bits(bits: u8) -> FlagSet {
        FlagSet(bits & FlagSet::ALL.0)
    }

    /// Whether `flag` is in it.
    pub const fn contains(self, flag: Flag) -> bool {
        self.0 & 1 << flag as u8 != 0
    }

    /// With `flag` added.
    #[must_use]
    pub const fn with(self, flag: Flag) -> FlagSet {
        FlagSet(self.0 | 1 << flag as u8)
    }

    /// What is in either.
    #[must_use]
    pub const fn union(self, other: FlagSet) -> FlagSet {
        FlagSet(self.0 | other.0)
    }

    /// What is in both.
    #[must_use]
    pub const fn intersection(self, other: FlagSet) -> FlagSet {
        FlagSet(self.0 & other.0)
    }

    /// What is in `self` but not in `other`.
    #[must_use]
    pub const fn minus(self, other: FlagSet) -> FlagSet {
        FlagSet(self.0 & !other.0)
    }

    /// Whether it has no member.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Its members.
    pub fn iter(self) -> impl Iterator<Item = Flag> {
        Flag::ALL.into_iter().filter(move |&f| self.contains(f))
    }
}

/// A set of guest registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct RegisterSet {
    /// General registers by number, whole.
    pub gpr: u16,
    /// Vector registers by number, whole (xmm, ymm and zmm alike).
    pub vec: u32,
    /// The x87/MMX unit.
    pub x87: bool,
    /// AVX-512 mask registers.
    pub opmask: bool,
}

impl RegisterSet {
    /// Every register.
    pub const ALL: RegisterSet = RegisterSet { gpr: u16::MAX, vec: u32::MAX, x87: true, opmask: true };

    /// One general register.
    pub const fn gpr(number: u8) -> RegisterSet {
        RegisterSet { gpr: 1 << (number & 15), vec: 0, x87: false, opmask: false }
    }

    /// What is in either.
    #[must_use]
    pub const fn union(self, other: RegisterSet) -> RegisterSet {
        RegisterSet {
            gpr: self.gpr | other.gpr,
            vec: self.vec | other.vec,
            x87: self.x87 | other.x87,
            opmask: self.opmask | other.opmask,
        }
    }
}

/// What code does to registers. Control that leaves to an unknown place counts as everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct RegisterUse {
    /// May read.
    pub reads: RegisterSet,
    /// May write.
    pub writes: RegisterSet,
}

impl RegisterUse {
    /// What either does.
    #[must_use]
    pub const fn union(self, other: RegisterUse) -> RegisterUse {
        RegisterUse { reads: self.reads.union(other.reads), writes: self.writes.union(other.writes) }
    }
}

/// All that was found in one ELF file.
#[derive(Clone, Debug, Default)]
pub struct Discovery {
    /// Sorted by entry.
    pub regions: Vec<Region>,
    /// Entries whose address the program takes (data pointers, `lea`, symbols that other files can call):
    /// where an indirect call can go. Sorted.
    pub address_taken: Vec<u64>,
    /// Flags that some region in `address_taken` may read before writing them: what an indirect call or jump must
    /// leave exact.
    pub flags_live_at_entries: FlagSet,
    /// Flags that may be read after some call in this file before they are written. What a certain return must
    /// leave exact is its block's `flags_live_out`.
    pub flags_live_after_calls: FlagSet,
    /// What was covered and what was not.
    pub report: Report,
    /// What to lift it for.
    pub faults: Faults,
}

/// What lifted code lets a guest see of a fault of an access to memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub enum Faults {
    /// Nothing: for guests that have no handler for it.
    #[default]
    Fatal,
    /// The exact state: every access has a way out, on which the instruction that faults is interpreted.
    Exact,
}

impl Discovery {
    /// The regions that any of `addresses` is in.
    pub fn containing<'a>(&'a self, addresses: &'a BTreeSet<u64>) -> impl Iterator<Item = &'a Region> {
        let holds = |region: &&Region| addresses.iter().any(|address| region.blocks.contains_key(address));
        self.regions.iter().filter(holds)
    }

    /// The regions that `addresses` are in, without the others: what is known of those stays true. They are entered at
    /// these addresses.
    pub fn around(&self, addresses: &BTreeSet<u64>) -> Discovery {
        self.with(self.containing(addresses).map(|region| region.entered_at(addresses)).collect())
    }

    /// `addresses` without those that lie in a region whose start is among them.
    pub fn starts(&self, addresses: &BTreeSet<u64>) -> BTreeSet<u64> {
        let started = self.regions.iter().filter(|region| addresses.contains(&region.entry));
        let insides: BTreeSet<u64> = started.flat_map(|region| region.blocks.keys().copied()).collect();
        let is_start = |at: &u64| self.region(*at).is_some();
        addresses.iter().copied().filter(|at| is_start(at) || !insides.contains(at)).collect()
    }

    /// The same regions in pieces of about `bytes` bytes of code.
    pub fn pieces(&self, bytes: u64) -> Vec<Discovery> {
        let (mut pieces, mut piece, mut size) = (Vec::new(), Vec::new(), 0);
        for region in &self.regions {
            size += region.blocks.values().map(|block| block.end - block.start).sum::<u64>();
            piece.push(region.clone());
            if size >= bytes {
                pieces.push(self.with(std::mem::take(&mut piece)));
                size = 0;
            }
        }
        if !piece.is_empty() {
            pieces.push(self.with(piece));
        }
        pieces
    }

    /// What is known of the file, with these of its regions.
    fn with(&self, regions: Vec<Region>) -> Discovery {
        Discovery {
            regions,
            address_taken: self.address_taken.clone(),
            flags_live_at_entries: self.flags_live_at_entries,
            flags_live_after_calls: self.flags_live_after_calls,
            report: Report::default(),
            faults: self.faults,
        }
    }

    /// Whether there is a region at whose start `address` it can be entered.
    pub fn enters(&self, address: u64) -> bool {
        self.region(address).is_some_and(|region| region.entries.contains(&address))
    }

    /// The region that starts at `entry`.
    pub fn region(&self, entry: u64) -> Option<&Region> {
        self.regions.binary_search_by_key(&entry, |r| r.entry).ok().and_then(|i| self.regions.get(i))
    }
}

/// How much was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Bytes of executable sections (segments, where there are no sections).
    pub text_bytes: u64,
    /// Those of them that are in some block.
    pub covered_bytes: u64,
    /// Those of the rest that are padding between functions.
    pub padding_bytes: u64,
    /// Basic blocks, counted once per region they are in.
    pub blocks: usize,
    /// Jump tables resolved.
    pub jump_tables: usize,
    /// Indirect jumps that were not resolved (PLT stubs not counted), by address.
    pub unresolved_jumps: Vec<u64>,
    /// Entries that were left to the interpreter because regions would repeat too much of each other's
    /// code. No compiler's output has any.
    pub dropped_entries: usize,
    /// Reached addresses whose bytes are no instruction.
    pub undecodable: Vec<u64>,
}
