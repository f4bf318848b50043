//! What cannot be run is refused by name, with a status that is not 0.

use crate::run::{HOSTS, On, output, scratch};
use std::fs;

/// Standard error of the runtime on `on` with these arguments, which it must refuse.
fn refusal(on: On, args: &[&str]) -> String {
    let result = output(on.runtime().args(args), b"");
    assert_eq!(result.status.code(), Some(126), "{args:?} on {on:?}");
    String::from_utf8(result.stderr).unwrap()
}

#[test]
fn bad_options_are_named() {
    assert!(refusal(On::X86_64, &[]).contains("usage: "));
    assert!(refusal(On::X86_64, &["--color", "yes", "--", "/bin/true"]).contains("unknown option --color"));
    assert!(refusal(On::X86_64, &["--hole", "high", "--", "/bin/true"]).contains("--hole: value"));
    assert!(refusal(On::X86_64, &["--hole", "0x1234", "--", "/bin/true"]).contains("multiple of 0x10000"));
    assert!(refusal(On::X86_64, &["--root-fd", "99", "--", "/bin/true"]).contains("--root-fd 99"));
}

#[test]
fn help_lists_the_options() {
    let result = output(On::X86_64.runtime().arg("--help"), b"");
    assert!(result.status.success() && result.stderr.is_empty());
    assert!(String::from_utf8(result.stdout).unwrap().contains("--stats-fd FD"));
}

#[test]
fn bad_programs_are_named() {
    let directory = scratch("bad-programs");
    let busybox = fs::read("/bin/busybox").unwrap();
    let changed = |at: usize, value: u8| {
        let mut bytes = busybox.clone();
        bytes[at] = value;
        bytes
    };
    let cases: &[(&str, Vec<u8>, &str)] = &[
        ("short", busybox[..40].to_vec(), "file ends before"),
        ("half", busybox[..busybox.len() / 2].to_vec(), "file ends before"),
        ("text", b"just text".to_vec(), "not an ELF file"),
        ("class", changed(4, 1), "not a 64-bit"),
        ("machine", changed(18, 183), "for ELF machine 183"),
        ("core", changed(16, 4), "ELF type 4"),
        ("script", b"#!/nonexistent\n".to_vec(), "cannot be opened"),
        ("loop", format!("#!{}/loop\n", directory.display()).into_bytes(), "script"),
    ];
    for (name, bytes, complaint) in cases {
        let path = directory.join(name);
        fs::write(&path, bytes).unwrap();
        for on in HOSTS {
            let said = refusal(on, &["--", path.to_str().unwrap()]);
            assert!(said.contains(complaint), "{name} on {on:?}: {said}");
        }
    }
    assert!(refusal(On::X86_64, &["--", "/nonexistent"]).contains("/nonexistent: cannot be opened"));
    assert!(refusal(On::X86_64, &["--", "/"]).contains("/: "));
}

#[test]
fn bad_objects_are_named() {
    // An executable that is no shared object.
    let result = std::process::Command::new(On::X86_64.blob())
        .args(["--object", "0", "--", "/bin/busybox", "true"])
        .stdin(fs::File::open("/bin/busybox").unwrap())
        .output()
        .unwrap();
    assert_eq!(result.status.code(), Some(126));
    let said = String::from_utf8(result.stderr).unwrap();
    assert!(said.contains("--object 0: is no ELF shared object"), "{said}");
}

/// A root directory of its own: paths are looked up there.
#[test]
fn the_root_can_be_changed() {
    use std::os::fd::AsRawFd;
    use std::os::unix::process::CommandExt;
    let root = scratch("root");
    fs::copy("/bin/busybox", root.join("busybox")).unwrap();
    fs::write(root.join("file"), "inside\n").unwrap();
    let directory = fs::File::open(&root).unwrap();
    let fd = directory.as_raw_fd();
    let mut command = On::X86_64.runtime();
    command.args(["--root-fd", "9", "--", "/busybox", "cat", "/file"]);
    // SAFETY: dup2 only.
    unsafe {
        command.pre_exec(
            move || if libc::dup2(fd, 9) == 9 { Ok(()) } else { Err(std::io::Error::last_os_error()) },
        )
    };
    let result = output(&mut command, b"");
    assert_eq!(
        String::from_utf8_lossy(&result.stdout),
        "inside\n",
        "{}",
        String::from_utf8_lossy(&result.stderr)
    );
}
