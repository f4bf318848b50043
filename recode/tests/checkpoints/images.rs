//! Real dumps: every image decodes and encodes to the same bytes; what is damaged is named.

use crate::support::{Criu, Program, Scratch, compile};
use std::path::Path;
use tranship_recode::ImageSet;
use tranship_recode::catalogue::Layout;

/// Start, let it write some lines, dump.
fn dump(scratch: &Scratch, source: &str, arguments: &[&str], lines: usize) -> std::path::PathBuf {
    let binary = compile(scratch, source, &["-static", "-pthread"]);
    let criu = Criu::get();
    let program = Program::start(scratch, &binary, arguments);
    program.wait_for_lines(lines);
    let images = scratch.path("images");
    criu.dump(program.pid, &images);
    std::mem::forget(program);
    images
}

/// Every image of the set does.
pub(crate) fn encodes_to_itself(images: &Path) {
    let set = ImageSet::open(images).unwrap();
    let mut messages = 0;
    for (name, of) in set.files() {
        let image = set.image(name).unwrap();
        let bytes = std::fs::read(images.join(name)).unwrap();
        let encoded = image.encode(&set.source(name).unwrap()).unwrap();
        assert!(encoded == bytes, "{name} does not encode to itself");
        assert!(matches!(of.layout, Layout::Raw) || !image.entries.is_empty(), "{name} is empty");

        messages += image.entries.len();
    }
    assert!(messages > 20);
}

#[test]
fn counter_encodes_to_itself() {
    let scratch = Scratch::new("counter_encodes_to_itself");
    encodes_to_itself(&dump(&scratch, "counter.c", &["1000"], 3));
}

#[test]
fn threads_encode_to_themselves() {
    let scratch = Scratch::new("threads_encode_to_themselves");
    encodes_to_itself(&dump(&scratch, "threads.c", &["1000"], 3));
}

#[test]
fn events_encode_to_themselves() {
    let scratch = Scratch::new("events_encode_to_themselves");
    encodes_to_itself(&dump(&scratch, "events.c", &["1000"], 3));
}
