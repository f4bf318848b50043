//! Messages between the OCI runtime and CRIU, and what is done when some of them pass.

use super::container::Container;
use super::control_groups;
use super::gate::{self, Through};
use super::rpc::{NetworkLock, Options, Request, Response, Type};
use super::socket::{Message, Socket};
use crate::delegate;
use crate::error::{OciError, Result};
use rustix::event::{PollFd, PollFlags, poll};
use std::fs::{self, File};
use std::io::Write;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::path::PathBuf;
use std::process::{Child, ExitCode};
use std::thread;
use std::time::{Duration, Instant};
use tranship_recode::RecodeError;

/// What CRIU locks networks with by default.
const IPTABLES: &str = "iptables-restore";

/// How often a dump that was made at a bad moment is made again.
const REPETITIONS: u32 = 20;
/// Until then.
const MOMENT: Duration = Duration::from_millis(1);

/// The two sides and what is under way.
struct Relay {
    client: Socket,
    criu: Socket,
    /// CRIU, if it is this process's child.
    child: Option<Child>,
    /// Whether it wants to hear of what CRIU is at. crun does not; here it has to be heard always.
    listens: bool,
    /// What CRIU's process has the in-process runtime open as.
    runtime: Option<RawFd>,
    /// The process that asks.
    client_pid: u32,
    /// What descriptors in the last request stand for, for CRIU to find them here.
    lent: Vec<OwnedFd>,
    container: Option<Container>,
    /// The gate that a restored container has gone through, until CRIU is done with it.
    through: Option<Through>,
    /// The dump that is asked for, as CRIU gets it, and how often it is to be tried yet.
    dump: Option<(Vec<u8>, u32)>,
    /// It was made at a bad moment.
    is_to_repeat: bool,
    /// Where CRIU and its client look for what went wrong.
    log: Option<PathBuf>,
    /// How long what was done here took, to be written there when CRIU is done: it makes the file anew when it begins.
    times: Vec<String>,
    /// All of it.
    spent: Duration,
}

/// The first thing that the client asks for; `None` if it is all that it asks for, and nothing that we have a part in.
pub(super) fn first(client: &Socket) -> Result<Option<Type>> {
    let request: Request = parse(&client.peek()?)?;
    let is_ours = matches!(request.type_(), Type::DUMP | Type::RESTORE) || request.keep_open();
    Ok(is_ours.then(|| request.type_()))
}

/// Relay between `client` and a child of this process. Its exit code is the child's.
pub(super) fn run(client: Socket) -> Result<ExitCode> {
    let (criu, end) = Socket::pair()?;
    let child = super::start(end)?;
    let mut relay = Relay::new(client, criu, Some(child))?;
    relay.run()?;
    let Relay { criu, child, .. } = relay;
    // It ends when nobody listens to it any more.
    drop(criu);
    let status = child.map(|mut child| child.wait()).transpose();
    let status = status.map_err(|why| OciError::io("waiting for CRIU", why))?;
    Ok(status.and_then(|status| status.code()).map_or(ExitCode::FAILURE, |code| ExitCode::from(code as u8)))
}

/// Relay between `client` and the process that gets its end from `to_criu`, until one of them has closed. Returns this
/// process's exit code. `runtime` is the descriptor by which that process has the in-process runtime.
pub(super) fn run_apart(client: Socket, to_criu: &Socket, runtime: Option<RawFd>) -> i32 {
    // The socket is this process's, so that CRIU looks for descriptors here.
    let begun = Socket::pair().and_then(|(criu, end)| {
        to_criu.send(b"yours", Some(end.as_fd()))?;
        Ok(Relay { runtime, ..Relay::new(client, criu, None)? })
    });
    match begun.and_then(|mut relay| relay.run()) {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("tranship-runc: {error}");
            1
        }
    }
}

fn parse<M: protobuf::Message>(bytes: &[u8]) -> Result<M> {
    M::parse_from_bytes(bytes).map_err(malformed)
}

fn encode(message: &impl protobuf::Message) -> Result<Vec<u8>> {
    message.write_to_bytes().map_err(malformed)
}

fn malformed(why: protobuf::Error) -> OciError {
    OciError::Protocol(why.to_string())
}

impl Relay {
    fn new(client: Socket, criu: Socket, child: Option<Child>) -> Result<Relay> {
        Ok(Relay {
            client_pid: client.peer()?,
            client,
            criu,
            child,
            listens: false,
            runtime: None,
            lent: Vec::new(),
            container: None,
            through: None,
            dump: None,
            is_to_repeat: false,
            log: None,
            times: Vec::new(),
            spent: Duration::ZERO,
        })
    }

    fn run(&mut self) -> Result<()> {
        let outcome = self.relay();
        // Whoever closed, and whatever failed: nothing stays parked.
        if let Some(container) = self.container.take() {
            container.release();
        }
        outcome
    }

    fn relay(&mut self) -> Result<()> {
        loop {
            let mut ends = [PollFd::new(&self.client, PollFlags::IN), PollFd::new(&self.criu, PollFlags::IN)];
            match poll(&mut ends, None) {
                Err(rustix::io::Errno::INTR) => continue,
                ready => ready.map_err(|why| OciError::io("waiting for CRIU and its client", why))?,
            };
            let ready = ends.each_ref().map(|end| !end.revents().is_empty());
            if ready[0] {
                let Some(message) = self.client.receive()? else { return Ok(()) };
                self.request(message)?;
            }
            if ready[1] {
                let Some(message) = self.criu.receive()? else { return Ok(()) };
                self.response(message)?;
            }
        }
    }

    /// From the client to CRIU.
    fn request(&mut self, message: Message) -> Result<()> {
        let mut request: Request = parse(&message.bytes)?;
        let kind = request.type_();
        if let Some(options) = request.opts.as_mut() {
            self.listens = options.notify_scripts();
            options.set_notify_scripts(true);
            let prepared = self.lend(options).and_then(|()| self.prepare(kind, options));
            if let Err(error) = prepared {
                self.write_log(&complaint(&error));
                return self.client.send(&encode(&refusal(kind, &error))?, None);
            }
        }
        let fd = message.fd.as_ref().map(AsFd::as_fd);
        let bytes = encode(&request)?;
        self.criu.send(&bytes, fd)?;
        if kind == Type::DUMP {
            self.dump = Some((bytes, REPETITIONS));
        }
        Ok(())
    }

    /// From CRIU to the client.
    fn response(&mut self, message: Message) -> Result<()> {
        let response: Response = parse(&message.bytes)?;
        if response.type_() == Type::NOTIFY && response.notify.script() == "post-restore" {
            match gate::pass(response.notify.pid(), self.spent) {
                Ok(through) => self.through = through,
                Err(error) => return self.refuse(&error),
            }
        }
        if response.type_() == Type::NOTIFY && response.notify.script() == "post-dump" {
            let doing = self.container.as_ref().map_or("passed on", Container::doing);
            let dumped =
                self.timed(doing, |relay| relay.container.as_mut().map_or(Ok(()), Container::dumped));
            self.is_to_repeat = matches!(&dumped, Err(OciError::Recode(RecodeError::Passing { .. })));
            if self.is_to_repeat && self.dump.as_ref().is_none_or(|(_, left)| *left == 0) {
                // Whoever stays on machines of the same kind has no need of a better moment.
                self.is_to_repeat = false;
            } else if let Err(error) = dumped {
                return self.refuse(&error);
            }
        }
        if response.type_() == Type::DUMP && std::mem::take(&mut self.is_to_repeat) {
            return self.repeat();
        }
        if response.type_() != Type::NOTIFY {
            self.through = None;
        }
        if response.type_() == Type::NOTIFY && !self.listens {
            return self.answer(true);
        }
        let mut outdated = None;
        if response.type_() != Type::NOTIFY
            && let Some(container) = self.container.take()
        {
            outdated = container.finish(response.success());
            self.write_log(&self.times.concat());
        }
        self.client.send(&message.bytes, message.fd.as_ref().map(AsFd::as_fd))?;
        if let Some(directory) = outdated {
            // The client need not wait for that; and what is left is in the way of nothing.
            let _ = fs::remove_dir_all(directory);
        }
        Ok(())
    }

    /// Tell CRIU that what it is about to do has failed.
    fn refuse(&self, error: &OciError) -> Result<()> {
        self.write_log(&complaint(error));
        self.answer(false)
    }

    /// Tell CRIU whether to go on with what it has said that it is at.
    fn answer(&self, goes_on: bool) -> Result<()> {
        let mut verdict = Request::new();
        verdict.set_type(Type::NOTIFY);
        verdict.set_notify_success(goes_on);
        self.criu.send(&encode(&verdict)?, None)
    }

    /// Have another CRIU dump once more, a moment later.
    fn repeat(&mut self) -> Result<()> {
        let Some((request, left)) = self.dump.as_mut() else { return Ok(()) };
        *left -= 1;
        thread::sleep(MOMENT);
        if let Some(container) = &self.container {
            container.remove_images()?;
        }
        let (criu, end) = Socket::pair()?;
        let before = self.child.replace(super::start(end)?);
        criu.send(request, None)?;
        self.criu = criu;
        if let Some(mut before) = before {
            // It has said that it has failed, and ends.
            let _ = before.wait();
        }
        Ok(())
    }

    /// Get the client's descriptors that `options` name, under numbers of this process.
    fn lend(&mut self, options: &mut Options) -> Result<()> {
        self.lent.clear();
        let mut lend = |number: &mut Option<i32>| {
            let Some(number) = number.as_mut().filter(|number| **number >= 0) else { return Ok(()) };
            let fd = borrowed(self.client_pid, *number)?;
            *number = fd.as_raw_fd();
            self.lent.push(fd);
            Ok::<(), OciError>(())
        };
        lend(&mut options.images_dir_fd)?;
        lend(&mut options.work_dir_fd)?;
        lend(&mut options.status_fd)?;
        lend(&mut options.pidfd_store_sk)?;
        options.ps.as_mut().map_or(Ok(()), |ps| lend(&mut ps.fd))
    }

    /// Do what has to be done before CRIU does `kind`.
    fn prepare(&mut self, kind: Type, options: &mut Options) -> Result<()> {
        let Some(images) = images(options)? else { return Ok(()) };
        let logs = log_directory(options)?.unwrap_or_else(|| images.clone());
        match kind {
            Type::DUMP => {
                self.log = Some(logs.join(log_name(options, "dump.log")));
                choose_network_lock(options);
                self.container = self.timed("parked", |_| Container::to_dump(options, images))?;
                self.container.as_ref().map_or(Ok(()), Container::remove_images)?;
            }
            Type::RESTORE => {
                self.log = Some(logs.join(log_name(options, "restore.log")));
                control_groups::choose(options, &images)?;
                if std::env::var_os(delegate::TCP_CLOSE).is_some() {
                    options.set_tcp_close(true);
                }
                self.container =
                    self.timed("recoded", |relay| Container::to_restore(options, &images, relay.runtime))?;
                // In the place of the client's directory.
                if let Some(directory) = self.container.as_ref().map(Container::images) {
                    let directory = File::open(directory).map_err(OciError::at("opening", directory))?;
                    options.set_images_dir_fd(directory.as_raw_fd());
                    self.lent.push(directory.into());
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Do it, and note how long it took.
    fn timed<T>(&mut self, what: &str, work: impl FnOnce(&mut Relay) -> T) -> T {
        let start = Instant::now();
        let done = work(self);
        let took = start.elapsed();
        self.spent += took;
        self.times.push(format!("tranship: {what} in {:.3} ms\n", took.as_secs_f64() * 1e3));
        done
    }

    fn write_log(&self, text: &str) {
        let opened = self.log.as_ref().map(|path| File::options().append(true).create(true).open(path));
        if let Some(Ok(mut log)) = opened {
            // What has failed is known without the log, too.
            let _ = log.write_all(text.as_bytes());
        }
    }
}

/// Runtimes quote CRIU's log when it has failed, the lines with this word.
fn complaint(error: &OciError) -> String {
    format!("Error (tranship): {error}\n")
}

fn refusal(kind: Type, error: &OciError) -> Response {
    let mut response = Response::new();
    response.set_type(kind);
    response.set_success(false);
    response.set_cr_errno(libc::EINVAL);
    response.set_cr_errmsg(error.to_string());
    response
}

/// A descriptor of process `pid`. CRIU takes them from there by their path, too.
fn borrowed(pid: u32, number: i32) -> Result<OwnedFd> {
    let failed =
        |why: rustix::io::Errno| OciError::io(format!("taking descriptor {number} of process {pid}"), why);
    let process =
        rustix::process::Pid::from_raw(pid as i32).ok_or_else(|| failed(rustix::io::Errno::SRCH))?;
    let process =
        rustix::process::pidfd_open(process, rustix::process::PidfdFlags::empty()).map_err(failed)?;
    rustix::process::pidfd_getfd(process, number, rustix::process::PidfdGetfdFlags::empty()).map_err(failed)
}

/// CRIU's default is iptables; small nodes may have nftables alone.
fn choose_network_lock(options: &mut Options) {
    if options.network_lock.is_none() && delegate::find(IPTABLES).is_none() {
        options.set_network_lock(NetworkLock::NFTABLES);
    }
}

/// The directory of images that a request is about.
fn images(options: &Options) -> Result<Option<PathBuf>> {
    match options.images_dir_fd() {
        -1 => Ok(options.images_dir.as_ref().map(PathBuf::from)),
        fd => directory_of(fd).map(Some),
    }
}

/// The directory that CRIU writes its log to, if it is another one.
fn log_directory(options: &Options) -> Result<Option<PathBuf>> {
    options.work_dir_fd.map(directory_of).transpose()
}

fn log_name<'o>(options: &'o Options, default: &'o str) -> &'o str {
    options.log_file.as_deref().unwrap_or(default)
}

fn directory_of(fd: i32) -> Result<PathBuf> {
    let link = PathBuf::from(format!("/proc/self/fd/{fd}"));
    std::fs::read_link(&link).map_err(OciError::at("reading", &link))
}
