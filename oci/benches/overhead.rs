//! What it costs to checkpoint and restore a container abroad, beside stock runc and CRIU at home. `--output FILE` also
//! writes the page.

#![allow(clippy::unwrap_used, clippy::panic)]
#![allow(dead_code, reason = "the tests use more of what is shared with them")]

#[path = "../tests/containers/config.rs"]
mod config;
#[path = "../tests/containers/node.rs"]
mod node;
#[path = "../tests/containers/round.rs"]
mod round;

use round::{Container, Steps};
use std::path::Path;
use std::time::{Duration, Instant};

/// Each way is made so often; the medians count.
const ROUNDS: usize = 9;

/// One program's figures: at home and abroad, of each round.
#[derive(Default)]
struct Times {
    dump: [Vec<Duration>; 2],
    restore: [Vec<Duration>; 2],
}

fn main() {
    let rows = [("two processes more", "processes"), ("64 MB of memory", "bulk")];
    let rows: Vec<(&str, Times)> = rows.iter().map(|(name, object)| (*name, measure(object))).collect();
    let page = page(&rows);
    print!("{page}");
    let mut arguments = std::env::args().skip_while(|argument| argument != "--output");
    if let Some(path) = arguments.nth(1) {
        std::fs::write(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path), page).unwrap();
    }
}

/// Home to home by stock runc, then home to abroad and back, again and again.
fn measure(object: &str) -> Times {
    let mut container = Container::new(object);
    let mut times = Times::default();
    let mut steps = Steps::follow(container.create(false), 0, "at home");
    for round in 0..ROUNDS {
        for abroad in [false, true] {
            let images = format!("{round}{abroad}");
            // Dumped where the last restore has brought it: abroad after the second one.
            container.is_stock = !abroad;
            let place = usize::from(abroad);
            if abroad {
                container.checkpoint(&format!("{images}-home"));
                let made = steps.end();
                let started = Instant::now();
                let output = container.restore(&format!("{images}-home"), true);
                times.restore[place].push(started.elapsed());
                steps = Steps::follow(output, made, "abroad");
            }
            let started = Instant::now();
            container.checkpoint(&images);
            times.dump[place].push(started.elapsed());
            let made = steps.end();
            let started = Instant::now();
            let output = container.restore(&images, false);
            if !abroad {
                times.restore[place].push(started.elapsed());
            }
            steps = Steps::follow(output, made, "at home again");
        }
    }
    container.delete();
    steps.end();
    times
}

fn page(rows: &[(&str, Times)]) -> String {
    let mut page = String::from(
        "# What crossing costs a container\n\n\
         Time of one `checkpoint` and one `restore` of a container, each the whole command: by stock runc and CRIU at home, and by\n\
         `tranship-runc` abroad (on the same machine, translated), where the dump parks all threads first and makes the images those of the\n\
         home machine, and the restore makes them those of the host. Medians of interleaved rounds. Written by `make bench-containers`.\n\n\
         | container | checkpoint at home | abroad | more | restore at home | abroad | more |\n\
         |---|--:|--:|--:|--:|--:|--:|\n",
    );
    for (name, times) in rows {
        let [[dump_home, dump_abroad], [restore_home, restore_abroad]] =
            [&times.dump, &times.restore].map(|pair| [median(&pair[0]), median(&pair[1])]);
        page += &format!(
            "| {name} | {dump_home:.1} ms | {dump_abroad:.1} ms | {:.1} ms | {restore_home:.1} ms | {restore_abroad:.1} ms | {:.1} ms |\n",
            dump_abroad - dump_home,
            restore_abroad - restore_home,
        );
    }
    page
}

fn median(times: &[Duration]) -> f64 {
    let mut times: Vec<f64> = times.iter().map(|time| time.as_secs_f64() * 1e3).collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
