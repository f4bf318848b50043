//! What the agent does for units: everything that needs only their directories, and finding or starting their
//! supervisors for the rest.

use crate::client::Tunnel;
use crate::error::{NodeError, Result};
use crate::protocol::{Channel, OpenFile, Output, OutputChunk, Received, Translation, UnitStatus};
use crate::record::{Isa, UnitId, UnitRecord, UnitSpec, UnitState};
use crate::tree;
use crate::unit::paths::{UnitDir, units};
use crate::unit::process::{Watch, open_in_root};
use crate::unit::{images, network, proc, supervisor};
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How long [`output`] waits for more.
const OUTPUT_WAIT: Duration = Duration::from_millis(500);
/// How often it looks.
const OUTPUT_POLL: Duration = Duration::from_millis(10);
/// Most output that is sent at a time, per stream.
const OUTPUT_CHUNK: u64 = 1 << 20;
/// Time for a supervisor to start or end.
const SUPERVISOR: Duration = Duration::from_secs(10);

/// The unit's directory and record, its state as it is: a supervisor that died cannot say so itself.
fn load(id: &UnitId) -> Result<(UnitDir, UnitRecord)> {
    let directory = UnitDir::of(id);
    if !directory.path().exists() {
        return Err(NodeError::NoUnit { unit: id.clone() });
    }
    let mut record = directory.load()?;
    let supervised = record.state.pid().is_some() || record.state == UnitState::Incoming;
    if supervised && !supervisor::lives(&directory) {
        // It may have written its last word between our two looks.
        record = directory.load()?;
        if record.state.pid().is_some() || record.state == UnitState::Incoming {
            record.state = UnitState::Lost;
        }
    }
    Ok((directory, record))
}

fn ids() -> Result<Vec<UnitId>> {
    let entries = fs::read_dir(units()).map_err(NodeError::at("reading", &units()))?;
    let mut ids: Vec<UnitId> =
        entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
    ids.sort();
    Ok(ids)
}

pub(super) fn list() -> Result<Vec<UnitStatus>> {
    // One that is being made or removed right now is skipped.
    Ok(ids()?.iter().filter_map(|id| status(id).ok()).collect())
}

pub(super) fn status(id: &UnitId) -> Result<UnitStatus> {
    let (directory, record) = load(id)?;
    let (cpu_ms, resident) = record.state.pid().and_then(|pid| proc::usage(pid).ok()).unwrap_or_default();
    let files: Vec<OpenFile> =
        record.state.pid().and_then(|pid| proc::open_files(&directory, pid).ok()).unwrap_or_default();
    Ok(UnitStatus { record, cpu_ms, resident, files })
}

pub(super) fn create(spec: &UnitSpec) -> Result<()> {
    let directory = UnitDir::of(&spec.id);
    if directory.path().exists() {
        return Err(NodeError::UnitExists { unit: spec.id.clone() });
    }
    make(&directory, &record_of(spec, UnitState::Created)?)
}

fn record_of(spec: &UnitSpec, state: UnitState) -> Result<UnitRecord> {
    let pipes = [String::new(), String::new()];
    Ok(UnitRecord { spec: spec.clone(), home: Isa::here()?, state, pipes, crossings: 0 })
}

fn make(directory: &UnitDir, record: &UnitRecord) -> Result<()> {
    fs::create_dir_all(directory.root()).map_err(NodeError::at("making", &directory.root()))?;
    directory.save(record)
}

pub(super) fn receive_tree(client: &mut Channel, id: &UnitId) -> Result<Received> {
    let (directory, record) = load(id)?;
    expect_state(&record, &[UnitState::Created, UnitState::Incoming], "created or incoming")?;
    tree::receive(client, &directory.root())
}

pub(super) fn receive_images(client: &mut Channel, id: &UnitId) -> Result<Received> {
    let (directory, record) = load(id)?;
    expect_state(&record, &[UnitState::Incoming], "incoming")?;
    let (received, sent) = images::receive(client, &directory)?;
    if sent.spec != record.spec {
        return Err(NodeError::protocol("the checkpoint is of another unit"));
    }
    directory.save_pipes(&sent.pipes)?;
    Ok(received)
}

fn expect_state(record: &UnitRecord, wanted: &[UnitState], words: &str) -> Result<()> {
    if wanted.contains(&record.state) {
        return Ok(());
    }
    Err(wrong_state(record, words))
}

fn wrong_state(record: &UnitRecord, wanted: &str) -> NodeError {
    let (unit, state) = (record.spec.id.clone(), record.state.to_string());
    NodeError::WrongState { unit, state, wanted: wanted.to_owned() }
}

pub(super) fn start(id: &UnitId, how: &Translation) -> Result<UnitRecord> {
    let (directory, record) = load(id)?;
    expect_state(&record, &[UnitState::Created], "created")?;
    Tunnel::over(supervise(id, &directory)?).start(how)
}

/// Make ready for a unit that another node has, and return the connection that holds it here.
pub(super) fn expect(mut record: UnitRecord) -> Result<Channel> {
    let id = record.spec.id.clone();
    let directory = UnitDir::of(&id);
    if directory.path().exists() {
        let (_, present) = load(&id)?;
        // What it left when it moved away from here makes its return quick; so does what was brought here for it
        // before it started.
        let waits = matches!(present.state, UnitState::Moved { .. } | UnitState::Lost | UnitState::Created);
        if !waits || present.spec != record.spec {
            return Err(NodeError::UnitExists { unit: id });
        }
    }
    record.state = UnitState::Incoming;
    make(&directory, &record)?;
    supervise(&id, &directory)
}

pub(super) fn attach(id: &UnitId) -> Result<Channel> {
    let (directory, record) = load(id)?;
    if record.state.pid().is_none() {
        expect_state(&record, &[], "running")?;
    }
    Channel::connect_local(&directory.control())
}

/// Connect to a TCP port of the loopback that the unit sees.
pub(super) fn connect(id: &UnitId, port: u16) -> Result<File> {
    let (_, record) = load(id)?;
    let UnitState::Running { pid, .. } = record.state else {
        return Err(wrong_state(&record, "running"));
    };
    network::connect(pid, port)
        .map_err(|why| NodeError::io(format!("connecting to port {port} of {id}"), why))
}

/// Start a supervisor, and connect to it.
fn supervise(id: &UnitId, directory: &UnitDir) -> Result<Channel> {
    let log = File::create(directory.supervisor_log())
        .map_err(NodeError::at("making", &directory.supervisor_log()))?;
    wait_for_the_last(directory);
    let [program, action] = supervisor::COMMAND;
    let mut command = Command::new(program);
    command.args([action, id.as_str()]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    let mut child = command.spawn().map_err(|why| NodeError::io("starting a supervisor", why))?;
    let deadline = Instant::now() + SUPERVISOR;
    let connected = loop {
        match Channel::connect_local(&directory.control()) {
            Ok(channel) => break Ok(channel),
            Err(error) if Instant::now() > deadline => break Err(error),
            Err(error) if child.try_wait().is_ok_and(|ended| ended.is_some()) => break Err(error),
            Err(_) => thread::sleep(Duration::from_millis(2)),
        }
    };
    thread::spawn(move || child.wait());
    connected
}

/// A unit that returns quickly may find the supervisor that it had here about to end.
fn wait_for_the_last(directory: &UnitDir) {
    let deadline = Instant::now() + SUPERVISOR;
    while supervisor::lives(directory) && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(1));
    }
    let _ = fs::remove_file(directory.control());
}

/// Output from `from` on, and what has become of the unit if there is no more.
pub(super) fn output(id: &UnitId, from: [u64; 2]) -> Result<(OutputChunk, Vec<u8>)> {
    let deadline = Instant::now() + OUTPUT_WAIT;
    loop {
        // The state first: output that comes after a final state there is none.
        let (directory, record) = load(id)?;
        let mut bytes = read_log(&directory, Output::Stdout, from[0])?;
        let stdout = bytes.len() as u64;
        bytes.append(&mut read_log(&directory, Output::Stderr, from[1])?);
        let is_last = record.state.is_final() && bytes.is_empty();
        if !bytes.is_empty() || is_last || Instant::now() > deadline {
            let is_full = stdout == OUTPUT_CHUNK || bytes.len() as u64 == stdout + OUTPUT_CHUNK;
            let more = is_full || record.state.is_final() && !is_last;
            let mut chunk = OutputChunk { stdout, moved: None, ended: None, lost: false, more };
            match record.state {
                UnitState::Exited { status } if is_last => chunk.ended = Some(status),
                UnitState::Moved { to } if is_last => chunk.moved = Some(to),
                UnitState::Lost if is_last => chunk.lost = true,
                _ => {}
            }
            return Ok((chunk, bytes));
        }
        thread::sleep(OUTPUT_POLL);
    }
}

fn read_log(directory: &UnitDir, output: Output, from: u64) -> Result<Vec<u8>> {
    let path = directory.output(output);
    let failed = |why| NodeError::at("reading", &path)(why);
    let mut bytes = Vec::new();
    match File::open(&path) {
        Err(why) if why.kind() == std::io::ErrorKind::NotFound => {}
        Err(why) => return Err(failed(why)),
        Ok(mut log) => {
            log.seek(SeekFrom::Start(from)).map_err(failed)?;
            log.take(OUTPUT_CHUNK).read_to_end(&mut bytes).map_err(failed)?;
        }
    }
    Ok(bytes)
}

pub(super) fn signal(id: &UnitId, signal: i32) -> Result<()> {
    let (_, record) = load(id)?;
    match record.state {
        UnitState::Running { pid, .. } => Watch::of(pid)?.signal(signal),
        _ => expect_state(&record, &[], "running"),
    }
}

pub(super) fn remove(id: &UnitId) -> Result<()> {
    let (directory, record) = load(id)?;
    if !record.state.is_final() && record.state != UnitState::Created {
        return expect_state(&record, &[], "ended, moved or never started");
    }
    directory.remove()
}

pub(super) fn open_file(id: &UnitId, path: &str) -> Result<(File, u64)> {
    let (directory, _) = load(id)?;
    let failed = |why: &str| NodeError::io(format!("opening {path} of unit {id}"), why);
    let file = open_in_root(&directory.root(), path).ok_or_else(|| failed("no such file in its root"))?;
    let metadata = file.metadata().map_err(|why| failed(&why.to_string()))?;
    if !metadata.is_file() {
        return Err(failed("it is no regular file"));
    }
    Ok((file, metadata.len()))
}

/// End all units.
pub(super) fn end_all() -> Result<()> {
    for id in ids()? {
        let Ok((_, record)) = load(&id) else { continue };
        if let Some(pid) = record.state.pid()
            && let Ok(watch) = Watch::of(pid)
        {
            watch.kill();
        }
    }
    Ok(())
}
