//! Real programs at random moments: what they print after any number of crossings is what they print without us.

use crate::lab::TestLab;
use crate::program::{busybox_root, c_root, compile_busybox, undisturbed};
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

/// `busybox sha256sum` of a file of 256 MB, so many times over.
fn sha256sum(times: usize) -> Vec<String> {
    let line = ["/bin/busybox", "sha256sum"].into_iter().chain(std::iter::repeat_n("/file", times));
    line.map(str::to_owned).collect()
}

fn awk(entries: u64) -> Vec<String> {
    ["/bin/busybox", "awk", "-v", &format!("n={entries}"), AWK].map(str::to_owned).to_vec()
}

/// Run `program` with so many crossings; the last is in mid-run.
fn cross(lab: &TestLab, root: &Path, program: &[String], crossings: u32, random: &mut Random) {
    let program: Vec<&str> = program.iter().map(String::as_str).collect();
    let unit = format!("after-{crossings}");
    lab.start(&unit, root, &[], &program);
    for crossing in 0..crossings {
        std::thread::sleep(Duration::from_millis(random.below(LONGEST_STAY)));
        let (to, translated) = if crossing % 2 == 0 { ("x86b", true) } else { ("x86", false) };
        lab.migrate(&unit, to, translated);
        let mode = if translated { "translated" } else { "native" };
        assert_eq!(lab.runs(to, &unit).as_deref(), Some(mode), "ended before crossing {}", crossing + 1);
    }
    assert_eq!(lab.finish(&unit), undisturbed(root, &program), "after {crossings} crossings");
    lab.ok(&["rm", &unit]);
}

/// No move, one, there and back, and many.
fn survives(test: &str, short: &[String], long: &[String]) {
    let seed = std::env::var("TRANSHIP_SEED").ok().and_then(|seed| u64::from_str_radix(&seed, 16).ok());
    let seed = seed.unwrap_or_else(Random::fresh_seed);
    println!("seed {seed:x} (set TRANSHIP_SEED to repeat)");
    let mut random = Random::new(seed);
    let lab = TestLab::up(test);
    let root = busybox_root(&lab, 256);
    compile_busybox(&lab);
    for crossings in [0, 1, 2] {
        cross(&lab, &root, short, crossings, &mut random);
    }
    cross(&lab, &root, long, CROSSINGS, &mut random);
}

#[test]
fn sha256sum_survives_crossings() {
    survives("sha256sum_survives_crossings", &sha256sum(4), &sha256sum(24));
}

#[test]
fn awk_survives_crossings() {
    survives("awk_survives_crossings", &awk(2_000_000), &awk(24_000_000));
}

/// Threads that are in the vDSO at nearly every moment: to be dumped where none is, they would have to be dumped very often.
#[test]
fn readers_of_clocks_survive_crossings() {
    let lab = TestLab::up("readers_of_clocks_survive_crossings");
    let root = c_root(&lab, "../../../recode/tests/programs/clocks.c");
    let binary = root.join("bin/clocks");
    let cpu = tranship_node::Cpu::here().unwrap().to_string();
    lab.ok(&["compile", binary.to_str().unwrap(), "--host", &cpu]);
    let program = ["/bin/clocks", "3000"].map(str::to_owned);
    cross(&lab, &root, &program, 6, &mut Random::new(Random::fresh_seed()));
}
