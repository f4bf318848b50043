//! Where the program is linked.

/// An address that no test tries: powers of two are among what they try, and 2²² is where a program is otherwise.
const TEXT: u64 = 0x65_4321_0000;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Programs for the machine that builds are position-independent.
    if std::env::var("TARGET") != std::env::var("HOST") {
        println!("cargo::rustc-link-arg-bins=-Wl,-Ttext-segment={TEXT:#x}");
    }
}
