//! The blob: the runtime as a freestanding program. Its entry points are in `host/<isa>/entry.rs`.
#![no_std]
#![no_main]

use core::panic::PanicInfo;
use tranship_runtime::{heap::Heap, report};

#[global_allocator]
static HEAP: Heap = Heap::new();

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    report::fatal(format_args!("bug in the runtime: {info}"))
}
