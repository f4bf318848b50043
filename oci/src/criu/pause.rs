//! Containers that their engine has paused. containerd (and so Docker) pauses a container before it has it dumped; threads that are
//! frozen reach no safepoint.

use crate::error::{OciError, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// Where both versions of control groups are usually mounted.
const CONTROL_GROUPS: &str = "/sys/fs/cgroup";
/// How long freezing and thawing may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Between two looks.
const MOMENT: Duration = Duration::from_millis(1);

/// The freezer of a control group.
struct Freezer {
    /// What is written to say what is wanted.
    switch: PathBuf,
    words: Words,
    /// Where the state is read.
    state: PathBuf,
}

/// How a version of control groups spells it.
struct Words {
    freeze: &'static str,
    thaw: &'static str,
    /// A line of the state of a group that is frozen.
    frozen: &'static str,
}

/// Documentation/admin-guide/cgroup-v2.rst
const UNIFIED: Words = Words { freeze: "1", thaw: "0", frozen: "frozen 1" };
/// Documentation/admin-guide/cgroup-v1/freezer-subsystem.rst
const LEGACY: Words = Words { freeze: "FROZEN", thaw: "THAWED", frozen: "FROZEN" };

/// Do `work` while process `pid` can run. If it is paused, `prepare` comes before it can, and it is paused again.
pub(super) fn while_thawed<T>(
    pid: u32,
    prepare: impl FnOnce() -> Result<()>,
    work: impl FnOnce() -> Result<T>,
) -> Result<T> {
    let path = format!("/proc/{pid}/cgroup");
    let groups = fs::read_to_string(&path).map_err(OciError::at("reading", Path::new(&path)))?;
    let Some(freezer) = groups.lines().filter_map(Freezer::of).find(Freezer::is_frozen) else {
        return work();
    };
    prepare()?;
    freezer.turn(freezer.words.thaw, false)?;
    let done = work();
    freezer.turn(freezer.words.freeze, true)?;
    done
}

impl Freezer {
    /// That of the group which a line of /proc/PID/cgroup names, if it has one (cgroups(7)).
    fn of(line: &str) -> Option<Freezer> {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, group) = (fields.next()?, fields.next()?.strip_prefix('/')?);
        let at = Path::new(CONTROL_GROUPS);
        match controllers {
            "" => {
                // Beside hierarchies of version 1 it has a place of its own.
                let directory = [at.join("unified"), at.to_owned()].map(|root| root.join(group));
                let directory = directory.into_iter().find(|path| path.join("cgroup.freeze").exists())?;
                let file = |name| directory.join(name);
                Some(Freezer { switch: file("cgroup.freeze"), state: file("cgroup.events"), words: UNIFIED })
            }
            "freezer" => {
                let switch = at.join("freezer").join(group).join("freezer.state");
                Some(Freezer { state: switch.clone(), switch, words: LEGACY })
            }
            _ => None,
        }
    }

    fn is_frozen(&self) -> bool {
        let state = fs::read_to_string(&self.state).unwrap_or_default();
        state.lines().any(|line| line == self.words.frozen)
    }

    /// Write `word`, and wait until that is so.
    fn turn(&self, word: &str, frozen: bool) -> Result<()> {
        fs::write(&self.switch, word).map_err(OciError::at("writing", &self.switch))?;
        let deadline = Instant::now() + PATIENCE;
        while self.is_frozen() != frozen {
            if Instant::now() > deadline {
                let why = format!("it does not become {word}");
                return Err(OciError::io(format!("writing {}", self.switch.display()), why));
            }
            thread::sleep(MOMENT);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_name_freezers() {
        let legacy = Freezer::of("7:freezer:/docker/ab:c").unwrap();
        assert_eq!(legacy.switch, Path::new("/sys/fs/cgroup/freezer/docker/ab:c/freezer.state"));
        for other in ["", "3:cpu,cpuacct:/a", "0::/no/such/group", "freezer", "1:freezer:relative"] {
            assert!(Freezer::of(other).is_none(), "{other}");
        }
    }
}
