//! Commands that a client executes on the node, where that is allowed: in the network that units and containers see.

use crate::error::{NodeError, Result};
use crate::protocol::{Channel, ExecuteMessage, Output};
use crate::record::ExitStatus;
use crate::unit::network;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::thread;

/// Most output that is sent at a time.
const CHUNK: usize = 64 << 10;

/// Execute a command: its input comes from the client, its output goes there. Returns the other end of a connection whose end
/// is the command's, too.
pub(super) fn execute(words: Vec<String>) -> Result<File> {
    let child = start(&words)?;
    let (ours, clients) = UnixStream::pair().map_err(|why| NodeError::io("making a pair of sockets", why))?;
    let ours = Channel::over(ours.into(), "the client")?;
    ours.patience(None)?;
    thread::spawn(move || {
        // Who is not there any more need not be told.
        let _ = attend(ours, child);
    });
    Ok(File::from(OwnedFd::from(clients)))
}

/// Stay with the command until it has ended and all of its output is sent.
fn attend(mut client: Channel, mut child: Child) -> Result<()> {
    let handle = Pid::from_raw(child.id() as i32).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
    let (input, output, errors) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let mut from_client = client.duplicate()?;
    thread::spawn(move || {
        feed(&mut from_client, input.map(OwnedFd::from));
        // The client is gone; or the command has ended, and this does nothing.
        let _ = handle.map(|handle| pidfd_send_signal(&handle, Signal::KILL));
    });
    let to_client = Mutex::new(&mut client);
    thread::scope(|scope| {
        let outputs =
            [(output.map(OwnedFd::from), Output::Stdout), (errors.map(OwnedFd::from), Output::Stderr)];
        for (from, which) in outputs {
            let to_client = &to_client;
            scope.spawn(move || from.map_or(Ok(()), |from| pass_on(from, which, to_client)));
        }
    });
    let status = child.wait().map_err(|why| NodeError::io("waiting for the command", why))?;
    client.send(&ExecuteMessage::Ended(match status.signal() {
        Some(signal) => ExitStatus::Signal(signal),
        None => ExitStatus::Code(status.code().unwrap_or(1)),
    }))
}

fn start(words: &[String]) -> Result<Child> {
    let (program, arguments) = words.split_first().ok_or_else(|| NodeError::protocol("no command"))?;
    let mut command = Command::new(program);
    command.args(arguments).current_dir("/");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    network::inside(move || command.spawn()).map_err(|why| NodeError::io(format!("executing {program}"), why))
}

/// Give the command what the client sends; returns when the client is gone.
fn feed(client: &mut Channel, input: Option<OwnedFd>) {
    let mut input = input.map(File::from);
    while let Ok(Some(frame)) = client.receive_or_end::<ExecuteMessage>() {
        let Ok(bytes) = client.read_body(frame.body) else { return };
        let wrote = input.as_mut().map(|input| input.write_all(&bytes));
        if bytes.is_empty() || matches!(wrote, Some(Err(_))) {
            input = None;
        }
    }
}

/// Send one output until it ends.
fn pass_on(from: OwnedFd, which: Output, client: &Mutex<&mut Channel>) -> Result<()> {
    let mut from = File::from(from);
    let mut chunk = vec![0; CHUNK];
    loop {
        let got = from.read(&mut chunk).map_err(|why| NodeError::io("reading output", why))?;
        if got == 0 {
            return Ok(());
        }
        let mut client = client.lock().map_err(|_| NodeError::protocol("a thread died"))?;
        client.send_with_body(&ExecuteMessage::Output(which), &chunk[..got])?;
    }
}
