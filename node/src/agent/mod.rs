//! The agent: listens for clients and other agents, and does what they ask. It keeps nothing in memory: units are
//! their directories and supervisors, objects are files.

mod admission;
mod execute;
mod namespaces;
mod store;
mod units;

pub use admission::print_token;

use crate::boot::AgentArgs;
use crate::container::arrival::{Arrival, unload};
use crate::container::departure::Departure;
use crate::container::survey::survey;
use crate::container::{engine, outcome, recover, resume};
use crate::cpu::Cpu;
use crate::error::{NodeError, Result};
use crate::progress::Progress;
use crate::protocol::{Channel, NodeInfo, Received, Reply, Request};
use crate::record::Isa;
use crate::relay::End;
use crate::serve::{answer, answer_long};
use crate::trust::{Guest, Membership};
use crate::unit::paths;
use crate::unit::process::present_runtime;
use admission::{Open, admit};
use std::fs::File;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

/// Time for the answer to a last request to be heard.
const LAST_ANSWER: Duration = Duration::from_secs(1);

/// Listen until asked to shut down: for an operator with the node's token, if it has joined no authority
/// yet, and else for whom that vouches for.
pub fn serve(args: &AgentArgs) -> Result<()> {
    let (address, may_execute) = (&args.listen, args.allow_execute);
    for directory in [paths::units(), paths::objects()] {
        std::fs::create_dir_all(&directory).map_err(NodeError::at("making", &directory))?;
    }
    recover();
    let membership = Membership::begin()?;
    let failed = |why| NodeError::io(format!("listening at {address}"), why);
    let listener = TcpListener::bind(address).map_err(failed)?;
    eprintln!("ready at {}", listener.local_addr().map_err(failed)?);
    admission::announce(&membership)?;
    for socket in listener.incoming() {
        let Ok(socket) = socket else { continue };
        thread::spawn(move || {
            // A client may leave whenever it likes.
            if let Err(error) = converse(socket, may_execute)
                && !matches!(error, NodeError::Closed { .. })
            {
                eprintln!("connection: {error}");
            }
        });
    }
    Ok(())
}

fn converse(socket: TcpStream, may_execute: bool) -> Result<()> {
    let _open = Open::new(&socket)?;
    match admit(socket)? {
        Some((channel, guest)) => Connection { channel, guest, may_execute }.serve(),
        None => Ok(()),
    }
}

struct Connection {
    channel: Channel,
    guest: Guest,
    /// Whether clients may execute any command.
    may_execute: bool,
}

/// What becomes of a connection after a request.
enum Next {
    Request,
    /// It is over.
    End,
    /// All that comes goes there, and back.
    Tunnel(File, End),
}

impl Connection {
    fn serve(mut self) -> Result<()> {
        loop {
            self.channel.wait_for_frames(None)?;
            let Some(frame) = self.channel.receive_or_end::<Request>()? else { return Ok(()) };
            self.channel.wait_for_frames(Some(crate::protocol::SILENCE))?;
            if self.guest == Guest::Node && !frame.message.is_of_nodes() {
                return self.channel.send(&Reply::Error(NodeError::Forbidden));
            }
            match self.request(frame.message, frame.body)? {
                Next::Request => {}
                Next::End => return Ok(()),
                Next::Tunnel(other, end) => return self.channel.relay(&other, end),
            }
        }
    }

    fn request(&mut self, request: Request, body: u64) -> Result<Next> {
        let client = &mut self.channel;
        match request {
            Request::Info => answer(client, info())?,
            Request::List => answer(client, units::list())?,
            Request::Status(unit) => answer(client, units::status(&unit))?,
            Request::Create(spec) => answer(client, units::create(&spec))?,
            Request::Tree(unit) => {
                let received = units::receive_tree(client, &unit);
                return self.received(received);
            }
            Request::Images(unit) => {
                let received = units::receive_images(client, &unit);
                return self.received(received);
            }
            Request::Start { unit, how } => answer_long(client, |_| units::start(&unit, &how))?,
            Request::Expect(record) => return self.supervisor(units::expect(record)),
            Request::Attach(unit) => return self.supervisor(units::attach(&unit)),
            Request::Connect { unit, port } => {
                return self.tunnel(units::connect(&unit, port), End::OfOneWay);
            }
            Request::Namespaces => answer(client, namespaces::list())?,
            Request::AttachNamespace(number) => namespaces::attach(client, number)?,
            Request::Output { unit, from } => match units::output(&unit, from) {
                Ok((chunk, bytes)) => client.send_with_body(&Reply::done(&chunk)?, &bytes)?,
                Err(error) => client.send(&Reply::Error(error))?,
            },
            Request::Signal { unit, signal } => answer(client, units::signal(&unit, signal))?,
            Request::Remove(unit) => answer_long(client, |_| units::remove(&unit))?,
            Request::ReadFile { unit, path } => match units::open_file(&unit, &path) {
                Ok((mut file, length)) => {
                    let reply = Reply::done(&())?;
                    client.send_with_stream(&reply, length, &mut file, &Progress::default())?;
                }
                Err(error) => client.send(&Reply::Error(error))?,
            },
            // An engine answers when it has done what it is at.
            Request::Containers => answer_long(client, |_| engine::list())?,
            Request::Survey(container) => answer_long(client, |_| survey(&container))?,
            Request::Depart { of, container } => match Departure::of(of, &container) {
                Ok(departure) => {
                    answer(client, Ok(departure.container()))?;
                    departure.serve(client)?;
                    return Ok(Next::End);
                }
                Err(error) => client.send(&Reply::Error(error))?,
            },
            Request::Arrive { of, container } => match Arrival::of(of, &container) {
                Ok(arrival) => {
                    answer(client, Ok(()))?;
                    arrival.serve(client)?;
                    return Ok(Next::End);
                }
                Err(error) => client.send(&Reply::Error(error))?,
            },
            Request::Cargo(cargo) => {
                let unloaded = unload(client, &cargo, body);
                answer(client, unloaded)?;
            }
            Request::Resume(container) => answer(client, resume(&container))?,
            Request::Outcome(of) => answer(client, Ok(outcome(&of)))?,
            Request::Execute(words) => {
                let tunnel = match self.may_execute {
                    true => execute::execute(words),
                    false => Err(NodeError::NotAllowed),
                };
                return self.tunnel(tunnel, End::OfBoth);
            }
            Request::MissingObjects(digests) => answer(client, store::missing(digests))?,
            Request::PutObject(digest) => {
                let put = store::put(client, &digest, body);
                answer(client, put)?;
            }
            Request::Leave => {
                answer(client, Membership::leave())?;
                self.hear_end();
                admission::close_all();
                admission::announce(&Membership::load()?)?;
            }
            Request::Shutdown => {
                answer(client, units::end_all())?;
                self.hear_end();
                std::process::exit(0);
            }
        }
        Ok(Next::Request)
    }

    /// Answer a transfer. Of one that failed more may be under way, which is no request.
    fn received(&mut self, received: Result<Received>) -> Result<Next> {
        let next = if received.is_ok() { Next::Request } else { Next::End };
        answer(&mut self.channel, received)?;
        Ok(next)
    }

    /// Wait until the client has heard the answer, and is gone.
    fn hear_end(&mut self) {
        let _ = self.channel.wait_for_frames(Some(LAST_ANSWER));
        let _ = self.channel.receive_or_end::<Request>();
    }

    /// The supervisor holds for the client what it holds only as long as both live.
    fn supervisor(&mut self, supervisor: Result<Channel>) -> Result<Next> {
        self.tunnel(supervisor.and_then(Channel::into_tunnel), End::OfBoth)
    }

    fn tunnel(&mut self, other: Result<File>, end: End) -> Result<Next> {
        match other {
            Ok(other) => {
                answer(&mut self.channel, Ok(()))?;
                Ok(Next::Tunnel(other, end))
            }
            Err(error) => {
                self.channel.send(&Reply::Error(error))?;
                Ok(Next::Request)
            }
        }
    }
}

fn info() -> Result<NodeInfo> {
    let disk = rustix::fs::statvfs(Path::new(paths::STATE));
    let disk = disk.map_err(NodeError::at("looking at", Path::new(paths::STATE)))?;
    Ok(NodeInfo {
        isa: Isa::here()?,
        cpu: Cpu::here()?,
        kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
        criu: criu_version(),
        runtime: present_runtime().is_ok(),
        disk_free: disk.f_bavail * disk.f_frsize,
        processors: thread::available_parallelism().map_or(1, usize::from),
    })
}

fn criu_version() -> String {
    let output = Command::new("criu").arg("--version").stdin(Stdio::null()).stderr(Stdio::null()).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    let version = text.lines().find_map(|line| line.strip_prefix("Version:")).unwrap_or("none");
    version.trim().to_owned()
}
