//! The agent: listens for clients and other agents, and does what they ask. It keeps nothing in memory: units are
//! their directories and supervisors, objects are files.

mod namespaces;
mod store;
mod units;

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

/// Listen at `address` for whoever knows `token`, until asked to shut down.
pub fn serve(address: &str, token: &str) -> Result<()> {
    for directory in [paths::units(), paths::objects()] {
        std::fs::create_dir_all(&directory).map_err(NodeError::at("making", &directory))?;
    }
    let failed = |why| NodeError::io(format!("listening at {address}"), why);
    let listener = TcpListener::bind(address).map_err(failed)?;
    eprintln!("ready at {}", listener.local_addr().map_err(failed)?);
    for stream in listener.incoming() {
        let Ok(stream) = stream else { continue };
        let token = token.to_owned();
        thread::spawn(move || {
            let outcome = Channel::over_tcp(stream, "the client");
            let outcome = outcome.and_then(|channel| Connection { channel }.serve(&token));
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
}

/// What becomes of a connection after a request.
enum Next {
    Request,
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
            if let Next::Tunnel(other, end) = self.request(frame.message, frame.body)? {
                relay(&self.channel.into_tunnel()?, &other, end);
                return Ok(());
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
