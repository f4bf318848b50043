//! Control groups of a container that gets to a machine with other hierarchies of them: from one with those of version 1
//! (cgroups(7)), used or not, to one without, say. CRIU would make the old hierarchies there, which is refused. The OCI runtime
//! has put CRIU, and so all that it restores, into the container's group already: that is where the processes stay.

use super::rpc::{ControlGroups, Options};
use crate::error::{OciError, Result};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use tranship_recode::control_groups;

/// The hierarchies of this machine.
const OWN: &str = "/proc/self/cgroup";

/// Tell CRIU to leave control groups alone if images have some that this machine does not have.
pub(super) fn choose(options: &mut Options, images: &Path) -> Result<()> {
    let own = fs::read_to_string(OWN).map_err(OciError::at("reading", Path::new(OWN)))?;
    if !have_all(&own, &control_groups(images)?) {
        options.set_manage_cgroups_mode(ControlGroups::IGNORE);
    }
    Ok(())
}

/// Whether each hierarchy of the images is one of `own`, lines of `NUMBER:CONTROLLER,…:PATH`.
fn have_all(own: &str, wanted: &[Vec<String>]) -> bool {
    let names = |line: &'_ str| line.split(':').nth(1).map(|names| set(names.split(',')));
    let own: Vec<BTreeSet<String>> = own.lines().filter_map(names).collect();
    wanted.iter().all(|hierarchy| own.contains(&set(hierarchy.iter().map(String::as_str))))
}

fn set<'n>(names: impl Iterator<Item = &'n str>) -> BTreeSet<String> {
    names.filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_hierarchy_is_looked_for() {
        let hierarchy = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let first = "9:name=systemd:/\n8:pids:/x\n3:cpu,cpuacct:/\n0::/\n";
        let second = "0::/user.slice\n";
        let wanted = [hierarchy(&["pids"]), hierarchy(&["cpuacct", "cpu"]), hierarchy(&[])];
        assert!(have_all(first, &wanted));
        assert!(!have_all(second, &wanted));
        assert!(have_all(second, &wanted[2..]));
        assert!(!have_all(first, &[hierarchy(&["cpu"])]));
    }
}
