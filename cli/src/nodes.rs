//! The nodes that commands can name: those of the lab, and those that have joined.

use crate::error::{CliError, Result};
use tranship_lab::LabFile;
use tranship_node::client::Node;
use tranship_node::operator::Registry;
use tranship_node::protocol::Peer;

/// All of them.
#[derive(Debug)]
pub(crate) struct Nodes {
    pub(crate) lab: LabFile,
    pub(crate) registry: Registry,
}

impl Nodes {
    /// Their names.
    pub(crate) fn names(&self) -> impl Iterator<Item = &String> {
        self.registry.nodes.keys().chain(self.lab.nodes.keys())
    }

    /// A node, to be asked from here.
    pub(crate) fn node(&self, name: &str) -> Result<Node> {
        match self.registry.node(name) {
            Some(node) => Ok(node),
            None if tranship_lab::is_lab_name(name) => Ok(self.lab.node(name)?),
            None => Err(CliError::NoNode { name: name.to_owned() }),
        }
    }

    /// Node `to` as node `from` sees it.
    pub(crate) fn peer(&self, from: &str, to: &str) -> Result<Peer> {
        let joined = |name| self.registry.nodes.contains_key(name);
        match (joined(from), joined(to)) {
            (true, true) => Ok(self.node(to)?.peer),
            (false, false) => Ok(self.lab.peer(from, to)?),
            _ => Err(CliError::Strangers { from: from.to_owned(), to: to.to_owned() }),
        }
    }
}
