//! Finding units and containers among the nodes.

use crate::error::{CliError, Result};
use crate::nodes::Nodes;
use tranship_node::protocol::{Container, UnitStatus};
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

/// Something that can move, and the node that has it.
#[derive(Debug)]
pub(crate) enum Found {
    /// A unit.
    Unit {
        /// Its id.
        id: UnitId,
        /// The node's name.
        node: String,
    },
    /// A container of the node's engine.
    Container(Place),
}

/// A container and the node that has it.
#[derive(Debug)]
pub(crate) struct Place {
    /// The container's id.
    pub id: String,
    /// The node's name.
    pub node: String,
}

/// The unit or, if there is none, the container of this name.
pub(crate) fn anything(nodes: &Nodes, name: &str) -> Result<Found> {
    if let Ok(id) = name.parse::<UnitId>() {
        match unit(nodes, &id) {
            Ok(located) => return Ok(Found::Unit { id, node: located.node }),
            Err(CliError::NoUnit { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    container(nodes, name).map(Found::Container)
}

/// The node that has this container: the one on which it runs.
pub(crate) fn container(nodes: &Nodes, name: &str) -> Result<Place> {
    let mut found: Option<(bool, Place)> = None;
    for node in nodes.names() {
        let containers = match nodes.node(node)?.containers() {
            Ok(containers) => containers,
            Err(NodeError::Unreachable { .. } | NodeError::Closed { .. }) => continue,
            Err(error) => return Err(error.into()),
        };
        let is_named = |container: &&Container| container.name == name || container.id == name;
        let named = containers.iter().find(is_named);
        if let Some(container) = named.filter(|container| container.runs() || found.is_none()) {
            let place = Place { id: container.id.clone(), node: node.clone() };
            found = Some((container.runs(), place));
        }
    }
    let asked = || nodes.names().cloned().collect();
    let nothing = || CliError::NoSuchThing { name: name.to_owned(), nodes: asked() };
    found.map(|(_, place)| place).ok_or_else(nothing)
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
