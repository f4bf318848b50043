//! Loading a guest program: its file, its interpreter if it has one, its stack.

pub mod elf;
pub mod program;
pub mod script;
pub mod stack;
