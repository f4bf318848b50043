//! Podman, by its command line and its JSON.

use crate::error::{NodeError, Result};
use crate::protocol::{Attachment, Container, Volume};
use crate::record::Isa;
use crate::unit::state_area::StateArea;
use crate::unit::{network, proc};
use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use tranship_abi::host::Host;

/// The engine's program.
const PROGRAM: &str = "podman";

/// An engine's command that was not done.
fn failed(words: &[&OsStr], said: &[u8]) -> NodeError {
    let command: Vec<_> = words.iter().take(2).map(|word| word.to_string_lossy()).collect();
    let said = String::from_utf8_lossy(said);
    // Warnings come first, and lines of CRIU's log; the engine's own reason is the last thing that it says.
    let lines: Vec<&str> = said.lines().filter(|line| !line.contains("level=warning")).collect();
    let why = lines.iter().rev().take(3).rev().copied().collect::<Vec<_>>().join("; ");
    NodeError::Engine { command: format!("{PROGRAM} {}", command.join(" ")), why }
}

fn command<S: AsRef<OsStr>>(words: &[S]) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(words).env("PODMAN_IGNORE_CGROUPSV1_WARNING", "1").current_dir("/");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Start a command of the engine, in the network that containers are on.
pub(super) fn start<S: AsRef<OsStr>>(words: &[S]) -> Result<Child> {
    let mut command = command(words);
    network::inside(move || command.spawn()).map_err(|why| NodeError::Missing {
        what: format!("the engine {PROGRAM} ({why})"),
        remedy: "install it, with tranship-runc as its runtime".to_owned(),
    })
}

/// Wait for it to be done.
pub(super) fn finish<S: AsRef<OsStr>>(child: Child, words: &[S]) -> Result<Vec<u8>> {
    let output: Output =
        child.wait_with_output().map_err(|why| NodeError::io("waiting for the engine", why))?;
    match output.status.success() {
        true => Ok(output.stdout),
        false => {
            let words: Vec<&OsStr> = words.iter().map(AsRef::as_ref).collect();
            Err(failed(&words, &output.stderr))
        }
    }
}

/// Have a command done.
pub(super) fn run<S: AsRef<OsStr>>(words: &[S]) -> Result<Vec<u8>> {
    finish(start(words)?, words)
}

fn json(words: &[&str]) -> Result<Vec<Value>> {
    let output = run(words)?;
    serde_json::from_slice(&output).map_err(|why| NodeError::io(format!("reading what {PROGRAM} says"), why))
}

/// Where Podman has its list of containers, unless the node's own configuration says otherwise.
const STORE: &str = "/var/lib/containers/storage/overlay-containers/containers.json";
/// That configuration.
const CONFIGURATION: &str = "/etc/containers/storage.conf";

/// All containers of this node; none if it has no engine, or one that has never made any: asking that would set it up.
pub fn list() -> Result<Vec<Container>> {
    if ![STORE, CONFIGURATION].iter().any(|path| Path::new(path).exists()) {
        return Ok(Vec::new());
    }
    let rows = match json(&["ps", "--all", "--format", "json"]) {
        Err(NodeError::Missing { .. }) => return Ok(Vec::new()),
        rows => rows?,
    };
    let ids: Vec<&str> = rows.iter().filter_map(|row| row.get("Id")?.as_str()).collect();
    if ids.is_empty() { Ok(Vec::new()) } else { inspect(&ids) }
}

/// The container of this name or id.
pub fn container(name: &str) -> Result<Container> {
    // What looks like an option is not passed as one.
    let found = if name.starts_with('-') { Vec::new() } else { inspect(&[name]).unwrap_or_default() };
    found.into_iter().next().ok_or_else(|| NodeError::NoContainer { container: name.to_owned() })
}

fn inspect(names: &[&str]) -> Result<Vec<Container>> {
    let words = [&["container", "inspect"], names].concat();
    let mut machines = BTreeMap::new();
    json(&words)?.iter().map(|value| described(value, &mut machines)).collect()
}

fn described(value: &Value, machines: &mut BTreeMap<String, Option<Isa>>) -> Result<Container> {
    let text = |path: &str| value.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
    let image = text("/Image");
    let isa = *machines.entry(image.clone()).or_insert_with(|| machine(&image));
    let pid = value.pointer("/State/Pid").and_then(Value::as_u64).unwrap_or(0) as u32;
    let (cpu_ms, memory) = usage(pid);
    Ok(Container {
        id: text("/Id"),
        name: text("/Name"),
        image,
        image_name: text("/ImageName"),
        isa,
        state: text("/State/Status"),
        pid,
        translated: pid != 0 && StateArea::find(pid).is_ok_and(|area| area.is_some()),
        checkpointed: value.pointer("/State/Checkpointed").and_then(Value::as_bool).unwrap_or(false),
        attachments: attachments(value),
        volumes: volumes(value),
        cpu_ms,
        memory,
        published: value.pointer("/HostConfig/PortBindings").map_or_else(Vec::new, published),
    })
}

/// CPU time in milliseconds and bytes of memory of a container's processes, what they share counted for each.
fn usage(pid: u32) -> (u64, u64) {
    let processes = if pid == 0 { Vec::new() } else { proc::tree(pid).unwrap_or_default() };
    let usages = processes.into_iter().filter_map(|process| proc::usage(process).ok());
    usages.fold((0, 0), |(cpu, memory), own| (cpu + own.0, memory + own.1))
}

/// The machine that an image is for.
fn machine(image: &str) -> Option<Isa> {
    let value = json(&["image", "inspect", image]).ok()?;
    match value.first()?.get("Architecture")?.as_str()? {
        "amd64" => Some(Isa(Host::X86_64)),
        "arm64" => Some(Isa(Host::Aarch64)),
        "riscv64" => Some(Isa(Host::Riscv64)),
        _ => None,
    }
}

fn attachments(value: &Value) -> Vec<Attachment> {
    let networks = value.pointer("/NetworkSettings/Networks").and_then(Value::as_object);
    let attachment = |(name, network): (&String, &Value)| {
        let text = |key: &str| network.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        Attachment { network: name.clone(), address: text("IPAddress"), hardware: text("MacAddress") }
    };
    // The node's own network, or none, is no network of the engine's.
    networks.into_iter().flatten().map(attachment).filter(|a| !a.address.is_empty()).collect()
}

fn volumes(value: &Value) -> Vec<Volume> {
    let mounts = value.get("Mounts").and_then(Value::as_array);
    let volume = |mount: &Value| {
        let text = |key: &str| mount.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        Volume {
            name: Some(text("Name")).filter(|name| !name.is_empty()),
            source: text("Source"),
            destination: text("Destination"),
        }
    };
    mounts.into_iter().flatten().map(volume).collect()
}

/// Ports of the node that lead to the container's.
fn published(bindings: &Value) -> Vec<u16> {
    let lists = bindings.as_object().into_iter().flat_map(|bindings| bindings.values());
    let ports = lists.filter_map(Value::as_array).flatten();
    ports.filter_map(|binding| binding.get("HostPort")?.as_str()?.parse().ok()).collect()
}

/// Whether the node has an image.
pub(super) fn has_image(image: &str) -> bool {
    run(&["image", "exists", image]).is_ok()
}

/// Write an image into a file, under its name if that is still its own.
pub(super) fn save_image(container: &Container, to: &Path) -> Result<()> {
    let named = json(&["image", "inspect", &container.image_name]).unwrap_or_default();
    let is_its = named.first().and_then(|image| image.get("Id")?.as_str()) == Some(&container.image);
    let name = if is_its { &container.image_name } else { &container.image };
    let to = format!("--output={}", to.display());
    run(&["image", "save", "--quiet", &to, name]).map(drop)
}

/// Take in an image from such a file.
pub(super) fn load_image(from: &Path) -> Result<()> {
    run(&["image", "load", "--quiet", &format!("--input={}", from.display())]).map(drop)
}

/// The bridge of one of the engine's networks; none if the network is of another kind.
pub(super) fn bridge(network: &str) -> Result<Option<String>> {
    let found = json(&["network", "inspect", network])?;
    let interface = found.first().and_then(|network| network.get("network_interface")?.as_str());
    Ok(interface.map(str::to_owned).filter(|name| !name.is_empty()))
}

/// What its runtime's CRIU has logged when it last dumped (`dump.log`) or restored (`restore.log`) the container, where
/// the engine has kept that.
pub(super) fn log(container: &str, name: &str) -> Option<String> {
    let directory = json(&["container", "inspect", container]).ok()?;
    let directory = directory.first()?.pointer("/StaticDir")?.as_str()?.to_owned();
    std::fs::read_to_string(Path::new(&directory).join(name)).ok()
}

/// Those of these names that are volumes here.
pub(super) fn volumes_among<'n>(names: impl Iterator<Item = &'n str>) -> Vec<String> {
    names.filter(|name| run(&["volume", "exists", name]).is_ok()).map(str::to_owned).collect()
}

/// Its version; none if it is not installed.
pub(super) fn version() -> Option<String> {
    let said = run(&["--version"]).ok()?;
    String::from_utf8_lossy(&said).split_whitespace().last().map(str::to_owned)
}

/// Whether it starts containers by our runtime.
pub(super) fn has_our_runtime() -> bool {
    let path = run(&["info", "--format", "{{.Host.OCIRuntime.Path}}"]).unwrap_or_default();
    String::from_utf8_lossy(&path).contains("tranship-runc")
}
