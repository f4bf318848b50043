//! A container on its way into a checkpoint or out of one.

use super::guard::Guard;
use super::pause;
use super::rpc::{InheritFd, Options};
use crate::delegate::BUNDLE;
use crate::error::{OciError, Result};
use crate::{foreign, seccomp};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use tranship_abi::block::BLOB_OFFSET;
use tranship_node::Isa;
use tranship_node::unit::state_area::StateArea;
use tranship_node::unit::{proc, quiesce, vdso};
use tranship_recode::{
    Home, HostLayout, KernelFiles, MappedFile, RecodeError, Target, check, fresh_beside, machine, recode,
    recode_in_place,
};

/// How the name of the memory starts from which the runtime executes itself.
const RUNTIME_FILE: &[u8] = b"/memfd:tranship-runtime";
/// What images call the runtime, which a container has no path to: no file in it has such a name.
const RUNTIME: &str = "//tranship-runtime";

/// What is under way.
pub(super) enum Container {
    /// Its processes are translated: they are parked, and are recoded once they are dumped.
    Dumping {
        /// The first process.
        pid: u32,
        /// Whether they go on here after the dump.
        stays: bool,
        images: PathBuf,
        home: Home,
        guard: Guard,
    },
    /// Its processes are at home, from where they are to be able to go abroad.
    Leaving {
        /// The first process.
        pid: u32,
        images: PathBuf,
    },
    /// It is restored from images that were made of the engine's.
    Restoring {
        images: PathBuf,
        /// Whether CRIU goes on reading images afterwards.
        is_lazy: bool,
    },
}

impl Container {
    /// Prepare a dump. `None`: of processes that cannot go abroad, which is all CRIU's.
    pub(super) fn to_dump(options: &mut Options, images: PathBuf) -> Result<Option<Container>> {
        let pid = options.pid() as u32;
        if pid == 0 || StateArea::find(pid)?.is_none() {
            let is_guest = Isa::here()? == foreign::GUEST;
            return Ok(is_guest.then_some(Container::Leaving { pid, images }));
        }
        let home = Home { filter: filter(foreign::GUEST)? };
        let guard = Guard::of(pid)?;
        // What a paused container would write once it is thawed is in no copy that its engine has made of its files.
        let parked = pause::while_thawed(pid, || Ok(quiesce::ask(pid)?), || Ok(quiesce::park(pid)?));
        if let Err(error) = parked {
            // It was perhaps parked, and could not be paused again.
            let _ = quiesce::release(pid);
            guard.dismiss();
            return Err(error);
        }
        let stays = options.leave_running();
        let container = Container::Dumping { pid, stays, images, home, guard };
        match runtime_files(pid) {
            Ok(files) => options.external.extend(files),
            Err(error) => {
                container.release();
                return Err(error);
            }
        }
        Ok(Some(container))
    }

    /// Prepare a restore. `None`: of processes that are at home here.
    /// `runtime` is the descriptor that CRIU has of the runtime.
    pub(super) fn to_restore(
        options: &mut Options,
        given: &Path,
        runtime: Option<RawFd>,
    ) -> Result<Option<Container>> {
        let here = Isa::here()?;
        let home = Isa(machine(given)?);
        if !foreign::is_foreign(home, here)? {
            return Ok(None);
        }
        let images = fresh_beside(given, "tranship")?;
        recode(given, &images, &Target::Host(layout(here, filter(here)?)?))?;
        if let Some(fd) = runtime {
            let mut inherited = InheritFd::new();
            inherited.set_fd(fd);
            // CRIU takes the slash off that names of files in images begin with.
            inherited.set_key(RUNTIME[1..].to_owned());
            options.inherit_fd.push(inherited);
        }
        Ok(Some(Container::Restoring { images, is_lazy: options.lazy_pages() }))
    }

    /// The directory of images that CRIU works on.
    pub(super) fn images(&self) -> &Path {
        match self {
            Container::Dumping { images, .. }
            | Container::Leaving { images, .. }
            | Container::Restoring { images, .. } => images,
        }
    }

    /// The images are written, and CRIU still holds the processes: make the images canonical. [`RecodeError::Passing`]: a
    /// dump at another moment could be taken abroad.
    pub(super) fn dumped(&mut self) -> Result<()> {
        match self {
            Container::Leaving { pid, images } => match can_leave(images) {
                Err(_) if vdso::leave(images, *pid)? => can_leave(images),
                outcome => outcome,
            },
            Container::Dumping { images, home, .. } => {
                Ok(recode_in_place(images, &Target::Canonical(std::mem::take(home)))?)
            }
            Container::Restoring { .. } => Ok(()),
        }
    }

    /// Remove what an earlier dump has left: engines dump into the same directory again, and of processes that have ended
    /// meanwhile the new one has nothing to put in its place.
    pub(super) fn remove_images(&self) -> Result<()> {
        let directory = self.images();
        for entry in fs::read_dir(directory).map_err(OciError::at("listing", directory))?.flatten() {
            let path = entry.path();
            if path.extension().is_some_and(|extension| extension == "img") {
                fs::remove_file(&path).map_err(OciError::at("removing", &path))?;
            }
        }
        Ok(())
    }

    /// What is done with its images when they are written.
    pub(super) fn doing(&self) -> &'static str {
        match self {
            Container::Leaving { .. } => "looked through",
            Container::Dumping { .. } | Container::Restoring { .. } => "recoded",
        }
    }

    /// CRIU is done. Returns a directory that nobody needs any more.
    pub(super) fn finish(self, has_succeeded: bool) -> Option<PathBuf> {
        match self {
            Container::Dumping { stays: false, guard, .. } if has_succeeded => guard.dismiss(),
            Container::Restoring { images, is_lazy: false } => return Some(images),
            other => other.release(),
        }
        None
    }

    /// Let processes that are parked go on, if they live.
    pub(super) fn release(self) {
        if let Container::Dumping { pid, guard, .. } = self {
            // They may have ended meanwhile.
            let _ = quiesce::release(pid);
            guard.dismiss();
        }
    }
}

/// Whether the processes in `images`, which are at home, could go abroad, if not for what soon passes.
fn can_leave(images: &Path) -> Result<()> {
    match check(images, &Target::Host(layout(Isa::here()?, Some(Vec::new()))?)) {
        Err(passing @ RecodeError::Passing { .. }) => Err(passing.into()),
        // What else is in the way abroad is nothing to those who stay on machines of the same kind.
        _ => Ok(()),
    }
}

/// Machine `here` as a host of containers.
fn layout(here: Isa, filter: Option<Vec<u8>>) -> Result<HostLayout> {
    let runtime = MappedFile::open(&foreign::runtime(here)?, RUNTIME.to_owned())?;
    Ok(HostLayout {
        machine: here.0,
        runtime,
        objects: Vec::new(),
        filter,
        kernel: Some(KernelFiles::here()),
    })
}

/// The filter for machine `isa` that the container's bundle asks for.
fn filter(isa: Isa) -> Result<Option<Vec<u8>>> {
    let Some(bundle) = std::env::var_os(BUNDLE) else { return Ok(None) };
    let path = Path::new(&bundle).join("config.json");
    let text = fs::read(&path).map_err(OciError::at("reading", &path))?;
    let config: Value = serde_json::from_slice(&text).map_err(OciError::at("reading", &path))?;
    let profile = config.pointer("/linux/seccomp").filter(|profile| !profile.is_null());
    profile.map(|profile| seccomp::compile(profile, isa.0)).transpose()
}

/// The runtime's own files, which are nowhere in the container, as CRIU is told of them: what processes execute that have
/// executed a program abroad, and what is mapped in those that were restored.
fn runtime_files(pid: u32) -> Result<BTreeSet<String>> {
    let mut files = BTreeSet::new();
    for process in proc::tree(pid)? {
        let executed = PathBuf::from(format!("/proc/{process}/exe"));
        // A zombie has none.
        let target = fs::read_link(&executed).unwrap_or_default();
        if target.as_os_str().as_encoded_bytes().starts_with(RUNTIME_FILE) {
            files.insert(external(&executed)?);
        }
        if let Some(mapped) = mapped_runtime(process)? {
            files.insert(external(&mapped)?);
        }
    }
    Ok(files)
}

/// The file that the runtime is mapped from in a process, if it is from one.
fn mapped_runtime(pid: u32) -> Result<Option<PathBuf>> {
    let mappings = proc::maps(pid).unwrap_or_default();
    if mappings.is_empty() {
        return Ok(None);
    }
    let blob = StateArea::open(pid)?.base() + BLOB_OFFSET;
    let mapping = mappings.iter().find(|mapping| mapping.start == blob && mapping.name.starts_with('/'));
    Ok(mapping
        .map(|mapping| PathBuf::from(format!("/proc/{pid}/map_files/{:x}-{:x}", mapping.start, mapping.end))))
}

/// What CRIU calls the file behind `link` if it is somebody else's.
fn external(link: &Path) -> Result<String> {
    let file = File::open(link).map_err(OciError::at("opening", link))?;
    let inode = file.metadata().map_err(OciError::at("looking at", link))?.ino();
    Ok(format!("file[{:x}:{inode:x}]", mount(&file)?))
}

/// The number of the mount that an open file is in.
fn mount(file: &File) -> Result<u32> {
    let path = PathBuf::from(format!("/proc/self/fdinfo/{}", file.as_raw_fd()));
    let info = fs::read_to_string(&path).map_err(OciError::at("reading", &path))?;
    let mount = info.lines().find_map(|line| line.strip_prefix("mnt_id:")?.trim().parse().ok());
    mount.ok_or_else(|| OciError::at("reading", &path)("it names no mount"))
}
