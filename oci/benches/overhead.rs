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
use std::fs::File;
use std::path::Path;
use std::time::Instant;

/// Each way is made so often; the medians count.
const ROUNDS: usize = 31;

/// One program's figures in milliseconds: at home and abroad, of each round.
#[derive(Default)]
struct Times {
    dump: [Vec<f64>; 2],
    restore: [Vec<f64>; 2],
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
                times.restore[place].push(milliseconds(started));
                steps = Steps::follow(output, made, "abroad");
            }
            let started = Instant::now();
            container.checkpoint(&images);
            times.dump[place].push(milliseconds(started));
            let made = steps.end();
            let started = Instant::now();
            let output = container.restore(&images, false);
            if !abroad {
                times.restore[place].push(milliseconds(started));
            }
            steps = Steps::follow(output, made, "at home again");
            let made = if abroad { vec![format!("{images}-home"), images] } else { vec![images] };
            made.iter().for_each(|images| forget(&container.node().work().join(images)));
        }
    }
    container.delete();
    steps.end();
    times
}

/// Free a checkpoint's room. Its files stay: where many have just been removed, ext4 takes a millisecond to make one, which neither
/// side of the comparison is about.
fn forget(images: &Path) {
    for image in std::fs::read_dir(images).unwrap() {
        let path = image.unwrap().path();
        if path.is_file() {
            File::options().write(true).open(path).unwrap().set_len(0).unwrap();
        }
    }
}

fn page(rows: &[(&str, Times)]) -> String {
    let mut page = format!(
        "# What crossing costs a container\n\n\
         Time of one `checkpoint` and one `restore` of a container, each the whole command: by stock runc and CRIU at home, and by\n\
         `tranship-runc` abroad (on the same machine, translated), where the dump parks all threads first and makes the images those of the\n\
         home machine, and the restore makes them those of the host. Medians of {ROUNDS} interleaved rounds; what is more, of the\n\
         differences in each round. Written by `make bench-containers`.\n\n\
         | container | checkpoint at home | abroad | more | restore at home | abroad | more | both, more |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    for (name, Times { dump, restore }) in rows {
        let (dump_more, restore_more) = (more(dump), more(restore));
        let both: Vec<f64> =
            dump_more.iter().zip(&restore_more).map(|(dump, restore)| dump + restore).collect();
        let figures = [&dump[0], &dump[1], &dump_more, &restore[0], &restore[1], &restore_more, &both];
        let cells: String = figures.iter().map(|times| format!(" {:.1} ms |", median(times))).collect();
        page += &format!("| {name} |{cells}\n");
    }
    page
}

/// How much longer it takes abroad, in each round.
fn more([home, abroad]: &[Vec<f64>; 2]) -> Vec<f64> {
    home.iter().zip(abroad).map(|(home, abroad)| abroad - home).collect()
}

fn milliseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}

fn median(times: &[f64]) -> f64 {
    let mut times = times.to_vec();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
