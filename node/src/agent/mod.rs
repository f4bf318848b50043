//! The agent: listens for clients and other agents, and does what they ask. It keeps nothing in memory: units are
//! their directories and supervisors, objects are files.

mod execute;
mod store;
mod units;

use crate::boot::AgentArgs;
use crate::container::arrival::{Arrival, unload};
use crate::container::departure::Departure;
use crate::container::survey::survey;
use crate::container::{engine, outcome, recover};
use crate::cpu::Cpu;
use crate::error::{NodeError, Result};
use crate::progress::Progress;
use crate::protocol::{Channel, Hello, NodeInfo, Reply, Request, VERSION, Welcome};
use crate::record::Isa;
use crate::relay::{End, relay};
use crate::serve::{answer, answer_long};
use crate::unit::paths;
use crate::unit::process::present_runtime;
use std::fs::File;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

/// Time for a client to say hello.
const HELLO: Duration = Duration::from_secs(5);

/// Listen for whoever knows the token, until asked to shut down.
pub fn serve(args: &AgentArgs) -> Result<()> {
    let address = &args.listen;
    for directory in [paths::units(), paths::objects()] {
        std::fs::create_dir_all(&directory).map_err(NodeError::at("making", &directory))?;
    }
    recover();
    let failed = |why| NodeError::io(format!("listening at {address}"), why);
    let listener = TcpListener::bind(address).map_err(failed)?;
    eprintln!("ready at {}", listener.local_addr().map_err(failed)?);
    for stream in listener.incoming() {
        let Ok(stream) = stream else { continue };
        let args = args.clone();
        thread::spawn(move || {
            let outcome = Channel::over_tcp(stream, "the client");
            let outcome = outcome.and_then(|channel| {
                Connection { channel, may_execute: args.allow_execute }.serve(&args.token)
            });
            // A client may leave whenever it likes.
            if let Err(error) = outcome
                && !matches!(error, NodeError::Closed { .. })
            {
                eprintln!("connection: {error}");
            }
        });
    }
    Ok(())
}

struct Connection {
    channel: Channel,
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
    fn serve(mut self, token: &str) -> Result<()> {
        self.channel.wait_for_frames(Some(HELLO))?;
        let hello: Hello = self.channel.receive()?.message;
        if let Err(error) = admit(&hello, token) {
            return self.channel.send(&Welcome::Refused(error));
        }
        self.channel.send(&Welcome::Welcome)?;
        loop {
            self.channel.wait_for_frames(None)?;
            let Some(frame) = self.channel.receive_or_end::<Request>()? else { return Ok(()) };
            self.channel.wait_for_frames(Some(crate::protocol::SILENCE))?;
            match self.request(frame.message, frame.body)? {
                Next::Request => {}
                Next::End => return Ok(()),
                Next::Tunnel(other, end) => {
                    relay(&self.channel.into_tunnel()?, &other, end);
                    return Ok(());
                }
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
                answer(client, received)?;
            }
            Request::Images(unit) => {
                let received = units::receive_images(client, &unit);
                answer(client, received)?;
            }
            Request::Start { unit, how } => answer_long(client, |_| units::start(&unit, &how))?,
            Request::Expect(record) => return self.supervisor(units::expect(record)),
            Request::Attach(unit) => return self.supervisor(units::attach(&unit)),
            Request::Connect { unit, port } => {
                return self.tunnel(units::connect(&unit, port), End::OfOneWay);
            }
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
            Request::Outcome(of) => answer(client, Ok(outcome(&of)))?,
            Request::Execute(words) => match self.may_execute {
                true => execute::execute(client, &words)?,
                false => client.send(&Reply::Error(NodeError::NotAllowed))?,
            },
            Request::MissingObjects(digests) => answer(client, store::missing(digests))?,
            Request::PutObject(digest) => {
                let put = store::put(client, &digest, body);
                answer(client, put)?;
            }
            Request::Shutdown => {
                answer(client, units::end_all())?;
                std::process::exit(0);
            }
        }
        Ok(Next::Request)
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

fn admit(hello: &Hello, token: &str) -> Result<()> {
    if hello.protocol != VERSION {
        return Err(NodeError::Version { theirs: hello.protocol, ours: VERSION });
    }
    if hello.token != token {
        return Err(NodeError::Token);
    }
    Ok(())
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
