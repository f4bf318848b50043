//! The operator's configuration directory: the authority that nodes join (`ca.key`, `ca.pem`), and the nodes that have
//! (`nodes.json`).

use crate::client::{self, Node};
use crate::error::{NodeError, Result};
use crate::protocol::{NodeInfo, Peer};
use crate::trust::{Authority, Identity, JoinToken, check_node_name};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File};
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// The configuration directory of an operator.
#[derive(Clone, Debug)]
pub struct Operator {
    directory: PathBuf,
}

/// A node that has joined.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Registered {
    /// Where its agent listens, for the operator and for all other nodes: `host:port`.
    pub address: String,
}

/// The nodes that have joined, by name.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    /// Their addresses.
    pub nodes: BTreeMap<String, Registered>,
    /// Who the operator is to them; without an authority there are none.
    identity: Option<Identity>,
}

impl Registry {
    /// A node, to be asked from here; `None` if there is none of that name.
    pub fn node(&self, name: &str) -> Option<Node> {
        let (registered, identity) = (self.nodes.get(name)?, self.identity.clone()?);
        Some(Node { peer: Peer { name: name.to_owned(), address: registered.address.clone() }, identity })
    }
}

impl Operator {
    /// The operator whose user runs this: `tranship` in the user's configuration directory.
    pub fn here() -> Operator {
        let from_home = || PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".config");
        let base = std::env::var_os("XDG_CONFIG_HOME").map_or_else(from_home, PathBuf::from);
        Operator { directory: base.join("tranship") }
    }

    /// The nodes, and who the operator is to them.
    ///
    /// # Errors
    /// There are nodes, but no authority.
    pub fn registry(&self) -> Result<Registry> {
        let path = self.path();
        let nodes = match fs::read(&path) {
            Ok(text) => serde_json::from_slice(&text).map_err(NodeError::at("reading", &path))?,
            Err(why) if why.kind() == ErrorKind::NotFound => return Ok(Registry::default()),
            Err(why) => return Err(NodeError::at("reading", &path)(why)),
        };
        let authority = Authority::load(&self.directory)?.ok_or_else(|| NodeError::Malformed {
            what: format!("{} lists nodes, but there is no ca.key beside it; bring it back", path.display()),
        })?;
        Ok(Registry { nodes, identity: Some(authority.operator()?) })
    }

    /// Have the node at `address` join as `name`, and register it. Without a token it has to have joined already.
    ///
    /// # Errors
    /// The name is taken, or the node does not answer as it should; then nothing is registered.
    pub fn add(&self, name: &str, address: &str, token: Option<&JoinToken>) -> Result<NodeInfo> {
        check_node_name(name)?;
        let _lock = self.lock()?;
        let mut nodes = self.registry()?.nodes;
        if let Some(Registered { address }) = nodes.get(name) {
            let what = format!("{name} is registered already, at {address}; `tranship node rm {name}` first");
            return Err(NodeError::Malformed { what });
        }
        let authority = self.authority()?;
        let peer = Peer { name: name.to_owned(), address: address.to_owned() };
        if let Some(token) = token {
            client::join(&peer, token, &authority)?;
        }
        let info = Node { peer, identity: authority.operator()? }.info()?;
        nodes.insert(name.to_owned(), Registered { address: address.to_owned() });
        self.save(&nodes)?;
        Ok(info)
    }

    /// Have a node leave, and forget it. Returns the token with which it can join again, or why it could not be told
    /// to leave.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn remove(&self, name: &str) -> Result<Result<JoinToken>> {
        let _lock = self.lock()?;
        let mut registry = self.registry()?;
        let node = registry.node(name).ok_or_else(|| unknown(name))?;
        let left = node.leave();
        registry.nodes.remove(name);
        self.save(&registry.nodes)?;
        Ok(left)
    }

    /// The authority, made when it is first needed.
    fn authority(&self) -> Result<Authority> {
        if let Some(authority) = Authority::load(&self.directory)? {
            return Ok(authority);
        }
        let authority = Authority::new()?;
        authority.save(&self.directory)?;
        Ok(authority)
    }

    fn path(&self) -> PathBuf {
        self.directory.join("nodes.json")
    }

    fn save(&self, nodes: &BTreeMap<String, Registered>) -> Result<()> {
        let (path, next) = (self.path(), self.path().with_extension("json.next"));
        let text = serde_json::to_vec_pretty(nodes).map_err(NodeError::at("writing", &path))?;
        fs::write(&next, text)
            .and_then(|()| fs::rename(&next, &path))
            .map_err(NodeError::at("writing", &path))
    }

    /// Held while the directory, which is made if it is not there, is changed.
    fn lock(&self) -> Result<File> {
        let mut directory = DirBuilder::new();
        let made = directory.recursive(true).mode(0o700).create(&self.directory);
        made.map_err(NodeError::at("making", &self.directory))?;
        let path = self.directory.join("lock");
        let file = File::create(&path).map_err(NodeError::at("making", &path))?;
        flock(&file, FlockOperation::LockExclusive).map_err(NodeError::at("locking", Path::new(&path)))?;
        Ok(file)
    }
}

fn unknown(name: &str) -> NodeError {
    NodeError::Malformed {
        what: format!("no node is registered as {name:?}; `tranship node ls` lists those that are"),
    }
}
