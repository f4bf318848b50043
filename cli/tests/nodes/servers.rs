//! Debian's redis, nginx and Python, and a program of four threads, move in mid-work, natively and translated: no wrong
//! answer, and nothing is lost of what was acknowledged. `make test-crossings` does so more often, and has sqlite3 run on
//! arm64.

use crate::lab::{TestLab, wait_for};
use crate::load::{Load, check_redis, fill_redis, load_http, load_redis};
use crate::program::{compute_root, debian_root, redis_root, source, threads_root, undisturbed};
use std::fs;

/// Between two nodes of this machine.
const NEAR: Journey =
    Journey { away: "x86b", rounds: if cfg!(feature = "long") { 20 } else { 3 }, answers: 2000 };
/// To the arm64 machine, which is emulated.
#[cfg(feature = "long")]
const FAR: Journey = Journey { away: "arm64", rounds: 2, answers: 200 };
/// CPU time in milliseconds that a program that computes gets between two crossings, at least.
const WORK_MS: u64 = 150;
/// For sqlite3: what is written, indexed, changed, taken back and read again.
#[cfg(feature = "long")]
const STATEMENTS: &str = "
    create table goods (id integer primary key, weight real, port text);
    with recursive n(x) as (select 1 union all select x + 1 from n where x < 2000)
        insert into goods select x, x * x % 977 / 8.0, printf('P%02d', x * 7 % 31) from n;
    create index by_port on goods (port, weight);
    update goods set weight = weight + 0.5 where id % 3 = 0;
    begin; delete from goods where weight > 50; rollback;
    select port, count(*), sum(weight), max(id) from goods group by port order by 3 desc limit 5;
    select id, rank() over (partition by port order by weight) as place from goods order by place desc, id limit 5;
    vacuum;
    pragma integrity_check;";
const UNIT: &str = "traveller";
const THREADS: &[&str] = &["/usr/bin/threads"];
const PYTHON: &[&str] = &["/usr/bin/python3", "/compute.py"];

/// From x86 to another node and back, so many times.
struct Journey {
    away: &'static str,
    rounds: u32,
    /// What redis answers at each stop, at least.
    answers: u64,
}

impl Journey {
    /// The nodes it needs.
    fn lab(&self, test: &str) -> TestLab {
        TestLab::with(test, &format!("x86,{}", self.away))
    }

    /// Move the unit, away it is translated. At each stop `stay` is called with the node.
    fn travel(&self, lab: &TestLab, stay: impl Fn(&str)) {
        stay("x86");
        for _ in 0..self.rounds {
            for (to, options) in [(self.away, &["--translated", "--at-once"][..]), ("x86", &[])] {
                let report = lab.json(&[&["migrate", UNIT, "--to", to], options].concat());
                println!("to {to}: {report}");
                let mode = if options.is_empty() { "native" } else { "translated" };
                assert_eq!(lab.runs(to, UNIT).as_deref(), Some(mode));
                stay(to);
            }
        }
    }

    /// Travel while the clients work; at each stop they get so many more answers, at least.
    fn travel_under_load<T: Send + 'static>(&self, lab: &TestLab, load: Load<T>, answers: u64) -> Vec<T> {
        self.travel(lab, |_| {
            let before = load.answered();
            wait_for("answers", || (load.answered() > before + answers).then_some(()));
        });
        load.end()
    }
}

/// A program that works until it is told to stop, and then says how much it did: natively, that much has the same
/// result.
fn computes(journey: &Journey, lab: &TestLab, program: &[&str]) {
    let root = lab.path("root");
    lab.start(UNIT, &root, &[], program);
    journey.travel(lab, |node| {
        wait_for("some work", || {
            let status = lab.status(node, UNIT).unwrap();
            assert_eq!(status["state"], "running", "{:?}", lab.run(&["logs", UNIT]));
            (status["cpu_ms"].as_u64().unwrap() > WORK_MS).then_some(())
        });
    });
    lab.ok(&["signal", UNIT, "15"]);
    let output = lab.finish(UNIT);
    let amount = output.split(' ').next().unwrap();
    assert_eq!(output, undisturbed(&root, &[program, &[amount]].concat()));
}

fn four_threads(journey: &Journey, test: &str) {
    let lab = journey.lab(test);
    threads_root(&lab);
    computes(journey, &lab, THREADS);
}

fn python(journey: &Journey, test: &str) {
    let lab = journey.lab(test);
    compute_root(&lab);
    computes(journey, &lab, PYTHON);
}

fn redis(journey: &Journey, test: &str) {
    let lab = journey.lab(test);
    let (root, program) = redis_root(&lab);
    lab.start(UNIT, &root, &[], &program);
    let forward = lab.forward(UNIT, 6379);
    fill_redis(forward.port);
    let ledgers = journey.travel_under_load(&lab, load_redis(forward.port), journey.answers);
    check_redis(forward.port, &ledgers);
    lab.ok(&["signal", UNIT, "15"]);
    lab.finish(UNIT);
}

fn nginx_with_two_workers(journey: &Journey, test: &str) {
    let lab = journey.lab(test);
    let root = debian_root(&lab);
    for directory in ["files", "run", "var/lib/nginx", "var/log/nginx"] {
        fs::create_dir_all(root.join(directory)).unwrap();
    }
    fs::copy(source("nginx.conf"), root.join("nginx.conf")).unwrap();
    let contents: Vec<u8> =
        (0..500_000_u64).flat_map(|block| block.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes()).collect();
    fs::write(root.join("files/data"), &contents).unwrap();
    lab.start(UNIT, &root, &[], &["/usr/sbin/nginx", "-e", "stderr", "-c", "/nginx.conf"]);
    let forward = lab.forward(UNIT, 8080);
    journey.travel_under_load(&lab, load_http(forward.port, "/data", contents), 8);
    lab.ok(&["signal", UNIT, "3"]);
    lab.finish(UNIT);
    let log = String::from_utf8(lab.run(&["logs", UNIT]).stderr).unwrap();
    assert!(!log.contains("[alert]") && !log.contains("[crit]"), "{log}");
    assert_eq!(log.matches("exited with code 0").count(), 2, "{log}");
}

mod near {
    use super::*;

    #[test]
    fn four_threads() {
        super::four_threads(&NEAR, "four_threads");
    }

    #[test]
    fn python() {
        super::python(&NEAR, "python");
    }

    #[test]
    fn redis() {
        super::redis(&NEAR, "redis");
    }

    #[test]
    fn nginx_with_two_workers() {
        super::nginx_with_two_workers(&NEAR, "nginx_with_two_workers");
    }
}

#[cfg(feature = "long")]
mod far {
    use super::*;

    #[test]
    fn four_threads() {
        super::four_threads(&FAR, "four_threads_far");
    }

    #[test]
    fn python() {
        super::python(&FAR, "python_far");
    }

    #[test]
    fn redis() {
        super::redis(&FAR, "redis_far");
    }

    #[test]
    fn nginx_with_two_workers() {
        super::nginx_with_two_workers(&FAR, "nginx_with_two_workers_far");
    }

    /// It starts there, on a file.
    #[test]
    fn sqlite() {
        let lab = FAR.lab("sqlite_far");
        let root = debian_root(&lab);
        let program = ["/usr/bin/sqlite3", "/file.db", STATEMENTS];
        let there = ["run", "--node", FAR.away, "--root", root.to_str().unwrap(), "--"];
        assert_eq!(lab.ok(&[&there, &program[..]].concat()), undisturbed(&root, &program));
    }
}
