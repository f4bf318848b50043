//! Finding units among the nodes.

use crate::error::{CliError, Result};
use crate::nodes::Nodes;
use tranship_node::protocol::UnitStatus;
use tranship_node::{NodeError, UnitId, UnitState};

/// A unit and the node that has it.
#[derive(Debug)]
pub(crate) struct Located {
    /// The node's name.
    pub node: String,
    /// The unit.
    pub status: UnitStatus,
}

/// The node that has `unit`: where it is or was last, not where it only passed through.
pub(crate) fn unit(nodes: &Nodes, unit: &UnitId) -> Result<Located> {
    let mut found: Option<Located> = None;
    for name in nodes.names() {
        let status = match nodes.node(name)?.status(unit) {
            Ok(status) => status,
            // A node that is gone has no units, and no say in where they are.
            Err(NodeError::NoUnit { .. } | NodeError::Unreachable { .. } | NodeError::Closed { .. }) => {
                continue;
            }
            // Nor has one that is not who it should be.
            Err(NodeError::Untrusted { .. } | NodeError::NotAdmitted { .. }) => continue,
            Err(error) => return Err(error.into()),
        };
        let better =
            found.as_ref().is_none_or(|other| rank(&status.record.state) < rank(&other.status.record.state));
        if better {
            found = Some(Located { node: name.clone(), status });
        }
    }
    found.ok_or_else(|| CliError::NoUnit { unit: unit.clone(), nodes: nodes.names().cloned().collect() })
}

/// The lower, the more the unit is there.
fn rank(state: &UnitState) -> u32 {
    match state {
        UnitState::Running { .. } => 0,
        UnitState::Held { .. } | UnitState::Frozen { .. } => 1,
        UnitState::Exited { .. } => 2,
        UnitState::Created | UnitState::Incoming => 3,
        UnitState::Lost => 4,
        UnitState::Moved { .. } => 5,
    }
}
