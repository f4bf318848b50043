//! The arm64 machine dies while a container moves there, or nothing is heard of it for longer than anybody waits: the container
//! goes on in one place, from where it was.

use crate::container_deaths::{MOMENTS, Moment, Scene};
use crate::lab::wait_for;
use std::thread::sleep;
use std::time::Duration;

/// Longer than a node or a client waits for a word.
const SILENCE: Duration = Duration::from_secs(25);

#[test]
fn a_container_goes_on_if_its_new_machine_dies() {
    let mut scene = Scene::begin("container_machine_deaths", "arm64");
    // What has arrived there dies with its machine.
    for moment in MOMENTS.into_iter().filter(|moment| *moment < Moment::Gone) {
        println!("the machine dies, {moment:?}");
        let before = wait_for("a first step", || scene.count("x86"));
        let travel = scene.travel(moment);
        scene.lab.kill_node("arm64");
        drop(travel);
        if moment == Moment::Held {
            sleep(Duration::from_secs(3));
            let held = scene.node("x86").containers().unwrap();
            assert!(
                held.iter().all(|container| !container.runs()),
                "whether it went, nobody knows: {held:?}"
            );
            scene.lab.ok(&["resume", "box"]);
        }
        wait_for("the container", || scene.count("x86").filter(|count| *count > before));
        scene.lab.ok(&["lab", "up", "--nodes", "x86,arm64"]);
        scene.image = false;
    }
}

#[test]
fn a_container_goes_on_if_its_new_machine_is_cut_off() {
    let mut scene = Scene::begin("container_partitions", "arm64");
    for moment in MOMENTS {
        let what = format!("the machine is cut off, {moment:?}");
        println!("{what}");
        let (old, _) = wait_for("the container", || scene.place());
        let before = wait_for("a first step", || scene.count(old));
        let travel = scene.travel(moment);
        signal(scene.lab.node_pid("arm64"), libc::SIGSTOP);
        drop(travel);
        sleep(SILENCE);
        signal(scene.lab.node_pid("arm64"), libc::SIGCONT);
        let has_gone = moment == Moment::Gone;
        scene.goes_on(if has_gone == (old == "x86") { "arm64" } else { "x86" }, before, &what);
    }
}

fn signal(pid: u32, signal: i32) {
    // SAFETY: kill(2) takes two integers.
    assert_eq!(unsafe { libc::kill(pid as i32, signal) }, 0);
}
