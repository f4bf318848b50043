//! Who takes part in a checkpoint abroad ends in the middle of it: the container goes on where it is, as if nobody had asked,
//! or it is gone and its images are whole.

use crate::round::{Container, Steps};
use std::fs;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

/// How long after the checkpoint has begun, in milliseconds.
const MOMENTS: &[u64] = &[20, 40, 60, 80, 120, 180];

#[test]
fn a_container_survives_the_death_of_the_relay() {
    survive(|line| line.starts_with("criu swrk"));
}

#[test]
fn a_container_survives_the_death_of_the_runtime() {
    survive(|line| line.contains("runc checkpoint"));
}

/// End the first process whose command line is such a one, at one moment after another.
fn survive(is_victim: impl Fn(&str) -> bool) {
    let container = Container::new("bulk");
    let mut steps = Steps::follow(container.create(true), 0, "abroad");
    let mut died = 0;
    for moment in MOMENTS {
        let mut checkpoint = container.begin_checkpoint(&format!("at-{moment}"));
        let mut checkpoint = checkpoint.stderr(Stdio::null()).spawn().unwrap();
        thread::sleep(Duration::from_millis(*moment));
        let victim = container.processes().into_iter().find(|pid| is_victim(&command_line(*pid)));
        if let Some(victim) = victim {
            // SAFETY: kill(2) takes numbers only; it is a process of this test's own node.
            unsafe { libc::kill(victim as i32, libc::SIGKILL) };
        }
        died += usize::from(!checkpoint.wait().unwrap().success());
        if !steps.go_on() {
            // CRIU was done, so its images are whole.
            container.delete();
            let output = container.restore(&format!("at-{moment}"), true);
            steps = Steps::follow(output, steps.end(), "after a checkpoint");
        }
    }
    assert!(died > 0, "nobody has died in the middle of a checkpoint");
    container.checkpoint("home");
    let home = Steps::follow(container.restore("home", false), steps.end(), "at home");
    container.delete();
    home.end();
}

fn command_line(pid: u32) -> String {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&line).replace('\0', " ")
}
