//! Input that is damaged, foreign or not there: an error that names it, exit code not 0, and with `--json` as JSON.

use crate::dam::Dam;
use crate::lab::{TestLab, wait_for};
use crate::program::{BUSYBOX, c_root};
use serde_json::Value as Json;
use std::fs;
use std::path::{Path, PathBuf};

/// The command fails with this code and these words, as text and as JSON.
fn fails(lab: &TestLab, code: i32, words: &[&str], arguments: &[&str]) {
    let line = arguments.join(" ");
    let output = lab.run(arguments);
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "tranship {line}: {errors}");
    assert!(!errors.contains("panicked"), "tranship {line}: {errors}");
    let json = lab.run(&[&["--json"], arguments].concat());
    assert_eq!(json.status.code(), Some(code), "tranship --json {line}");
    let report: Json = serde_json::from_slice(&json.stdout).unwrap_or_else(|error| panic!("{line}: {error}"));
    let message = report["error"]["message"].as_str().unwrap();
    assert!(report["error"]["kind"].is_string());
    for word in words {
        assert!(errors.contains(word) && message.contains(word), "no {word:?} in {line}: {errors}{message}");
    }
}

/// A lab with a directory but no nodes.
fn no_nodes(test: &str) -> TestLab {
    TestLab::without_nodes(test)
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

// ---- ELF files ----

/// A file with these bytes at an offset of busybox's.
fn patched(lab: &TestLab, name: &str, offset: usize, bytes: &[u8]) -> PathBuf {
    let mut elf = fs::read(BUSYBOX).unwrap();
    elf[offset..offset + bytes.len()].copy_from_slice(bytes);
    let path = lab.path(name);
    fs::write(&path, elf).unwrap();
    path
}

fn truncated(lab: &TestLab, length: usize) -> PathBuf {
    let path = lab.path(&format!("cut-{length}"));
    fs::write(&path, &fs::read(BUSYBOX).unwrap()[..length]).unwrap();
    path
}

/// Bad guest programs with what is said of each.
fn bad_elves(lab: &TestLab) -> Vec<(PathBuf, &'static str)> {
    let whole = fs::metadata(BUSYBOX).unwrap().len() as usize;
    let mut elves = vec![
        (patched(lab, "class-32", 4, &[1]), "class"),
        (patched(lab, "big-endian", 5, &[2]), "byte order"),
        (patched(lab, "of-ppc", 18, &[21, 0]), "machine"),
        (patched(lab, "relocatable", 16, &[1, 0]), "executable"),
    ];
    elves.extend([0, 3].map(|length| (truncated(lab, length), "not an ELF file")));
    elves.extend([4, 40, 64, 100, whole / 2].map(|length| (truncated(lab, length), "truncated")));
    elves
}

#[test]
fn bad_programs_are_not_translated() {
    let lab = no_nodes("bad_programs");
    let output = lab.path("out");
    for (elf, why) in bad_elves(&lab) {
        let name = text(&elf);
        fails(&lab, 1, &[name, why], &["lift", name, "-o", text(&output)]);
        fails(&lab, 1, &[name, why], &["compile", name, "--host", "x86_64", "-o", text(&output)]);
        assert!(!output.exists());
    }
    for arguments in
        [&["lift", "/no/such", "-o", "/tmp/x"][..], &["compile", "/no/such", "--host", "aarch64"]]
    {
        fails(&lab, 1, &["/no/such"], arguments);
    }
    fails(&lab, 2, &["sparc"], &["compile", BUSYBOX, "--host", "sparc"]);
    fails(&lab, 1, &["/no/dir/out"], &["lift", "/bin/true", "-o", "/no/dir/out"]);
}

#[test]
fn bad_programs_are_not_run() {
    let lab = TestLab::up("bad_programs_run");
    for (elf, _) in bad_elves(&lab) {
        fs::set_permissions(&elf, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let name = elf.file_name().unwrap().to_str().unwrap();
        for how in [&["run", "--node", "x86"][..], &["run", "--node", "x86", "--translated"]] {
            fails(&lab, 125, &[name], &[how, &["--", text(&elf)]].concat());
        }
    }
    let root = lab.path("root");
    fs::create_dir(&root).unwrap();
    let with_root = ["run", "--node", "x86", "--root", text(&root), "--"];
    fails(&lab, 125, &["/bin/none"], &[&with_root[..], &["/bin/none"]].concat());
    fails(&lab, 125, &["no-such-program"], &["run", "--node", "x86", "--", "no-such-program"]);
    let gone = ["run", "--node", "x86", "--root", "/no/such/root", "--", "/bin/x"];
    fails(&lab, 125, &["/no/such/root"], &gone);
    assert_eq!(lab.json(&["ps", "--all"]), Json::Array(vec![]), "units are left");
}

// ---- nodes and units ----

#[test]
fn unknown_nodes_and_units_are_named() {
    let lab = TestLab::up("unknown_names");
    let root = c_root(&lab, "ballast.c");
    lab.start("here", &root, &[], &["/bin/ballast"]);
    for node in ["mars", "arm64"] {
        fails(&lab, 125, &[node], &["run", "--node", node, "--", BUSYBOX, "true"]);
        fails(&lab, 1, &[node], &["migrate", "here", "--to", node]);
    }
    fails(&lab, 1, &["mars"], &["lab", "up", "--nodes", "mars"]);
    fails(&lab, 1, &["mars"], &["lab", "build", "--nodes", "x86,mars"]);
    fails(&lab, 1, &["mars"], &["lab", "down", "--nodes", "mars"]);
    fails(&lab, 1, &["nobody"], &["migrate", "nobody", "--to", "x86b"]);
    fails(&lab, 1, &["nobody"], &["resume", "nobody"]);
    fails(&lab, 1, &["nobody"], &["signal", "nobody"]);
    fails(&lab, 1, &["nobody"], &["rm", "nobody"]);
    fails(&lab, 125, &["nobody"], &["logs", "nobody"]);
    fails(&lab, 125, &["nobody"], &["wait", "nobody"]);
    fails(&lab, 2, &["../up"], &["wait", "../up"]);
    // There already; where it is; running.
    fails(&lab, 125, &["here"], &["run", "--node", "x86", "--name", "here", "--", BUSYBOX, "true"]);
    fails(&lab, 1, &["here", "x86"], &["migrate", "here", "--to", "x86"]);
    fails(&lab, 1, &["here", "running"], &["rm", "here"]);
    fails(&lab, 1, &["here", "running"], &["resume", "here"]);
    assert_eq!(lab.runs("x86", "here").as_deref(), Some("native"));
}

#[test]
fn a_node_that_is_gone_is_named() {
    let lab = TestLab::up("node_gone");
    let root = c_root(&lab, "ballast.c");
    lab.start("stays", &root, &[], &["/bin/ballast"]);
    lab.ok(&["lab", "down", "--nodes", "x86b"]);
    fails(&lab, 1, &["x86b"], &["migrate", "stays", "--to", "x86b"]);
    lab.ok(&["lab", "up", "--nodes", "x86b"]);
    lab.kill_node("x86b");
    fails(&lab, 1, &["x86b"], &["migrate", "stays", "--to", "x86b"]);
    fails(&lab, 125, &["x86b"], &["run", "--node", "x86b", "--", BUSYBOX, "true"]);
    assert_eq!(lab.runs("x86", "stays").as_deref(), Some("native"));
}

#[test]
fn without_nodes_the_way_to_get_them_is_said() {
    let lab = no_nodes("no_nodes");
    fails(&lab, 125, &["x86", "lab up"], &["run", "--node", "x86", "--", BUSYBOX, "true"]);
    fails(&lab, 1, &["x86", "lab up"], &["migrate", "sum", "--to", "x86"]);
    fails(&lab, 125, &["sum", "lab up"], &["logs", "sum"]);
}

// ---- image sets ----

/// The checkpoint of a unit in mid-crossing.
fn checkpoint(lab: &TestLab) -> PathBuf {
    let root = c_root(lab, "ballast.c");
    lab.start("ballast", &root, &[], &["/bin/ballast"]);
    let dam = Dam::before("x86b", lab, 4 << 20);
    let mut client = lab.spawn(&["--state", text(&dam.state), "migrate", "ballast", "--to", "x86b"]);
    wait_for("the checkpoint to be on its way", || dam.is_full().then_some(()));
    let images = lab.path("images");
    copy_set(&lab.unit("x86", "ballast").join("images/dump"), &images);
    client.kill().unwrap();
    client.wait().unwrap();
    images
}

fn copy_set(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap().flatten() {
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

/// The first image of a kind.
fn image(set: &Path, prefix: &str) -> PathBuf {
    let entries = fs::read_dir(set).unwrap().flatten().map(|entry| entry.path());
    let named = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with(prefix);
    entries.into_iter().find(named).unwrap()
}

fn change(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).unwrap();
    change(&mut bytes);
    fs::write(path, bytes).unwrap();
}

#[test]
fn bad_image_sets_are_not_recoded() {
    let lab = TestLab::up("bad_images");
    let (good, bad, output) = (checkpoint(&lab), lab.path("bad"), lab.path("out"));
    let recode = |set: &Path| ["recode", text(set), "--to", "x86_64", "-o", text(&output)].map(str::to_owned);
    let fails_to_recode = |set: &Path, words: &[&str]| {
        let line = recode(set);
        fails(&lab, 1, words, &line.each_ref().map(String::as_str));
        assert!(!output.exists(), "{words:?}: something is left");
    };
    lab.ok(&recode(&good).each_ref().map(String::as_str));
    fs::remove_dir_all(&output).unwrap();

    let damage = |words: &[&str], harm: &dyn Fn()| {
        copy_set(&good, &bad);
        harm();
        fails_to_recode(&bad, words);
    };
    let name = |prefix| image(&good, prefix).file_name().unwrap().to_str().unwrap().to_owned();
    let (core, pages) = (name("core-"), name("pages-"));
    damage(&[&core], &|| change(&bad.join(&core), |bytes| bytes.truncate(bytes.len() / 2)));
    damage(&[&core], &|| change(&bad.join(&core), |bytes| bytes[0] ^= 1));
    damage(&[&core], &|| change(&bad.join(&core), |bytes| bytes[9] = 0xff));
    damage(&["pagemap-"], &|| change(&bad.join(&pages), |bytes| bytes.truncate(bytes.len() - 4096)));
    damage(&[&pages], &|| fs::remove_file(bad.join(&pages)).unwrap());
    damage(&["pstree.img"], &|| fs::remove_file(bad.join("pstree.img")).unwrap());
    damage(&["gpu-7.img"], &|| fs::write(bad.join("gpu-7.img"), "?").unwrap());
    // The first field of a core's only message, after magic numbers and length: the machine; 3 is aarch64.
    damage(&[&core, "aarch64"], &|| change(&bad.join(&core), |bytes| bytes[13] = 3));

    let empty = lab.path("empty");
    fs::create_dir(&empty).unwrap();
    fails_to_recode(&empty, &[text(&empty)]);
    fails_to_recode(Path::new("/no/such/set"), &["/no/such/set"]);
    fails_to_recode(Path::new(BUSYBOX), &[BUSYBOX]);
    let line = ["recode", text(&good), "--to", "canonical", "-o", text(&output)];
    fails(&lab, 1, &["dumped at home"], &line);
    fails(&lab, 1, &["sparc"], &["recode", text(&good), "--to", "sparc", "-o", text(&output)]);
    assert!(!output.exists());
}
