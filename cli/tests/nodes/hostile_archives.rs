//! A node sends checkpoints that no engine makes: the node that they come to refuses them, nothing outside of the move's directory is touched,
//! and the container goes on where it was.

use crate::container_deaths::{Moment, Scene};
use crate::lab::wait_for;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What each of them would make, somewhere.
const MARK: &str = "tranship-escaped";

/// What a node says of them.
const REFUSALS: &[&str] = &["the checkpoint's archive is refused", "leaves its directory"];

/// What is added to an archive: commands of a shell in a directory of their own, `$archive` is the archive.
const ADDITIONS: &[(&str, &str)] = &[
    ("a path that leaves", "touch f; tar -rPf $archive --transform s,f,../../../../../../tranship-escaped, f"),
    ("an absolute path", "touch f; tar -rPf $archive --transform s,f,/tranship-escaped, f"),
    (
        "a file by way of a link",
        "mkdir checkpoint; ln -s / checkpoint/out; tar -rf $archive checkpoint/out; rm checkpoint/out
        mkdir checkpoint/out; touch checkpoint/out/tranship-escaped; tar -rf $archive checkpoint/out/tranship-escaped",
    ),
    ("a device", "mkdir checkpoint; mknod checkpoint/tranship-escaped c 1 3; tar -rf $archive checkpoint/tranship-escaped"),
    ("a hole of a terabyte", "mkdir checkpoint; truncate -s 1T checkpoint/big; tar -Scf own.tar checkpoint/big; tar -Af $archive own.tar"),
    (
        "an inner archive whose link leaves",
        "mkdir in; ln -s / in/out; tar -cf rootfs-diff.tar -C in out; rm in/out; mkdir in/out; touch in/out/tranship-escaped
        tar -rf rootfs-diff.tar -C in out/tranship-escaped; tar -rf $archive rootfs-diff.tar",
    ),
    ("an inner archive with a device", "mknod sda b 8 0; tar -cf rootfs-diff.tar sda; tar -rf $archive rootfs-diff.tar"),
];

#[test]
fn archives_that_would_leave_their_directory_are_refused() {
    let mut scene = Scene::begin("hostile_archives", "x86b");
    for (what, addition) in ADDITIONS {
        let before = wait_for("a first step", || scene.count("x86"));
        let mut travel = scene.travel(Moment::Checkpointed);
        add(&checkpoint(&scene), &scene.lab.path("work"), addition);
        travel.leaving.send_checkpoint(&travel.peer, &mut |_| ()).unwrap();
        let error = travel.coming.restore(true, false, &mut |_| ()).expect_err(what).to_string();
        assert!(REFUSALS.iter().any(|refusal| error.contains(refusal)), "{what}: {error}");
        drop(travel);
        scene.goes_on("x86", before, what);
        for root in ["/", "/var/tmp", "/var/lib/tranship", "/var/lib/tranship/moves"] {
            let found = scene.lab.run(&["lab", "exec", "x86b", "--", "ls", root]);
            assert!(!String::from_utf8_lossy(&found.stdout).contains(MARK), "{what} is in {root}");
        }
    }
}

/// The checkpoint that is about to be sent from node x86.
fn checkpoint(scene: &Scene) -> PathBuf {
    let moves = scene.lab.state().join("x86/state/moves");
    let files = fs::read_dir(moves).unwrap().flat_map(|one| fs::read_dir(one.unwrap().path()).unwrap());
    let paths = files.map(|file| file.unwrap().path());
    // The largest file; the record of the move is beside it.
    paths.max_by_key(|path| path.metadata().unwrap().len()).unwrap()
}

fn add(archive: &Path, work: &Path, addition: &str) {
    let _ = fs::remove_dir_all(work);
    fs::create_dir_all(work).unwrap();
    let mut shell = Command::new("sh");
    let status = shell.args(["-ec", addition]).current_dir(work).env("archive", archive).status();
    assert!(status.unwrap().success(), "{addition}");
}
