//! The client's side of the protocol.

use crate::container::MoveId;
use crate::error::{NodeError, Result};
use crate::progress::{Progress, ProgressReport};
use crate::protocol::{
    ArriveReport, ArriveRequest, Channel, CheckpointReport, CodeRequest, Container, DepartReport,
    DepartRequest, Digest, ExecuteMessage, Frame, Hello, MappedFile, NodeInfo, Outcome, Output, OutputChunk,
    Peer, PidNamespace, ProcessId, ProcessLook, Received, Reply, Request, RestoreReport, Survey, Translation,
    UnitRequest, UnitStatus, VERSION, Welcome,
};
use crate::record::{ExitStatus, UnitId, UnitRecord, UnitSpec};
use crate::tree::{self, Writers};
use crate::trust::{Authority, Identity, Join, JoinToken};
use crate::unit::supply::Image;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::thread;

/// Who watches a long operation.
pub type Watch<'a> = &'a mut dyn FnMut(&ProgressReport);

/// Connect to an agent as `identity` and say hello.
pub fn open(peer: &Peer, identity: &Identity) -> Result<Channel> {
    hello(Channel::connect(peer, identity.client()?)?)
}

fn hello(mut channel: Channel) -> Result<Channel> {
    channel.send(&Hello { protocol: VERSION })?;
    match channel.receive()?.message {
        Welcome::Welcome => Ok(channel),
        Welcome::Refused(error) => Err(error),
    }
}

/// Have the node that waits at the peer's address join `authority` under the peer's name. It shows the certificate of
/// which `token` has the fingerprint, and so a key that is its own; that is what is certified.
pub fn join(peer: &Peer, token: &JoinToken, authority: &Authority) -> Result<()> {
    let mut channel = hello(Channel::connect(peer, token.client()?)?)?;
    let shown = channel.certificate().ok_or_else(|| NodeError::protocol("a node without a certificate"))?;
    let certificate = authority.certify(&peer.name, shown)?;
    let authority = authority.certificate().to_owned();
    channel.send(&Join { token: token.clone(), certificate, authority })?;
    channel.answer(&mut |_| ())
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
    /// Its name, and its agent's address as seen from here.
    pub peer: Peer,
    /// Who asks.
    pub identity: Identity,
}

impl Node {
    /// A connection of its own, for one request.
    fn open(&self) -> Result<Channel> {
        open(&self.peer, &self.identity)
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
        let entries = tree::list(root)?;
        let mut channel = self.open()?;
        channel.send(&Request::Tree(unit.clone()))?;
        let sent = tree::send(&mut channel, root, entries, &Writers::none(), progress);
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

    /// The containers of its engine.
    pub fn containers(&self) -> Result<Vec<Container>> {
        self.ask(&Request::Containers)
    }

    /// What would be in the way of a container of another node.
    pub fn survey(&self, container: &Container) -> Result<Survey> {
        self.ask(&Request::Survey(Box::new(container.clone())))
    }

    /// Begin a container's move from this node. Returns the container, too.
    pub fn depart(&self, of: &MoveId, container: &str) -> Result<(Leaving, Container)> {
        let mut channel = self.open()?;
        channel.send(&Request::Depart { of: of.clone(), container: container.to_owned() })?;
        let container = channel.answer(&mut |_| ())?;
        Ok((Leaving { channel }, container))
    }

    /// Begin a container's move to this node.
    pub fn arrive(&self, of: &MoveId, container: &Container) -> Result<Coming> {
        let mut channel = self.open()?;
        let container = Box::new(container.clone());
        channel.send(&Request::Arrive { of: of.clone(), container })?;
        channel.answer::<()>(&mut |_| ())?;
        Ok(Coming { channel })
    }

    /// Let a container go on there that is held for a node which is dead.
    pub fn resume(&self, container: &str) -> Result<()> {
        self.ask(&Request::Resume(container.to_owned()))
    }

    /// What has become of a move to this node.
    pub fn outcome(&self, of: &MoveId) -> Result<Outcome> {
        self.ask(&Request::Outcome(of.clone()))
    }

    /// Execute a command there, with this input; it is told its output. Returns how it ended.
    pub fn execute(
        &self,
        words: &[String],
        input: impl Read + Send + 'static,
        mut output: impl FnMut(Output, &[u8]),
    ) -> Result<ExitStatus> {
        let mut channel = self.open()?;
        channel.send(&Request::Execute(words.to_vec()))?;
        channel.answer::<()>(&mut |_| ())?;
        let mut channel = Channel::over(channel.into_tunnel()?.into(), &self.peer.name)?;
        channel.patience(None)?;
        let mut to_node = channel.duplicate()?;
        // Not waited for: what it reads from may have no end. It cannot send once the connection is over.
        thread::spawn(move || feed(&mut to_node, input));
        loop {
            let frame = channel.receive::<ExecuteMessage>()?;
            let body = channel.read_body(frame.body)?;
            match frame.message {
                ExecuteMessage::Output(which) => output(which, &body),
                ExecuteMessage::Ended(status) => return Ok(status),
                ExecuteMessage::Input => return Err(NodeError::protocol("input from a node")),
            }
        }
    }

    /// Have it leave its authority. Returns the token with which it can join again.
    pub fn leave(&self) -> Result<JoinToken> {
        self.ask(&Request::Leave)
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

/// A connection to the node that a container leaves.
#[derive(Debug)]
pub struct Leaving {
    channel: Channel,
}

impl Leaving {
    fn ask<T: DeserializeOwned>(&mut self, request: &DepartRequest, watch: Watch<'_>) -> Result<T> {
        self.channel.send(request)?;
        self.channel.answer(watch)
    }

    /// Send the image.
    pub fn send_image(&mut self, peer: &Peer, watch: Watch<'_>) -> Result<Received> {
        self.ask(&DepartRequest::SendImage(peer.clone()), watch)
    }

    /// Stop and checkpoint it.
    pub fn checkpoint(&mut self, volumes: bool, watch: Watch<'_>) -> Result<DepartReport> {
        self.ask(&DepartRequest::Checkpoint { volumes }, watch)
    }

    /// Send the checkpoint.
    pub fn send_checkpoint(&mut self, peer: &Peer, watch: Watch<'_>) -> Result<Received> {
        self.ask(&DepartRequest::SendCheckpoint(peer.clone()), watch)
    }

    /// Let the new node decide from here on.
    pub fn hold(&mut self, peer: &Peer) -> Result<()> {
        self.ask(&DepartRequest::Hold(peer.clone()), &mut |_| ())
    }

    /// It goes on there.
    pub fn commit(&mut self, watch: Watch<'_>) -> Result<()> {
        self.ask(&DepartRequest::Commit, watch)
    }

    /// It goes on here.
    pub fn abort(&mut self, watch: Watch<'_>) -> Result<()> {
        self.ask(&DepartRequest::Abort, watch)
    }
}

/// A connection to the node that a container comes to.
#[derive(Debug)]
pub struct Coming {
    channel: Channel,
}

impl Coming {
    fn ask<T: DeserializeOwned>(&mut self, request: &ArriveRequest, watch: Watch<'_>) -> Result<T> {
        self.channel.send(request)?;
        self.channel.answer(watch)
    }

    /// Take in the image that was sent.
    pub fn load_image(&mut self, watch: Watch<'_>) -> Result<()> {
        self.ask(&ArriveRequest::LoadImage, watch)
    }

    /// Restore it, up to the gate.
    pub fn restore(&mut self, volumes: bool, keep_address: bool, watch: Watch<'_>) -> Result<ArriveReport> {
        self.ask(&ArriveRequest::Restore { volumes, keep_address }, watch)
    }

    /// Let it go on.
    pub fn go(&mut self, watch: Watch<'_>) -> Result<Container> {
        self.ask(&ArriveRequest::Go, watch)
    }
}

/// Send input until it ends or nobody wants it.
fn feed(node: &mut Channel, mut input: impl Read) {
    let mut chunk = vec![0; 64 << 10];
    loop {
        let got = input.read(&mut chunk).unwrap_or(0);
        if node.send_with_body(&ExecuteMessage::Input, &chunk[..got]).is_err() || got == 0 {
            return;
        }
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
