//! A unit's supervisor: listens in the unit's directory, and does what its connections ask. Whoever froze the unit or
//! brought it in holds it by the connection: closed without a verdict, the unit goes on where it was.

use super::criu::{self, Gated};
use super::output::{self, Outputs};
use super::paths::UnitDir;
use super::process::{self, Watch};
use super::supply::Consumers;
use super::{images, proc, quiesce, recoding, vdso};
use crate::client;
use crate::error::{NodeError, Result};
use crate::progress::Progress;
use crate::protocol::{
    Channel, CheckpointReport, CodeRequest, Peer, ProcessLook, Received, Request, RestoreReport, Translation,
    UnitRequest,
};
use crate::record::{ExitStatus, Mode, UnitId, UnitRecord, UnitState};
use crate::serve::{answer, answer_long};
use crate::tree::{self, Writers};
use crate::trust::Membership;
use rustix::fs::FlockOperation;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

/// How a supervisor's command line starts: this program, and what it is to be.
pub const COMMAND: [&str; 2] = ["/proc/self/exe", "supervise"];

/// A supervisor without a unit waits so long for a connection.
const IDLE: Duration = Duration::from_secs(15);
/// How long output may keep coming after the unit's end.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// What the supervisor has in hand.
enum Hand {
    /// Nothing yet.
    Empty,
    /// A running unit.
    Running(Running),
    /// A unit that waits in CRIU's hands after its dump.
    Frozen { running: Running, gated: Gated, since: Instant, held: bool, ended: Option<ExitStatus> },
    /// A unit that waits in CRIU's hands after its restore.
    Restored { outputs: Outputs, gated: Gated, mode: Mode },
    /// The unit ended, moved or was never started: the supervisor is to end.
    Done,
}

/// A unit with processes.
struct Running {
    pid: u32,
    mode: Mode,
    watch: Watch,
    outputs: Outputs,
}

struct Supervisor {
    directory: UnitDir,
    record: Mutex<UnitRecord>,
    hand: Mutex<Hand>,
    changed: Condvar,
    /// Requests that have not been answered yet.
    unanswered: AtomicUsize,
    /// Connections that are open. What a unit needs may take its time to come while one is.
    connections: AtomicUsize,
}

/// Supervise the unit `id` to its end. Returns when there is nothing left to supervise.
pub fn supervise(id: &UnitId) -> Result<()> {
    let directory = UnitDir::of(id);
    let _lock = take_lock(&directory)?;
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
        .map_err(|why| NodeError::io("becoming the reaper of the unit", why))?;
    let record = directory.load()?;
    let supervisor = Arc::new(Supervisor {
        record: Mutex::new(record),
        hand: Mutex::new(Hand::Empty),
        changed: Condvar::new(),
        unanswered: AtomicUsize::new(0),
        connections: AtomicUsize::new(0),
        directory,
    });
    supervisor.listen()?;
    supervisor.wait_until_done();
    supervisor.wait_until_answered();
    let _ = fs::remove_file(supervisor.directory.control());
    Ok(())
}

/// Whether a supervisor of this unit lives.
pub fn lives(directory: &UnitDir) -> bool {
    let file = File::open(directory.lock());
    file.is_ok_and(|file| rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared).is_err())
}

/// Whether process `pid` is the supervisor of some unit.
pub fn is_supervisor(pid: u32) -> bool {
    proc::command_line(pid).get(..COMMAND.len()).is_some_and(|words| words == COMMAND)
}

fn take_lock(directory: &UnitDir) -> Result<File> {
    let path = directory.lock();
    let file = File::create(&path).map_err(NodeError::at("making", &path))?;
    rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive)
        .map_err(NodeError::at("a supervisor is there already: locking", &path))?;
    Ok(file)
}

impl Supervisor {
    fn listen(self: &Arc<Self>) -> Result<()> {
        let path = self.directory.control();
        let _ = fs::remove_file(&path);
        let listener = UnixListener::bind(&path).map_err(NodeError::at("listening at", &path))?;
        let supervisor = self.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let supervisor = supervisor.clone();
                thread::spawn(move || {
                    supervisor.connections.fetch_add(1, Ordering::SeqCst);
                    if let Err(error) = Connection::serve(&supervisor, stream.into()) {
                        eprintln!("connection: {error}");
                    }
                    supervisor.connections.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        Ok(())
    }

    fn wait_until_done(&self) {
        let mut hand = self.hand();
        let mut connected = Instant::now();
        loop {
            if self.connections.load(Ordering::SeqCst) > 0 {
                connected = Instant::now();
            }
            match &*hand {
                Hand::Done => return,
                Hand::Empty if connected.elapsed() > IDLE => return,
                _ => {}
            }
            let timeout = self.changed.wait_timeout(hand, Duration::from_secs(1));
            hand = timeout.unwrap_or_else(|poisoned| poisoned.into_inner()).0;
        }
    }

    /// Who asked for the end is to hear of it.
    fn wait_until_answered(&self) {
        let deadline = Instant::now() + LAST_WORDS;
        while self.unanswered.load(Ordering::SeqCst) > 0 && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(1));
        }
    }

    fn hand(&self) -> MutexGuard<'_, Hand> {
        self.hand.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn record(&self) -> UnitRecord {
        self.record.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone()
    }

    /// Change the record, in memory and on disk.
    fn note(&self, change: impl FnOnce(&mut UnitRecord)) -> Result<UnitRecord> {
        let mut record = self.record.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        change(&mut record);
        self.directory.save(&record)?;
        Ok(record.clone())
    }

    fn put(&self, hand: &mut MutexGuard<'_, Hand>, next: Hand) {
        **hand = next;
        self.changed.notify_all();
    }

    fn wrong_state(&self, wanted: &str) -> NodeError {
        let record = self.record();
        NodeError::WrongState {
            unit: record.spec.id,
            state: record.state.to_string(),
            wanted: wanted.to_owned(),
        }
    }

    // ---- running ----

    fn start(self: &Arc<Self>, how: &Translation) -> Result<UnitRecord> {
        let mut hand = self.hand();
        let Hand::Empty = *hand else { return Err(self.wrong_state("created")) };
        let spec = self.record().spec;
        let program = process::find_program(&self.directory.root(), &spec)?;
        let (outputs, writers) = output::collect(&self.directory)?;
        let pid = process::start(&self.directory, &spec, &program, how, writers)?;
        self.note(|record| record.home = program.isa)?;
        self.runs(&mut hand, pid, mode_of(how), outputs)
    }

    /// Take the processes that `pid` is the first of in hand.
    fn runs(
        self: &Arc<Self>,
        hand: &mut MutexGuard<'_, Hand>,
        pid: u32,
        mode: Mode,
        outputs: Outputs,
    ) -> Result<UnitRecord> {
        let watch = Watch::of(pid)?;
        let end = watch.another()?;
        let pipes = outputs.names.clone();
        self.put(hand, Hand::Running(Running { pid, mode, watch, outputs }));
        let record = self.note(|record| {
            record.state = UnitState::Running { pid, mode };
            record.pipes = pipes;
        })?;
        let supervisor = self.clone();
        thread::spawn(move || match end.wait() {
            Ok(status) => supervisor.ended(pid, status),
            Err(error) => eprintln!("{error}"),
        });
        Ok(record)
    }

    /// The unit's first process ended. In CRIU's hands after a dump that is mostly CRIU's doing; it counts if the
    /// unit is to go on here after all.
    fn ended(&self, pid: u32, status: ExitStatus) {
        let mut hand = self.hand();
        match &mut *hand {
            Hand::Running(running) if running.pid == pid => self.end(&mut hand, status),
            Hand::Frozen { running, ended, .. } if running.pid == pid => *ended = Some(status),
            _ => {}
        }
    }

    fn end(&self, hand: &mut MutexGuard<'_, Hand>, status: ExitStatus) {
        if let Hand::Running(running) = &mut **hand {
            running.outputs.finish(LAST_WORDS);
        }
        self.complain(self.note(|record| record.state = UnitState::Exited { status }).map(drop));
        self.put(hand, Hand::Done);
    }

    fn complain(&self, outcome: Result<()>) {
        if let Err(error) = outcome {
            eprintln!("{error}");
        }
    }

    fn programs(&self) -> Result<BTreeSet<String>> {
        match &*self.hand() {
            Hand::Running(running) => proc::programs(&self.directory, running.pid),
            _ => Err(self.wrong_state("running")),
        }
    }

    // ---- leaving ----

    fn send_tree(&self, peer: &Peer, progress: &Progress) -> Result<Received> {
        let state = self.record().state;
        let through_memory = match state.pid() {
            Some(pid) => proc::written_through_memory(&self.directory, pid)?,
            None => BTreeSet::new(),
        };
        let writers = Writers { present: matches!(state, UnitState::Running { .. }), through_memory };
        let root = self.directory.root();
        let entries = tree::list(&root)?;
        let mut channel = client::open(peer, &Membership::identity()?)?;
        channel.send(&Request::Tree(self.record().spec.id))?;
        let sent = tree::send(&mut channel, &root, entries, &writers, progress);
        client::answer_to_transfer(channel, sent)
    }

    fn send_images(&self, peer: &Peer, progress: &Progress) -> Result<Received> {
        let mut channel = client::open(peer, &Membership::identity()?)?;
        let record = self.record();
        channel.send(&Request::Images(record.spec.id.clone()))?;
        let set = canonical_set(mode_in(&record.state));
        let sent = images::send(&mut channel, &self.directory, set, &record, progress);
        client::answer_to_transfer(channel, sent)
    }

    fn checkpoint(self: &Arc<Self>, lease: Duration) -> Result<CheckpointReport> {
        let mut hand = self.hand();
        let running = match std::mem::replace(&mut *hand, Hand::Empty) {
            Hand::Running(running) => running,
            other => {
                *hand = other;
                return Err(self.wrong_state("running"));
            }
        };
        match self.freeze(&running) {
            Ok((gated, report, since)) => {
                let (pid, mode) = (running.pid, running.mode);
                self.put(&mut hand, Hand::Frozen { running, gated, since, held: false, ended: None });
                self.note(|record| record.state = UnitState::Frozen { pid, mode })?;
                self.limit(since, lease);
                Ok(report)
            }
            Err(error) => {
                self.resume(&mut hand, running, None);
                Err(error)
            }
        }
    }

    /// Bring the unit to a stop and write its canonical checkpoint. After an error it is out of CRIU's hands.
    fn freeze(&self, running: &Running) -> Result<(Gated, CheckpointReport, Instant)> {
        let mut report = CheckpointReport::default();
        let translated = running.mode == Mode::Translated;
        let start = Instant::now();
        if translated {
            quiesce::park(running.pid)?;
        }
        report.quiesce_us = micros(start);
        let start_dump = Instant::now();
        let set = self.directory.fresh_images("dump")?;
        let gated = criu::dump(&self.directory, running.pid, &running.outputs.names, &set)?;
        report.dump_us = micros(start_dump);
        let start_recode = Instant::now();
        let recoded = if translated {
            recoding::to_canonical(&self.directory)
        } else {
            vdso::leave(&set, running.pid).map(drop)
        };
        if let Err(error) = recoded.and_then(|()| running.outputs.drain()) {
            self.complain(gated.shut());
            return Err(error);
        }
        report.recode_us = micros(start_recode);
        report.frozen_us = micros(start);
        Ok((gated, report, start))
    }

    /// Let a unit that is out of CRIU's hands go on.
    fn resume(&self, hand: &mut MutexGuard<'_, Hand>, running: Running, ended: Option<ExitStatus>) {
        let (pid, mode) = (running.pid, running.mode);
        if mode == Mode::Translated && ended.is_none() {
            self.complain(quiesce::release(pid));
        }
        self.complain(self.directory.clear_images());
        self.put(hand, Hand::Running(running));
        match ended {
            Some(status) => self.end(hand, status),
            None => {
                self.complain(self.note(|record| record.state = UnitState::Running { pid, mode }).map(drop))
            }
        }
    }

    /// The unit goes on by itself if nobody has decided after `lease`.
    fn limit(self: &Arc<Self>, since: Instant, lease: Duration) {
        let supervisor = self.clone();
        thread::spawn(move || {
            thread::sleep(lease);
            let hand = supervisor.hand();
            let overdue = matches!(&*hand, Hand::Frozen { since: s, held: false, .. } if *s == since);
            drop(hand);
            if overdue {
                supervisor.complain(supervisor.abort());
            }
        });
    }

    fn hold(&self) -> Result<()> {
        let mut hand = self.hand();
        let Hand::Frozen { running, held, .. } = &mut *hand else { return Err(self.wrong_state("frozen")) };
        *held = true;
        let (pid, mode) = (running.pid, running.mode);
        self.note(|record| record.state = UnitState::Held { pid, mode }).map(drop)
    }

    /// Let the frozen unit go on here.
    fn abort(&self) -> Result<()> {
        let mut hand = self.hand();
        match std::mem::replace(&mut *hand, Hand::Empty) {
            Hand::Frozen { running, gated, ended, .. } => {
                let shut = gated.shut();
                self.resume(&mut hand, running, ended);
                shut
            }
            other => {
                *hand = other;
                Err(self.wrong_state("frozen"))
            }
        }
    }

    /// End the frozen unit, which another node has. What CRIU says about its own end makes no difference to that.
    fn commit(&self, to: &str) -> Result<()> {
        let mut hand = self.hand();
        match std::mem::replace(&mut *hand, Hand::Empty) {
            Hand::Frozen { mut running, gated, .. } => {
                self.complain(gated.open());
                running.watch.kill();
                self.note(|record| record.state = UnitState::Moved { to: to.to_owned() })?;
                running.outputs.finish(LAST_WORDS);
                self.complain(self.directory.clear_images());
                self.put(&mut hand, Hand::Done);
                Ok(())
            }
            other => {
                *hand = other;
                Err(self.wrong_state("frozen"))
            }
        }
    }

    // ---- arriving ----

    fn restore(&self, how: &Translation) -> Result<RestoreReport> {
        let mut hand = self.hand();
        let Hand::Empty = *hand else { return Err(self.wrong_state("incoming")) };
        let mut report = RestoreReport::default();
        let start = Instant::now();
        let images = recoding::from_canonical(&self.directory, how)?;
        report.recode_us = micros(start);
        let start = Instant::now();
        let (outputs, writers) = output::collect(&self.directory)?;
        let gated = criu::restore(&self.directory, &images, &self.directory.load_pipes()?, writers)?;
        report.restore_us = micros(start);
        self.put(&mut hand, Hand::Restored { outputs, gated, mode: mode_of(how) });
        Ok(report)
    }

    fn go(self: &Arc<Self>) -> Result<UnitRecord> {
        let mut hand = self.hand();
        match std::mem::replace(&mut *hand, Hand::Empty) {
            Hand::Restored { outputs, gated, mode } => {
                gated.open()?;
                let pid = criu::restored_pid(&self.directory)?;
                self.note(|record| record.crossings += 1)?;
                let record = self.runs(&mut hand, pid, mode, outputs)?;
                self.complain(self.directory.clear_images());
                Ok(record)
            }
            other => {
                *hand = other;
                Err(self.wrong_state("restored"))
            }
        }
    }

    /// Undo an arrival.
    fn send_back(&self) {
        let mut hand = self.hand();
        if let Hand::Restored { gated, .. } = std::mem::replace(&mut *hand, Hand::Done) {
            self.complain(gated.shut());
        }
        self.complain(self.directory.remove());
        self.put(&mut hand, Hand::Done);
    }
}

/// Name of the canonical image set of a unit that ran so.
fn canonical_set(mode: Option<Mode>) -> &'static str {
    if mode == Some(Mode::Translated) { "canonical" } else { "dump" }
}

fn mode_in(state: &UnitState) -> Option<Mode> {
    match state {
        UnitState::Running { mode, .. } | UnitState::Frozen { mode, .. } | UnitState::Held { mode, .. } => {
            Some(*mode)
        }
        _ => None,
    }
}

fn mode_of(how: &Translation) -> Mode {
    match how {
        Translation::Native => Mode::Native,
        Translation::Objects(_) => Mode::Translated,
    }
}

fn micros(since: Instant) -> u64 {
    since.elapsed().as_micros() as u64
}

// ---- connections ----

/// What a connection is answerable for.
#[derive(PartialEq)]
enum Lease {
    Nothing,
    /// It froze the unit.
    Frozen,
    /// It brings the unit in.
    Incoming,
}

struct Connection<'a> {
    supervisor: &'a Arc<Supervisor>,
    client: Channel,
    lease: Lease,
    /// The processes that it supplies with code, once it has asked for them.
    consumers: Option<Consumers>,
}

impl Connection<'_> {
    fn serve(supervisor: &Arc<Supervisor>, socket: std::os::fd::OwnedFd) -> Result<()> {
        let client = Channel::over(socket, "the client")?;
        client.wait_for_frames(None)?;
        let incoming = supervisor.record().state == UnitState::Incoming;
        let lease = if incoming { Lease::Incoming } else { Lease::Nothing };
        let mut connection = Connection { supervisor, client, lease, consumers: None };
        let outcome = connection.requests();
        match connection.lease {
            Lease::Frozen => supervisor.complain(supervisor.abort_unless_held()),
            Lease::Incoming => supervisor.send_back(),
            Lease::Nothing => {}
        }
        outcome
    }

    fn requests(&mut self) -> Result<()> {
        while let Some(frame) = self.client.receive_or_end::<UnitRequest>()? {
            self.supervisor.unanswered.fetch_add(1, Ordering::SeqCst);
            let answered = self.request(frame.message, frame.body);
            self.supervisor.unanswered.fetch_sub(1, Ordering::SeqCst);
            answered?;
        }
        Ok(())
    }

    fn request(&mut self, request: UnitRequest, body: u64) -> Result<()> {
        let supervisor = self.supervisor;
        let client = &mut self.client;
        match request {
            UnitRequest::Start(how) => answer(client, supervisor.start(&how)),
            UnitRequest::Programs => answer(client, supervisor.programs()),
            UnitRequest::SendTree(peer) => {
                answer_long(client, |progress| supervisor.send_tree(&peer, progress))
            }
            UnitRequest::SendImages(peer) => {
                answer_long(client, |progress| supervisor.send_images(&peer, progress))
            }
            UnitRequest::Checkpoint { lease_seconds } => {
                let limit = Duration::from_secs(lease_seconds);
                let lease = &mut self.lease;
                answer_long(client, |_| {
                    let report = supervisor.checkpoint(limit)?;
                    *lease = Lease::Frozen;
                    Ok(report)
                })
            }
            UnitRequest::Hold => answer(client, supervisor.hold()),
            UnitRequest::Commit { to } => {
                let committed = supervisor.commit(&to);
                self.lease = Lease::Nothing;
                answer(client, committed)
            }
            UnitRequest::Abort => {
                let aborted = supervisor.abort();
                self.lease = Lease::Nothing;
                answer(client, aborted)
            }
            UnitRequest::Restore(how) => answer_long(client, |_| supervisor.restore(&how)),
            UnitRequest::Go => {
                let gone = supervisor.go();
                if gone.is_ok() {
                    self.lease = Lease::Nothing;
                }
                answer(client, gone)
            }
            UnitRequest::Code(CodeRequest::Look) => {
                let looked = self.look();
                answer(&mut self.client, looked)
            }
            UnitRequest::Code(request) => match &mut self.consumers {
                Some(consumers) => consumers.serve(client, request, body),
                None => Err(NodeError::protocol("nobody has looked at the processes yet")),
            },
        }
    }

    /// What the unit wants compiled. While it is in CRIU's hands it wants nothing.
    fn look(&mut self) -> Result<Option<Vec<ProcessLook>>> {
        let pid = match &*self.supervisor.hand() {
            Hand::Running(running) => running.pid,
            Hand::Frozen { .. } | Hand::Restored { .. } => return Ok(Some(Vec::new())),
            Hand::Empty | Hand::Done => return Ok(None),
        };
        self.consumers.get_or_insert_with(|| Consumers::of(pid)).look()
    }
}

impl Supervisor {
    fn abort_unless_held(&self) -> Result<()> {
        match &*self.hand() {
            Hand::Frozen { held: false, .. } => {}
            _ => return Ok(()),
        }
        self.abort()
    }
}
