//! The lab's registry of images: Debian's docker-registry, on the local network, outside of the nodes.

use crate::debian;
use crate::error::{LabError, Result};
use crate::lan::Switch;
use crate::process::{self, Recorded};
use std::fs;
use std::path::Path;

/// The package that it is in.
pub(crate) const PACKAGE: &str = "docker-registry";
/// Where nodes reach it: at the client's address.
pub const REGISTRY: &str = "10.77.0.1:5000";

/// Start it out of the root `tools`, with what it stores in `directory`.
pub(crate) fn start(switch: &Switch, tools: &Path, directory: &Path) -> Result<Recorded> {
    fs::create_dir_all(directory).map_err(LabError::at("making", directory))?;
    let settings = directory.join("config.json");
    // (Its settings are in YAML, of which JSON is a part.)
    let text = serde_json::json!({
        "version": "0.1",
        "log": { "level": "warn", "accesslog": { "disabled": true } },
        "storage": { "filesystem": { "rootdirectory": directory.join("images") } },
        "http": { "addr": REGISTRY },
    });
    fs::write(&settings, text.to_string()).map_err(LabError::at("writing", &settings))?;
    let mut line = switch.enter();
    line.extend(debian::program(tools, "usr/bin/docker-registry"));
    line.extend(["serve".into(), settings.into_os_string()]);
    process::detached(&line, &[], &directory.join("log"))
}
