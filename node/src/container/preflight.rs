//! Whether a container can go to a node, and what to do where it cannot: pure, out of what both nodes say.

use super::migrate::How;
use crate::protocol::{Container, NodeInfo, Survey};
use crate::record::Isa;
use serde::Serialize;
use std::fmt;
use tranship_abi::host::Host;

/// The machine whose programs run on others.
const GUEST: Isa = Isa(Host::X86_64);
/// The first CRIU that does what is needed.
const CRIU: (u32, u32) = (4, 2);

/// What it means for a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// As it should be.
    Fine,
    /// It can go, but.
    Warning,
    /// It cannot go.
    Blocking,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What was looked at.
    pub subject: &'static str,
    /// What it means.
    pub verdict: Verdict,
    /// How it is.
    pub what: String,
    /// What to do; nothing where it is fine.
    pub remedy: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.subject, self.what)?;
        if self.remedy.is_empty() { Ok(()) } else { write!(f, "; {}", self.remedy) }
    }
}

/// Everything that matters, in the order in which it would fail.
pub fn findings(
    container: &Container,
    from: &NodeInfo,
    to: &NodeInfo,
    survey: &Survey,
    how: How,
) -> Vec<Finding> {
    let mut found =
        vec![state(container), engine(survey), machine(container, from, to), criu(from, to, survey)];
    found.extend([image(container, survey), name(survey), networks(container, survey, how)]);
    found.extend([
        ports(survey),
        mounts(survey),
        volumes(container, survey, how),
        space(container, to, survey),
    ]);
    found
}

fn fine(subject: &'static str, what: impl Into<String>) -> Finding {
    Finding { subject, verdict: Verdict::Fine, what: what.into(), remedy: String::new() }
}

fn blocking(subject: &'static str, what: impl Into<String>, remedy: impl Into<String>) -> Finding {
    Finding { subject, verdict: Verdict::Blocking, what: what.into(), remedy: remedy.into() }
}

fn warning(subject: &'static str, what: impl Into<String>, remedy: impl Into<String>) -> Finding {
    Finding { subject, verdict: Verdict::Warning, what: what.into(), remedy: remedy.into() }
}

fn state(container: &Container) -> Finding {
    match container.runs() {
        true => fine("container", format!("{} runs", container.name)),
        false => blocking("container", format!("{} is {}", container.name, container.state), "start it"),
    }
}

fn engine(survey: &Survey) -> Finding {
    match (&survey.engine, survey.runtime) {
        (None, _) => blocking("engine", "the node has no Podman", "install it"),
        (Some(version), true) => fine("engine", format!("Podman {version} with tranship-runc")),
        (Some(version), false) => blocking(
            "engine",
            format!("Podman {version} starts containers by another runtime"),
            "make tranship-runc its runtime (docs/containers.md)",
        ),
    }
}

fn machine(container: &Container, from: &NodeInfo, to: &NodeInfo) -> Finding {
    let Some(home) = container.isa else {
        return blocking(
            "machine",
            "its image does not say what machine it is for",
            "build it with --platform",
        );
    };
    match (home == to.isa, home == GUEST, to.runtime) {
        (true, ..) if from.cpu.isa == to.cpu.isa && from.cpu.is_v3 && !to.cpu.is_v3 => warning(
            "machine",
            format!("the CPU there, {}, has less than {}", to.cpu, from.cpu),
            "programs that asked the CPU itself what it has may fail there",
        ),
        (true, ..) => fine("machine", format!("at home: {home}")),
        (false, false, _) => blocking(
            "machine",
            format!("programs for {home} do not run on {}", to.isa),
            format!("choose a node of {home}"),
        ),
        (false, true, false) => blocking(
            "machine",
            format!("abroad: {home} on {}, and the node lacks the runtime for that", to.isa),
            format!("install runtime-{} there (docs/containers.md)", to.isa),
        ),
        (false, true, true) => fine("machine", format!("abroad: {home}, translated for {}", to.cpu)),
    }
}

fn criu(from: &NodeInfo, to: &NodeInfo, survey: &Survey) -> Finding {
    let is_old = |version: &&str| parsed(version).is_none_or(|version| version < CRIU);
    let (major, minor) = CRIU;
    if let Some(old) = [from.criu.as_str(), to.criu.as_str()].iter().find(|version| is_old(version)) {
        return blocking("CRIU", format!("version {old}"), format!("install {major}.{minor} or newer"));
    }
    match &survey.criu {
        None => fine("CRIU", format!("{} to {}, kernel {}", from.criu, to.criu, to.kernel)),
        Some(said) => warning(
            "CRIU",
            format!("misses something in kernel {}: {said}", to.kernel),
            "see `criu check` there",
        ),
    }
}

fn parsed(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.split('.').map(str::parse);
    Some((parts.next()?.ok()?, parts.next()?.ok()?))
}

fn image(container: &Container, survey: &Survey) -> Finding {
    match survey.image {
        true => fine("image", format!("{} is there", container.image_name)),
        false => fine("image", format!("{} is not there, and is sent", container.image_name)),
    }
}

fn name(survey: &Survey) -> Finding {
    match &survey.namesake {
        None => fine("name", "free"),
        Some(name) => {
            blocking("name", format!("the node has a container {name}"), "remove or rename that one")
        }
    }
}

fn networks(container: &Container, survey: &Survey, how: How) -> Finding {
    let networks: Vec<&str> = container.attachments.iter().map(|a| a.network.as_str()).collect();
    if let Some(missing) = survey.missing_networks.first() {
        return blocking(
            "network",
            format!("the node has no network {missing}"),
            "create it (podman network create)",
        );
    }
    match (how.keep_address, survey.taken_addresses.first()) {
        (true, Some(taken)) => blocking(
            "network",
            format!("another container has {taken} there"),
            "stop that one, or move without --keep-address",
        ),
        (true, None) if !networks.is_empty() => {
            let addresses: Vec<&str> = container.attachments.iter().map(|a| a.address.as_str()).collect();
            fine("network", format!("keeps {} on {}", addresses.join(", "), networks.join(", ")))
        }
        (false, _) if !networks.is_empty() => warning(
            "network",
            format!("gets a new address on {}; its connections end", networks.join(", ")),
            "if both nodes are on one local network, move with --keep-address",
        ),
        _ => fine("network", "none"),
    }
}

fn ports(survey: &Survey) -> Finding {
    match survey.taken_ports.first() {
        None => fine("ports", "free"),
        Some(port) => blocking("ports", format!("something on the node listens at {port}"), "stop it"),
    }
}

fn mounts(survey: &Survey) -> Finding {
    match survey.missing_sources.first() {
        None => fine("mounts", "there"),
        Some(source) => blocking("mounts", format!("the node has no {source}"), "make it, or mount it there"),
    }
}

fn volumes(container: &Container, survey: &Survey, how: How) -> Finding {
    let names: Vec<&str> = container.volumes.iter().filter_map(|volume| volume.name.as_deref()).collect();
    let missing = names.iter().find(|name| !survey.present_volumes.iter().any(|present| present == *name));
    match (how.copy_volumes, survey.present_volumes.first(), missing) {
        _ if names.is_empty() => fine("volumes", "none"),
        (true, Some(present), _) => blocking(
            "volumes",
            format!("the node has a volume {present}"),
            "remove it there, or move with --volumes shared if it is the same",
        ),
        (true, None, _) => fine("volumes", format!("{} go along", names.join(", "))),
        (false, _, Some(missing)) => blocking(
            "volumes",
            format!("the node has no volume {missing}"),
            "create it, or move with --volumes copy",
        ),
        (false, _, None) => fine("volumes", format!("{} are there", names.join(", "))),
    }
}

fn space(container: &Container, to: &NodeInfo, survey: &Survey) -> Finding {
    let megabytes = |bytes: u64| bytes >> 20;
    let (needed, memory, disk) = (container.memory, survey.memory_free, to.disk_free);
    // Its pages are on the disk twice: in the checkpoint that arrives and as the engine unpacks it.
    if memory < needed || disk < needed.saturating_mul(2) {
        return blocking(
            "space",
            format!(
                "{} MiB of memory and {} MiB of disk are free, it has {} MiB",
                megabytes(memory),
                megabytes(disk),
                megabytes(needed)
            ),
            "free some, or choose another node",
        );
    }
    fine("space", format!("{} MiB of {} MiB of memory", megabytes(needed), megabytes(memory)))
}
