//! Servers go to arm64 and back through Docker and through containerd, by their own commands alone: the OCI runtime does the
//! rest. Clients outside of both nodes keep their connections; as these engines do not hold packets back while a container
//! is between two nodes, the network does.

use crate::containers::ADDRESS;
use crate::lab::{TestLab, wait_for};
use crate::program::debian_root;
use crate::services::{LEDGER, MEMCACHED, NGINX, REDIS, Service};
use std::process::Stdio;
use tranship_lab::{REGISTRY, address};

/// The container's, and its network's, on every node.
const HARDWARE_ADDRESS: &str = "02:00:0a:4d:00:64";
const SUBNET: &str = "10.77.0.0/24";
/// Options of CRIU's that these engines have none for, and the annotation by which runc finds them.
const CRIU_OPTIONS: &str = "/run/criu.conf";
const ANNOTATION: &str = "--annotation org.criu.config=/run/criu.conf";
/// Each of them crosses.
const SERVICES: &[Service] = &[REDIS, MEMCACHED, NGINX, LEDGER];

const HOME: &str = "x86";
const ABROAD: &str = "arm64";

/// An engine on two nodes, and its container, which is made of a command of a shell.
trait Engine {
    /// Set it up on a node.
    fn set_up(lab: &TestLab, node: &str);
    /// Start the container.
    fn run(lab: &TestLab, node: &str, server: &str);
    /// Move it.
    fn cross(lab: &TestLab, from: &str, to: &str, server: &str);
    /// Remove it.
    fn remove(lab: &TestLab, node: &str);
}

impl TestLab {
    /// A shell's commands on a node.
    pub(crate) fn shell(&self, node: &str, commands: &str) -> String {
        self.on(node, &["sh", "-ec", commands])
    }

    /// Start a server that stays.
    fn daemon(&self, node: &str, daemon: &str, is_ready: &str) {
        self.shell(node, &format!("busybox setsid {daemon} >/var/log/daemon.log 2>&1 </dev/null &"));
        let asked = ["lab", "exec", node, "--", "sh", "-c", is_ready];
        wait_for(daemon, || self.run(&asked).status.success().then_some(()));
    }

    /// Carry what a command writes on one node to a command that reads it on another one.
    pub(crate) fn carry(&self, from: &str, writes: &str, to: &str, reads: &str) {
        let mut writer = self
            .command(&["lab", "exec", from, "--", "sh", "-ec", writes])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut reader = self.command(&["lab", "exec", to, "--", "sh", "-ec", reads]);
        let status = reader.stdin(writer.stdout.take().unwrap()).status().unwrap();
        assert!(writer.wait().unwrap().success() && status.success());
    }

    /// Have the network drop what goes to the container's address and what comes from there, while `work` is done.
    fn while_cut_off(&self, work: impl FnOnce()) {
        let nft = |rules: &str| self.ok(&["lab", "exec", "lan", "--", "nft", rules]);
        nft("add table inet cut");
        for (hook, side) in [("output", "daddr"), ("input", "saddr")] {
            nft(&format!("add chain inet cut {hook} {{ type filter hook {hook} priority 0; }}"));
            nft(&format!("add rule inet cut {hook} ip {side} {ADDRESS} drop"));
        }
        work();
        nft("delete table inet cut");
    }
}

/// Put the image of an amd64 root into the registry. It says that it is for arm64 too: `ctr containers restore` wants one for the node
/// that it is on.
pub(crate) fn publish(lab: &TestLab, node: &str, image: &str) {
    let root = debian_root(lab);
    SERVICES.iter().for_each(|service| (service.furnish)(&root));
    lab.on(node, &["podman", "manifest", "create", image]);
    for machine in ["amd64", "arm64"] {
        let part = format!("{image}-{machine}");
        lab.image_for(node, machine, &part, &root);
        lab.shell(node, &format!("podman push --quiet {part}; podman manifest add {image} docker://{part}"));
    }
    lab.on(node, &["podman", "manifest", "push", image]);
}

/// Every server under load, there and back.
fn cross<E: Engine>(test: &str) {
    let lab = TestLab::with(test, "x86,arm64");
    let image = format!("{REGISTRY}/servers");
    publish(&lab, HOME, &image);
    for node in [HOME, ABROAD] {
        lab.shell(node, &format!("printf 'network-lock nftables\\ntcp-established\\n' >{CRIU_OPTIONS}"));
        E::set_up(&lab, node);
    }
    for service in SERVICES {
        let server = service.command.iter().map(|word| format!("'{word}' ")).collect::<String>();
        println!("{server}");
        E::run(&lab, HOME, &server);
        let clients = service.clients(&lab);
        for (from, to) in [(HOME, ABROAD), (ABROAD, HOME)] {
            clients.go_on();
            lab.while_cut_off(|| E::cross(&lab, from, to, &server));
        }
        clients.go_on();
        clients.end();
        E::remove(&lab, HOME);
    }
}

struct Docker;

impl Docker {
    fn container(command: &str, server: &str) -> String {
        format!(
            "docker {command} {ANNOTATION} --name server --platform linux/amd64 --network lan --ip {ADDRESS} \\
             --mac-address {HARDWARE_ADDRESS} {REGISTRY}/servers {server}"
        )
    }
}

/// Where Docker has a container's checkpoints.
const CHECKPOINTS: &str =
    "/var/lib/docker/containers/$(docker inspect --format '{{.Id}}' server)/checkpoints";

impl Engine for Docker {
    fn set_up(lab: &TestLab, node: &str) {
        lab.daemon(node, "dockerd", "docker info");
        let gateway = address(node);
        let bridge = "--opt com.docker.network.bridge.name=lan0";
        lab.shell(
            node,
            &format!(
                "docker network create --driver bridge --subnet {SUBNET} --gateway {gateway} {bridge} lan
                docker pull --quiet --platform linux/amd64 {REGISTRY}/servers"
            ),
        );
    }

    fn run(lab: &TestLab, node: &str, server: &str) {
        lab.shell(node, &Docker::container("run --detach", server));
    }

    /// Docker's checkpoints are without what the container has written: its own command for copying takes that along.
    fn cross(lab: &TestLab, from: &str, to: &str, server: &str) {
        let checkpoint = format!("to-{to}");
        lab.shell(from, &format!("docker checkpoint create server {checkpoint}"));
        lab.shell(to, &Docker::container("create", server));
        lab.carry(from, "docker cp server:/tmp -", to, "docker cp - server:/");
        let unpack = format!("mkdir -p {CHECKPOINTS}; tar -C {CHECKPOINTS} -x");
        lab.carry(from, &format!("tar -C {CHECKPOINTS} -c {checkpoint}"), to, &unpack);
        lab.shell(from, "docker rm server");
        lab.shell(to, &format!("docker start --checkpoint {checkpoint} server"));
    }

    fn remove(lab: &TestLab, node: &str) {
        lab.shell(node, "docker rm --force server");
    }
}

#[test]
fn docker() {
    cross::<Docker>("engines_docker");
}

struct Containerd;

/// The network that the container is put into, as its hardware address and its address are everywhere.
fn network() -> String {
    format!(
        "ip netns add server
        ip link add server type veth peer name eth0 netns server
        ip link set server master lan0 up
        ip -n server link set eth0 address {HARDWARE_ADDRESS} up
        ip -n server address add {ADDRESS}/24 dev eth0
        ip -n server link set lo up"
    )
}

/// End the container, whose connections are to hear nothing of it.
const REMOVE: &str = "ip link delete server
    ip netns delete server
    ctr tasks kill --signal SIGKILL server
    until ctr tasks list | grep -q STOPPED; do busybox sleep 0.1; done
    ctr tasks delete server >/dev/null
    ctr containers delete server";

impl Engine for Containerd {
    fn set_up(lab: &TestLab, node: &str) {
        lab.daemon(node, "containerd", "ctr version");
        lab.shell(node, &format!("ctr images pull --plain-http {REGISTRY}/servers:latest >/dev/null"));
    }

    fn run(lab: &TestLab, node: &str, server: &str) {
        let options = "--detach --null-io --cpu-shares 0 --cgroup /tranship-lab/server";
        let runtime = "--runc-binary /usr/local/bin/tranship-runc --with-ns network:/run/netns/server";
        let commands = format!(
            "{}
            ctr run {options} {runtime} {ANNOTATION} {REGISTRY}/servers:latest server {server}",
            network()
        );
        lab.shell(node, &commands);
    }

    /// A checkpoint is an image, which goes by way of the registry. It stays on neither node: containerd 1.7 makes none with a
    /// configuration that another one has.
    fn cross(lab: &TestLab, from: &str, to: &str, _: &str) {
        let checkpoint = format!("{REGISTRY}/moving:{to}");
        lab.shell(
            from,
            &format!(
                "ctr containers checkpoint --task --rw server {checkpoint}
                {REMOVE}
                ctr images push --plain-http {checkpoint} >/dev/null
                ctr images remove --sync {checkpoint} >/dev/null"
            ),
        );
        lab.shell(
            to,
            &format!(
                "{}
                ctr content fetch --plain-http --all-platforms {checkpoint} >/dev/null
                ctr containers restore --live --rw server {checkpoint}
                ctr images remove --sync {checkpoint} >/dev/null",
                network()
            ),
        );
    }

    fn remove(lab: &TestLab, node: &str) {
        lab.shell(node, REMOVE);
    }
}

#[test]
fn containerd() {
    cross::<Containerd>("engines_containerd");
}
