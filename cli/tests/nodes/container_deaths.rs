//! Whatever dies while a container moves, it goes on afterwards: on one node, from where it was.

use crate::lab::{TestLab, descendants, kill, signal, wait_for};
use crate::program::busybox_root;
use std::fs;
use std::thread::{self, sleep};
use std::time::Duration;
use tranship_lab::Lab;
use tranship_node::client::{Coming, Leaving, Node};
use tranship_node::container::MoveId;
use tranship_node::protocol::{Container, Peer};

/// How far the move is when something dies.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub(crate) enum Moment {
    Announced,
    ImageSent,
    Checkpointed,
    Sent,
    Restored,
    Held,
    Gone,
}

pub(crate) const MOMENTS: [Moment; 7] = [
    Moment::Announced,
    Moment::ImageSent,
    Moment::Checkpointed,
    Moment::Sent,
    Moment::Restored,
    Moment::Held,
    Moment::Gone,
];

/// What dies; the client goes afterwards.
#[derive(Clone, Copy, Debug)]
enum Victim {
    Client,
    OldAgent,
    NewAgent,
}

/// The OCI runtime and CRIU at work, by their command lines.
const RUNTIME: &str = "--image-path";
const CRIU: &str = "criu swrk";
/// What the engine starts it through.
const MONITOR: &str = "conmon --api-version";

/// A container that counts, on node x86 or on another one.
pub(crate) struct Scene {
    pub(crate) lab: TestLab,
    away: &'static str,
    /// Whether both have its image.
    pub(crate) image: bool,
}

/// The two ends of a move.
pub(crate) struct Move {
    pub(crate) leaving: Leaving,
    pub(crate) coming: Coming,
    pub(crate) peer: Peer,
}

impl Scene {
    pub(crate) fn begin(test: &str, away: &'static str) -> Scene {
        let lab = TestLab::with(test, &format!("x86,{away}"));
        lab.image("x86", "box", &busybox_root(&lab, 0));
        let count =
            "i=0; while true; do i=$((i + 1)); echo $i >/count.new; mv /count.new /count; sleep 0.01; done";
        let run = ["podman", "run", "--detach", "--network", "none", "--name", "box", "box"];
        lab.on("x86", &[&run[..], &["/bin/busybox", "sh", "-c", count]].concat());
        Scene { lab, away, image: false }
    }

    fn other(&self, node: &str) -> &'static str {
        if node == "x86" { self.away } else { "x86" }
    }

    pub(crate) fn node(&self, name: &str) -> Node {
        Lab::new(Some(self.lab.state())).load().unwrap().node(name).unwrap()
    }

    /// Where it runs, if that is one place.
    pub(crate) fn place(&self) -> Option<(&'static str, Container)> {
        let on = |name: &'static str| {
            let containers = self.node(name).containers().ok()?;
            Some(containers.into_iter().map(move |container| (name, container)))
        };
        let all: Vec<_> = on("x86")?.chain(on(self.away)?).collect();
        let running = all.iter().filter(|(_, container)| container.runs()).count();
        assert!(running <= 1, "it runs in two places: {all:?}");
        // What is stopped is on its way still.
        match &all[..] {
            [(name, container)] if container.runs() => Some((*name, container.clone())),
            _ => None,
        }
    }

    pub(crate) fn count(&self, node: &str) -> Option<u64> {
        let said = self.lab.run(&[
            "lab",
            "exec",
            node,
            "--",
            "podman",
            "exec",
            "box",
            "/bin/busybox",
            "cat",
            "/count",
        ]);
        String::from_utf8(said.stdout).ok()?.trim().parse().ok()
    }

    /// Begin a move, as far as `until`.
    pub(crate) fn travel(&mut self, until: Moment) -> Move {
        let (from, container) = self.place().unwrap();
        let to = self.other(from);
        let (old, new) = (self.node(from), self.node(to));
        let of = MoveId::random().unwrap();
        let (leaving, container) = old.depart(&of, &container.id).unwrap();
        let coming = new.arrive(&of, &container).unwrap();
        let mut travel = Move { leaving, coming, peer: new.peer.clone() };
        let watch = &mut |_: &_| ();
        if until >= Moment::ImageSent && !self.image {
            travel.leaving.send_image(&travel.peer, watch).unwrap();
            travel.coming.load_image(watch).unwrap();
            self.image = true;
        }
        if until >= Moment::Checkpointed {
            travel.leaving.checkpoint(true, watch).unwrap();
        }
        if until >= Moment::Sent {
            travel.leaving.send_checkpoint(&travel.peer, watch).unwrap();
        }
        if until >= Moment::Restored {
            travel.coming.restore(true, false, watch).unwrap();
        }
        if until >= Moment::Held {
            travel.leaving.hold(&travel.peer).unwrap();
        }
        if until >= Moment::Gone {
            travel.coming.go(watch).unwrap();
        }
        travel
    }

    /// The process on a node whose command line has this in it.
    fn process(&self, node: &str, word: &str) -> Option<u32> {
        descendants(self.lab.node_pid(node)).into_iter().find(|pid| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).replace('\0', " ").contains(word)
        })
    }

    /// It goes on at `place`, from where it was.
    pub(crate) fn goes_on(&self, place: &str, before: u64, what: &str) {
        let found = wait_for(what, || {
            sleep(Duration::from_millis(100));
            self.place()
        });
        assert_eq!(found.0, place, "{what}");
        wait_for(what, || self.count(place).filter(|count| *count > before));
        for node in ["x86", self.away] {
            // (What a virtual machine has is not to be seen from here.)
            let moves = self.lab.state().join(node).join("state/moves");
            if !moves.exists() {
                continue;
            }
            wait_for("what a move has left", || {
                fs::read_dir(&moves).is_ok_and(|mut left| left.next().is_none()).then_some(())
            });
        }
    }
}

#[test]
fn a_container_goes_on_whatever_dies_between_two_steps() {
    let mut scene = Scene::begin("container_deaths", "x86b");
    for victim in [Victim::Client, Victim::OldAgent, Victim::NewAgent] {
        for moment in MOMENTS {
            let what = format!("{victim:?} dies, {moment:?}");
            let (old, _) = wait_for("the container", || scene.place());
            let before = wait_for("a first step", || scene.count(old));
            let travel = scene.travel(moment);
            match victim {
                Victim::Client => {}
                Victim::OldAgent => kill(scene.process(old, " agent ").unwrap()),
                Victim::NewAgent => kill(scene.process(scene.other(old), " agent ").unwrap()),
            }
            drop(travel);
            // Once it was let through the gate it is there.
            scene.goes_on(if moment == Moment::Gone { scene.other(old) } else { old }, before, &what);
        }
    }
}

#[test]
fn a_container_goes_on_whatever_dies_within_a_step() {
    let mut scene = Scene::begin("container_deaths_within", "x86b");
    drop(scene.travel(Moment::ImageSent));
    for (moment, word) in [
        (Moment::Sent, "podman container checkpoint"),
        (Moment::Sent, RUNTIME),
        (Moment::Sent, CRIU),
        (Moment::Restored, "podman container restore"),
        (Moment::Restored, RUNTIME),
        (Moment::Restored, CRIU),
    ] {
        let what = format!("{word} dies");
        let (old, _) = wait_for("the container", || scene.place());
        let before = wait_for("a first step", || scene.count(old));
        let mut travel = scene.travel(if moment == Moment::Sent { Moment::ImageSent } else { Moment::Sent });
        let place = if moment == Moment::Sent { old } else { scene.other(old) };
        let done = thread::scope(|scope| {
            let step = scope.spawn(|| match moment {
                Moment::Sent => travel.leaving.checkpoint(true, &mut |_| ()).map(drop),
                _ => travel.coming.restore(true, false, &mut |_| ()).map(drop),
            });
            let seen = wait_for(&what, || {
                // Engines ask CRIU for its version before.
                scene.process(place, RUNTIME)?;
                scene.process(place, word)
            });
            // What has ended already cannot be ended.
            signal(seen, libc::SIGKILL);
            step.join().unwrap()
        });
        println!("{what}: {done:?}");
        drop(travel);
        scene.goes_on(old, before, &what);
    }
}

#[test]
fn a_container_does_not_come_with_a_runtime_that_starts_after_its_engine_died() {
    let mut scene = Scene::begin("container_orphan", "x86b");
    let before = wait_for("a first step", || scene.count("x86"));
    let mut travel = scene.travel(Moment::Sent);
    let done = thread::scope(|scope| {
        let step = scope.spawn(|| travel.coming.restore(true, false, &mut |_| ()).map(drop));
        let monitor = wait_for("the monitor", || scene.process("x86b", MONITOR));
        signal(monitor, libc::SIGSTOP);
        kill(wait_for("the engine", || scene.process("x86b", "podman container restore")));
        // Long enough for the agent to see it.
        sleep(Duration::from_secs(1));
        signal(monitor, libc::SIGCONT);
        step.join().unwrap()
    });
    assert!(done.is_err());
    drop(travel);
    scene.goes_on("x86", before, "the engine dies before its runtime starts");
}

#[test]
fn a_container_has_arrived_though_its_client_died_at_the_gate() {
    let scene = Scene::begin("container_gate", "x86b");
    for from in ["x86", "x86b", "x86"] {
        let (to, before) = (scene.other(from), wait_for("a first step", || scene.count(from)));
        let arrived = scene.lab.state().join(to).join("state/arrived");
        let number = || fs::read_dir(&arrived).map_or(0, Iterator::count);
        let earlier = number();
        let mut client = scene.lab.spawn(&["migrate", "box", "--to", to]);
        // From now on it is the new node's, whatever the client hears.
        wait_for("the new node's word", || (number() > earlier).then_some(()));
        client.kill().unwrap();
        client.wait().unwrap();
        scene.goes_on(to, before, "the client dies at the gate");
    }
}

#[test]
fn a_container_that_is_held_for_a_dead_node_goes_on_by_hand() {
    let mut scene = Scene::begin("container_held", "x86b");
    let before = wait_for("a first step", || scene.count("x86"));
    let travel = scene.travel(Moment::Held);
    scene.lab.kill_node("x86b");
    drop(travel);
    // Nobody knows whether it went: it is held.
    sleep(Duration::from_secs(3));
    let held = scene.node("x86").containers().unwrap();
    assert!(held.iter().all(|container| !container.runs()), "{held:?}");
    scene.lab.ok(&["resume", "box"]);
    wait_for("the container", || scene.count("x86").filter(|count| *count > before));
}

#[test]
fn a_move_whose_client_died_is_resumed_and_rolled_back() {
    let scene = Scene::begin("container_resumed", "x86b");
    let stop_half_way = |from: &str, to: &str| {
        let mut client = scene.lab.spawn(&["migrate", "box", "--to", to]);
        wait_for("CRIU", || scene.process(from, CRIU));
        client.kill().unwrap();
        client.wait().unwrap();
    };
    let refused = scene.lab.run(&["migrate", "box", "--resume"]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("no move of box was interrupted"));
    let before = wait_for("a first step", || scene.count("x86"));
    stop_half_way("x86", "x86b");
    assert_eq!(scene.lab.json(&["migrate", "box", "--resume"])["to"], "x86b");
    scene.goes_on("x86b", before, "it is resumed");
    let before = wait_for("a step", || scene.count("x86b"));
    stop_half_way("x86b", "x86");
    assert_eq!(scene.lab.json(&["migrate", "box", "--rollback"])["node"], "x86b");
    scene.goes_on("x86b", before, "it is rolled back");
    // That is over.
    assert!(!scene.lab.run(&["migrate", "box", "--rollback"]).status.success());
}
