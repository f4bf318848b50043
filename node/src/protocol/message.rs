//! The messages.

use super::{Cargo, Container};
use crate::container::MoveId;
use crate::cpu::Cpu;
use crate::error::{NodeError, Result};
use crate::progress::ProgressReport;
use crate::record::{ExitStatus, Isa, UnitId, UnitRecord, UnitSpec};
use serde::{Deserialize, Serialize};

/// First message of a connection.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Hello {
    /// [`super::VERSION`].
    pub protocol: u32,
}

/// Answer to [`Hello`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Welcome {
    /// Come in.
    Welcome,
    /// Refused.
    Refused(NodeError),
}

/// Answers to a request.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reply {
    /// Still at it.
    Progress(ProgressReport),
    /// Done; what a request's answer is, see there.
    Done(serde_json::Value),
    /// It failed.
    Error(NodeError),
}

impl Reply {
    /// `Done` with `answer`.
    pub fn done<T: Serialize>(answer: &T) -> Result<Reply> {
        serde_json::to_value(answer).map(Reply::Done).map_err(|why| NodeError::protocol(why.to_string()))
    }
}

/// SHA-256 of an object's bytes, in hexadecimal.
pub type Digest = String;

/// Where another agent listens, as seen from the node that is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Peer {
    /// The node's name, which it has to prove.
    pub name: String,
    /// `host:port`.
    pub address: String,
}

/// Standard streams that a unit writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Output {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

impl Output {
    /// Both.
    pub const ALL: [Output; 2] = [Output::Stdout, Output::Stderr];

    /// Name of its log in the unit's directory.
    pub fn log(self) -> &'static str {
        match self {
            Output::Stdout => "stdout.log",
            Output::Stderr => "stderr.log",
        }
    }
}

/// What an agent is asked.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Request {
    /// [`NodeInfo`].
    Info,
    /// `Vec<`[`UnitStatus`]`>`.
    List,
    /// One [`UnitStatus`].
    Status(UnitId),
    /// Make a unit with an empty root. Answer: nothing.
    Create(UnitSpec),
    /// Receive the unit's root: the sender goes on with [`TreeMessage`]s. Answer: [`Received`].
    Tree(UnitId),
    /// Start the unit; its objects are in the store. Answer: its [`UnitRecord`].
    Start {
        /// Which.
        unit: UnitId,
        /// How.
        how: Translation,
    },
    /// Make ready for a unit that comes from another node. The connection is then a tunnel to its supervisor, and
    /// the unit is removed again if it closes before [`UnitRequest::Go`]. Answer: nothing.
    Expect(UnitRecord),
    /// Receive checkpoint images and output logs of an expected unit: the sender goes on with [`ImageMessage`]s.
    /// Answer: [`Received`].
    Images(UnitId),
    /// The connection becomes a tunnel to the unit's supervisor: [`UnitRequest`]s from here on. Answer: nothing.
    Attach(UnitId),
    /// The connection becomes one to a TCP port of the loopback that the unit sees, which must run. Answer: nothing.
    Connect {
        /// Which unit.
        unit: UnitId,
        /// The port.
        port: u16,
    },
    /// PID namespaces with translated processes that are no unit's, those of containers. Answer: `Vec<`[`PidNamespace`]`>`.
    Namespaces,
    /// From here on the connection is about these processes of the PID namespace with that number: [`UnitRequest::Code`]
    /// alone is answered. Answer: nothing.
    AttachNamespace(u64),
    /// Output from an offset on: the answer is a list of lengths in [`OutputChunk`] and the bytes as body. Waits up to
    /// half a second for more.
    Output {
        /// Which unit.
        unit: UnitId,
        /// Offsets already seen: standard output, standard error.
        from: [u64; 2],
    },
    /// Send a signal to the unit's first process. Answer: nothing.
    Signal {
        /// Which unit.
        unit: UnitId,
        /// Signal number.
        signal: i32,
    },
    /// Remove a unit that is not running, with everything it left. Answer: nothing.
    Remove(UnitId),
    /// A file in the unit's root, as body. Answer: nothing.
    ReadFile {
        /// Which unit.
        unit: UnitId,
        /// Path in its root.
        path: String,
    },
    /// `Vec<`[`Container`]`>`: those of the node's engine.
    Containers,
    /// What would be in the way of a container of another node: [`super::Survey`].
    Survey(Box<Container>),
    /// A container is to leave. Answer: the [`Container`]; from then on the client sends [`super::DepartRequest`]s.
    Depart {
        /// The move.
        of: MoveId,
        /// Name or id of the container.
        container: String,
    },
    /// A container is to come. Answer: nothing; from then on the client sends [`super::ArriveRequest`]s.
    Arrive {
        /// The move.
        of: MoveId,
        /// The container, as it is on its old node.
        container: Box<Container>,
    },
    /// The new node of a container that is held for it is dead: let it go on here. Takes the container's id. Answer: nothing.
    Resume(String),
    /// Something for a container that is to come, as body. Answer: [`Received`].
    Cargo(Cargo),
    /// [`super::Outcome`] of a move to this node.
    Outcome(MoveId),
    /// Execute a command, where the agent allows that. Answer: nothing; from then on both sides send
    /// [`ExecuteMessage`]s.
    Execute(Vec<String>),
    /// Which of these objects are not in the store. Answer: `Vec<Digest>`.
    MissingObjects(Vec<Digest>),
    /// An object (the body) for the store. Answer: nothing.
    PutObject(Digest),
    /// Leave the authority, and close all connections of whom it vouches for. Answer: the
    /// [`JoinToken`](crate::trust::JoinToken) to join with again.
    Leave,
    /// End every unit and the agent. Answer: nothing.
    Shutdown,
}

/// What is said while a command executes, after [`Request::Execute`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExecuteMessage {
    /// To the node: the body is input for the command. Without body: that was all.
    Input,
    /// From the node: the body is output of the command.
    Output(Output),
    /// From the node: the command has ended, and so has the connection.
    Ended(ExitStatus),
}

impl Request {
    /// Whether nodes ask each other for it. Everything else is the operator's business.
    pub fn is_of_nodes(&self) -> bool {
        matches!(self, Request::Tree(_) | Request::Images(_) | Request::Cargo(_) | Request::Outcome(_))
    }
}

/// What a node is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeInfo {
    /// Its machine.
    pub isa: Isa,
    /// What code can be compiled for there.
    pub cpu: Cpu,
    /// Kernel release.
    pub kernel: String,
    /// CRIU's version.
    pub criu: String,
    /// Whether it has the runtime for translated units.
    pub runtime: bool,
    /// Bytes free for units.
    pub disk_free: u64,
    /// Processors.
    pub processors: usize,
}

/// A unit, as `tranship ps` shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnitStatus {
    /// What is recorded of it.
    #[serde(flatten)]
    pub record: UnitRecord,
    /// CPU time of its first process, in milliseconds.
    pub cpu_ms: u64,
    /// Resident memory of its first process, in bytes.
    pub resident: u64,
    /// Regular files that its first process has open.
    pub files: Vec<OpenFile>,
}

/// An open regular file of a unit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenFile {
    /// Path in the unit's root.
    pub path: String,
    /// Where the next read or write is.
    pub offset: u64,
    /// Its size in bytes.
    pub size: u64,
}

/// Answer to [`Request::Output`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OutputChunk {
    /// How many bytes of the body are standard output; the rest is standard error.
    pub stdout: u64,
    /// Where the unit is gone to: go on there, with the same offsets.
    pub moved: Option<String>,
    /// The unit ended, and this is all of its output.
    pub ended: Option<ExitStatus>,
    /// The unit is lost.
    pub lost: bool,
    /// There is more to be had without waiting: output, or what has become of the unit.
    pub more: bool,
}

/// How a unit is to run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Translation {
    /// Natively.
    Native,
    /// Translated, with objects for these programs.
    Objects(Vec<GuestProgram>),
}

/// A guest ELF file and its translation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestProgram {
    /// The file's path in the unit's root.
    pub path: String,
    /// Its object in the node's store.
    pub object: Digest,
}

/// What a receiver got.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Received {
    /// Files, directories and links that had changed.
    pub entries: u64,
    /// Bytes of file contents.
    pub bytes: u64,
}

/// What a unit's supervisor is asked, through a tunnel.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UnitRequest {
    /// Start the program. Answer: the [`UnitRecord`].
    Start(Translation),
    /// ELF files that the unit executes. Answer: `Vec<String>` of paths in its root.
    Programs,
    /// Bring the peer's copy of the root up to date. Answer: [`Received`].
    SendTree(Peer),
    /// Freeze and dump to a canonical checkpoint. From here on the unit is frozen until [`UnitRequest::Commit`];
    /// closing the connection lets it go on. Answer: [`CheckpointReport`].
    Checkpoint {
        /// The unit goes on by itself after this many seconds.
        lease_seconds: u64,
    },
    /// Send the checkpoint and the output logs. Answer: [`Received`].
    SendImages(Peer),
    /// The peer is about to be told to go on: from here on only [`UnitRequest::Commit`] and
    /// [`UnitRequest::Abort`] end the freeze, a closed connection does not. Answer: nothing.
    Hold,
    /// The peer has the unit: end it here. Answer: nothing.
    Commit {
        /// Name of the new node.
        to: String,
    },
    /// Let the unit go on here. Answer: nothing.
    Abort,
    /// Recode and restore the checkpoint that arrived, up to the point where only going on is left. Answer:
    /// [`RestoreReport`].
    Restore(Translation),
    /// Go on. Answer: the [`UnitRecord`].
    Go,
    /// About compiled code for the unit's translated processes.
    Code(CodeRequest),
}

/// What translated processes are asked, and get, by whoever compiles code for them.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CodeRequest {
    /// What they have wanted compiled since this connection asked last. Answer: `Option<Vec<`[`ProcessLook`]`>>`, nothing
    /// once they have ended.
    Look,
    /// Guest memory, as body. Answer: nothing.
    ReadMemory {
        /// Of which process.
        process: ProcessId,
        /// First address.
        start: u64,
        /// First address after.
        end: u64,
    },
    /// A file that a process has mapped, as body. Answer: nothing.
    ReadMapped {
        /// Which process.
        process: ProcessId,
        /// The file.
        file: MappedFile,
    },
    /// An object for a process, its memory as body. Answer: whether there was room for it.
    Supply {
        /// Which process.
        process: ProcessId,
        /// Where in the object its header is.
        header: usize,
    },
}

/// A PID namespace with translated processes that are no unit's: mostly a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PidNamespace {
    /// Its inode number (namespaces(7)).
    pub number: u64,
    /// The first of these processes, by its number on the node.
    pub pid: u32,
}

/// A translated process, and which of the programs that it has run one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ProcessId {
    /// Its number on its node.
    pub pid: u32,
    /// Another number for each program.
    pub generation: u64,
}

/// What has happened in a translated process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessLook {
    /// Which.
    pub process: ProcessId,
    /// Only objects with exact faults are of use to it.
    pub exact: bool,
    /// Files that it has mapped, if it or that was not known before.
    pub files: Vec<MappedFile>,
    /// Where it interprets often.
    pub wanted: Vec<WantedCode>,
}

/// Code that is interpreted often.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WantedCode {
    /// Guest address.
    pub address: u64,
    /// What is there.
    pub place: CodePlace,
}

/// Where code is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CodePlace {
    /// In a file.
    File(MappedFile),
    /// In memory that the process has written itself: this range should be looked at.
    Memory {
        /// First address.
        start: u64,
        /// First address after.
        end: u64,
    },
    /// Nothing is mapped there any more.
    Nowhere,
}

/// A file that is mapped and cannot be written through the mapping.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MappedFile {
    /// Its name on the node.
    pub name: String,
    /// The same for the same contents: device, inode, size, seconds and nanoseconds of the last modification.
    pub identity: [u64; 5],
    /// First address.
    pub start: u64,
    /// First address after.
    pub end: u64,
    /// Offset in the file of what is at `start`.
    pub offset: u64,
}

/// Times of a checkpoint, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointReport {
    /// Until all threads were parked.
    pub quiesce_us: u64,
    /// CRIU.
    pub dump_us: u64,
    /// To the canonical form.
    pub recode_us: u64,
    /// How long the unit has been stopped, all in all.
    pub frozen_us: u64,
}

/// Times of a restore, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestoreReport {
    /// From the canonical form.
    pub recode_us: u64,
    /// CRIU.
    pub restore_us: u64,
}

/// Kinds of entries in a root.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EntryKind {
    /// Directory.
    Directory,
    /// Regular file of this many bytes.
    File(u64),
    /// Symbolic link to this.
    Link(String),
    /// Named pipe.
    Fifo,
}

/// An entry of a root.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Path in the root, without leading slash; parents come first.
    pub path: String,
    /// What it is.
    pub kind: EntryKind,
    /// Permission bits.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Last modification: seconds and nanoseconds.
    pub modified: (i64, u32),
}

/// What the sender of a root says after [`Request::Tree`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TreeMessage {
    /// A part of the list of entries. The receiver answers with [`Wanted`].
    Entries(Vec<Entry>),
    /// Contents of the file at this index of the last part, as body.
    File {
        /// Index in the part.
        index: u32,
        /// Last modification, as of these contents.
        modified: (i64, u32),
    },
    /// That was all: remove what was not listed.
    End,
}

/// The receiver's answer to a part of the list: indices of files whose contents it wants.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Wanted(pub Vec<u32>);

/// What the sender of a checkpoint says after [`Request::Images`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ImageMessage {
    /// An image file, its contents as body.
    Image(String),
    /// Bytes of an output log, from the receiver's length on, as body.
    Log {
        /// Which.
        output: Output,
    },
    /// That was all. The record says which pipes the images mention.
    End(Box<UnitRecord>),
}
