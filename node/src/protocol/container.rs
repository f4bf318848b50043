//! Messages about containers of a node's engine, and about their moves.

use super::Peer;
use crate::container::MoveId;
use crate::record::Isa;
use serde::{Deserialize, Serialize};

/// A container, as its engine has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Container {
    /// The engine's id of it, the same on all nodes.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its image, by id.
    pub image: String,
    /// Its image's name when it was made.
    pub image_name: String,
    /// Its home: the machine that the image is for, if the image says so.
    pub isa: Option<Isa>,
    /// The engine's word for what it does: `running`, `exited`, ….
    pub state: String,
    /// Its first process on the node; 0 if it does not run.
    pub pid: u32,
    /// Whether its first process runs translated.
    pub translated: bool,
    /// Whether it was checkpointed and has not run since.
    pub checkpointed: bool,
    /// Networks that it is on.
    pub attachments: Vec<Attachment>,
    /// Volumes and directories of the node that it sees.
    pub volumes: Vec<Volume>,
    /// Ports of the node that lead to it.
    pub published: Vec<u16>,
    /// CPU time of its processes, in milliseconds.
    pub cpu_ms: u64,
    /// Bytes of memory that its processes have, what they share counted for each.
    pub memory: u64,
}

impl Container {
    /// Whether it runs.
    pub fn runs(&self) -> bool {
        self.state == "running"
    }
}

/// A container on a network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attachment {
    /// The engine's name of the network.
    pub network: String,
    /// The container's address there.
    pub address: String,
    /// Its hardware address.
    pub hardware: String,
}

/// Something of the node in a container's tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Volume {
    /// Name, if it is a volume of the engine's; else it is a directory or file of the node.
    pub name: Option<String>,
    /// Where it is on the node.
    pub source: String,
    /// Where it is in the container.
    pub destination: String,
}

/// What is asked of the node that a container leaves, after [`super::Request::Depart`]. Up to [`DepartRequest::Hold`] a
/// closed connection has the container go on where it is.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DepartRequest {
    /// Send the container's image. Answer: [`super::Received`].
    SendImage(Peer),
    /// Checkpoint the container, which stops it. Answer: [`DepartReport`].
    Checkpoint {
        /// Whether the contents of volumes come with it.
        volumes: bool,
    },
    /// Send the checkpoint. Answer: [`super::Received`].
    SendCheckpoint(Peer),
    /// The peer is about to be told to go on. From here on it decides: until the move is committed or given up, the node
    /// asks it. Answer: nothing.
    Hold(Peer),
    /// It goes on there: remove it here. Answer: nothing.
    Commit,
    /// It does not: have it go on here. Answer: nothing.
    Abort,
}

/// Times of a checkpoint, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DepartReport {
    /// Until all threads were parked; 0 at home.
    pub quiesce_us: u64,
    /// The engine's checkpoint, all of it.
    pub checkpoint_us: u64,
    /// To the canonical form.
    pub recode_us: u64,
}

/// What is asked of the node that a container comes to, after [`super::Request::Arrive`]. Up to [`ArriveRequest::Go`] a
/// closed connection has it forget the container.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ArriveRequest {
    /// Take in the image that has arrived. Answer: nothing.
    LoadImage,
    /// Restore the checkpoint that has arrived, up to the point where only going on is left. Answer: [`ArriveReport`].
    Restore {
        /// Whether the contents of volumes come with it.
        volumes: bool,
        /// Addresses that it brings along: what is sent to them waits until it goes on.
        keep_address: bool,
    },
    /// Go on. Answer: the [`Container`].
    Go,
}

/// What a node has for a container that is to come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Survey {
    /// Whether it has the image.
    pub image: bool,
    /// Networks that the container is on and the node does not have.
    pub missing_networks: Vec<String>,
    /// Directories and files of the node that the container sees and that are not here.
    pub missing_sources: Vec<String>,
    /// Volumes of these names that are here already, with contents of their own.
    pub present_volumes: Vec<String>,
    /// Addresses of it that another container of the node has.
    pub taken_addresses: Vec<String>,
    /// Ports that something on the node listens at already.
    pub taken_ports: Vec<u16>,
    /// A container of the same name or id that is here already.
    pub namesake: Option<String>,
    /// Bytes of memory that are available.
    pub memory_free: u64,
    /// What `criu check` finds missing in the kernel.
    pub criu: Option<String>,
    /// Version of the engine; none if there is no engine.
    pub engine: Option<String>,
    /// Whether the engine's runtime is ours.
    pub runtime: bool,
}

/// Times of a restore, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArriveReport {
    /// From the canonical form; 0 at home.
    pub recode_us: u64,
    /// The engine's restore, up to the gate.
    pub restore_us: u64,
}

/// What has become of a move, as the node knows that was to get the container.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The container goes on there.
    Went,
    /// It does not, and will not.
    Refused,
    /// Its client is still at it.
    Undecided,
}

/// A checkpoint or an image on its way to a node, as body of [`super::Request::Cargo`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Cargo {
    /// The move that it belongs to.
    pub of: MoveId,
    /// What it is.
    pub kind: CargoKind,
}

/// Kinds of [`Cargo`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CargoKind {
    /// An image, as `podman image save` writes it.
    Image,
    /// A checkpoint, as `podman container checkpoint --export` writes it.
    Checkpoint,
}

impl CargoKind {
    /// Name of its file in a move's directory.
    pub fn file(self) -> &'static str {
        match self {
            CargoKind::Image => "image.tar",
            CargoKind::Checkpoint => "checkpoint.tar",
        }
    }
}
