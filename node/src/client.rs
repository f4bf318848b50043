//! The client's side of the protocol.

use crate::error::{NodeError, Result};
use crate::progress::{Progress, ProgressReport};
use crate::protocol::{
    Channel, CheckpointReport, CodeRequest, Digest, Frame, Hello, MappedFile, NodeInfo, OutputChunk, Peer,
    PidNamespace, ProcessId, ProcessLook, Received, Reply, Request, RestoreReport, Translation, UnitRequest,
    UnitStatus, VERSION, Welcome,
};
use crate::record::{UnitId, UnitRecord, UnitSpec};
use crate::tree::{self, Writers};
use crate::unit::supply::Image;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::File;
use std::path::Path;

/// Who watches a long operation.
pub type Watch<'a> = &'a mut dyn FnMut(&ProgressReport);

/// Connect to an agent and say hello.
pub fn open(peer: &Peer) -> Result<Channel> {
    let mut channel = Channel::connect(&peer.name, &peer.address)?;
    channel.send(&Hello { protocol: VERSION, token: peer.token.clone() })?;
    match channel.receive()?.message {
        Welcome::Welcome => Ok(channel),
        Welcome::Refused(error) => Err(error),
    }
}

/// The receiver's answer to a transfer. If sending broke, what the receiver had to say explains more than the
/// broken connection.
pub fn answer_to_transfer(mut channel: Channel, sent: Result<()>) -> Result<Received> {
    match sent {
        Ok(()) => channel.answer(&mut |_| ()),
        Err(NodeError::Closed { peer }) => match channel.receive::<Reply>() {
            Ok(Frame { message: Reply::Error(error), .. }) => Err(error),
            _ => Err(NodeError::Closed { peer }),
        },
        Err(error) => Err(error),
    }
}

/// A node that can be asked.
#[derive(Clone, Debug)]
pub struct Node {
    /// Its name, its agent's address as seen from here, and its token.
    pub peer: Peer,
}

impl Node {
    /// A connection of its own, for one request.
    fn open(&self) -> Result<Channel> {
        open(&self.peer)
    }

    fn ask<T: DeserializeOwned>(&self, request: &Request) -> Result<T> {
        let mut channel = self.open()?;
        channel.send(request)?;
        channel.answer(&mut |_| ())
    }

    /// What it is.
    pub fn info(&self) -> Result<NodeInfo> {
        self.ask(&Request::Info)
    }

    /// Its units.
    pub fn units(&self) -> Result<Vec<UnitStatus>> {
        self.ask(&Request::List)
    }

    /// One of them.
    pub fn status(&self, unit: &UnitId) -> Result<UnitStatus> {
        self.ask(&Request::Status(unit.clone()))
    }

    /// Make a unit with an empty root.
    pub fn create(&self, spec: &UnitSpec) -> Result<()> {
        self.ask(&Request::Create(spec.clone()))
    }

    /// Fill or update a unit's root from a directory on this machine.
    pub fn send_tree(&self, unit: &UnitId, root: &Path, progress: &Progress) -> Result<Received> {
        let mut channel = self.open()?;
        channel.send(&Request::Tree(unit.clone()))?;
        let sent = tree::send(&mut channel, root, &Writers::none(), progress);
        answer_to_transfer(channel, sent)
    }

    /// Start a unit.
    pub fn start(&self, unit: &UnitId, how: &Translation) -> Result<UnitRecord> {
        self.ask(&Request::Start { unit: unit.clone(), how: how.clone() })
    }

    /// Output from `from` on, standard output and error.
    pub fn output(&self, unit: &UnitId, from: [u64; 2]) -> Result<(OutputChunk, Vec<u8>)> {
        let mut channel = self.open()?;
        channel.send(&Request::Output { unit: unit.clone(), from })?;
        let frame: Frame<OutputChunk> = channel.answer_with_body(&mut |_| ())?;
        let body = channel.read_body(frame.body)?;
        Ok((frame.message, body))
    }

    /// Send a signal.
    pub fn signal(&self, unit: &UnitId, signal: i32) -> Result<()> {
        self.ask(&Request::Signal { unit: unit.clone(), signal })
    }

    /// Remove a unit that is not running.
    pub fn remove(&self, unit: &UnitId) -> Result<()> {
        self.ask(&Request::Remove(unit.clone()))
    }

    /// A file in a unit's root.
    pub fn read_file(&self, unit: &UnitId, path: &str) -> Result<Vec<u8>> {
        let mut channel = self.open()?;
        channel.send(&Request::ReadFile { unit: unit.clone(), path: path.to_owned() })?;
        let frame: Frame<()> = channel.answer_with_body(&mut |_| ())?;
        channel.read_body(frame.body)
    }

    /// Which of these objects it does not have.
    pub fn missing_objects(&self, digests: &[Digest]) -> Result<Vec<Digest>> {
        self.ask(&Request::MissingObjects(digests.to_vec()))
    }

    /// Give it an object.
    pub fn put_object(&self, digest: &Digest, path: &Path, progress: &Progress) -> Result<()> {
        let mut file = File::open(path).map_err(NodeError::at("opening", path))?;
        let length = file.metadata().map_err(NodeError::at("opening", path))?.len();
        let mut channel = self.open()?;
        progress.enter("objects", length);
        channel.send_with_stream(&Request::PutObject(digest.clone()), length, &mut file, progress)?;
        channel.answer(&mut |_| ())
    }

    /// End its units and its agent.
    pub fn shut_down(&self) -> Result<()> {
        self.ask(&Request::Shutdown)
    }

    /// Talk to the supervisor of a unit it has.
    pub fn attach(&self, unit: &UnitId) -> Result<Tunnel> {
        self.tunnel(&Request::Attach(unit.clone()))
    }

    /// Its PID namespaces with translated processes that are no unit's, those of containers.
    pub fn namespaces(&self) -> Result<Vec<PidNamespace>> {
        self.ask(&Request::Namespaces)
    }

    /// Talk to its agent about these processes of the PID namespace with that number: [`Tunnel::look`], and what follows
    /// from it.
    pub fn attach_namespace(&self, number: u64) -> Result<Tunnel> {
        self.tunnel(&Request::AttachNamespace(number))
    }

    /// Announce a unit that comes from another node. It is removed again if the tunnel closes before
    /// [`Tunnel::go`].
    pub fn expect(&self, record: &UnitRecord) -> Result<Tunnel> {
        self.tunnel(&Request::Expect(record.clone()))
    }

    /// Connect to a TCP port of a unit that it has and that runs. Returns the socket.
    pub fn connect(&self, unit: &UnitId, port: u16) -> Result<File> {
        self.tunnel(&Request::Connect { unit: unit.clone(), port })?.channel.into_tunnel()
    }

    fn tunnel(&self, request: &Request) -> Result<Tunnel> {
        let mut channel = self.open()?;
        channel.send(request)?;
        channel.answer::<()>(&mut |_| ())?;
        Ok(Tunnel { channel })
    }
}

/// A connection to a unit's supervisor. What it holds (a frozen unit, an arriving one) it lets go when dropped.
#[derive(Debug)]
pub struct Tunnel {
    channel: Channel,
}

impl Tunnel {
    /// Over a connected socket.
    pub(crate) fn over(channel: Channel) -> Tunnel {
        Tunnel { channel }
    }

    fn ask<T: DeserializeOwned>(&mut self, request: &impl Serialize, watch: Watch<'_>) -> Result<T> {
        self.channel.send(request)?;
        self.channel.answer(watch)
    }

    pub(crate) fn start(&mut self, how: &Translation) -> Result<UnitRecord> {
        self.ask(&UnitRequest::Start(how.clone()), &mut |_| ())
    }

    /// ELF files that the unit executes.
    pub fn programs(&mut self) -> Result<Vec<String>> {
        self.ask(&UnitRequest::Programs, &mut |_| ())
    }

    /// Bring the peer's copy of the root up to date.
    pub fn send_tree(&mut self, peer: &Peer, watch: Watch<'_>) -> Result<Received> {
        self.ask(&UnitRequest::SendTree(peer.clone()), watch)
    }

    /// Freeze and dump.
    pub fn checkpoint(&mut self, lease_seconds: u64, watch: Watch<'_>) -> Result<CheckpointReport> {
        self.ask(&UnitRequest::Checkpoint { lease_seconds }, watch)
    }

    /// Send the checkpoint.
    pub fn send_images(&mut self, peer: &Peer, watch: Watch<'_>) -> Result<Received> {
        self.ask(&UnitRequest::SendImages(peer.clone()), watch)
    }

    /// Only [`Tunnel::commit`] or [`Tunnel::abort`] end the freeze from here on.
    pub fn hold(&mut self) -> Result<()> {
        self.ask(&UnitRequest::Hold, &mut |_| ())
    }

    /// End the original.
    pub fn commit(&mut self, to: &str) -> Result<()> {
        self.ask(&UnitRequest::Commit { to: to.to_owned() }, &mut |_| ())
    }

    /// Let the original go on.
    pub fn abort(&mut self) -> Result<()> {
        self.ask(&UnitRequest::Abort, &mut |_| ())
    }

    /// Recode and restore what arrived.
    pub fn restore(&mut self, how: &Translation, watch: Watch<'_>) -> Result<RestoreReport> {
        self.ask(&UnitRequest::Restore(how.clone()), watch)
    }

    /// Let the copy go on.
    pub fn go(&mut self) -> Result<UnitRecord> {
        self.ask(&UnitRequest::Go, &mut |_| ())
    }

    /// What the translated processes have wanted since this was asked last; `None` once they have ended.
    pub fn look(&mut self) -> Result<Option<Vec<ProcessLook>>> {
        self.ask(&UnitRequest::Code(CodeRequest::Look), &mut |_| ())
    }

    /// Guest memory.
    pub fn read_memory(&mut self, process: ProcessId, start: u64, end: u64) -> Result<Vec<u8>> {
        self.ask_for_body(CodeRequest::ReadMemory { process, start, end })
    }

    /// A file that a process has mapped.
    pub fn read_mapped(&mut self, process: ProcessId, file: &MappedFile) -> Result<Vec<u8>> {
        self.ask_for_body(CodeRequest::ReadMapped { process, file: file.clone() })
    }

    /// Supply a process with an object. False if there was no room for it.
    pub fn supply(&mut self, process: ProcessId, image: &Image) -> Result<bool> {
        let request = UnitRequest::Code(CodeRequest::Supply { process, header: image.header });
        self.channel.send_with_body(&request, &image.bytes)?;
        self.channel.answer(&mut |_| ())
    }

    fn ask_for_body(&mut self, request: CodeRequest) -> Result<Vec<u8>> {
        self.channel.send(&UnitRequest::Code(request))?;
        let frame: Frame<()> = self.channel.answer_with_body(&mut |_| ())?;
        self.channel.read_body(frame.body)
    }
}
