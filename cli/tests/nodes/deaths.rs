//! Nodes and clients that die while a unit moves: it goes on where it was, ends as it would have, and leaves nothing
//! where it did not arrive.

use crate::dam::Dam;
use crate::lab::{TestLab, descendants, kill, signal, wait_for};
use crate::program::{busybox_root, c_root, compile_busybox, undisturbed};
use std::fs;
use std::path::PathBuf;
use std::process::Child;
use std::thread::sleep;
use std::time::Duration;

const UNIT: &str = "ballast";
/// Nearly all of it is memory of the program; see ballast.c.
const BALLAST: u64 = 64 << 20;

/// When.
#[derive(Clone, Copy, Debug)]
enum Moment {
    /// The root is on its way, the unit runs.
    Root,
    /// The checkpoint is: so many 64ths of it have arrived.
    Checkpoint(u64),
    /// CRIU restores it on the new node.
    Restore,
}

const MOMENTS: [Moment; 5] =
    [Moment::Root, Moment::Checkpoint(1), Moment::Checkpoint(40), Moment::Checkpoint(62), Moment::Restore];

/// What runs on a node and what is mounted there.
#[derive(Debug, PartialEq)]
struct Scene {
    /// Command lines, but for ports.
    processes: Vec<String>,
    /// Where, and of which kind.
    mounts: Vec<String>,
}

/// The processes of a node, with their command lines.
fn processes(lab: &TestLab, node: &str) -> Vec<(u32, String)> {
    let line = |pid| fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let all = descendants(lab.node_pid(node)).into_iter();
    all.map(|pid| (pid, String::from_utf8_lossy(&line(pid)).replace('\0', " "))).collect()
}

fn scene(lab: &TestLab, node: &str) -> Scene {
    let all = processes(lab, node);
    // The second is the first in the node's own namespaces.
    let of_node = all.get(1).map_or(0, |(pid, _)| *pid);
    let mounts = fs::read_to_string(format!("/proc/{of_node}/mountinfo")).unwrap_or_default();
    let mount = |line: &str| {
        let (what, kind) = line.split_once(" - ").unwrap();
        let fields = [what.split(' ').nth(4), kind.split(' ').next()];
        fields.map(Option::unwrap).join(" ")
    };
    let line = |line: String| line.split(" --listen").next().unwrap_or_default().to_owned();
    let mut processes: Vec<String> = all.into_iter().map(|(_, of)| line(of)).collect();
    processes.sort();
    Scene { processes, mounts: mounts.lines().map(mount).collect() }
}

/// A unit of 64 MB on its way from x86 to x86b, and what both looked like before.
struct Journey {
    lab: TestLab,
    root: PathBuf,
    before: [Scene; 2],
}

impl Journey {
    fn begin(test: &str) -> Journey {
        let lab = TestLab::up(test);
        let root = c_root(&lab, "ballast.c");
        // Something to be in the middle of.
        fs::write(root.join("file"), vec![7; 8 << 20]).unwrap();
        let arrival = scene(&lab, "x86b");
        lab.start(UNIT, &root, &[], &["/bin/ballast"]);
        wait_for("the program's memory", || {
            let status = lab.status("x86", UNIT)?;
            (status["resident"].as_u64()? > BALLAST).then_some(())
        });
        let before = [scene(&lab, "x86"), arrival];
        Journey { lab, root, before }
    }

    /// Start to move the unit, and stop it and its client at `moment`.
    fn depart(&self, moment: Moment) -> (Child, Dam) {
        let file = 8 << 20;
        let limit = match moment {
            Moment::Root => file / 2,
            Moment::Checkpoint(part) => file + (1 << 20) + BALLAST / 64 * part,
            Moment::Restore => u64::MAX,
        };
        let dam = Dam::before("x86b", &self.lab, limit);
        let state = dam.state.to_str().unwrap();
        let client = self.lab.spawn(&["--state", state, "migrate", UNIT, "--to", "x86b"]);
        let log = self.lab.unit("x86b", UNIT).join("images/received/restore.log");
        wait_for("the moment", || match moment {
            Moment::Restore => log.exists().then_some(()),
            _ => dam.is_full().then_some(()),
        });
        // What it conducts gets no further, however long the rest takes.
        signal(client.id(), libc::SIGSTOP);
        let frozen = self.lab.status("x86", UNIT).unwrap()["state"] == "frozen";
        assert_eq!(frozen, !matches!(moment, Moment::Root), "{moment:?}");
        (client, dam)
    }

    /// The migration, whose client may go on, failed, and says of what.
    fn expect_failure(&self, client: Child, moment: Moment) {
        signal(client.id(), libc::SIGCONT);
        let output = client.wait_with_output().unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{moment:?}: {errors}");
        assert!(errors.contains("x86b") && !errors.contains("panicked"), "{moment:?}: {errors}");
    }

    /// The unit runs where it was, as if nothing had been.
    fn expect_untouched(&self, moment: Moment) {
        let lab = &self.lab;
        wait_for("the original to go on", || (lab.runs("x86", UNIT)? == "native").then_some(()));
        wait_for("nothing left where it was", || (scene(lab, "x86") == self.before[0]).then_some(()));
        assert!(!lab.unit("x86", UNIT).join("images").exists(), "{moment:?}: images are left");
        wait_for("nothing left where it did not arrive", || {
            (!lab.unit("x86b", UNIT).exists() && scene(lab, "x86b") == self.before[1]).then_some(())
        });
    }

    /// It can still move, and ends as it would have.
    fn arrive(&self, node: &str) {
        self.lab.migrate(UNIT, node, false);
        self.lab.ok(&["signal", UNIT, "10"]);
        let output = self.lab.finish(UNIT);
        let rounds = output.split(' ').next().unwrap();
        assert_eq!(output, undisturbed(&self.root, &["/bin/ballast", rounds]));
    }
}

#[test]
fn a_unit_outlives_the_death_of_the_agent_it_goes_to() {
    let journey = Journey::begin("agent_dies");
    for moment in MOMENTS {
        let (client, dam) = journey.depart(moment);
        let all = processes(&journey.lab, "x86b");
        kill(all.iter().find(|(_, line)| line.contains(" agent --listen")).unwrap().0);
        journey.expect_failure(client, moment);
        drop(dam);
        journey.expect_untouched(moment);
    }
    journey.arrive("x86b");
}

#[test]
fn a_unit_outlives_the_death_of_the_node_it_goes_to() {
    let journey = Journey::begin("node_dies");
    for moment in MOMENTS {
        let (client, dam) = journey.depart(moment);
        journey.lab.kill_node("x86b");
        journey.expect_failure(client, moment);
        drop(dam);
        journey.lab.ok(&["lab", "up", "--nodes", "x86b"]);
        journey.expect_untouched(moment);
    }
    journey.arrive("x86b");
}

#[test]
fn a_unit_outlives_the_death_of_the_client_that_moves_it() {
    let journey = Journey::begin("client_dies");
    for moment in MOMENTS {
        let (mut client, dam) = journey.depart(moment);
        client.kill().unwrap();
        client.wait().unwrap();
        drop(dam);
        let runs = |node: &&str| journey.lab.runs(node, UNIT).is_some_and(|how| how == "native");
        let place = wait_for("the unit", || ["x86", "x86b"].into_iter().find(runs));
        // A client that had done its part before it was stopped has moved the unit.
        if place == "x86b" && matches!(moment, Moment::Restore) {
            journey.lab.migrate(UNIT, "x86", false);
        }
        journey.expect_untouched(moment);
    }
    journey.arrive("x86b");
}

/// Nobody dies, but the root of the unit takes longer than a supervisor waits for a client.
#[test]
fn a_unit_is_waited_for_as_long_as_its_client_lives() {
    let journey = Journey::begin("slow");
    let (client, dam) = journey.depart(Moment::Root);
    signal(client.id(), libc::SIGCONT);
    sleep(Duration::from_secs(18));
    drop(dam);
    let output = client.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    journey.arrive("x86");
}

/// Abroad the unit is parked for its checkpoint, besides being frozen; it has to be let go again.
#[test]
fn a_translated_unit_outlives_the_death_of_its_home() {
    let lab = TestLab::up("home_dies");
    let root = busybox_root(&lab, 1);
    compile_busybox(&lab);
    let awk =
        "BEGIN { for (i = 0; i < 200000; i++) a[i] = i; for (; i < 20000000; i++) a[i % 200000] += i / 7;
        for (i = 0; i < 200000; i++) s += a[i]; printf \"%.3f\\n\", s }";
    let program = ["/bin/busybox", "awk", awk];
    lab.start("abroad", &root, &["--translated"], &program);
    wait_for("its memory", || (lab.status("x86", "abroad")?["resident"].as_u64()? > 16 << 20).then_some(()));
    let dam = Dam::before("x86b", &lab, 8 << 20);
    let client = lab.spawn(&["--state", dam.state.to_str().unwrap(), "migrate", "abroad", "--to", "x86b"]);
    wait_for("the checkpoint to be on its way", || dam.is_full().then_some(()));
    assert_eq!(lab.status("x86", "abroad").unwrap()["state"], "frozen");
    lab.kill_node("x86b");
    let output = client.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    wait_for("the original to go on", || (lab.runs("x86", "abroad")? == "translated").then_some(()));
    lab.ok(&["lab", "up", "--nodes", "x86b"]);
    lab.migrate("abroad", "x86b", false);
    assert_eq!(lab.finish("abroad"), undisturbed(&root, &program));
}
