//! What can go wrong between a client, a node and a unit. Errors travel over the wire, so they are plain data.

use crate::record::UnitId;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::Path;

/// Why an operation on a node failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum NodeError {
    /// A system call failed.
    Io {
        /// What was done, to what.
        doing: String,
        /// What the system said.
        why: String,
    },
    /// A process has ended, or has executed another program.
    ProcessGone {
        /// Its number.
        pid: u32,
    },
    /// No agent answers.
    Unreachable {
        /// Name of the node that it should be.
        node: String,
        /// The address.
        address: String,
        /// What the system said.
        why: String,
    },
    /// The other side closed the connection in the middle of something.
    Closed {
        /// Who that is: a node's name, or a word for what is no node.
        peer: String,
    },
    /// The other side said nothing for too long.
    Silent {
        /// Who that is.
        peer: String,
        /// For how long, in seconds.
        seconds: u64,
    },
    /// The other side speaks another version of the protocol.
    Version {
        /// Its version.
        theirs: u32,
        /// Our version.
        ours: u32,
    },
    /// There is no such container.
    NoContainer {
        /// As asked for.
        container: String,
    },
    /// The node has such a container already.
    ContainerExists {
        /// Its name.
        container: String,
    },
    /// Only a container that runs can move.
    NotRunning {
        /// Its name.
        container: String,
        /// What it does instead.
        state: String,
    },
    /// The container is being moved.
    OnItsWay {
        /// Its id.
        container: String,
    },
    /// The container is not held for another node.
    NotHeld {
        /// Its id.
        container: String,
    },
    /// There is no such move to this node.
    NoMove {
        /// As asked for.
        of: String,
    },
    /// An archive has what no checkpoint has.
    Hostile {
        /// Which member.
        name: String,
        /// What is wrong with it.
        why: String,
    },
    /// A container's engine failed.
    Engine {
        /// What it was to do.
        command: String,
        /// What it said.
        why: String,
    },
    /// The engine restored a container without our runtime.
    NoGate {
        /// Its name.
        container: String,
    },
    /// Something keeps a container from going to a node.
    InTheWay {
        /// Its name.
        container: String,
        /// What, and what to do.
        what: String,
    },
    /// A move was decided by its nodes, but how could not be learnt.
    MoveInDoubt {
        /// The container.
        container: String,
        /// What was seen of the new node last.
        why: String,
    },
    /// The agent does not let clients execute commands.
    NotAllowed,
    /// Who answers for a node does not prove to be that node.
    Untrusted {
        /// The node.
        node: String,
        /// The address.
        address: String,
        /// What is wrong.
        why: String,
    },
    /// The other side does not believe that we are who we say.
    NotAdmitted {
        /// Who that is.
        peer: String,
        /// What it said.
        why: String,
    },
    /// The token was not the node's, or is used up.
    Token {
        /// How many more guesses the node takes.
        tries: u32,
    },
    /// The node has joined no authority.
    NotJoined,
    /// Nodes may not ask for that.
    Forbidden,
    /// Something that a user wrote is not what it should be.
    Malformed {
        /// What is wrong with it.
        what: String,
    },
    /// A message that makes no sense here, or is larger than allowed.
    Protocol {
        /// What was wrong with it.
        what: String,
    },
    /// The client went away in the middle of a long operation.
    Cancelled,
    /// No such unit on the node.
    NoUnit {
        /// What was asked for.
        unit: UnitId,
    },
    /// A unit of that id is there already.
    UnitExists {
        /// Its id.
        unit: UnitId,
    },
    /// The unit is in a state in which the operation makes no sense.
    WrongState {
        /// Its id.
        unit: UnitId,
        /// Its state in a word or two.
        state: String,
        /// What it would have to be.
        wanted: String,
    },
    /// The unit's root has no such program, or it is no ELF file.
    NoProgram {
        /// The program as asked for.
        program: String,
        /// What is wrong.
        why: String,
    },
    /// A node lacks something that the operation needs.
    Missing {
        /// What.
        what: String,
        /// How to get it.
        remedy: String,
    },
    /// A path from outside that would leave the directory it belongs in.
    BadPath {
        /// The path.
        path: String,
    },
    /// What arrived has another digest than announced.
    Digest {
        /// As announced.
        expected: String,
        /// As arrived.
        found: String,
    },
    /// The disk of the node has not enough room.
    NoSpace {
        /// Bytes needed.
        needed: u64,
        /// Bytes free.
        free: u64,
    },
    /// Threads did not reach a safepoint in time.
    NotQuiet {
        /// Threads that ran on.
        threads: Vec<u32>,
        /// How long they had, in milliseconds.
        waited_ms: u64,
    },
    /// CRIU failed.
    Criu {
        /// `dump` or `restore`.
        action: String,
        /// The errors in its log.
        errors: String,
    },
    /// The image set could not be recoded.
    Recode {
        /// Why.
        why: String,
    },
    /// A thread was where it cannot be recoded, which it soon leaves.
    DumpAgain {
        /// Where.
        why: String,
    },
    /// The unit's supervisor is gone, so the unit is lost.
    Lost {
        /// The unit.
        unit: UnitId,
    },
    /// The new node was told to go on but never confirmed it. The original is held, neither running nor lost.
    InDoubt {
        /// The unit.
        unit: UnitId,
        /// What was seen of the new node last.
        why: String,
    },
}

/// Result of everything here.
pub type Result<T> = std::result::Result<T, NodeError>;

impl NodeError {
    /// `doing` failed as `why` says.
    pub fn io(doing: impl Into<String>, why: impl fmt::Display) -> NodeError {
        NodeError::Io { doing: doing.into(), why: why.to_string() }
    }

    /// For `map_err` after a file operation: "`doing` `path`: why".
    pub fn at<E: fmt::Display>(doing: &str, path: &Path) -> impl FnOnce(E) -> NodeError {
        let doing = format!("{doing} {}", path.display());
        move |why| NodeError::io(doing, why)
    }

    pub(crate) fn protocol(what: impl Into<String>) -> NodeError {
        NodeError::Protocol { what: what.into() }
    }
}

impl fmt::Display for NodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NodeError::Io { doing, why } => write!(f, "{doing}: {why}"),
            NodeError::ProcessGone { pid } => {
                write!(f, "process {pid} has ended, or executed another program")
            }
            NodeError::Unreachable { node, address, why } => {
                write!(
                    f,
                    "no agent answers on {node} ({address}: {why}); see `tranship lab status` and `tranship node ls`"
                )
            }
            NodeError::Closed { peer } => write!(f, "{peer} closed the connection; was it stopped?"),
            NodeError::Silent { peer, seconds } => {
                write!(f, "{peer} said nothing for {seconds} s; is it alive?")
            }
            NodeError::Version { theirs, ours } => write!(
                f,
                "the node speaks protocol version {theirs}, this program {ours}; install the same version on both"
            ),
            NodeError::Untrusted { node, address, why } => {
                write!(f, "what answers at {address} does not prove to be {node}: {why}; see docs/nodes.md")
            }
            NodeError::NotAdmitted { peer, why } => write!(
                f,
                "{peer} does not admit us ({why}): it has joined another authority, or left ours; see docs/nodes.md"
            ),
            NodeError::Token { tries: 0 } => {
                write!(f, "the token is used up; `tranship-node leave` on the node makes a new one")
            }
            NodeError::Token { tries } => {
                write!(f, "the node refused the token; it can be tried {tries} more times")
            }
            NodeError::NotJoined => {
                write!(f, "the node has joined no authority yet; have it join with `tranship node add`")
            }
            NodeError::Forbidden => {
                write!(
                    f,
                    "nodes ask each other only to take what belongs to a unit or container on its way; the rest is for the operator"
                )
            }
            NodeError::NoContainer { container } => {
                write!(f, "no container {container}; see `tranship ps`")
            }
            NodeError::ContainerExists { container } => {
                write!(f, "the node has a container {container} already")
            }
            NodeError::NotRunning { container, state } => {
                write!(f, "container {container} is {state}; only one that runs can be moved")
            }
            NodeError::OnItsWay { container } => write!(f, "container {container} is being moved already"),
            NodeError::NotHeld { container } => {
                write!(f, "container {container} is not held for another node")
            }
            NodeError::NoMove { of } => write!(f, "no move {of} to this node is under way"),
            NodeError::Hostile { name, why } => {
                write!(f, "the checkpoint's archive is refused: {name} {why}")
            }
            NodeError::Engine { command, why } => write!(f, "{command} failed: {why}"),
            NodeError::NoGate { container } => write!(
                f,
                "the engine restored {container} without tranship-runc; make that its runtime (docs/containers.md)"
            ),
            NodeError::InTheWay { container, what } => write!(f, "{container} cannot go there: {what}"),
            NodeError::MoveInDoubt { container, why } => write!(
                f,
                "the new node was told to go on with {container} but did not confirm it ({why}). The nodes settle it between \
                 them as soon as they reach each other; if the new one is dead, let it go on with `tranship resume \
                 {container}`"
            ),
            NodeError::NotAllowed => {
                write!(f, "the node's agent executes no commands: it was started without --allow-execute")
            }
            NodeError::Malformed { what } => f.write_str(what),
            NodeError::Protocol { what } => write!(f, "unexpected message: {what}"),
            NodeError::Cancelled => write!(f, "cancelled: the client went away"),
            NodeError::NoUnit { unit } => write!(f, "no unit {unit}; see `tranship ps`"),
            NodeError::UnitExists { unit } => write!(f, "the node has a unit {unit} already"),
            NodeError::WrongState { unit, state, wanted } => {
                write!(f, "unit {unit} is {state}, it has to be {wanted}")
            }
            NodeError::NoProgram { program, why } => write!(f, "cannot run {program}: {why}"),
            NodeError::Missing { what, remedy } => write!(f, "{what} is missing on the node; {remedy}"),
            NodeError::BadPath { path } => write!(f, "the path {path:?} leaves its directory"),
            NodeError::Digest { expected, found } => {
                write!(f, "what arrived has digest {found}, announced was {expected}; send it again")
            }
            NodeError::NoSpace { needed, free } => {
                write!(f, "the node's disk has {free} bytes free, {needed} are needed")
            }
            NodeError::NotQuiet { threads, waited_ms } => {
                write!(
                    f,
                    "threads {threads:?} reached no safepoint in {waited_ms} ms; the unit runs on, try again"
                )
            }
            NodeError::Criu { action, errors } => write!(f, "criu {action} failed: {errors}"),
            NodeError::Recode { why } | NodeError::DumpAgain { why } => write!(f, "{why}"),
            NodeError::Lost { unit } => {
                write!(f, "unit {unit} is lost: its supervisor died; remove it with `tranship rm`")
            }
            NodeError::InDoubt { unit, why } => write!(
                f,
                "the new node was told to go on with {unit} but did not confirm it ({why}). The original is held, not \
                 lost: if the new node is dead, let it go on with `tranship resume {unit}`"
            ),
        }
    }
}

impl std::error::Error for NodeError {}
