//! Time from the request to all threads parked, at random moments of translated programs at work. `--output FILE` also
//! writes the page.

#![allow(clippy::unwrap_used, clippy::panic)]
#![allow(dead_code, reason = "the tests use more of what is shared with them")]

#[path = "../tests/nodes/lab.rs"]
mod lab;
#[path = "../tests/nodes/load.rs"]
mod load;
#[path = "../tests/nodes/program.rs"]
mod program;

use lab::TestLab;
use load::{fill_redis, load_redis};
use program::{compute_root, redis_root, threads_root};
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};
use tranship_node::unit::{proc, quiesce};

/// Each program is stopped so often.
const TIMES: u32 = 500;
/// It works so many milliseconds in between, on average.
const PAUSE_MS: u64 = 10;
/// How long it works before the first time.
const START: Duration = Duration::from_secs(1);
const UNIT: &str = "subject";

fn main() {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap();
    let kinds: [(&'static str, &[&str]); 2] = [("interpreted", &["--at-once"]), ("compiled", &[])];
    let rows: Vec<Row> = kinds.iter().flat_map(|(how, options)| programs(how, options)).collect();
    let page = page(&rows, load.split(' ').next().unwrap());
    print!("{page}");
    let mut arguments = std::env::args().skip_while(|argument| argument != "--output");
    if let Some(path) = arguments.nth(1) {
        std::fs::write(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path), page).unwrap();
    }
}

/// One program's figures.
struct Row {
    name: String,
    threads: usize,
    /// In order.
    times: Vec<Duration>,
}

/// All of them, started with these options.
fn programs(how: &str, options: &[&str]) -> [Row; 3] {
    let options = [&["--translated"], options].concat();
    [threads(how, &options), redis(how, &options), python(how, &options)]
}

fn threads(how: &str, options: &[&str]) -> Row {
    let lab = TestLab::up("quiesce_threads");
    let root = threads_root(&lab);
    lab.start(UNIT, &root, options, &["/usr/bin/threads"]);
    measure(format!("four threads, {how}"), &lab)
}

fn redis(how: &str, options: &[&str]) -> Row {
    let lab = TestLab::up("quiesce_redis");
    let (root, program) = redis_root(&lab);
    lab.start(UNIT, &root, options, &program);
    let forward = lab.forward(UNIT, 6379);
    fill_redis(forward.port);
    let load = load_redis(forward.port);
    let row = measure(format!("redis-server under load, {how}"), &lab);
    load.end();
    row
}

fn python(how: &str, options: &[&str]) -> Row {
    let lab = TestLab::up("quiesce_python");
    let root = compute_root(&lab);
    lab.start(UNIT, &root, options, &["/usr/bin/python3", "/compute.py"]);
    measure(format!("python3, {how}"), &lab)
}

/// Stop the unit and let it go, over and over.
fn measure(name: String, lab: &TestLab) -> Row {
    let inside = lab.status("x86", UNIT).unwrap()["pid"].as_u64().unwrap();
    let pid = lab.outside("x86", inside);
    for session in ["self".to_owned(), pid.to_string()] {
        // Not a measurement of what else this machine does.
        std::fs::write(format!("/proc/{session}/autogroup"), "-20").unwrap();
    }
    sleep(START);
    let threads = proc::threads(pid).unwrap().len();
    let stop = |time: u32| {
        // No multiple of any period in these programs.
        sleep(Duration::from_micros(PAUSE_MS * 500 + u64::from(time) * 7919 % (PAUSE_MS * 1000)));
        let start = Instant::now();
        quiesce::park(pid).unwrap();
        let taken = start.elapsed();
        quiesce::release(pid).unwrap();
        taken
    };
    let mut times: Vec<Duration> = (0..TIMES).map(stop).collect();
    times.sort();
    eprintln!("{name}: {:?} {:?}", times[times.len() / 2], times[times.len() - 1]);
    Row { name, threads, times }
}

fn page(rows: &[Row], load: &str) -> String {
    let build = if cfg!(debug_assertions) { "development" } else { "release" };
    let mut page = format!(
        "# What a quiesce takes\n\n\
         Time from the request to all threads parked at safepoints, for translated programs at work on an x86-64 host of two\n\
         CPUs, with priority over whatever else runs there: median, 99th percentile and worst of {TIMES}. Written by\n\
         `make bench-quiesce`; this time by a {build} build, where the load average was {load} before.\n\n\
         | program | threads | median | 99 % | worst |\n|---|--:|--:|--:|--:|\n"
    );
    for Row { name, threads, times } in rows {
        let at = |part: usize| times[(times.len() - 1) * part / 100].as_secs_f64() * 1e3;
        let [median, most, worst] = [at(50), at(99), at(100)];
        page += &format!("| {name} | {threads} | {median:.2} ms | {most:.2} ms | {worst:.2} ms |\n");
    }
    page
}
