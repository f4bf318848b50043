//! The guest's own seccomp filters, which the runtime judges its calls by: where the state area has them. They are durable: a
//! checkpoint takes them along, and at home the kernel has them.

use core::sync::atomic::AtomicU64;

/// MAX_INSNS_PER_PATH of `kernel/seccomp.c`: the instructions of all filters of a thread. The store has as many words.
pub const MAX_WORDS: usize = 32768;
/// BPF_MAXINSNS: of one filter.
pub const MAX_INSNS: usize = 4096;
/// In the place of a thread's latest filter: it is in strict mode.
pub const STRICT: u32 = u32::MAX;

/// All filters of a process: for each a [`Head`], then its instructions, each a `struct sock_filter` as one little-endian word. A filter's
/// number is the index behind its head; nothing is ever taken out.
#[repr(C, align(4096))]
pub struct FilterStore {
    /// Words in use.
    pub used: AtomicU64,
    /// Heads and instructions.
    pub words: [u64; MAX_WORDS],
}

/// What comes before a filter's instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Number of the filter that was there before it; 0 for none.
    pub before: u32,
    /// How many instructions it has.
    pub len: u16,
    /// SECCOMP_FILTER_FLAG_*, of which only LOG says anything about a filter that is installed.
    pub flags: u16,
}

impl Head {
    /// As a word of the store.
    pub const fn encode(self) -> u64 {
        self.before as u64 | (self.len as u64) << 32 | (self.flags as u64) << 48
    }

    /// From a word of the store.
    pub const fn decode(word: u64) -> Head {
        Head { before: word as u32, len: (word >> 32) as u16, flags: (word >> 48) as u16 }
    }
}
