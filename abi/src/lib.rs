//! What Linux looks like from each machine, and the layout that a translated process has in memory.
#![no_std]

pub mod block;
