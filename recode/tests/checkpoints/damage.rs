//! Image sets that are damaged or foreign: each stops with an error that names the file, and nothing is left behind.

use crate::crossings::parking_host;
use crate::support::{Criu, Program, Scratch, compile};
use std::path::{Path, PathBuf};
use tranship_recode::catalogue::{Layout, Rule};
use tranship_recode::{Home, ImageSet, RecodeError, Target, recode};

/// A dump of the counter, to damage.
fn dumped(scratch: &Scratch) -> PathBuf {
    let binary = compile(scratch, "counter.c", &["-static"]);
    let criu = Criu::get();
    let program = Program::start(scratch, &binary, &["1000000"]);
    program.wait_for_lines(2);
    let images = scratch.path("images");
    criu.dump(program.pid, &images);
    std::mem::forget(program);
    images
}

/// Recode to the host; on an error no image is left behind.
fn try_recode(scratch: &Scratch, images: &Path, target: &Target) -> Result<(), RecodeError> {
    let to = scratch.path("out");
    let result = recode(images, &to, target);
    let left = std::fs::read_dir(&to).map_or(0, |entries| entries.count());
    assert!(result.is_ok() || left == 0, "{left} files left behind");
    let _ = std::fs::remove_dir_all(&to);
    result.map(drop)
}

#[test]
fn truncated_images_are_named() {
    let scratch = Scratch::new("truncated_images_are_named");
    let images = dumped(&scratch);
    let host = parking_host(&scratch);
    let set = ImageSet::open(&images).unwrap();
    let mut tried = 0;
    for (name, of) in set.files().filter(|(_, of)| of.rule != Rule::Leave) {
        let path = images.join(name);
        let whole = std::fs::read(&path).unwrap();
        let boundaries: Vec<u64> =
            set.image(name).unwrap().entries.iter().map(|entry| entry.offset).collect();
        let step = (whole.len() / 40).max(1);
        for length in (0..whole.len()).step_by(step).chain([whole.len() - 1]) {
            std::fs::remove_file(&path).unwrap();
            std::fs::write(&path, &whole[..length]).unwrap();
            match try_recode(&scratch, &images, &host) {
                Ok(()) => {
                    assert!(boundaries.contains(&(length as u64)), "{name} cut to {length} bytes passed")
                }
                Err(RecodeError::Damaged { file, .. } | RecodeError::WrongMagic { file, .. }) => {
                    let of_pages = matches!(of.layout, Layout::Raw) && file.starts_with("pagemap-");
                    assert!(file == name || of_pages, "{name} cut to {length} bytes: {file} is blamed");
                }
                Err(other) => {
                    assert!(boundaries.contains(&(length as u64)), "{name} cut to {length}: {other}")
                }
            }
            tried += 1;
        }
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, &whole).unwrap();
    }
    assert!(tried > 200);
    try_recode(&scratch, &images, &host).unwrap();
}

/// What recoding a set that was changed in one way says.
fn error_after(change: impl FnOnce(&Path), test: &str) -> RecodeError {
    let scratch = Scratch::new(test);
    let images = dumped(&scratch);
    change(&images);
    try_recode(&scratch, &images, &parking_host(&scratch)).unwrap_err()
}

fn one_of(images: &Path, prefix: &str) -> PathBuf {
    let mut entries = std::fs::read_dir(images).unwrap().map(|entry| entry.unwrap().path());
    entries.find(|path| path.file_name().unwrap().to_str().unwrap().starts_with(prefix)).unwrap()
}

#[test]
fn an_unknown_file_is_refused() {
    let change = |images: &Path| std::fs::write(images.join("gpu-state-1.img"), b"?").unwrap();
    let error = error_after(change, "an_unknown_file_is_refused");
    assert!(matches!(&error, RecodeError::UnknownImage { file } if file == "gpu-state-1.img"), "{error}");
}

#[test]
fn an_image_type_of_old_criu_is_refused() {
    let change = |images: &Path| std::fs::write(images.join("sigacts-1.img"), b"").unwrap();
    let error = error_after(change, "an_image_type_of_old_criu_is_refused");
    assert!(matches!(&error, RecodeError::Refused { what, .. } if what == "sigacts-1.img"), "{error}");
}

#[test]
fn an_unknown_field_is_refused() {
    let change = |images: &Path| {
        // Field 999, a varint, at the end of the only message of the core: its length grows by three.
        let path = one_of(images, "core-");
        let mut bytes = std::fs::read(&path).unwrap();
        let length = u32::from_le_bytes(bytes[8..12].try_into().unwrap()) + 3;
        bytes[8..12].copy_from_slice(&length.to_le_bytes());
        bytes.extend([0xb8, 0x3e, 1]);
        std::fs::write(path, bytes).unwrap();
    };
    let error = error_after(change, "an_unknown_field_is_refused");
    assert!(matches!(&error, RecodeError::UnknownField { field: 999, .. }), "{error}");
}

#[test]
fn a_missing_image_is_named() {
    let change = |images: &Path| std::fs::remove_file(one_of(images, "pages-")).unwrap();
    let error = error_after(change, "a_missing_image_is_named");
    assert!(matches!(&error, RecodeError::Missing { file } if file == "pages-1.img"), "{error}");
}

#[test]
fn sets_on_the_wrong_side_are_refused() {
    let scratch = Scratch::new("sets_on_the_wrong_side_are_refused");
    let images = dumped(&scratch);
    let error = try_recode(&scratch, &images, &Target::Canonical(Home::default())).unwrap_err();
    assert!(matches!(&error, RecodeError::State { what, .. } if what.contains("dumped at home")), "{error}");

    // Not restored and parked, only recoded: the threads are still running.
    let host = scratch.path("host");
    recode(&images, &host, &parking_host(&scratch)).unwrap();
    let error = try_recode(&scratch, &host, &Target::Canonical(Home::default())).unwrap_err();
    assert!(matches!(&error, RecodeError::NotParked { .. }), "{error}");
    let error = try_recode(&scratch, &host, &parking_host(&scratch)).unwrap_err();
    assert!(matches!(&error, RecodeError::Refused { what, .. } if what.starts_with("process")), "{error}");
}

#[test]
fn parents_in_a_circle_are_noticed() {
    let scratch = Scratch::new("parents_in_a_circle_are_noticed");
    let (images, host) = (dumped(&scratch), scratch.path("host"));
    recode(&images, &host, &parking_host(&scratch)).unwrap();
    std::fs::remove_file(host.join("parent")).unwrap();
    std::os::unix::fs::symlink(".", host.join("parent")).unwrap();
    let error = try_recode(&scratch, &host, &Target::Canonical(Home::default())).unwrap_err();
    assert!(matches!(&error, RecodeError::Refused { why, .. } if why.contains("parent sets")), "{error}");
}
