//! A unit on a node: a process tree with a root directory, in a PID namespace of its own, with one *supervisor*
//! process that owns it. The supervisor starts the program or restores it, collects its output, freezes, dumps and
//! ends it, and lives exactly as long as the unit does; the agent only reads what the supervisor writes down, so an
//! agent that dies takes no unit with it.

pub mod criu;
mod elf;
pub mod enter;
pub mod images;
pub mod namespace;
pub mod network;
pub mod output;
pub mod paths;
pub mod proc;
pub mod process;
pub mod quiesce;
pub mod recoding;
pub mod state_area;
pub mod supervisor;
pub mod supply;
pub mod vdso;
