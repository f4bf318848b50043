//! A container that is supplied with compiled code by a node's agent while it runs abroad, and is dumped and restored.

use crate::node::Node;
use crate::round::{Container, Steps};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tranship_node::client;
use tranship_node::protocol::Peer;
use tranship_node::trust::{Authority, MEMBERSHIP_FILE, Membership};
use tranship_service::{Supplier, Workshop, host_here};

/// By how much compiled code has to be faster than the interpreter, at least.
const GAIN: u32 = 4;
/// How long it may take until it is.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long `work` takes.
fn time(work: impl FnOnce()) -> Duration {
    let started = Instant::now();
    work();
    started.elapsed()
}

#[test]
fn a_container_is_supplied_with_code_wherever_it_is_translated() {
    let container = Container::new("computes");
    let execute = || {
        let executed = container.execute(true, &["/program", "executed", "20"]);
        assert_eq!(String::from_utf8(executed.stdout).unwrap(), "executed\n");
    };
    let steps = Steps::follow(container.create(true), 0, "abroad, interpreted");
    let interpreted = time(|| assert!(steps.go_on()));
    let executed = time(execute);
    let service = Service::start(container.node());
    wait_until_fast(&steps, interpreted);
    assert!(time(execute) < executed / GAIN, "{executed:?}: no code for what is executed in a container");
    container.checkpoint("abroad");
    let steps = Steps::follow(container.restore("abroad", true), steps.end(), "abroad again");
    wait_until_fast(&steps, interpreted);
    container.checkpoint("back");
    let home = Steps::follow(container.restore("back", false), steps.end(), "at home");
    container.delete();
    home.end();
    assert_eq!(service.end(), 2, "places where it was served");
}

fn wait_until_fast(steps: &Steps, interpreted: Duration) {
    let since = Instant::now();
    while time(|| assert!(steps.go_on())) > interpreted / GAIN {
        assert!(since.elapsed() < PATIENCE, "it does not get any faster");
    }
}

/// A node's agent, and who compiles for the containers that it has.
struct Service {
    agent: Child,
    is_over: Arc<AtomicBool>,
    served: JoinHandle<usize>,
}

impl Service {
    fn start(node: &Node) -> Service {
        let authority = Authority::new().unwrap();
        let joined = Membership::Joined(authority.node("node").unwrap()).to_json().unwrap();
        fs::write(node.work().join(MEMBERSHIP_FILE), joined).unwrap();
        let begin = format!(
            "mkdir -p /var/lib/tranship && mv /tmp/{MEMBERSHIP_FILE} /var/lib/tranship && \
             exec /opt/tranship/node-x86_64 agent --listen 127.0.0.1:0"
        );
        let mut agent = node.command("/usr/bin/sh");
        agent.args(["-c", &begin]).stderr(Stdio::piped());
        let mut agent = agent.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(agent.stderr.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("ready at ").unwrap().to_owned();
        let peer = Peer { name: "node".to_owned(), address };
        let identity = authority.operator().unwrap();
        let network = File::open(node.network()).unwrap();
        let is_over = Arc::new(AtomicBool::new(false));
        let until = is_over.clone();
        let served = thread::spawn(move || {
            // The network is this thread's alone.
            move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
            serve(&client::Node { peer, identity }, &until)
        });
        Service { agent, is_over, served }
    }

    /// How many containers have been served.
    fn end(mut self) -> usize {
        self.is_over.store(true, Relaxed);
        let served = self.served.join().unwrap();
        self.agent.kill().unwrap();
        self.agent.wait().unwrap();
        served
    }
}

/// Serve one container after the other; how many there were.
fn serve(node: &client::Node, is_over: &AtomicBool) -> usize {
    let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join("supply");
    let _ = fs::remove_dir_all(&kept);
    let workshop = Workshop::new(host_here(), &kept);
    let mut served = 0;
    while !is_over.load(Relaxed) {
        let Some(namespace) = node.namespaces().unwrap().pop() else {
            thread::sleep(Duration::from_millis(10));
            continue;
        };
        let mut supplier = Supplier::new(&workshop);
        let mut site = node.attach_namespace(namespace.number).unwrap();
        supplier.serve(&mut site, |error| panic!("{error}"));
        served += usize::from(supplier.counts().objects > 0);
    }
    served
}
