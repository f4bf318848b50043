//! A unit's standard output and error: pipes whose reading ends the supervisor has, appended to log files.

use super::paths::UnitDir;
use crate::error::{NodeError, Result};
use crate::protocol::Output;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::pipe::{PipeFlags, pipe_with};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// A running copy from one pipe to one log.
#[derive(Debug)]
struct Pump {
    pipe: Arc<OwnedFd>,
    /// Held while bytes are between pipe and log.
    between: Arc<Mutex<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Both streams of a unit.
#[derive(Debug)]
pub struct Outputs {
    pumps: Vec<Pump>,
    /// The pipes' names in a checkpoint, `pipe:[inode]`: standard output, standard error.
    pub names: [String; 2],
}

/// Start collecting the output of a unit. Also returns the writing ends, which the unit gets.
pub fn collect(directory: &UnitDir) -> Result<(Outputs, [OwnedFd; 2])> {
    let (stdout, stdout_writer) = Pump::start(directory, Output::Stdout)?;
    let (stderr, stderr_writer) = Pump::start(directory, Output::Stderr)?;
    let names = [pipe_name(&stdout_writer)?, pipe_name(&stderr_writer)?];
    Ok((Outputs { pumps: vec![stdout, stderr], names }, [stdout_writer, stderr_writer]))
}

fn pipe_name(pipe: &OwnedFd) -> Result<String> {
    let stat = rustix::fs::fstat(pipe).map_err(|why| NodeError::io("looking at a pipe", why))?;
    Ok(format!("pipe:[{}]", stat.st_ino))
}

impl Outputs {
    /// Wait until everything that the unit, which is stopped, has written is in the logs.
    pub fn drain(&self) -> Result<()> {
        self.pumps.iter().try_for_each(Pump::drain)
    }

    /// Wait until every writer is gone and everything is in the logs, but no longer than `limit`: a process that
    /// left the unit's PID namespace could hold a pipe open.
    pub fn finish(&mut self, limit: Duration) {
        let deadline = Instant::now() + limit;
        for pump in &mut self.pumps {
            let Some(thread) = pump.thread.take() else { continue };
            while !thread.is_finished() && Instant::now() < deadline {
                thread::sleep(Duration::from_millis(1));
            }
        }
    }
}

impl Pump {
    fn start(directory: &UnitDir, output: Output) -> Result<(Pump, OwnedFd)> {
        let path = directory.output(output);
        let failed = NodeError::at("opening", &path);
        let mut log = File::options().append(true).create(true).open(&path).map_err(failed)?;
        let (reader, writer) =
            pipe_with(PipeFlags::CLOEXEC).map_err(|why| NodeError::io("making a pipe", why))?;
        let pipe = Arc::new(reader);
        let between = Arc::new(Mutex::new(()));
        let (pipe_of_thread, between_of_thread) = (pipe.clone(), between.clone());
        let thread = thread::spawn(move || {
            if let Err(why) = pump(&pipe_of_thread, &between_of_thread, &mut log) {
                eprintln!("output is lost: {why}");
            }
        });
        Ok((Pump { pipe, between, thread: Some(thread) }, writer))
    }

    fn drain(&self) -> Result<()> {
        let failed = |why| NodeError::io("draining output", why);
        loop {
            let guard = lock(&self.between);
            let waiting = rustix::io::ioctl_fionread(&*self.pipe).map_err(failed)?;
            let finished = self.thread.as_ref().is_none_or(JoinHandle::is_finished);
            drop(guard);
            if waiting == 0 || finished {
                return Ok(());
            }
            thread::sleep(Duration::from_micros(200));
        }
    }
}

/// Copy until every writer is gone.
fn pump(pipe: &OwnedFd, between: &Mutex<()>, log: &mut File) -> std::io::Result<()> {
    let mut reader = File::from(pipe.try_clone()?);
    let mut buffer = vec![0; 64 << 10];
    loop {
        poll(&mut [PollFd::new(pipe, PollFlags::IN)], None)?;
        let _between = lock(between);
        match reader.read(&mut buffer)? {
            0 => return Ok(()),
            n => log.write_all(&buffer[..n])?,
        }
    }
}

fn lock(mutex: &Mutex<()>) -> MutexGuard<'_, ()> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
