//! Real programs at random moments: what they print after any number of crossings is what they print without us.

use crate::lab::TestLab;
use crate::program::{busybox_root, c_root, compile_busybox, undisturbed};
use std::fs;
use std::path::Path;
use std::time::Duration;
use tranship_tests::differential::Random;

/// Crossings in the longest test: native → translated → native → …
const CROSSINGS: u32 = 100;
/// A program works up to so many milliseconds between two crossings, besides what a crossing needs while it runs.
const LONGEST_STAY: u64 = 40;

/// Fills an associative array, and prints a checksum of it: heap, floats, printf.
const AWK: &str = "BEGIN { x = 1; for (i = 0; i < n; i++) { x = (x * 16807) % 2147483647; a[x % 50000] += x / 1000 }
    for (i = 0; i < 50000; i++) s = (s * 31 + a[i]) % 1000003.5; printf \"%d entries, checksum %.6f\\n\", n, s }";

/// A program may be given twice the work so many times, to still be at it when the last crossing comes.
const DOUBLINGS: u32 = 6;

/// `busybox sha256sum` of a file of 256 MB, so many times over.
fn sha256sum(times: usize) -> Vec<String> {
    let line = ["/bin/busybox", "sha256sum"].into_iter().chain(std::iter::repeat_n("/file", times));
    line.map(str::to_owned).collect()
}

fn awk(entries: usize) -> Vec<String> {
    ["/bin/busybox", "awk", "-v", &format!("n={entries}"), AWK].map(str::to_owned).to_vec()
}

/// Run a program with so many crossings, the last in mid-run, and enough `work` for that on this machine.
fn cross(
    lab: &TestLab,
    root: &Path,
    program: impl Fn(usize) -> Vec<String>,
    work: usize,
    crossings: u32,
    random: &mut Random,
) {
    let worked_throughout = (0..=DOUBLINGS).any(|doubling| {
        let program = program(work << doubling);
        let program: Vec<&str> = program.iter().map(String::as_str).collect();
        let unit = format!("after-{crossings}");
        lab.start(&unit, root, &[], &program);
        let crossed = (0..crossings).all(|crossing| moved_at_work(lab, &unit, crossing, random));
        assert_eq!(lab.finish(&unit), undisturbed(root, &program), "after {crossings} crossings");
        lab.ok(&["rm", &unit]);
        crossed
    });
    assert!(worked_throughout, "ended before crossing {crossings}, whatever the work");
}

/// Move a unit to the other node after a random while; false when it ended before or right after that.
fn moved_at_work(lab: &TestLab, unit: &str, crossing: u32, random: &mut Random) -> bool {
    std::thread::sleep(Duration::from_millis(random.below(LONGEST_STAY)));
    let (from, to, translated) =
        if crossing.is_multiple_of(2) { ("x86", "x86b", true) } else { ("x86b", "x86", false) };
    let has_ended = |node| lab.status(node, unit).is_some_and(|status| status["state"] == "exited");
    let output = lab.try_migrate(unit, to, translated);
    if !output.status.success() && has_ended(from) {
        return false;
    }
    assert!(
        output.status.success(),
        "crossing {}: {}",
        crossing + 1,
        String::from_utf8_lossy(&output.stderr)
    );
    let mode = if translated { "translated" } else { "native" };
    match lab.runs(to, unit) {
        Some(found) => assert_eq!(found, mode, "after crossing {}", crossing + 1),
        None => assert!(has_ended(to), "neither runs nor has ended after crossing {}", crossing + 1),
    }
    !has_ended(to)
}

/// No move, one, there and back, and many.
fn survives(test: &str, program: fn(usize) -> Vec<String>, short: usize, long: usize) {
    let seed = std::env::var("TRANSHIP_SEED").ok().and_then(|seed| u64::from_str_radix(&seed, 16).ok());
    let seed = seed.unwrap_or_else(Random::fresh_seed);
    println!("seed {seed:x} (set TRANSHIP_SEED to repeat)");
    let mut random = Random::new(seed);
    let lab = TestLab::up(test);
    let root = busybox_root(&lab, 256);
    compile_busybox(&lab);
    for crossings in [0, 1, 2] {
        cross(&lab, &root, program, short, crossings, &mut random);
    }
    cross(&lab, &root, program, long, CROSSINGS, &mut random);
}

#[test]
fn sha256sum_survives_crossings() {
    survives("sha256sum_survives_crossings", sha256sum, 4, 24);
}

#[test]
fn awk_survives_crossings() {
    survives("awk_survives_crossings", awk, 2_000_000, 24_000_000);
}

/// Threads that are in the vDSO at nearly every moment: to be dumped where none is, they would have to be dumped very often.
#[test]
fn readers_of_clocks_survive_crossings() {
    let lab = TestLab::up("readers_of_clocks_survive_crossings");
    let root = c_root(&lab, "../../../recode/tests/programs/clocks.c");
    let binary = root.join("bin/clocks");
    let cpu = tranship_node::Cpu::here().unwrap().to_string();
    lab.ok(&["compile", binary.to_str().unwrap(), "--host", &cpu]);
    let program = |steps: usize| ["/bin/clocks".to_owned(), steps.to_string()].to_vec();
    cross(&lab, &root, program, 3000, 6, &mut Random::new(Random::fresh_seed()));
}

/// An upgrade replaces the program of agents, which run on until they are started again.
#[test]
fn a_unit_crosses_while_its_nodes_are_upgraded() {
    let lab = TestLab::without_nodes("a_unit_crosses_while_its_nodes_are_upgraded");
    let installed = lab.path("lib");
    fs::create_dir(&installed).unwrap();
    for file in fs::read_dir(tranship_lab::companions().unwrap()).unwrap().flatten() {
        fs::hard_link(file.path(), installed.join(file.file_name())).unwrap();
    }
    let mut up = lab.command(&["lab", "up", "--nodes", "x86,x86b"]);
    assert!(up.env("TRANSHIP_LIB", &installed).status().unwrap().success());
    let root = c_root(&lab, "ballast.c");
    lab.start("ballast", &root, &[], &["/bin/ballast"]);

    let (agent, upgrade) = (installed.join("node-x86_64"), installed.join("node-x86_64.new"));
    fs::copy(&agent, &upgrade).unwrap();
    fs::rename(&upgrade, &agent).unwrap();
    for (to, translated) in [("x86b", true), ("x86", false)] {
        lab.migrate("ballast", to, translated);
        assert!(lab.runs(to, "ballast").is_some(), "{to}");
    }
}
