//! What would be in the way of a container on this node, before anything of it is moved.

use super::engine;
use crate::error::Result;
use crate::protocol::{Container, Survey};
use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::{Command, Stdio};

/// What would be in the way of a container.
pub fn survey(container: &Container) -> Result<Survey> {
    let volumes = container.volumes.iter();
    let sources = volumes.clone().filter(|volume| volume.name.is_none()).map(|volume| &volume.source);
    let is_taken = |port: &u16| TcpListener::bind((Ipv4Addr::UNSPECIFIED, *port)).is_err();
    let networks = container.attachments.iter().map(|attachment| &attachment.network);
    let here = engine::list()?;
    let namesake = here.iter().find(|other| other.name == container.name || other.id == container.id);
    Ok(Survey {
        image: engine::has_image(&container.image),
        missing_networks: networks.filter(|name| engine::bridge(name).is_err()).cloned().collect(),
        missing_sources: sources.filter(|source| !Path::new(source).exists()).cloned().collect(),
        present_volumes: engine::volumes_among(volumes.filter_map(|volume| volume.name.as_deref())),
        taken_ports: container.published.iter().copied().filter(is_taken).collect(),
        taken_addresses: taken_addresses(container, &here),
        namesake: namesake.map(|other| other.name.clone()),
        memory_free: memory_free(),
        criu: criu_check(),
        engine: engine::version(),
        runtime: engine::has_our_runtime(),
    })
}

/// Bytes of memory that programs can have (proc_meminfo(5)).
fn memory_free() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kilobytes =
        text.lines().find_map(|line| line.strip_prefix("MemAvailable:")?.trim().strip_suffix("kB"));
    kilobytes.and_then(|number| number.trim().parse::<u64>().ok()).unwrap_or(0) * 1024
}

/// Addresses of `container` that one of these has.
fn taken_addresses(container: &Container, here: &[Container]) -> Vec<String> {
    let taken = |attachment: &&crate::protocol::Attachment| {
        let others = here.iter().filter(|other| other.runs()).flat_map(|other| &other.attachments);
        !attachment.address.is_empty()
            && others
                .into_iter()
                .any(|other| (&other.network, &other.address) == (&attachment.network, &attachment.address))
    };
    container.attachments.iter().filter(taken).map(|attachment| attachment.address.clone()).collect()
}

/// What CRIU misses in this kernel.
fn criu_check() -> Option<String> {
    let output = Command::new("criu").arg("check").stdin(Stdio::null()).output();
    match output {
        Err(why) => Some(why.to_string()),
        Ok(output) if output.status.success() => None,
        Ok(output) => Some(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
    }
}
