//! Debian root trees out of packages, by mmdebstrap and this machine's own apt configuration. Packages are only
//! extracted, no maintainer script runs, so a tree can be of any machine.

use crate::engine;
use crate::error::{LabError, Result};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::Path;
use std::process::{Command, Stdio};

/// The release that nodes are made of: it has CRIU 4.2.
pub(crate) const SUITE: &str = "forky";
/// The one before, for some packages of the engines.
const OLDER: &str = "trixie";

/// A root tree to make.
#[derive(Debug)]
pub struct Recipe {
    /// Debian's name of the release.
    pub suite: &'static str,
    /// Debian's name of the machine.
    pub architecture: &'static str,
    /// Packages; what they depend on comes too.
    pub packages: &'static [&'static str],
    /// Whether it has engines, runc and CRIU, set up for nodes.
    pub engine: bool,
}

impl Recipe {
    /// Linux's name of the machine.
    fn machine(&self) -> &'static str {
        match self.architecture {
            "amd64" => "x86_64",
            "arm64" => "aarch64",
            other => other,
        }
    }
}

/// Extract the recipe's packages into `root`; what apt says goes to `log`.
pub(crate) fn extract(recipe: &Recipe, root: &Path, log: &Path) -> Result<()> {
    let mirror = mirror()?;
    let output = File::create(log).map_err(LabError::at("making", log))?;
    let errors = output.try_clone().map_err(LabError::at("opening", log))?;
    let mut command = Command::new("mmdebstrap");
    command.args(["--variant=extract", "--mode=root", "--skip=check/qemu"]);
    command.arg(format!("--architectures={}", recipe.architecture));
    // A mirror's copy of a release that is still in the making may be past its date.
    command.arg("--aptopt=Acquire::Check-Valid-Until \"false\"");
    command.arg("--aptopt=Acquire::Retries \"5\"").arg("--aptopt=APT::Install-Recommends \"false\"");
    let packages = match recipe.engine {
        true => [recipe.packages, engine::PACKAGES].concat(),
        false => recipe.packages.to_vec(),
    };
    command.arg(format!("--include={}", packages.join(",")));
    if recipe.engine {
        // apt_preferences(5)
        let pins =
            format!("Package: {}\nPin: release n={OLDER}\nPin-Priority: 1000", engine::OLDER.join(" "));
        command.arg(format!("--setup-hook=echo '{pins}' >\"$1/etc/apt/preferences.d/older\""));
    }
    command.arg(recipe.suite).arg(root);
    match recipe.engine {
        true => command.args([recipe.suite, OLDER].map(|suite| format!("deb {mirror} {suite} main"))),
        false => command.arg(mirror),
    };
    run(command, "mmdebstrap", "mmdebstrap", output, errors, log)?;
    if recipe.engine { engine::set_up(root, recipe.machine()) } else { Ok(()) }
}

/// The line that executes a program out of the root of an x86-64 machine here, by that root's own dynamic linker and libraries.
pub(crate) fn program(root: &Path, program: &str) -> Vec<OsString> {
    let file = |path: &str| root.join(path).into_os_string();
    let libraries = file("usr/lib/x86_64-linux-gnu");
    vec![file("usr/lib64/ld-linux-x86-64.so.2"), "--library-path".into(), libraries, file(program)]
}

/// Make an ext4 image of `bytes` with the contents of `root`.
pub(crate) fn ext4_image(root: &Path, image: &Path, bytes: u64, log: &Path) -> Result<()> {
    let file = File::create(image).map_err(LabError::at("making", image))?;
    file.set_len(bytes).map_err(LabError::at("making", image))?;
    let output = File::create(log).map_err(LabError::at("making", log))?;
    let errors = output.try_clone().map_err(LabError::at("opening", log))?;
    let mut command = Command::new("mke2fs");
    // What is in the image is thrown away with the machine: no journal, no checksums.
    command
        .args(["-q", "-t", "ext4", "-O", "^has_journal,^metadata_csum", "-m", "0", "-d"])
        .arg(root)
        .arg(image);
    run(command, "mke2fs", "e2fsprogs", output, errors, log)
}

fn run(
    mut command: Command,
    tool: &'static str,
    package: &'static str,
    output: File,
    errors: File,
    log: &Path,
) -> Result<()> {
    command.stdin(Stdio::null()).stdout(output).stderr(errors);
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Err(why) if why.kind() == ErrorKind::NotFound => Err(LabError::NoTool { tool, package }),
        _ => Err(LabError::Build { step: tool.to_owned(), log: log.to_owned() }),
    }
}

/// The mirror that this machine takes its own release from.
fn mirror() -> Result<String> {
    let release = fs::read_to_string("/etc/os-release")
        .map_err(LabError::at("reading", Path::new("/etc/os-release")))?;
    let own =
        release.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME=")).ok_or(LabError::NoMirror)?;
    let targets =
        Command::new("apt-get").args(["indextargets", "--format", "$(RELEASE) $(REPO_URI)"]).output();
    let targets = targets.map_err(|_| LabError::NoTool { tool: "apt-get", package: "apt" })?;
    let text = String::from_utf8_lossy(&targets.stdout).into_owned();
    let mirror = text.lines().filter_map(|line| line.split_once(' ')).find(|(suite, _)| *suite == own);
    mirror.map(|(_, uri)| uri.to_owned()).ok_or(LabError::NoMirror)
}
