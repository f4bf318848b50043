//! Runs entries of a translated object for another process: `tranship-tests-process OBJECT SANDBOX BYTES`, with the
//! sandbox's address and size in hexadecimal. See [`exchange`](tranship_tests_process::exchange).
#![allow(clippy::unwrap_used, clippy::panic, reason = "this is test code; a failure is a panic")]

use std::io::{BufReader, BufWriter, stdin, stdout};

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, object, address, bytes] = &arguments[..] else { panic!("usage: OBJECT SANDBOX BYTES") };
    let hex = |text: &str| u64::from_str_radix(text, 16).unwrap();
    let object = std::fs::read(object).unwrap();
    let sandbox = (hex(address), hex(bytes) as usize);
    let (input, output) = (BufReader::new(stdin().lock()), BufWriter::new(stdout().lock()));
    tranship_tests_process::exchange::serve(&object, sandbox, input, output).unwrap();
}
